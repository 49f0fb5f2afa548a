"""Cumulative sums of float32, added up in float64 and rounded once."""

from __future__ import annotations

import math

import numpy as np

from torchlite._dispatch.shapes import wrap_dim
from torchlite_backends.array.scan import cumsum as _shared_cumsum

from .cache_blocking import get_scratch_buffer, run_blocks
from .row_blocks import F32, F64, as_contiguous

# Elements below which NumPy's functions are called once, and elements of a block whose copy stays in the cache.
_FEW, _BLOCK = 1 << 14, 1 << 16
# Elements side by side from which a loop in Python over rows is faster than NumPy's loop over columns.
_WIDE_ROW = 256
_WIDE = {F32: F64, np.dtype("c8"): np.dtype("c16")}


def cumsum(input, dim, *, dtype=None):
    dim = wrap_dim(dim, input.ndim)
    kind = input.dtype if dtype is None else dtype.np
    if kind not in _WIDE or not input.size or not input.ndim:
        return _shared_cumsum(input, dim, dtype=dtype)
    x = input.astype(kind, copy=False)
    if input.size < _FEW or kind != F32:
        return _shared_cumsum(x.astype(_WIDE[kind]), dim).astype(kind)
    out = np.empty(input.shape, kind)
    shape = (math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :]))
    cube, sums = as_contiguous(x).reshape(shape), out.reshape(shape)
    run_blocks(lambda start, stop: _add_blocks(cube[start:stop], sums[start:stop]), shape[0], shape[1] * shape[2])
    return out


def _add_blocks(x: np.ndarray, out: np.ndarray) -> None:
    """Write running sums over the middle dimension, block by block from the sums before it."""
    count, length, after = x.shape
    step = max(1, _BLOCK // (count * after))
    before = np.zeros((count, after))
    for start in range(0, length, step):
        part = x[:, start : start + step]
        wide = get_scratch_buffer(0, part.shape, F64)
        np.copyto(wide, part)
        wide[:, 0] += before
        if after >= _WIDE_ROW:
            for row in range(1, wide.shape[1]):
                np.add(wide[:, row], wide[:, row - 1], out=wide[:, row])
        else:
            flat = wide if after > 1 else wide[:, :, 0]  # over a dimension of size 1 NumPy loops slowly
            np.add.accumulate(flat, 1, out=flat)
        np.copyto(out[:, start : start + step], wide, casting="same_kind")
        before = wide[:, -1].copy()
