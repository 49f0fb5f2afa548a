"""Embedding: rows of a table by index, the gradient of the table, and rows added to it in place."""

from __future__ import annotations

import numpy as np

from torchlite_array.index import add_rows
from torchlite_array.scatter import index_add as _index_add

from .blocks import share_evenly
from .halves import in_float32
from .picking import rows_at, within
from .rows import F32, F64, is_half

U64 = np.dtype("u8")
# Rows of one index that are added one by one, and elements of a gradient that is cleared on several threads.
_SHORT, _CLEARED = 8, 1 << 20


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if weight.ndim != 2:
        raise RuntimeError("embedding: weight must be a matrix")
    if indices.dtype.kind != "i" or indices.dtype.itemsize < 4:
        raise RuntimeError("embedding: indices must be int64 or int32")
    if indices.size:
        top = indices.max() if indices.dtype.itemsize < 8 else indices.view(U64).max()
        if top >= weight.shape[0] or (indices.dtype.itemsize < 8 and indices.min() < 0):
            raise IndexError("index out of range in self")
    return rows_at(weight, indices)


def _embedding_backward(grad, indices, rows, padding_idx, scale_grad_by_freq):
    flat = indices.reshape(-1)
    grad = grad.reshape(flat.size, grad.shape[-1])
    out = _zeros((rows, grad.shape[1]), grad.dtype)
    if flat.size == 0:
        return out
    order = flat.argsort(kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    used = ordered[starts]
    if starts.size == flat.size:
        out[flat] = grad
    else:
        counts = np.diff(starts, append=flat.size)
        half = is_half(grad.dtype)
        out[used] = _sums_of_runs(grad.astype(F32) if half else grad, order, starts, counts).astype(
            grad.dtype, copy=False
        )
        if scale_grad_by_freq:
            out[used] /= counts[:, None].astype(grad.dtype)
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


def _sums_of_runs(grad, order, starts, counts):
    """The sums of grad[order] from each start to the next, in that order.

    NumPy's `reduceat` takes microseconds for a run, however short it is: the first rows of all runs are taken at once,
    then the second ones, and so on, and long runs alone are left to it.
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


def _zeros(shape, dtype):
    """`np.zeros`, of a large array on our own threads: its memory was used before, and has to be cleared."""
    if shape[0] * shape[1] < _CLEARED:
        return np.zeros(shape, dtype)
    out = np.empty(shape, dtype)
    share_evenly(lambda start, stop: out[start:stop].fill(0), shape[0])
    return out


_add_half = in_float32(_index_add)


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
        or not within(index, len(input))
    ):
        np.copyto(input, (_add_half if is_half(input.dtype) else _index_add)(input, dim, index, source, alpha=alpha))
        return
    # Without a copy of the whole: a sparse gradient has a few rows of a large table.
    values = source if alpha == 1 else source * input.dtype.type(alpha)
    add_rows(input.reshape(len(input), -1), index, values.reshape(index.size, -1))
