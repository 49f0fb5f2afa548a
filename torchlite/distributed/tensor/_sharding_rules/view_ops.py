"""Sharding rules of views and ops that permute, reshape or concatenate dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._dispatch import R, local_shape
from .._op_strategy import OpCall, Strategy, register_op_strategy
from ..placement_types import Placement, Shard
from .rule_helpers import partial_kinds, shard_kinds


def dim_moving_strategies(found: OpCall, number: int, where: Callable[[int], int | None]) -> Iterator[Strategy]:
    """Strategies of an op that moves dimension d of its first argument to `where(d)`; None if it must not be
    sharded.
    """
    rest: list[Placement] = [R] * (len(found.tensors) - 1)
    for cut in shard_kinds(found, number):
        for dim in range(found.tensors[0].ndim):
            after = where(dim)
            if after is not None:
                yield [cut(dim), *rest], cut(after)
    for partial in partial_kinds(found, number):
        if not rest:
            yield [partial], partial


def _unpack_sizes(value: Sequence[Any]) -> list[int]:
    """Return the sizes of `f(2, 3)` and `f((2, 3))`."""
    return list(value[0]) if len(value) == 1 and isinstance(value[0], (tuple, list)) else list(value)


@register_op_strategy("permute")
def _permute(found: OpCall, number: int) -> Iterator[Strategy]:
    ndim = found.tensors[0].ndim
    order = [d % ndim for d in _unpack_sizes(found["dims"])]
    yield from dim_moving_strategies(found, number, order.index)


@register_op_strategy("transpose", "t")
def _transpose(found: OpCall, number: int) -> Iterator[Strategy]:
    ndim = found.tensors[0].ndim
    a, b = (0, ndim - 1) if found.op.name == "t" else (found["dim0"] % max(ndim, 1), found["dim1"] % max(ndim, 1))
    yield from dim_moving_strategies(found, number, lambda d: b if d == a else a if d == b else d)


@register_op_strategy("unsqueeze")
def _unsqueeze(found: OpCall, number: int) -> Iterator[Strategy]:
    new = found["dim"] % (found.tensors[0].ndim + 1)
    yield from dim_moving_strategies(found, number, lambda d: d + (d >= new))


def _squeezed_dims(found: OpCall) -> list[int]:
    shape, dim = found.tensors[0].shape, found["dim"]
    asked = range(len(shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    return [d % max(len(shape), 1) for d in asked if len(shape) and shape[d] == 1]


def _squeeze_own(found: OpCall, ways: list[Strategy], values: list) -> list:
    values[1] = tuple(_squeezed_dims(found))  # but no dimension with one element per process
    return values


@register_op_strategy("squeeze", localized=_squeeze_own)
def _squeeze(found: OpCall, number: int) -> Iterator[Strategy]:
    gone = _squeezed_dims(found)
    yield from dim_moving_strategies(found, number, lambda d: None if d in gone else d - sum(g < d for g in gone))


def _to_local_sizes(found: OpCall, ways: list[Strategy], values: list) -> list:
    """Replace global sizes among the arguments by local ones."""
    place = next(i for i, p in enumerate(found.op.params) if p.name in ("size", "shape"))
    wanted = _result_shape(found)
    own = local_shape(wanted, found.mesh, ways)
    values[place] = tuple(own)
    return values


def _result_shape(found: OpCall) -> list[int]:
    shape = list(found.tensors[0].shape)
    if found.op.name == "expand":
        sizes = _unpack_sizes(found["size"])
        new = len(sizes) - len(shape)
        return [n if n != -1 else shape[d - new] for d, n in enumerate(sizes)]
    sizes = _unpack_sizes(found["shape"])
    if -1 in sizes:
        known = math.prod(n for n in sizes if n != -1)
        sizes[sizes.index(-1)] = math.prod(shape) // known if known else 0
    return sizes


@register_op_strategy("expand", localized=_to_local_sizes)
def _expand(found: OpCall, number: int) -> Iterator[Strategy]:
    shape, new = found.tensors[0].shape, len(_unpack_sizes(found["size"])) - found.tensors[0].ndim
    wanted = _result_shape(found)
    yield from dim_moving_strategies(found, number, lambda d: d + new if shape[d] == wanted[d + new] else None)


def group_dims(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return groups of dimensions that correspond when one shape is viewed as another."""
    found, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        ins, outs = [], []
        a = b = 1
        if i < len(before):
            ins, a, i = [i], before[i], i + 1
        if j < len(after):
            outs, b, j = [j], after[j], j + 1
        while a != b or not ins or not outs:
            if (a < b or not ins) and i < len(before):
                a, i, ins = a * before[i], i + 1, [*ins, i]
            elif j < len(after):
                b, j, outs = b * after[j], j + 1, [*outs, j]
            else:
                break
        found.append((ins, outs))
    return found


def _reshape_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard a preserved dimension, or the first of a merged or split group, if shards are equally large."""
    tensor = found.tensors[0]
    before, after = list(tensor.shape), _result_shape(found)
    for partial in partial_kinds(found, number):
        yield [partial], partial
    if 0 in before:
        return
    cut_before = [1] * len(before)  # number of shards by earlier mesh dimensions
    for i, (ins_before, _) in enumerate(found.ways):
        if isinstance(ins_before[0], Shard):
            cut_before[ins_before[0].dim] *= found.mesh.size(i)
    for ins, outs in group_dims(before, after):
        ins = [d for d in ins if before[d] != 1]
        outs = [d for d in outs if after[d] != 1]
        if not ins or not outs:
            continue
        a, b = ins[0], outs[0]
        if len(ins) == len(outs) == 1:
            for cut in shard_kinds(found, number):
                yield [cut(a)], cut(b)
            continue
        parts = found.mesh.size(number) * cut_before[a]
        if before[a] == after[b] or (before[a] % parts == 0 and after[b] % parts == 0):
            yield [Shard(a)], Shard(b)


@register_op_strategy("_view", "reshape", localized=_to_local_sizes)
def _view(found: OpCall, number: int) -> Iterator[Strategy]:
    yield from _reshape_strategies(found, number)


@register_op_strategy("select", "_slice", "_narrow", "split_with_sizes", "unbind", "flip", "unfold")
def _shard_unaffected_dims(found: OpCall, number: int) -> Iterator[Strategy]:
    """Ops along some dimensions: the others may be sharded."""
    ndim = found.tensors[0].ndim
    names = [p.name for p in found.op.params]
    if "dims" in names:
        own = [d % ndim for d in _unpack_sizes(found["dims"])]
    else:
        own = [found["dimension" if "dimension" in names else "dim"] % max(ndim, 1)]
    drops = found.op.name in ("select", "unbind")
    yield from dim_moving_strategies(found, number, lambda d: None if d in own else d - (drops and d > own[0]))


@register_op_strategy("cat", "stack")
def _cat_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard the other dimensions in all; or all partial."""
    ndim = max(t.ndim for t in found.tensors)
    new = found.op.name == "stack"
    own = found["dim"] % (ndim + new)
    for cut in shard_kinds(found, number):
        for dim in range(ndim):
            if new or dim != own:
                ins = [cut(dim) if t.ndim == ndim else R for t in found.tensors]
                yield ins, cut(dim + (new and dim >= own))
    for partial in partial_kinds(found, number):
        yield [partial] * len(found.tensors), partial


@register_op_strategy("_slice_index")
def _slice_index(found: OpCall, number: int) -> Iterator[Strategy]:
    """`x[1:, None, 0]`: shard dimensions that are taken fully."""
    tensor, index = found.values[:2]
    index = index if isinstance(index, tuple) else (index,)
    missing = tensor.ndim - sum(1 for part in index if part is not None and part is not Ellipsis)
    places: dict[int, int] = {}
    dim = after = 0
    spelled: list[Any] = []
    for part in index:
        spelled += [slice(None)] * missing if part is Ellipsis else [part]
    if Ellipsis not in [p for p in index if p is Ellipsis]:
        spelled += [slice(None)] * missing
    for part in spelled:
        if part is None:
            after += 1
        elif isinstance(part, slice):
            if part == slice(None):
                places[dim] = after
            dim, after = dim + 1, after + 1
        else:
            dim += 1
    yield from dim_moving_strategies(found, number, places.get)
