"""How the layers of a matched pattern become one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from torchlite import nn
from torchlite.fx.graph import Graph, Node
from torchlite.nn import functional as F
from torchlite.nn.utils.parametrize import type_before_parametrizations

from ..backend_config import BackendConfig
from ..fuser_method_mappings import get_fuser_method_new
from ..utils import MatchAllNode, _parent_name

__all__ = ["DefaultFuseHandler", "FuseHandler"]


class FuseHandler(ABC):
    """The base of what fuses the nodes of a pattern.

    Args:
        node: The last node.
    """

    @abstractmethod
    def __init__(self, node: Node) -> None:
        pass

    @abstractmethod
    def fuse(
        self, load_arg: Callable, named_modules: dict[str, Any], fused_graph: Graph, root_node: Node,
        extra_inputs: list[Any], matched_node_pattern: Any, fuse_custom_config: Any, fuser_method_mapping: dict,
        is_qat: bool,
    ) -> Node:  # fmt: skip
        """Put the one layer into the model, and its node into the new graph."""


def _mapped(pattern: Any, change: Callable[[Any], Any]) -> Any:
    return tuple(_mapped(part, change) for part in pattern) if isinstance(pattern, (tuple, list)) else change(pattern)


class DefaultFuseHandler(FuseHandler):
    """Fuses the nodes of a pattern by the backend's function for it.

    Args:
        node: The last node.
    """

    def __init__(self, node: Node) -> None:
        self.node = node

    def fuse(
        self, load_arg: Callable, named_modules: dict[str, Any], fused_graph: Graph, root_node: Node,
        extra_inputs: list[Any], matched_node_pattern: Any, fuse_custom_config: Any, fuser_method_mapping: dict,
        is_qat: bool,
    ) -> Node:  # fmt: skip
        if root_node.op != "call_module":
            raise AssertionError("Expecting module node to be a call_module Node")
        root = named_modules[str(root_node.target)]

        def module_of(node: Node) -> Any:
            if node.op == "call_module":
                return named_modules[str(node.target)]
            if node.op == "call_function" and node.target is F.relu:
                return nn.ReLU().train(root.training)
            return node.target if node.op in ("call_function", "call_method") else MatchAllNode

        modules = _mapped(matched_node_pattern, module_of)
        kinds = _mapped(modules, lambda m: type_before_parametrizations(m) if isinstance(m, nn.Module) else m)
        fuser_method = get_fuser_method_new(kinds, fuser_method_mapping)
        parent, name = _parent_name(str(root_node.target))
        setattr(named_modules[parent], name, fuser_method(is_qat, *modules))
        node = fused_graph.node_copy(root_node, load_arg)
        node.args = (*node.args, *(load_arg(extra) for extra in extra_inputs))
        return node


def _get_fusion_pattern_to_fuse_handler_cls(backend_config: BackendConfig) -> dict[Any, type[FuseHandler]]:
    entries = backend_config._pattern_complex_format_to_config.items()
    return {pattern: DefaultFuseHandler for pattern, config in entries if config.fuser_method is not None}
