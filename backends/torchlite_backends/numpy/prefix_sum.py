"""Cumulative sums along long rows: within segments by a product with a triangle of ones, over the segments by NumPy."""

from __future__ import annotations

import functools

import numpy as np

from torchlite._dispatch.shapes import wrap_dim
from torchlite_backends.array.scan import cumsum as _shared_cumsum

from .blas import get_gemm_function, single_threaded
from .cache_blocking import run_blocks
from .row_blocks import F32, F64

MIN_LENGTH, _SEGMENT = 1 << 14, 32


@functools.cache
def _make_triangular_ones(dtype: np.dtype) -> np.ndarray:
    made = np.triu(np.ones((_SEGMENT, _SEGMENT), dtype))
    made.flags.writeable = False
    return made


def cumsum(input, dim, *, dtype=None):
    dim = wrap_dim(dim, input.ndim)
    kind = input.dtype if dtype is None else dtype.np
    last = input.ndim - 1
    if (
        input.size < MIN_LENGTH
        or dim != last
        or input.shape[last] < 2 * _SEGMENT
        or kind != input.dtype
        or kind not in (F32, F64)
        or not input.flags.c_contiguous
    ):
        return _shared_cumsum(input, dim, dtype=dtype)
    out = np.empty(input.shape, kind)
    rows, sums = (a.reshape(-1, a.shape[-1]) for a in (input, out))
    with single_threaded:
        run_blocks(lambda start, stop: _compute_cumsum_block(rows[start:stop], sums[start:stop]), *rows.shape)
    return out


@functools.cache
def _make_segment_triangle(dtype: np.dtype) -> np.ndarray:
    made = np.zeros((2, _SEGMENT), dtype)
    made[0] = 1
    made.flags.writeable = False
    return made


def _compute_cumsum_block(x: np.ndarray, out: np.ndarray) -> None:
    count, length = x.shape
    whole = length // _SEGMENT * _SEGMENT
    segments = out[:, :whole].reshape(count, -1, _SEGMENT)
    if whole == length:
        np.dot(x.reshape(-1, _SEGMENT), _make_triangular_ones(x.dtype), out=out.reshape(-1, _SEGMENT))
    else:
        np.matmul(x[:, :whole].reshape(segments.shape), _make_triangular_ones(x.dtype), out=segments)
    rest = np.add.accumulate(x[:, whole:], -1, out=out[:, whole:])
    totals = np.add.accumulate(segments[:, :, -1], -1)
    if not np.isfinite(totals).all():  # infinity times zero
        np.add.accumulate(x, -1, out=out)
        return
    gemm = get_gemm_function(x.dtype)
    if whole == length and gemm is not None:
        # BLAS accumulates the product of the totals and ones, in half the time of NumPy's short loops.
        before = np.zeros((count, length // _SEGMENT, 2), x.dtype)
        before[:, 1:, 0] = totals[:, :-1]
        first, second, third = (
            a.__array_interface__["data"][0] for a in (before, _make_segment_triangle(x.dtype), out)
        )
        gemm(False, out.size // _SEGMENT, _SEGMENT, 2, first, 2, second, _SEGMENT, 1.0, third, _SEGMENT)
        return
    np.add(segments[:, 1:], totals[:, :-1, None], out=segments[:, 1:])
    np.add(rest, totals[:, -1:], out=rest)
