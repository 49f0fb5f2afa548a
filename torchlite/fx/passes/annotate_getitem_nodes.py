"""Annotates getitem nodes with the element type of their container."""

from __future__ import annotations

import typing
from operator import getitem
from typing import Any

from ..graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Set the type of nodes that take an item of a typed tuple, list or named tuple."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target is getitem:
            whole: Any = node.args[0].type
            if whole:
                node.type = _type_of_item(whole, node.args[1]) or node.type


def _type_of_item(whole: Any, index: Any) -> Any:
    origin, inner = typing.get_origin(whole), typing.get_args(whole)
    if origin is tuple:
        if len(inner) == 2 and inner[1] is ...:
            return inner[0]
        if len(inner) <= index:
            raise AssertionError(f"Index {index} out of range for parameterized_types (len={len(inner)})")
        return inner[index]
    if origin is list:
        return inner[0]
    fields = getattr(whole, "_fields", None)
    return typing.get_type_hints(whole).get(fields[index]) if fields else None
