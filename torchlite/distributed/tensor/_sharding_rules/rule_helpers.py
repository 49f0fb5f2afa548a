"""Helpers of sharding rules: dimensions, placement kinds, broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._dispatch import R
from .._op_strategy import OpCall
from ..placement_types import Partial, Placement, Shard

SUM = Partial()


def normalize_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return non-negative dimensions: all by default."""
    if dim is None or (isinstance(dim, (tuple, list)) and not len(dim)):
        return tuple(range(ndim))
    return tuple(d % ndim if ndim else 0 for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))


def shard_kinds(found: OpCall, number: int) -> list[Callable[[int], Shard]]:
    """Return the kinds of Shard placements of arguments along a mesh dimension: each makes the same of another
    dimension.
    """
    kinds: list[Callable[[int], Shard]] = [Shard]
    seen = set()
    for tensor in found.tensors:
        placement = tensor._spec.placements[number]
        if isinstance(placement, Shard) and type(placement) is not Shard and placement.at(0) not in seen:
            seen.add(placement.at(0))
            kinds.append(placement.at)
    return kinds


def partial_kinds(found: OpCall, number: int) -> list[Partial]:
    """Return the kinds of Partial placements of arguments along a mesh dimension."""
    kinds: list[Partial] = []
    for tensor in found.tensors:
        placement = tensor._spec.placements[number]
        if isinstance(placement, Partial) and placement.reduce_op in ("sum", "avg") and placement not in kinds:
            kinds.append(placement)
    return kinds


def broadcast_placements(
    shapes: Sequence[Sequence[int]], cut: Callable[[int], Shard]
) -> Iterator[tuple[list[Placement], Shard]]:
    """Yield for each broadcast dimension the arguments' placements when it is sharded, and the result's."""
    ndim = max((len(shape) for shape in shapes), default=0)
    for dim in range(ndim):
        ins: list[Placement] = []
        for shape in shapes:
            own = dim - (ndim - len(shape))
            ins.append(R if own < 0 or shape[own] == 1 else cut(own))
        if any(isinstance(p, Shard) for p in ins):
            yield ins, cut(dim)


def has_empty_part(size: int, mesh: Any) -> bool:
    """True if a process may have an empty shard of a dimension. Several mesh dimensions may shard the same one."""
    count = mesh.size()
    if mesh.ndim > 1:
        return size == 0 or size % count != 0
    return size == 0 or -(-size // -(-size // count)) < count
