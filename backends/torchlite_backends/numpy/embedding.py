"""Embedding: rows of a table by index, the table's gradient, and in-place row accumulation."""

from __future__ import annotations

import numpy as np

from torchlite_backends.array.gather_scatter import index_add as _index_add
from torchlite_backends.array.index import add_rows

from .cache_blocking import parallel_for
from .gather import all_in_range, argsort_small_integers, take_rows
from .half_precision import run_in_float32
from .row_blocks import F32, F64, is_half

U64 = np.dtype("u8")
# Rows of one index that are added one by one, elements of a part of a gradient at least, and parts at most.
_SHORT, _PART, _PARTS = 8, 1 << 18, 8


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if weight.ndim != 2:
        raise RuntimeError("embedding: weight must be a matrix")
    if indices.dtype.kind != "i" or indices.dtype.itemsize < 4:
        raise RuntimeError("embedding: indices must be int64 or int32")
    if indices.size:
        top = indices.max() if indices.dtype.itemsize < 8 else indices.view(U64).max()
        if top >= weight.shape[0] or (indices.dtype.itemsize < 8 and indices.min() < 0):
            raise IndexError("index out of range in self")
    return take_rows(weight, indices)


def _embedding_backward(grad, indices, rows, padding_idx, scale_grad_by_freq):
    flat = indices.reshape(-1)
    grad = grad.reshape(flat.size, grad.shape[-1])
    out = np.empty((rows, grad.shape[1]), grad.dtype)
    if is_half(grad.dtype):
        grad = grad.astype(F32)
    order = argsort_small_integers(flat, rows)
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate((np.ones(min(flat.size, 1), bool), ordered[1:] != ordered[:-1])))
    used, counts = ordered[starts], np.diff(starts, append=flat.size)

    def sum_table_rows(top, bottom, first, last):
        """Sum some rows of the table: those of `used` from first to last."""
        out[top:bottom] = 0
        if first == last:
            return
        begin, mine = starts[first], counts[first:last]
        sums = _sum_segments(grad, order[begin : starts[last - 1] + mine[-1]], starts[first:last] - begin, mine)
        if scale_grad_by_freq:
            sums /= mine[:, None].astype(sums.dtype)
        out[used[first:last]] = sums

    count = min(rows, max(1, min(_PARTS, (out.size + grad.size) // _PART)))
    bounds = [rows * k // max(count, 1) for k in range(count + 1)]
    places = np.searchsorted(used, bounds).tolist()
    parallel_for(sum_table_rows, list(zip(bounds[:-1], bounds[1:], places[:-1], places[1:], strict=True)))
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


def _sum_segments(grad, order, starts, counts):
    """Return the sums of grad[order] from each start to the next, in that order.

    NumPy's `reduceat` takes microseconds per run, however short. The first rows of all runs are therefore added in one
    call, then the second ones, and so on; only long runs use `reduceat`.
    """
    sums = grad.take(order[starts], 0)
    for place in range(1, min(_SHORT, int(counts.max()))):
        longer = np.flatnonzero((counts > place) & (counts <= _SHORT))
        if longer.size:
            sums[longer] += grad.take(order[starts[longer] + place], 0)
    long = counts > _SHORT
    if long.any():
        begins = np.cumsum(counts[long]) - counts[long]
        sums[long] = np.add.reduceat(grad.take(order[np.repeat(long, counts)], 0), begins, 0)
    return sums


_add_half = run_in_float32(_index_add)


def index_add_(input, dim, index, source, *, alpha=1):
    if (
        input.ndim < 2
        or dim not in (0, -input.ndim)
        or input.dtype not in (F32, F64)
        or source.dtype != input.dtype
        or index.dtype != np.int64
        or index.ndim != 1
        or source.shape != (index.size, *input.shape[1:])
        or not input.flags.c_contiguous
        or not all_in_range(index, len(input))
    ):
        np.copyto(input, (_add_half if is_half(input.dtype) else _index_add)(input, dim, index, source, alpha=alpha))
        return
    # Without a copy of the table: a sparse gradient has a few rows of a large table.
    values = source if alpha == 1 else source * input.dtype.type(alpha)
    add_rows(input.reshape(len(input), -1), index, values.reshape(index.size, -1))
