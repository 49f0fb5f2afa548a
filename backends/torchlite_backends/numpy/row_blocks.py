"""Row-wise blocking of fused kernels: blocks of rows along a dimension, row sums, half precision in float32."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from torchlite._dispatch.shapes import wrap_dim
from torchlite._types.dtypes import from_np

from . import cache_blocking
from .blas import single_threaded
from .half_casts import cast_half
from .threaded_copy import copy_row_major

F32, F64 = np.dtype("f4"), np.dtype("f8")
SMALL = cache_blocking.SMALL
# Minimum elements inside a dimension for which it is reduced in place; with fewer it is moved to the end.
WIDE = 16
# Elements of a row that BLAS adds up in float32; the sums of longer rows are sums in float64 of such runs.
LONGEST_DOT = 1 << 13
COLUMN_RUN = 128
# Rows of which there are many such runs, and the runs of shorter ones.
_LONG_ROW, _SHORT_RUN = 1 << 17, 1 << 10
# Minimum rows for which NumPy's `einsum` sums faster than BLAS, and from which it rounds more.
LONG_SUM, LONGER_SUM = 64, 256
# ... if it has few enough: a narrow column of many rows maps to few cache sets, and moving is faster.
FEW_ROWS = cache_blocking.BLOCK // 512
# A 0-d array: a ufunc takes it faster than a Python number.
ZERO = np.zeros((), F32)


def as_contiguous(x):
    return x if x.flags.c_contiguous else copy_row_major(x)


def raise_not_implemented(x, kernel):
    """Raise PyTorch's error for an unsupported dtype."""
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{from_np(x.dtype).scalar_name}'")


def is_half(dtype):
    return dtype.itemsize == 2 and dtype.kind in "fV"


def run_in_float32(kernel, *args, **kwargs):
    """Run a kernel on float32 copies of half-precision arrays and narrow its results."""
    dtype = next(a.dtype for a in args if isinstance(a, np.ndarray) and is_half(a.dtype))
    wide = [cast_half(a, F32) if isinstance(a, np.ndarray) and is_half(a.dtype) else a for a in args]
    out = kernel(*wide, **kwargs)
    if isinstance(out, tuple):
        return tuple(None if o is None else cast_half(np.asarray(o), dtype) for o in out)
    return cast_half(np.asarray(out), dtype)


def _move_dim_to_rows(x, dim):
    """Return x with `dim` last, as contiguous rows."""
    if dim not in (-1, x.ndim - 1):
        x = np.moveaxis(x, dim, -1)
    return as_contiguous(x).reshape(-1, x.shape[-1])


def _from_rows(rows, shape, dim):
    moved = list(shape)
    moved.append(moved.pop(dim))
    return as_contiguous(np.moveaxis(rows.reshape(moved), -1, dim))


def _apply_columnwise(body, dim, *arrays):
    """`rowwise` without moving `dim` to the end: blocks of (outer, dim, inner).

    They are split along outer if they fit in cache, else along inner.
    """
    shape = arrays[0].shape
    count = shape[dim]
    inner = math.prod(shape[dim + 1 :])
    parts = [as_contiguous(a).reshape(-1, count, inner) for a in arrays]
    out = np.empty(parts[0].shape, parts[0].dtype)
    if count * inner <= cache_blocking.BLOCK:
        cache_blocking.run_blocks(
            lambda start, stop: body(out[start:stop], *[p[start:stop] for p in parts], axis=-2),
            out.shape[0],
            count * inner,
        )
        return out.reshape(shape)
    width = cache_blocking.BLOCK // count
    tiles = [(outer, left) for outer in range(out.shape[0]) for left in range(0, inner, width)]

    def apply_to_tiles(start, stop):
        for outer, left in tiles[start:stop]:
            body(out[outer, :, left : left + width], *[p[outer, :, left : left + width] for p in parts], axis=-2)

    cache_blocking.run_blocks(apply_to_tiles, len(tiles), count * width)
    return out.reshape(shape)


def apply_rowwise(body, kernel, dim, *arrays, most=cache_blocking.LARGEST_BLOCK, worth=cache_blocking.MIN_SIZE):
    """Call `body(out, *blocks)` over blocks of rows along `dim`, for arrays of one shape and float dtype.

    `most` and `worth` are as in `cache_blocking.run_blocks`.
    """
    x = arrays[0]
    dtype = x.dtype
    if dtype != F32 and dtype != F64:
        if not is_half(dtype):
            raise_not_implemented(x, kernel)
        return run_in_float32(lambda *wide: apply_rowwise(body, kernel, dim, *wide, most=most, worth=worth), *arrays)
    if dim >= 0:
        dim = dim - x.ndim
        if dim >= 0:
            wrap_dim(dim + x.ndim, x.ndim)  # refuses it
    if x.size <= SMALL and dim == -1:
        out = np.empty(x.shape, dtype)
        body(out, *arrays)
        return out
    if dim != -1 and math.prod(x.shape[dim + 1 :]) >= WIDE and x.shape[dim] <= FEW_ROWS:
        return _apply_columnwise(body, dim, *arrays)
    rows = [_move_dim_to_rows(a, dim) for a in arrays]
    last = dim == -1
    whole = np.empty(x.shape if last else rows[0].shape, dtype)  # owns its memory: it may become a gradient
    out = whole.reshape(rows[0].shape)
    cache_blocking.run_blocks(
        lambda start, stop: body(out[start:stop], *[r[start:stop] for r in rows]), *out.shape, most=most, worth=worth
    )
    if last:
        return whole
    return _from_rows(out, x.shape, dim)


@functools.lru_cache(64)
def ones(count, dtype):
    found = np.ones(count, dtype)
    found.flags.writeable = False
    return found


def sum_row(row: np.ndarray) -> Any:
    """Return the sum of a contiguous vector, in float64 for float32."""
    if row.dtype != F32:
        return np.add.reduce(row)
    run = LONGEST_DOT if len(row) > _LONG_ROW else _SHORT_RUN
    whole = len(row) // run * run
    total = np.add.reduce(np.vecdot(row[:whole].reshape(-1, run), ones(run, F32)), dtype=F64)
    return total + np.add.reduce(row[whole:], dtype=F64) if whole < len(row) else total


def dot_row(first: np.ndarray, second: np.ndarray) -> Any:
    """Return the dot product of contiguous vectors, in float64 for float32."""
    if first.dtype != F32:
        return first.dot(second)
    run = LONGEST_DOT if len(first) > _LONG_ROW else _SHORT_RUN
    whole = len(first) // run * run
    total = np.add.reduce(np.vecdot(first[:whole].reshape(-1, run), second[:whole].reshape(-1, run)), dtype=F64)
    return total + np.dot(first[whole:], second[whole:]) if whole < len(first) else total


def sum_long_rows(rows: np.ndarray) -> np.ndarray:
    """Return the sums of contiguous long rows (count, length), in float64."""
    return np.array([sum_row(row) for row in rows], F64)


def dot_long_rows(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the dot products of contiguous long rows, in float64."""
    return np.array([dot_row(a, b) for a, b in zip(first, second, strict=True)], F64)


def sum_columns(block, weights=None):
    """Return the sums of a block's rows, or of their products with weights, in float64.

    BLAS adds up rows one after the other: so it does with few of them.
    """
    count, columns = block.shape
    if weights is None:
        weights = ones(count, block.dtype)
    if count <= COLUMN_RUN:
        return np.dot(weights, block).astype(F64)
    whole = count // COLUMN_RUN * COLUMN_RUN
    runs = np.matmul(weights[:whole].reshape(-1, 1, COLUMN_RUN), block[:whole].reshape(-1, COLUMN_RUN, columns))
    total = np.add.reduce(runs[:, 0], 0, F64)
    if whole < count:
        total += np.dot(weights[whole:], block[whole:])
    return total


def sum_along_axis(x, axis=-1):
    """Sum over a dimension, with keepdim."""
    if axis != -1 or x.size < 4096 or x.dtype == F64 and x.shape[-1] > LONGEST_DOT:
        return np.add.reduce(x, axis, keepdims=True)
    if x.shape[-1] > LONGEST_DOT:
        return sum_long_rows(x.reshape(-1, x.shape[-1])).astype(x.dtype).reshape(*x.shape[:-1], 1)
    return sum_short_rows(x)[..., None]


def sum_short_rows(x):
    """Sum over the last dimension, of no more than LONGEST_DOT numbers each.

    `add.reduce` takes three times as long as the best of the others: BLAS's dot product with ones for long rows, which
    rounds least (of 8192 numbers a third of `einsum`), `einsum` for shorter ones, a product with a vector for short
    ones.
    """
    if x.shape[-1] >= LONGER_SUM:
        return np.vecdot(x, ones(x.shape[-1], x.dtype))
    if x.shape[-1] >= LONG_SUM:
        return np.einsum("...j->...", x)
    return matvec(x, ones(x.shape[-1], x.dtype))


def matvec(x, vector):
    """Return dot products of rows with a vector."""
    if x.ndim == 2 and x.shape[-1] > LONGEST_DOT:
        return np.array([dot_row(row, vector) for row in x], x.dtype)
    if x.ndim != 2 or x.size <= SMALL:
        return np.vecdot(x, vector)
    with single_threaded:
        return np.dot(x, vector)


# Rows of fewer numbers are copied before each is multiplied by a factor: that runs at half of memory's speed from one
# array to another, 4096 rows of 1024 in 1.1 ms; a copy takes 0.5, in place 0.33. Not so rows of 4096.
_COPIED = 1 << 11


def choose_in_place_rows(rows, out):
    """Return the rows in which passes that end in `out` are fastest: `out` itself for short rows."""
    if rows.shape[-1] >= _COPIED:
        return rows
    np.copyto(out, rows)
    return out


def dot_rows(first, second):
    """Return dot products of rows, by sums of runs for very long ones.

    `einsum` takes 2.4 times as long as `vecdot` with rows of 1024 numbers, and as long with 32.
    """
    if first.shape[-1] > LONGEST_DOT:
        return dot_long_rows(first, second).astype(first.dtype)
    return np.vecdot(first, second)


# Rows of moderate numbers need no shift by their maximum before exp: the sum does not overflow, and no significant term
# underflows.
MODERATE, SUM_AT_LEAST = 60.0, 1e-8


def compute_exp_and_sums(x, out, axis=-1):
    """Write exp(x - s) into `out`; return its row sums, and the shift s of each row (0 for moderate numbers)."""
    if np.maximum.reduce(x, None) < MODERATE:
        np.exp(x, out=out)
        total = sum_along_axis(out, axis)
        if np.minimum.reduce(total, None) > SUM_AT_LEAST:
            return total, ZERO
    largest = np.maximum.reduce(x, axis, keepdims=True)
    np.subtract(x, largest, out=out)
    np.exp(out, out=out)
    return sum_along_axis(out, axis), largest
