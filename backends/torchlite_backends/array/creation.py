"""Creation kernels: filled arrays, ranges, and triangle indices."""

from __future__ import annotations

import math
from typing import Any

from torchlite._dispatch.shapes import tril_size
from torchlite._types import opaque_dtypes
from torchlite._types.dtypes import FROM_NUMPY

xp: Any = None


def _empty(size, dtype):
    return xp.empty(size, dtype=dtype.np)


def _full(size, value, dtype):
    if dtype.np.names:
        return opaque_dtypes.full(size, value, dtype)
    return xp.full(size, value, dtype=dtype.np)


def _zeros_like(input):
    return xp.zeros(input.shape, dtype=input.dtype)


def _ones_like(input):
    return _full_like(input, 1)


def _full_like(input, value):
    return _new_full(input, input.shape, value)


def _new_zeros(input, shape):
    return xp.zeros(shape, dtype=input.dtype)


def _new_full(input, shape, value):
    if input.dtype.names:
        return opaque_dtypes.full(shape, value, FROM_NUMPY[input.dtype])
    return xp.full(shape, value, dtype=input.dtype)


def _new_arange(input, start, end, step, dtype):
    return xp.arange(start, end, step, dtype=dtype.np)


def _compute_arange_length(start, end, step) -> int:
    return max(0, math.ceil((end - start) / step))


def _arange(start, end, step, dtype):
    opaque_dtypes.refuse(dtype, "arange_cpu")
    if dtype.category < 2:
        return xp.arange(start, end, step, dtype="int64").astype(dtype.np, copy=False)
    # PyTorch multiplies in double precision; NumPy adds up a rounded step.
    values = xp.arange(_compute_arange_length(start, end, step), dtype="float64")
    if step != 1:
        values = values * step
    if start != 0:
        values = values + start
    return values.astype(dtype.np)


def _linspace(start, end, steps, dtype):
    """Count the first half from the start and the second from the end, in the precision of the dtype."""
    opaque_dtypes.refuse(dtype, "linspace_cpu")
    if steps == 1:
        return xp.full((1,), start, dtype=dtype.np)
    work = (
        "complex128" if dtype.category == 3 else "float32" if dtype.category == 2 and dtype.itemsize <= 4 else "float64"
    )
    if dtype.category < 2:
        start, end = int(start), int(end)
    kind = xp.dtype(work).type
    start, end = kind(start), kind(end)
    step = (end - start) / kind(max(steps - 1, 1))
    index = xp.arange(steps).astype(work)
    half = steps // 2
    values = xp.concatenate([start + step * index[:half], end - step * (kind(steps - 1) - index[half:])])
    return (xp.trunc(values) if dtype.category < 2 else values).astype(dtype.np)


def _logspace(start, end, steps, base, dtype):
    opaque_dtypes.refuse(dtype, "logspace_cpu")
    work = "complex128" if dtype.category == 3 else "float64"
    if steps == 1:
        return xp.full((1,), base**start, dtype=work).astype(dtype.np)
    if dtype.category < 2:
        start, end = int(start), int(end)
    step = (end - start) / max(steps - 1, 1)
    index = xp.arange(steps).astype(work)
    half = steps // 2
    powers = xp.concatenate([start + step * index[:half], end - step * (steps - 1 - index[half:])])
    values = xp.asarray(base, dtype=work) ** powers
    return (xp.trunc(values) if dtype.category < 2 else values).astype(dtype.np)


def _identity_matrix(n, m, dtype):
    if dtype.np.names:
        return opaque_dtypes.cast(xp.eye(n, m), dtype)
    return xp.eye(n, m, dtype=dtype.np)


def _tril_indices(rows, columns, offset, dtype):
    opaque_dtypes.refuse(dtype, "tril_indices")
    out = xp.empty((2, tril_size(rows, columns, offset)), dtype=dtype.np)
    row = xp.arange(min(max(-offset, 0), rows), rows if columns else 0)
    return _fill_index_pairs(out, row, 0 * row, xp.minimum(row + offset + 1, columns))


def _triu_indices(rows, columns, offset, dtype):
    opaque_dtypes.refuse(dtype, "triu_indices")
    out = xp.empty((2, rows * columns - tril_size(rows, columns, offset - 1)), dtype=dtype.np)
    row = xp.arange(min(max(columns - offset, 0), rows) if columns else 0)
    first = xp.maximum(row + offset, 0)
    return _fill_index_pairs(out, row, first, columns - first)


def _fill_index_pairs(out, row, first, count):
    """Write row and column indices: `count` consecutive columns of each row, starting at `first`."""
    ends = xp.cumsum(count)
    out[0] = xp.repeat(row, count)
    out[1] = xp.arange(out.shape[1]) - xp.repeat(ends - count - first, count)
    return out
