"""How a model is traced for quantization: layers, fused layers and chosen modules stay calls."""

from __future__ import annotations

from typing import Any

from torchlite import fx
from torchlite.ao.nn.intrinsic import _FusedModule
from torchlite.fx.proxy import Scope
from torchlite.nn import Module, Sequential

__all__ = ["QuantizationTracer"]


class ScopeContextManager(fx.proxy.ScopeContextManager):
    """Sets the module within which nodes are made, for the time of a block.

    Args:
        scope: The scope that is changed.
        current_module: The module.
        current_module_path: Its name.
    """

    def __init__(self, scope: Scope, current_module: Module, current_module_path: str) -> None:
        super().__init__(scope, Scope(current_module_path, type(current_module)))


def _is_layer(module: Module) -> bool:
    """True for a class of `torch.nn` or `torch.ao.nn`."""
    parts = type(module).__module__.split(".")
    return parts[0] in ("torch", "torchlite") and parts[1:2] in (["nn"], ["ao"]) and "nn" in parts[1:3]


class QuantizationTracer(fx.Tracer):
    """A tracer for which some modules are calls.

    Args:
        skipped_module_names: Names of such modules.
        skipped_module_classes: Classes of such modules.

    Example:
        >>> from torchlite.ao.quantization.fx.tracer import QuantizationTracer
        >>> graph = QuantizationTracer([], []).trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_module', 'output']
    """

    def __init__(self, skipped_module_names: list[str], skipped_module_classes: list[Any]) -> None:
        super().__init__()
        self.skipped_module_names, self.skipped_module_classes = skipped_module_names, skipped_module_classes
        self.scope = Scope("", None)
        self.record_stack_traces = True

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return (
            (_is_layer(m) and not isinstance(m, Sequential))
            or module_qualified_name in self.skipped_module_names
            or type(m) in self.skipped_module_classes
            or isinstance(m, _FusedModule)
        )
