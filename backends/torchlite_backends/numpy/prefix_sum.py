"""Cumulative sums of float32, added up in float64 and rounded once."""

from __future__ import annotations

import math

import numpy as np

from torchlite._dispatch.shapes import wrap_dim
from torchlite_backends.array.pointwise import to
from torchlite_backends.array.scan import cumsum as _shared_cumsum

from .blas import get_gemm_function, single_threaded
from .cache_blocking import get_scratch_buffer, run_blocks
from .row_blocks import F32, F64, as_contiguous

# Elements below which NumPy's functions are called once, and elements of a block whose copy stays in the cache.
_FEW, _BLOCK = 1 << 14, 1 << 16
# Elements side by side from which a loop in Python over rows is faster than NumPy's loop over columns.
_WIDE_ROW = 256
# Elements of a segment, whose running sums are a product with a triangle of ones: NumPy takes twice the time.
_SEGMENT = 16
_TRIANGLE = np.triu(np.ones((_SEGMENT, _SEGMENT)))
_WIDE = {F32: F64, np.dtype("c8"): np.dtype("c16")}


def cumsum(input, dim, *, dtype=None):
    dim = wrap_dim(dim, input.ndim)
    kind = input.dtype if dtype is None else dtype.np
    if kind not in _WIDE or not input.size or not input.ndim:
        return _shared_cumsum(input, dim, dtype=dtype)
    x = input if dtype is None else to(input, dtype)
    if input.size < _FEW or kind != F32:
        return _shared_cumsum(x.astype(_WIDE[kind]), dim).astype(kind)
    out = np.empty(input.shape, kind)
    shape = (math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :]))
    cube, sums = as_contiguous(x).reshape(shape), out.reshape(shape)
    with single_threaded:
        run_blocks(lambda start, stop: _add_blocks(cube[start:stop], sums[start:stop]), shape[0], shape[1] * shape[2])
    return out


def _add_blocks(x: np.ndarray, out: np.ndarray) -> None:
    """Write running sums over the middle dimension, block by block from the sums before it."""
    count, length, after = x.shape
    step = max(1, _BLOCK // (count * after))
    before = np.zeros((count, after))
    for start in range(0, length, step):
        before = _add_block(x[:, start : start + step], out[:, start : start + step], before)


def _add_block(x: np.ndarray, out: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Write the running sums of a block after the sums `before`; return the last ones."""
    wide = get_scratch_buffer(0, x.shape, F64)
    np.copyto(wide, x)
    wide[:, 0] += before
    after = x.shape[2]
    if after >= _WIDE_ROW:
        for row in range(1, x.shape[1]):
            np.add(wide[:, row], wide[:, row - 1], out=wide[:, row])
    elif after > 1:
        np.add.accumulate(wide, 1, out=wide)
    else:
        return _accumulate_rows(wide[:, :, 0], out[:, :, 0])
    np.copyto(out, wide, casting="same_kind")
    return wide[:, -1].copy()


def _accumulate_rows(rows: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write running sums of rows of float64; return the last ones."""
    count, length = rows.shape
    whole = length // _SEGMENT * _SEGMENT
    sums = get_scratch_buffer(1, (count, whole // _SEGMENT, _SEGMENT), F64)
    np.matmul(rows[:, :whole].reshape(sums.shape), _TRIANGLE, out=sums)
    totals = np.zeros((count, whole // _SEGMENT + 1))
    np.add.accumulate(sums[:, :, -1], 1, out=totals[:, 1:])
    if not np.isfinite(totals[:, -1]).all():  # infinity times zero
        np.add.accumulate(rows, 1, out=rows)
        np.copyto(out, rows, casting="same_kind")
        return rows[:, -1:].copy()
    gemm = get_gemm_function(F64)
    if gemm is None or whole < length:
        np.add(sums, totals[:, :-1, None], out=sums)
    else:  # BLAS adds the product of the totals and a row of ones in a third of the time of NumPy's short loops
        before = np.ascontiguousarray(totals[:, :-1])
        first, second, third = (a.__array_interface__["data"][0] for a in (before, _TRIANGLE, sums))
        gemm(False, before.size, _SEGMENT, 1, first, 1, second, _SEGMENT, 1.0, third, _SEGMENT)
    np.copyto(out[:, :whole], sums.reshape(count, whole), casting="same_kind")
    if whole == length:
        return totals[:, -1:].copy()
    rest = rows[:, whole:]
    rest[:, :1] += totals[:, -1:]
    np.add.accumulate(rest, 1, out=rest)
    np.copyto(out[:, whole:], rest, casting="same_kind")
    return rest[:, -1:].copy()
