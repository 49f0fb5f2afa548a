"""Which nodes of a graph match the patterns of a backend."""

from __future__ import annotations

import sys
from typing import Any

from torchlite.fx.graph import Graph, Node
from torchlite.nn import Module
from torchlite.nn.utils.parametrize import type_before_parametrizations

from ..utils import MatchAllNode
from .graph_module import _is_observed_standalone_module
from .quantize_handler import QuantizeHandler

__all__: list[str] = []


def _fits(modules: dict[str, Any], node: Node, part: Any) -> bool:
    """True if a node is a call of one class, function or method."""
    if isinstance(part, type) and issubclass(part, Module):
        return node.op == "call_module" and type_before_parametrizations(modules[node.target]) == part  # type: ignore[index]
    if callable(part):
        return node.op == "call_function" and node.target is part
    if isinstance(part, str):
        return node.op == "call_method" and node.target == part
    return node.target == part


def _is_match(modules: dict[str, Any], node: Any, pattern: Any, max_uses: int = sys.maxsize) -> bool:
    """True if a node, and those that make its arguments, match a pattern. The latter have no other use."""
    part, *parts = pattern if isinstance(pattern, tuple) else (pattern,)
    if isinstance(part, type) and issubclass(part, MatchAllNode):
        return True
    if node == pattern:
        return True
    if not isinstance(node, Node) or len(node.users) > max_uses or not _fits(modules, node, part):
        return False
    if part is getattr:
        return not parts or node.args[1] == parts[0]
    if not parts:
        return True
    return len(parts) == len(node.args) and all(
        _is_match(modules, arg, inner, max_uses=1) for arg, inner in zip(node.args, parts, strict=True)
    )


def _matched_nodes(pattern: Any, node: Any, found: list[Any]) -> None:
    """Add the nodes of a pattern, the last one first. Those of one argument stand in a tuple of their own."""
    if not isinstance(pattern, tuple):
        found.append(node)
        return
    part, *parts = pattern
    _matched_nodes(part, node, found)
    if part is getattr:
        return
    inner: list[Any] = []
    for arg, argument_pattern in zip(node.args, parts, strict=False):
        _matched_nodes(argument_pattern, arg, inner)
    if len(inner) < 2:
        found.append(inner[0])
    elif len(parts) == 1:
        found.append(tuple(inner))
    else:
        found.extend(inner)


def _flat(nodes: Any) -> list[Node]:
    if isinstance(nodes, Node):
        return [nodes]
    return [node for part in nodes for node in _flat(part)] if isinstance(nodes, (list, tuple)) else []


def _find_matches(
    graph: Graph, modules: dict[str, Any], patterns: dict[Any, Any], root_node_getter_mapping: dict[Any, Any],
    standalone_module_names: Any = (), standalone_module_classes: Any = (), custom_module_classes: Any = (),
) -> dict[str, tuple[Node, Any, Any, Any]]:  # fmt: skip
    """The match of each node by its name: the last node, all nodes, the pattern, and its handler."""
    found: dict[str, tuple[Node, Any, Any, Any]] = {}
    for node in reversed(graph.nodes):
        if node.name in found:
            continue
        for pattern, make in patterns.items():
            if _is_match(modules, node, pattern):
                nodes: list[Any] = []
                _matched_nodes(pattern, node, nodes)
                handler = make(nodes, modules, root_node_getter_mapping.get(pattern))
                for each in _flat(nodes):
                    found[each.name] = (node, nodes, pattern, handler)
                break
    for node in graph.nodes:
        if node.op != "call_module":
            continue
        kind = type(modules[node.target])  # type: ignore[index]
        if (
            node.target in standalone_module_names
            or kind in standalone_module_classes
            or _is_observed_standalone_module(modules[node.target])  # type: ignore[index]
        ):
            found[node.name] = (node, node, None, QuantizeHandler(node, modules, is_standalone_module=True))
        elif kind in custom_module_classes:
            found[node.name] = (node, node, None, QuantizeHandler(node, modules, is_custom_module=True))
    return found
