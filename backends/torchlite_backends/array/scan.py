"""Cumulative sums, products, extremes and linear recurrences along a dimension."""

import numpy as xp

from torchlite._dispatch.shapes import wrap_dim

from .binary import complex_logaddexp
from .pointwise import to

# Products leave the range of float32, and come back; PyTorch's CPU kernels multiply in double precision too.
_WIDE_PRODUCTS = {xp.dtype(xp.float32): xp.dtype(xp.float64), xp.dtype(xp.complex64): xp.dtype(xp.complex128)}
_ROW = 256  # elements per step from which a Python loop over steps beats the strided accumulate


def _scan(combine, x, dim):
    """Scan: out[0] = x[0], out[i] = combine(out[i-1], x[i]) along `dim`."""
    steps = x.shape[dim]
    last = dim == x.ndim - 1
    if hasattr(combine, "accumulate") and (last or x.size < steps * _ROW):
        return combine.accumulate(x, axis=dim, dtype=x.dtype)
    out = x.copy()
    rows = xp.moveaxis(out, dim, 0)
    for i in range(1, steps):
        rows[i] = combine(rows[i - 1], rows[i])
    return out


def _resolve_dtype(x, dtype):
    if dtype is not None:
        return dtype.np
    return xp.dtype(xp.int64) if x.dtype.kind in "biu" else x.dtype


def _cumulate_along(combine, input, dim, dtype):
    dim = wrap_dim(dim, input.ndim)
    target = _resolve_dtype(input, dtype)
    low = target.itemsize <= 2 and target.kind in "fV"
    wide = xp.dtype(xp.float32) if low else _WIDE_PRODUCTS.get(target) if combine is xp.multiply else None
    x = input.astype(wide or target) if dtype is None or input.dtype == target else to(input, dtype)
    if not x.ndim or not x.size:
        return x.astype(target, copy=False)
    if wide is not None:
        x = x.astype(wide, copy=False)
    out = _scan(combine, _begin_with_zero(x, dim) if combine is xp.add else x, dim)
    return out if wide is None else out.astype(target)


def _begin_with_zero(x, dim):
    """Add 0 to the first elements along `dim`, in place, since a sum of -0 is 0."""
    x[(slice(None),) * dim + (slice(1),)] += 0
    return x


def cumsum(input, dim, *, dtype=None):
    return _cumulate_along(xp.add, input, dim, dtype)


def cumprod(input, dim, *, dtype=None):
    return _cumulate_along(xp.multiply, input, dim, dtype)


def _cummax_or_cummin(combine, input, dim):
    """Return the running extreme and its latest index; a NaN wins over all."""
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim or not input.size:
        return input.copy(), xp.zeros(input.shape, dtype=xp.int64)
    # Of equal elements the later one, which NumPy has in all floats but half precision.
    values = _scan(combine, input.astype(xp.float32) if input.dtype == xp.float16 else input, dim).astype(input.dtype)
    shape = [1] * input.ndim
    shape[dim] = input.shape[dim]
    place = xp.arange(input.shape[dim]).reshape(shape)
    met = input == values
    if input.dtype.kind in "fV":
        met = met | xp.isnan(input)
    return values, _scan(xp.maximum, xp.where(met, place, 0), dim)


def cummax(input, dim):
    return _cummax_or_cummin(xp.maximum, input, dim)


def cummin(input, dim):
    return _cummax_or_cummin(xp.minimum, input, dim)


def logcumsumexp(input, dim):
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim or not input.size:
        return input.copy()
    real = input.dtype.kind != "c"
    wide = (xp.float32 if input.dtype.itemsize <= 2 else xp.float64) if real else input.dtype
    x = _begin_with_zero(input.astype(wide), dim)
    if real:
        return _scan(xp.logaddexp, x, dim).astype(input.dtype)
    # As added to exp(-inf): a phase of zero has no meaning, and what is NaN in part is NaN.
    x = xp.where(xp.isnan(x), xp.nan + 1j * xp.nan, xp.where(xp.isneginf(x.real), -xp.inf, x)).astype(input.dtype)
    return _scan(complex_logaddexp, x, dim)


def _linear_recurrence(factor, term, dim):
    """Linear recurrence: out[0] = term[0], out[i] = term[i] + factor[i] * out[i-1] along `dim`."""
    if not term.ndim or not term.size:
        return term.copy()
    steps = term.shape[dim]
    out = term.copy()
    rows = xp.moveaxis(out, dim, 0)
    by = xp.moveaxis(factor, dim, 0)
    if steps <= 64 or out.size >= steps * _ROW:
        for i in range(1, steps):
            rows[i] += by[i] * rows[i - 1]
        return out
    # Few long rows: combine spans of doubling length, so that Python takes log(steps) steps.
    by, span = by.copy(), 1
    while span < steps:
        rows[span:] = rows[span:] + by[span:] * rows[:-span]
        by[span:] = by[span:] * by[:-span]
        span *= 2
    return out
