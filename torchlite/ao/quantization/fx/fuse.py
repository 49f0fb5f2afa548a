"""Fusion of the layers of a graph that a backend computes in one."""

from __future__ import annotations

import warnings
from typing import Any

from torchlite.fx import GraphModule, map_arg
from torchlite.fx.graph import Graph, Node

from ..backend_config import BackendConfig, get_native_backend_config
from ..backend_config.utils import (
    get_fuser_method_mapping,
    get_fusion_pattern_to_extra_inputs_getter,
    get_fusion_pattern_to_root_node_getter,
)
from ..utils import MatchAllNode
from .custom_config import FuseCustomConfig
from .fuse_handler import FuseHandler, _get_fusion_pattern_to_fuse_handler_cls
from .match_utils import _is_match
from .pattern_utils import _sorted_patterns_dict

__all__ = ["FuseHandler", "fuse"]


def from_deprecated_dict(value: Any, kind: Any, function: str, name: str, stacklevel: int = 3) -> Any:
    """Return a configuration, made of a dictionary with a warning."""
    if not isinstance(value, dict):
        return value
    warnings.warn(
        f"Passing a {name} to {function} is deprecated and will not be supported in a future version. Please pass in "
        f"a {kind.__name__} instead.",
        FutureWarning,
        stacklevel=stacklevel,
    )
    return kind.from_dict(value)


def fuse(model: GraphModule, is_qat: bool, fuse_custom_config: Any = None, backend_config: Any = None) -> GraphModule:
    """The module of a graph in which the patterns of a backend are one layer each.

    Args:
        model: The module, whose layers are changed.
        is_qat: Whether it is for quantization aware training.
        fuse_custom_config: What the user chose. Default: nothing.
        backend_config: The backend. Default: PyTorch's own kernels.
    """
    custom = from_deprecated_dict(fuse_custom_config, FuseCustomConfig, "fuse", "fuse_custom_config_dict")
    custom = FuseCustomConfig() if custom is None else custom
    backend = from_deprecated_dict(backend_config, BackendConfig, "prepare", "backend_config_dict")
    backend = get_native_backend_config() if backend is None else backend
    modules = dict(model.named_modules())
    matches = _find_matches(model, _sorted_patterns_dict(_get_fusion_pattern_to_fuse_handler_cls(backend)))
    methods, roots = get_fuser_method_mapping(backend), get_fusion_pattern_to_root_node_getter(backend)
    extras = get_fusion_pattern_to_extra_inputs_getter(backend)
    graph = Graph()
    made: dict[str, Any] = {}

    def load_arg(arg: Any) -> Any:
        return map_arg(arg, lambda node: made[node.name])

    for node in model.graph.nodes:
        match = matches.get(node.name)
        if match is None:
            made[node.name] = graph.node_copy(node, load_arg)
        elif match.last is node:
            root = roots.get(match.pattern, _innermost)(match.nodes)
            more = extras[match.pattern](match.nodes) if match.pattern in extras else []
            made[node.name] = match.handler.fuse(
                load_arg, modules, graph, root, more, match.nodes, custom, methods, is_qat
            )
    return GraphModule(model, graph)


def _innermost(nodes: Any) -> Node:
    while not isinstance(nodes, Node):
        nodes = nodes[-1]
    return nodes


class _Match:
    """The nodes of a pattern: the last one, all in nested tuples, and the pattern with its handler."""

    def __init__(self, last: Node, pattern: Any, nodes: Any, handler: FuseHandler) -> None:
        self.last, self.pattern, self.nodes, self.handler = last, pattern, nodes, handler


def _find_matches(model: GraphModule, handlers: dict[Any, Any]) -> dict[str, _Match]:
    """The match of each node that is fused, by name. Nodes that stand for any input are not fused."""
    modules = dict(model.named_modules())
    found: dict[str, _Match] = {}

    def nested(pattern: Any, node: Any, fused: list[Node]) -> Any:
        if isinstance(pattern, tuple):
            part, *rest = pattern
            inner = (nested(p, arg, fused) for p, arg in zip(rest, node.args, strict=False))
            return (nested(part, node, fused), *inner)
        if pattern is not MatchAllNode:
            fused.append(node)
        return node

    for node in reversed(model.graph.nodes):
        if node.name in found:
            continue
        for pattern, make in handlers.items():
            if not _is_match(modules, node, pattern):
                continue
            fused: list[Node] = []
            nodes = nested(pattern, node, fused)
            if any(each.name in found for each in fused):
                continue
            match = _Match(node, pattern, nodes, make(node))
            found.update((each.name, match) for each in fused)
            break
    return found
