"""Optimizations of modules for inference: batch norms folded into the layers before them, dropout removed."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ...nn.modules._sequential_fusion import BATCH_NORM_OF
from ...nn.modules.batchnorm import BatchNorm1d
from ...nn.modules.dropout import Dropout
from ...nn.modules.linear import Linear
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

_PAIRS: tuple[tuple[type, type], ...] = (*BATCH_NORM_OF.items(), (Linear, BatchNorm1d))


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """True if a node calls a module of the second class on the output of one of the first class."""
    if not node.args:
        return False
    return all(
        isinstance(call, Node) and call.op == "call_module" and type(modules.get(str(call.target))) is kind
        for kind, call in zip(pattern, (node.args[0], node), strict=False)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Any) -> None:
    """Replace the module that a node calls."""
    parent, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """Return a module with batch norms folded into preceding convolutions and linear layers.

    Modules must be in evaluation mode. inplace: modify the module's own layers. no_trace: the module already has a
    graph.

    >>> import torchlite as torch
    >>> from torchlite.fx.experimental.optimization import fuse
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)).eval()
    >>> [node.name for node in fuse(net).graph.nodes]
    ['input_1', '_0', 'output']
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pair in _PAIRS:
        for node in graph.nodes:
            if not matches_module_pattern(pair, node, modules) or len(node.args[0].users) > 1:
                continue
            layer, norm = modules[node.args[0].target], modules[str(node.target)]
            if not norm.track_running_stats:
                continue
            folded = fuse_linear_bn_eval(layer, norm) if pair[0] is Linear else fuse_conv_bn_eval(layer, norm)
            replace_node_module(node.args[0], modules, folded)
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[target], Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: Any) -> GraphModule:
    """Return a module without dropout."""
    return _WithoutDropout(symbolic_trace(model)).transform()
