"""Variance and standard deviation: two passes in float64 over blocks, combined about the first block's mean.

The variance of equal numbers is zero, as their mean is exact: sums of so few float32 are exact in float64, and those
of float64 are taken about one of the numbers.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from torchlite._types.dtypes import is_complex32
from torchlite_backends.array.dim_checks import wrap_dims

from .row_blocks import F32, F64, SMALL
from .wide_sums import as_cube, reduce_in_blocks, sum_middle, sum_of_squares

# A sum of squares in float64 below this has lost digits, unless it is zero.
_TINY = 1e-280


def _block_moments(shifted: bool, block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and the sums of squared deviations over the middle dimension of a block, which changes."""
    first: Any = 0
    if shifted:
        first = block[:, :1].copy()
        block -= first
    mean = sum_middle(block)[:, None]
    mean /= block.shape[1]
    block -= mean
    mean += first
    return mean[:, 0], sum_of_squares(block)


def compute_moments(cube: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and the sums of squared deviations from them over the middle dimension, in float64."""
    (means, squares), counts = reduce_in_blocks(cube, functools.partial(_block_moments, cube.dtype == F64), 2)
    if len(counts) == 1:
        return means[0], squares[0]
    weights = counts[:, None, None]
    first = means[0].copy()
    means -= first
    mean = np.add.reduce(means * weights, 0) / np.add.reduce(counts)
    squares += weights * (means - mean) ** 2
    return first + mean, np.add.reduce(squares, 0)


def _sum_squared_deviations(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the sums of squared deviations from the mean in float64, flat."""
    return compute_moments(as_cube(x, axes))[1].reshape(-1)


def _compute_spread(input: np.ndarray, dim: Any, correction: float, keepdim: bool, root: bool) -> np.ndarray:
    """Return the variance, or its root."""
    dtype = input.dtype
    axes = tuple(range(input.ndim)) if dim is None or not dim and dim.__class__ is tuple else wrap_dims(dim, input.ndim)
    count = input.size if len(axes) == input.ndim else math.prod([input.shape[a] for a in axes])
    if dtype != F32 and dtype != F64 or not count or not input.size:
        return _compute_unusual_spread(input, axes, count, correction, keepdim, root)
    free = max(count - correction, 0)
    if input.size <= SMALL:
        if dtype == F32:
            wide = input.astype(F64)
        else:
            wide = input - input[tuple([slice(1) if a in axes else slice(None) for a in range(input.ndim)])]
        if len(axes) == input.ndim and not keepdim:  # in fewer calls
            flat = wide.ravel()
            flat -= np.add.reduce(flat) / count
            total = flat.dot(flat)
        else:
            mean = np.add.reduce(wide, axes, None, None, True)  # type: ignore[call-overload]
            mean /= count
            np.subtract(wide, mean, wide)
            np.multiply(wide, wide, wide)
            total = np.add.reduce(wide, axes, None, None, keepdim)  # type: ignore[call-overload]
    else:
        shape = tuple([1 if a in axes else n for a, n in enumerate(input.shape) if keepdim or a not in axes])
        total = _sum_squared_deviations(input, axes).reshape(shape)
    if dtype == F64 and not (
        _TINY < total < math.inf
        if total.__class__ is F64.type
        else _TINY < np.minimum.reduce(total, None) and np.maximum.reduce(total, None) < math.inf
    ):
        return _compute_scaled_spread(input, axes, free, root).reshape(total.shape)
    total = total / free if free else np.divide(total, 0.0)
    return (np.sqrt(total) if root else total).astype(dtype, copy=False)


def _compute_unusual_spread(
    input: np.ndarray, axes: tuple[int, ...], count: int, correction: float, keepdim: bool, root: bool
) -> np.ndarray:
    """Return `_compute_spread` of complex numbers, of nothing, or of integers (an error)."""
    if input.dtype.kind in "biu":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    if not count or not input.size:
        shape = tuple([1 if a in axes else n for a, n in enumerate(input.shape) if keepdim or a not in axes])
        return np.full(shape, math.nan, dtype=input.real.dtype)
    if is_complex32(input.dtype):
        return _compute_spread(input.astype(np.complex64), axes, correction, keepdim, root).astype(np.float16)
    if input.dtype.kind != "c":  # half precision
        return _compute_spread(input.astype(F32), axes, correction, keepdim, root).astype(input.dtype)
    # The real and the imaginary parts are twice as many elements, whose means are separate.
    parts = [_compute_spread(part, axes, correction, keepdim, root) for part in (input.real, input.imag)]
    return np.hypot(*parts) if root else parts[0] + parts[1]


def _compute_scaled_spread(x: np.ndarray, axes: tuple[int, ...], free: float, root: bool) -> np.ndarray:
    """Return variances of float64, or their roots, where squares leave the range of float64."""
    largest = np.maximum.reduce(np.abs(x), axes, keepdims=True)
    exponent = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
    total = np.divide(_sum_squared_deviations(np.ldexp(x, -exponent), axes), free)
    exponent = exponent.reshape(-1)
    return np.ldexp(np.sqrt(total), exponent) if root else np.ldexp(total, 2 * exponent)


def _var_correction(input, dim=None, correction=1, keepdim=False):
    return _compute_spread(input, dim, correction, keepdim, False)


def _std_correction(input, dim=None, correction=1, keepdim=False):
    return _compute_spread(input, dim, correction, keepdim, True)
