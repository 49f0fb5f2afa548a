"""Ops that take, write or add at indices: the dimensions that these leave as they are may be cut."""

from __future__ import annotations

from collections.abc import Iterator

from .._dispatch import Call, R, Way, ways_of
from .common import cutters
from .shapes import moving


def _own(found: Call) -> int:
    return found["dim"] % max(found.tensors[0].ndim, 1)


@ways_of("gather", "scatter", "scatter_add", "scatter_reduce")
def _at_places(found: Call, number: int) -> Iterator[Way]:
    """Another dimension, of the same size in all, cut in all. What is gathered lies where its index does."""
    tensors, own = found.tensors, _own(found)
    ndim = tensors[0].ndim
    for cut in cutters(found, number):
        for dim in range(ndim):
            if dim != own and all(t.ndim == ndim and t.shape[dim] == tensors[0].shape[dim] for t in tensors):
                yield [cut(dim)] * len(tensors), cut(dim)
        if found.op.name == "gather" and ndim:
            yield [R, cut(own)], cut(own)


@ways_of("index_select")
def _index_select(found: Call, number: int) -> Iterator[Way]:
    """Another dimension cut, or the indices."""
    own = _own(found)
    yield from moving(found, number, lambda d: None if d == own else d)
    if found.tensors[0].ndim and found.tensors[1].ndim:
        for cut in cutters(found, number):
            yield [R, cut(0)], cut(own)


@ways_of("index_add", "index_copy", "index_fill")
def _at_indices(found: Call, number: int) -> Iterator[Way]:
    """Another dimension cut, in what is written too; a single element is that of all."""
    target, own = found.tensors[0], _own(found)
    for cut in cutters(found, number):
        for dim in range(target.ndim):
            if dim != own:
                beside = [R if t.ndim < target.ndim or t is found["index"] else cut(dim) for t in found.tensors[1:]]
                yield [cut(dim), *beside], cut(dim)
