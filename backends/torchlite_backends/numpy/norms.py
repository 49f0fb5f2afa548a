"""Vector norms, dot products and distances: sums of squares in float64, scaled where they leave the range.

A sum of squares of float32 is computed in float32 run by run. If it overflows, or is so small that squares may have
lost digits, it is computed again from elements divided by the greatest one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlite_backends.array.matmul import _check_vectors, _matmul_in_float32

from .cache_blocking import get_scratch_buffer, run_blocks
from .deterministic_gemm import MAX_GEMV_SIZE
from .row_blocks import F32, F64, LONGEST_DOT, SMALL, as_contiguous
from .threaded_sums import sum_threaded
from .wide_sums import as_cube, parallel_dot, reduce_in_blocks, sum_of_squares

# Elements of a dot product that rounds no more in float32 than its result does.
_SHORT_DOT = 32
# Sums of powers within these limits have lost no digits to underflow of their terms, nor overflowed.
_LIMITS = {F32: (1e-28, 3e38), F64: (1e-290, 1e308)}


def are_squares_in_range(total: Any, dtype: np.dtype) -> bool:
    """True if sums of squares, or of other powers, of a dtype keep their digits."""
    least, most = _LIMITS[dtype]
    if total.__class__ is not np.ndarray:
        return least < total < most
    return least < np.minimum.reduce(total, None) and np.maximum.reduce(total, None) < most


def scaled_norm_of_all(arrays: list[np.ndarray]) -> Any:
    """Return the Euclidean norm of all elements of arrays of one dtype, whose squares may leave its range."""
    norms = [_vector_norm_core(x, 2.0, tuple(range(x.ndim)), False) if x.ndim else np.abs(x) for x in arrays if x.size]
    return _scaled_norm(np.array(norms), 2.0, (0,), False)[()] if norms else arrays[0].dtype.type(0)


def _vector_norm_core(input, ord, dim, keepdim):
    """Return (sum |x|^ord)^(1/ord) over `dim` (a tuple), with its limits at 0 and infinity."""
    axes, dtype = tuple([d % input.ndim for d in dim]), input.dtype
    if not input.size or not axes or dtype != F32 and dtype != F64:
        return _norm_of_sizes(np.abs(input), ord, axes, keepdim)
    if ord != 2:
        return _norm_of_sizes(input, ord, axes, keepdim)
    whole = len(axes) == input.ndim and not keepdim
    if whole and input.size < MAX_GEMV_SIZE:
        flat = input.ravel()
        total: Any = flat.dot(flat)
    elif whole:
        flat = as_contiguous(input).reshape(-1)
        total = parallel_dot(flat, flat)
    elif dtype == F32 and input.size <= SMALL:
        return np.sqrt(_sum_squares(input.astype(F64), axes, keepdim)).astype(F32)
    else:
        total = _sum_squares(input, axes, keepdim)
    if are_squares_in_range(total, dtype):
        return np.sqrt(total).astype(dtype, copy=False)
    if dtype == F32:
        return np.sqrt(_sum_squares(input.astype(F64), axes, keepdim)).astype(F32)
    return _scaled_norm(np.abs(input), 2.0, axes, keepdim)


def _sum_squares(x: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """Return sums of squares."""
    if x.size <= SMALL:
        if axes == (x.ndim - 1,) and x.shape[-1] <= LONGEST_DOT:
            total = np.vecdot(x, x)
            return total[..., None] if keepdim else total
        return np.add.reduce(x * x, axes, F64, None, keepdim)  # type: ignore[call-overload]
    cube = as_cube(x, axes)
    shape = [1 if d in axes else n for d, n in enumerate(x.shape) if keepdim or d not in axes]
    if cube.shape[2] > 1:
        (parts,), _ = reduce_in_blocks(cube, lambda block: (sum_of_squares(block),), 1)
        return np.add.reduce(parts, 0).reshape(shape)
    rows = cube[:, :, 0]
    if rows.shape[1] > LONGEST_DOT:
        return np.array([parallel_dot(row, row) for row in rows]).reshape(shape)
    out = np.empty(len(rows), x.dtype)

    def fill(start: int, stop: int) -> None:
        np.vecdot(rows[start:stop], rows[start:stop], out=out[start:stop])

    run_blocks(fill, *rows.shape)
    return out.reshape(shape)


def _sum_wide(x: np.ndarray, axes: tuple[int, ...], keepdim: bool) -> Any:
    """Return sums in float64."""
    if x.size <= SMALL:
        return np.add.reduce(x, axes, F64, None, keepdim)  # type: ignore[call-overload]
    return sum_threaded(x, axes, keepdim, True)


def _norm_of_sizes(x: np.ndarray, ord: float, axes: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """Return the norm of an order from real numbers."""
    kind = x.dtype
    size = np.abs(x if kind.itemsize >= 4 else x.astype(F32))
    if not axes and ord:  # each number is a vector
        result = size
    elif ord == math.inf:
        result = np.max(size, axis=axes, keepdims=keepdim)
    elif ord == -math.inf:
        result = np.min(size, axis=axes, keepdims=keepdim)
    elif ord == 0:
        result = np.sum(size != 0, axis=axes, keepdims=keepdim)
    elif not size.size:
        result = np.sum(size, axis=axes, keepdims=keepdim)
        if ord < 0:
            result = result ** (1.0 / ord)
    elif ord == 1:
        result = _sum_wide(size, axes, keepdim)
    else:
        total = _sum_wide(size * size if ord == 2 else size**ord, axes, keepdim)
        if not are_squares_in_range(total, size.dtype):
            return _scaled_norm(size, ord, axes, keepdim).astype(kind, copy=False)
        result = np.sqrt(total) if ord == 2 else total ** (1.0 / ord)
    return np.asarray(result).astype(kind, copy=False)


def _scaled_norm(size: np.ndarray, ord: float, axes: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """Return the norm from sizes divided by the greatest one (the least one for a negative order)."""
    extreme = (np.maximum if ord > 0 else np.minimum).reduce(size, axes, keepdims=True)
    scale = np.where((extreme > 0) & (extreme < math.inf), extreme, 1)
    ratio = (size / scale).astype(F64)
    total = (ratio**ord).sum(axes, keepdims=keepdim) ** (1 / ord)
    return np.asarray(total * scale.reshape(total.shape)).astype(size.dtype)


# --- dot products -------------------------------------------------------------------------------------


def dot(input, tensor):
    _check_vectors("dot", input, tensor)
    return dot_vectors(input, tensor)


def vdot(input, other):
    _check_vectors("vdot", input, other)
    return dot_vectors(np.conj(input) if input.dtype.kind in "cW" else input, other)


def dot_vectors(first: np.ndarray, second: np.ndarray) -> Any:
    """Return the dot product of vectors of one dtype and length."""
    dtype = first.dtype
    if dtype != F32 and dtype != F64:
        return _matmul_in_float32(first, second)
    if first.size <= _SHORT_DOT or dtype == F64 and first.size < MAX_GEMV_SIZE:
        total = first.dot(second)
        if total - total == 0:
            return total or total + 0  # the product of one element may be -0, a sum is 0
    elif first.size < MAX_GEMV_SIZE:
        return first.astype(F64).dot(second.astype(F64)).astype(F32)
    else:
        total = parallel_dot(as_contiguous(first), as_contiguous(second))
    if dtype == F32 and total - total != 0:  # terms overflowed that the result need not
        total = np.dot(first.astype(F64), second.astype(F64))
    return total.astype(dtype)


# --- distances ----------------------------------------------------------------------------------------

_CHUNK = 1 << 22
# Squared distances below this share of the squares of the rows have lost digits in a matrix product; they are computed
# again from differences.
_NEAR = 1 / 8


def _cdist_core(x1, x2, p):
    """Return the p-norm distance of every row of x1 to every row of x2, batch dimensions broadcast."""
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    x1, x2 = np.broadcast_to(x1, (*batch, *x1.shape[-2:])), np.broadcast_to(x2, (*batch, *x2.shape[-2:]))
    rows, columns, width = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    if not math.prod(batch) * rows * columns or not width:
        return np.zeros((*batch, rows, columns), dtype=x1.dtype)
    if p == 2 and (rows > 25 or columns > 25) and x1.dtype.itemsize >= 4:
        return _euclidean_cdist_by_matmul(x1, x2)
    return _cdist_by_differences(x1, x2, p)


def _cdist_by_differences(x1: np.ndarray, x2: np.ndarray, p: float) -> np.ndarray:
    rows = x1.shape[-2]
    result = np.empty((*x1.shape[:-1], x2.shape[-2]), dtype=x1.dtype)
    step = max(1, _CHUNK // max(1, x1.size // rows * x2.shape[-2]))
    for start in range(0, rows, step):
        part = x1[..., start : start + step, None, :] - x2[..., None, :, :]
        result[..., start : start + step, :] = _vector_norm_core(part, p, (part.ndim - 1,), False)
    return result


def _euclidean_cdist_by_matmul(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """Compute |a|^2 - 2 ab + |b|^2 by products of matrices, about the centre of `x2`; near rows from differences."""
    rows, columns, width = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    out = np.empty((*x1.shape[:-1], columns), x1.dtype)
    found = out.reshape(-1, rows, columns)
    for k, (first, second) in enumerate(zip(x1.reshape(-1, rows, width), x2.reshape(-1, columns, width), strict=True)):
        centre = (np.add.reduce(second, 0, F64) / columns).astype(x1.dtype)
        a, b = first - centre, second - centre
        a_sizes, b_sizes = np.vecdot(a, a)[:, None], np.vecdot(b, b)
        b *= -2
        run_blocks(
            lambda start, stop: _compute_distances(
                found[k, start:stop], first[start:stop], second, a[start:stop], b, a_sizes[start:stop], b_sizes
            ),
            rows,
            columns,
        )
    return out


def _compute_distances(out, x1, x2, a, minus_twice_b, a_sizes, b_sizes) -> None:
    """Write the distances of the rows of x1, which are those of `a` about the centre, to the rows of x2."""
    sizes = np.add(a_sizes, b_sizes, out=get_scratch_buffer(0, out.shape, out.dtype))
    np.matmul(a, minus_twice_b.T, out=out)
    np.add(out, sizes, out=out)
    np.multiply(sizes, _NEAR, out=sizes)
    least, most = np.minimum.reduce(out, None), np.maximum.reduce(out, None)
    if not most < math.inf or most < _LIMITS[out.dtype][0]:
        out[...] = _cdist_by_differences(x1, x2, 2.0)
        return
    near = out <= sizes
    np.sqrt(np.abs(out, out=out) if least < 0 else out, out=out)
    places = np.flatnonzero(near)  # a hundred times as fast as `nonzero`
    step = max(1, _CHUNK // x1.shape[-1])
    for start in range(0, len(places), step):
        i, j = np.divmod(places[start : start + step], len(x2))
        out[i, j] = _vector_norm_core(x1[i] - x2[j], 2.0, (1,), False)
