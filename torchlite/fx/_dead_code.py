"""Dead code elimination for graphs of overloads: keeps nodes that mutate or return nothing."""

from __future__ import annotations

import operator
from collections.abc import Collection

from .graph import Graph
from .node import Node


def eliminate_unused(graph: Graph, kept: Collection[Node] = ()) -> None:
    """Remove unused nodes except `kept`."""
    for node in reversed(list(graph.nodes)):
        unused = node.op == "call_function" and not node.users and node not in kept
        if unused and node.target is operator.getitem:
            graph.erase_node(node)
    graph.eliminate_dead_code(lambda node: node in kept or _has_side_effect(node))


def _has_side_effect(node: Node) -> bool:
    """True if a node has a side effect."""
    if node.op != "call_function":
        return node.op != "get_attr"
    schema = getattr(node.target, "_schema", None)
    return schema is not None and (schema.is_mutable or not schema.returns)
