"""Batching rules of indexing: `x[...]` and `x[...] = v`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dispatch import F, in_place_calls
from ..._dispatch.interceptors import ReenabledInterceptor
from ..._dispatch.shape_and_value_checks import min_and_max
from ..._dispatch.shapes import broadcast_shapes
from ..._tensor import Tensor
from .._batched_tensor import BatchedTensor, batch_dim_first, is_batched_at, move_dim
from .rule_helpers import rule, to_batch

_MASK_INDEX_ERROR = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with "
    "a boolean mask."
)


def refuse_dynamic(name: str):
    """Raise for an op with a data-dependent result shape."""
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
    )


@rule("_slice_index", kind="view")
def _slice_index(level, op, values):
    return level.wrap(F._slice_index(batch_dim_first(values[0]), (slice(None), *values[1])))


@rule("_slice_index_backward", kind="view")
def _slice_index_backward(level, op, values):
    g = batch_dim_first(values[0])
    return level.wrap(F._slice_index_backward(g, (g.shape[0], *values[1]), (slice(None), *values[2])))


def is_mask(item) -> bool:
    """True if an index item is a Boolean array."""
    d = item.dtype
    return getattr(d, "name", None) == "bool" or getattr(d, "np", d) == np.bool_


class BatchedIndex:
    """Batched advanced index as one index of the batch with indexed dimensions first: `batch[rows, i, j, ...]`."""

    def __init__(self, level, shape, index, table, examples: bool):
        self.level, self.shape = level, tuple(shape)
        items: list[tuple[int, Any]] = []
        dim = 0
        for item in index:
            if isinstance(item, slice):
                dim += 1
                continue
            if is_mask(item):
                if isinstance(item, BatchedTensor):
                    raise RuntimeError(_MASK_INDEX_ERROR)
                raw = item._tl_array if isinstance(item, Tensor) else item
                for part in _nonzero(table, raw):
                    items.append((dim, part))
                    dim += 1
                continue
            items.append((dim, item))
            dim += 1
        self.dims = [d for d, _ in items]
        self.rest = [d for d in range(len(self.shape)) if d not in self.dims]
        arrays = [item for _, item in items]
        self.ndim = max(_index_ndim(level, a) for a in arrays)  # dimensions of the index arrays of one example
        self.adjacent = self._are_indices_adjacent(index)
        aligned = [self._align_index(a, table) for a in arrays]
        if examples:
            rows = table._arange(0, level.size, 1, _to_int64())
            aligned.insert(0, table.reshape(rows, (level.size, *[1] * self.ndim)))
        self.arrays = tuple(aligned)

    def _are_indices_adjacent(self, index) -> bool:
        kinds = [isinstance(item, slice) for item in index]
        first = kinds.index(False)
        last = len(kinds) - 1 - kinds[::-1].index(False)
        return not any(kinds[first : last + 1])

    def _align_index(self, item, table):
        if is_batched_at(item, self.level):
            out = batch_dim_first(item)
            for _ in range(self.ndim - (out.ndim - 1)):
                out = F.unsqueeze(out, 1)
            return out._tl_array if out.__class__ is not BatchedTensor else out
        return item._tl_array if isinstance(item, Tensor) and item.__class__ is not BatchedTensor else item

    def arranged(self, tensor, ahead: int = 1):
        """Return the tensor with the indexed dimensions first, after `ahead` others."""
        return F.permute(tensor, *range(ahead), *(d + ahead for d in (*self.dims, *self.rest)))

    def back(self, tensor):
        """Undo `arranged` on a batch."""
        order = [0, *(d + 1 for d in (*self.dims, *self.rest))]
        return F.permute(tensor, *(order.index(d) for d in range(tensor.ndim)))

    def placed(self, result):
        """Move the index arrays' dimensions of a result (batch, index dimensions, rest) to their final position."""
        if not self.adjacent or not self.dims:
            return result
        before = sum(d < self.dims[0] for d in self.rest)
        order = [*range(1, 1 + self.ndim)]
        rest = [*range(1 + self.ndim, result.ndim)]
        return F.permute(result, 0, *rest[:before], *order, *rest[before:])

    def unplaced(self, value):
        """Undo `placed`."""
        if not self.adjacent or not self.dims:
            return value
        before = sum(d < self.dims[0] for d in self.rest)
        dims = [*range(1, value.ndim)]
        arrays = dims[before : before + self.ndim]
        return F.permute(value, 0, *arrays, *dims[:before], *dims[before + self.ndim :])


def _nonzero(table, raw):
    found = np.nonzero(table.to_numpy(raw))
    return [table.from_numpy(part) for part in found]


def _to_int64():
    from ..._types.dtypes import int64

    return int64


def _index_ndim(level, item) -> int:
    return len(item.shape)


@rule("_index", kind="index")
def _index(level, op, values):
    x, index = values
    if _is_basic(index):
        return level.wrap(F._index(batch_dim_first(x), (slice(None), *index)))
    places = BatchedIndex(level, x.shape, index, x._tl_kernels, is_batched_at(x, level))
    if is_batched_at(x, level):
        return level.wrap(places.placed(F._index(places.arranged(batch_dim_first(x)), places.arrays)))
    return level.wrap(places.placed(F._index(places.arranged(x, 0), places.arrays)))


@rule("_index_backward", kind="index")
def _index_backward(level, op, values):
    g, shape, index = values
    if _is_basic(index):
        return level.wrap(F._index_backward(batch_dim_first(g), (level.size, *shape), (slice(None), *index)))
    places = BatchedIndex(level, shape, index, g._tl_kernels, True)
    g = places.unplaced(to_batch(level, g))
    arranged = [level.size, *(shape[d] for d in (*places.dims, *places.rest))]
    return level.wrap(places.back(F._index_backward(g, tuple(arranged), places.arrays)))


@rule("_setitem", kind="index")
def _setitem(level, op, values):
    """Return a copy of the tensor with the value written."""
    made = F.clone(to_batch(level, values[0]))
    write_item(level, level.wrap(made), *values[1:])
    return level.wrap(made)


def _is_basic(index) -> bool:
    return all(item is None or item is Ellipsis or isinstance(item, (int, slice)) for item in index)


def write_item(level, target, index, value) -> None:
    """Write `target[index] = value` to the target's batch."""
    view = batch_dim_first(target)
    if _is_basic(index):
        part = F._slice_index(view, (slice(None), *index))
        in_place_calls.run_in_place(_record_index("_copy"), (part, align_value(level, value, part)), {}) if isinstance(
            value, Tensor
        ) else in_place_calls.run_in_place(_record_index("_fill"), (part, value), {})
        return
    if len(index) and any(is_mask(i) and is_batched_at(i, level) for i in index if not isinstance(i, slice)):
        _write_mask(level, target, index, value)
        return
    places = BatchedIndex(level, target.shape, index, target._tl_kernels, True)
    part = places.arranged(view)
    if isinstance(value, Tensor):
        shape = F._index(part.detach(), places.arrays)
        value = places.unplaced(align_value(level, value, places.placed(shape)))
        value = F.expand(value, shape.shape) if value.shape != shape.shape else value
    in_place_calls.run_in_place(_record_index("_setitem"), (part, places.arrays, value), {})


def _write_mask(level, target, index, value) -> None:
    if len(index) != 1 or isinstance(value, Tensor) and math.prod(value.shape) != 1:
        raise RuntimeError(_MASK_INDEX_ERROR)
    with ReenabledInterceptor(level):
        mask = index[0]
        for _ in range(target.ndim - mask.ndim):
            mask = F.unsqueeze(mask, -1)
        if isinstance(value, Tensor):
            value = F.reshape(value, ())
        made = F.masked_fill(target, mask, value)
        target.copy_(made)


def align_value(level, value, part):
    """Return a value aligned to broadcast with a part of a batch."""
    if not is_batched_at(value, level):
        while value.ndim > part.ndim - 1 and value.shape[0] == 1:
            value = F.squeeze(value, 0)
        if value.ndim < part.ndim:
            value = F.unsqueeze(value, 0) if value.ndim == part.ndim - 1 else value
        return F.expand(value, part.shape)
    out = batch_dim_first(value)
    while out.ndim > part.ndim and out.shape[1] == 1:
        out = F.squeeze(out, 1)
    for _ in range(part.ndim - out.ndim):
        out = F.unsqueeze(out, 1)
    return F.expand(out, part.shape)


def _record_index(name: str):
    from ..._dispatch import REGISTRY

    return REGISTRY[name]


@rule("set_", kind="refused")
def _memory_rule(level, op, values):
    raise RuntimeError(
        f"vmap: {op.name} gives a tensor other memory, and one example of a batch has none of its own. Please use "
        "reshape, or clone and copy_."
    )


@rule(
    "_nonzero_indices", "_unique_flat", "_unique_rows", "_unique_runs", "_unique2", "_unique_dim",
    "_unique_consecutive",
    kind="refused",
)  # fmt: skip
def _dynamic_shape_rule(level, op, values):
    refuse_dynamic(op.name.strip("_").partition("_")[0])


@rule("_repeat_interleave_indices", kind="index")
def _repeat_interleave_index(level, op, values):
    """Return the index of repeat_interleave; the counts of all examples must have equal sums."""
    counts = batch_dim_first(values[0])
    least, most = min_and_max(F.sum(counts, 1))
    if least != most:
        refuse_dynamic("repeat_interleave")
    ends = F.cumsum(counts, 1)
    places = F.expand(F.arange(most, dtype=ends.dtype, device=ends.device), (level.size, most))
    return level.wrap(F.searchsorted(ends, F.contiguous(places), right=True))


@rule("masked_select", kind="index")
def _masked_select(level, op, values):
    """Select by an unbatched mask, which selects equally many elements of each example."""
    x, mask = values
    if is_batched_at(mask, level):
        refuse_dynamic(op.name)
    shape = broadcast_shapes(tuple(x.shape), tuple(mask.shape))
    made = batch_dim_first(x)
    for _ in range(len(shape) - (made.ndim - 1)):
        made = F.unsqueeze(made, 1)
    made = F.reshape(F.expand(made, (level.size, *shape)), (level.size, math.prod(shape)))
    chosen = F.reshape(F.expand(mask, shape), (math.prod(shape),))
    return level.wrap(F.index_select(made, 1, F.reshape(F.nonzero(chosen), (-1,))))


__all__ = ["move_dim"]
