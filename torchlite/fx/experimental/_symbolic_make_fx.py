"""Symbolic mode of `make_fx`: retraces a function with other input sizes and inserts size nodes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torchlite as torch

from ..._tensor import Tensor
from ...utils import _pytree as pytree
from ..node import Node
from ._size_expression_fitting import GraphMerger, NoExpressionError

_TRACE_ERRORS = (RuntimeError, ValueError, IndexError, AssertionError, TypeError)


def insert_size_nodes(traced: Any, args: tuple, again: Callable[[tuple], Any]) -> None:
    """Insert size nodes for numbers that depend on input sizes. Equal input sizes share a symbol. A size that the
    function cannot change, or that changes its ops, is constant.
    """
    leaves, spec = pytree.tree_flatten(args)
    numbers = itertools.count()
    hints: dict[str, int] = {}
    places: dict[tuple[int, int], str] = {}
    for leaf, value in enumerate(leaves):
        for dim, size in enumerate(value.shape if isinstance(value, Tensor) else ()):
            if size > 1:
                name = next((n for n, hint in hints.items() if hint == size), None) or f"s{next(numbers)}"
                hints[name] = size
                places[leaf, dim] = name

    def run(sizes: dict[str, int]) -> Any:
        return again(pytree.tree_unflatten(_resize_args(leaves, places, sizes), spec))

    for name in list(hints):
        try:
            other = run({**hints, name: hints[name] + 3})
        except _TRACE_ERRORS:
            other = None
        if other is None or _count_calls(other) != _count_calls(traced):
            del hints[name]
            places = {where: what for where, what in places.items() if what != name}
    if not hints:
        return
    rows = [dict(hints), *({**hints, name: hints[name] + 3} for name in hints)]
    rows.append({name: hint + 4 for name, hint in hints.items()})
    rows.append({name: hint + 5 + 2 * i for i, (name, hint) in enumerate(hints.items())})
    sources: dict[str, tuple[Node, int]] = {}
    for (leaf, dim), name in places.items():
        sources.setdefault(name, (traced.inputs[leaf], dim))
    found = [traced, *(run(row) for row in rows[1:])]
    for one in found:
        one.graph.output(one.result)
    try:
        GraphMerger([one.graph for one in found], rows, sources).run()
    except NoExpressionError as error:
        raise RuntimeError(f"make_fx: {error}") from None
    finally:
        traced.graph.erase_node(traced.graph.output_node())


def _count_calls(traced: Any) -> list:
    return [(node.op, node.target) for node in traced.graph.nodes if node.op == "call_function"]


def _resize_args(leaves: list, places: dict[tuple[int, int], str], sizes: dict[str, int]) -> list:
    """Return the arguments with other sizes: truncated or repeated."""
    found = []
    for number, leaf in enumerate(leaves):
        for (place, dim), name in places.items():
            if place == number and leaf.shape[dim] != sizes[name]:
                rows = torch.arange(sizes[name], device=leaf.device) % leaf.shape[dim]
                leaf = leaf.detach().index_select(dim, rows).requires_grad_(leaf.requires_grad)
        found.append(leaf)
    return found
