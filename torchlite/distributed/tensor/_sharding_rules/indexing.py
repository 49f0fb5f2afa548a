"""Sharding rules of gather, scatter and index ops: dimensions that are not indexed may be sharded."""

from __future__ import annotations

from collections.abc import Iterator

from .._dispatch import R
from .._op_strategy import OpCall, Strategy, register_op_strategy
from .rule_helpers import shard_kinds
from .view_ops import dim_moving_strategies


def _normalized_dim(found: OpCall) -> int:
    return found["dim"] % max(found.tensors[0].ndim, 1)


@register_op_strategy("gather", "scatter", "scatter_add", "scatter_reduce")
def _gather_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard another dimension of equal size in all arguments. A gathered result is sharded like its index."""
    tensors, own = found.tensors, _normalized_dim(found)
    ndim = tensors[0].ndim
    for cut in shard_kinds(found, number):
        for dim in range(ndim):
            if dim != own and all(t.ndim == ndim and t.shape[dim] == tensors[0].shape[dim] for t in tensors):
                yield [cut(dim)] * len(tensors), cut(dim)
        if found.op.name == "gather" and ndim:
            yield [R, cut(own)], cut(own)


@register_op_strategy("index_select")
def _index_select(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard another dimension, or the indices."""
    own = _normalized_dim(found)
    yield from dim_moving_strategies(found, number, lambda d: None if d == own else d)
    if found.tensors[0].ndim and found.tensors[1].ndim:
        for cut in shard_kinds(found, number):
            yield [R, cut(0)], cut(own)


@register_op_strategy("index_add", "index_copy", "index_fill")
def _index_put_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard another dimension, also of the values; a single element is replicated."""
    target, own = found.tensors[0], _normalized_dim(found)
    for cut in shard_kinds(found, number):
        for dim in range(target.ndim):
            if dim != own:
                beside = [R if t.ndim < target.ndim or t is found["index"] else cut(dim) for t in found.tensors[1:]]
                yield [cut(dim), *beside], cut(dim)
