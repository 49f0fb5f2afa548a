"""Statistics: variance, median, quantiles, mode, counts and histograms."""

import math

import numpy as xp

from torchlite._dispatch.shape_and_value_checks import histogram_range, histogram_scale
from torchlite._dispatch.shapes import wrap_dim
from torchlite._types.dtypes import from_np, is_complex32

from .dim_checks import check_not_empty, wrap_dims
from .pointwise import to
from .sort import bfloat16_to_float32, take_along, take_along_last


def _cast_half_to_float(x):
    """Convert half precision to float32."""
    if is_complex32(x.dtype):
        return x.astype(xp.complex64)
    return x.astype(xp.float32) if x.dtype.itemsize <= 2 and x.dtype.kind in "fV" else x


def _gather_values_and_indices(x, dim, index, keepdim):
    """Return the elements of `x` at `index` (whose dim has length 1) and the index, squeezed unless `keepdim`."""
    values = take_along(x, dim, index)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


# Statistics


def logsumexp(input, dim=None, keepdim=False):
    axes = wrap_dims(dim, input.ndim)
    x = _cast_half_to_float(input)
    if not math.prod(x.shape[a] for a in axes):
        out = xp.log(xp.add.reduce(xp.exp(x), axis=axes, keepdims=keepdim))
        return out.astype(input.dtype)
    top = xp.maximum.reduce(x.real, axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    wide = xp.float64 if x.dtype == xp.float32 else x.dtype
    out = xp.log(xp.add.reduce(xp.exp(xp.subtract(x, top)), axis=axes, dtype=wide, keepdims=True)) + top
    out = out.astype(input.dtype, copy=False)
    return out if keepdim else out.squeeze(axes)


_PROD_ROW = 1 << 10  # elements of long rows that are multiplied in step


def _prod_by_halves(x):
    """Multiply long rows half by half: one product of long vectors is several times faster than a sequential one."""
    if x.shape[-1] >= 8 * _PROD_ROW and x.flags.c_contiguous:
        whole = x.shape[-1] // _PROD_ROW * _PROD_ROW
        folded = xp.multiply.reduce(x[..., :whole].reshape(*x.shape[:-1], -1, _PROD_ROW), axis=-2)
        folded[..., : x.shape[-1] - whole] *= x[..., whole:]
        x = folded
    while x.shape[-1] >= 64:
        half = x.shape[-1] // 2
        folded = x[..., :half] * x[..., half : 2 * half]
        if x.shape[-1] % 2:
            folded[..., 0] *= x[..., -1]
        x = folded
    return x


def prod(input, dim=None, keepdim=False, *, dtype=None):
    target = dtype.np if dtype is not None else xp.dtype(xp.int64) if input.dtype.kind in "biu" else input.dtype
    axis = None if dim is None else wrap_dim(dim, input.ndim)
    axis = axis if input.ndim else None
    x = _cast_half_to_float(input.astype(target, copy=False) if dtype is None else to(input, dtype))
    if x.dtype.kind == "f" and x.ndim:
        if axis is None and not keepdim:
            x, axis = x.reshape(-1), 0
        if axis == x.ndim - 1:
            x = _prod_by_halves(x)
    out = xp.multiply.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdim)
    return out if x.dtype == target else out.astype(target)


def count_nonzero(input, dim=None):
    return xp.sum(xp.not_equal(input, 0), axis=wrap_dims(dim, input.ndim), dtype=xp.int64)


# One element along a dimension


def _max_or_min_with_index(name, best, input, dim, keepdim):
    """Return the extreme along a dimension by its ufunc `best`, and its first index."""
    if input.dtype.kind in "cW":
        raise NotImplementedError(f"\"{name}\" not implemented for 'ComplexFloat'")
    if not input.ndim:
        wrap_dim(dim, 0)
        return input.copy(), xp.zeros((), dtype=xp.int64)
    dim = wrap_dim(dim, input.ndim)
    check_not_empty(name, input, dim)
    place = input.argmax(dim, keepdims=keepdim) if name == "max" else input.argmin(dim, keepdims=keepdim)
    return best.reduce(input, dim, keepdims=keepdim), place


def _max_dim(input, dim, keepdim=False):
    return _max_or_min_with_index("max", xp.maximum, input, dim, keepdim)


def _min_dim(input, dim, keepdim=False):
    return _max_or_min_with_index("min", xp.minimum, input, dim, keepdim)


def _is_nan(x):
    return xp.isnan(x) if x.dtype.kind in "fcVW" else xp.zeros(x.shape, dtype=bool)


def _median_dim(input, dim, keepdim=False):
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return input.copy(), xp.zeros((), dtype=xp.int64)
    check_not_empty("median", input, dim)
    rank = (input.shape[dim] - 1) // 2
    index = xp.take(xp.argpartition(bfloat16_to_float32(input), rank, axis=dim), xp.asarray([rank]), axis=dim)
    if input.dtype.kind in "fV":
        nan = xp.isnan(input)
        index = xp.where(nan.any(axis=dim, keepdims=True), xp.argmax(nan, axis=dim, keepdims=True), index)
    return _gather_values_and_indices(input, dim, index, keepdim)


def _nanmedian_dim(input, dim, keepdim=False):
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return input.copy(), xp.zeros((), dtype=xp.int64)
    check_not_empty("median", input, dim)
    order = xp.argsort(bfloat16_to_float32(input), axis=dim)
    counted = xp.sum(~_is_nan(input), axis=dim, keepdims=True)
    return _gather_values_and_indices(input, dim, take_along(order, dim, xp.maximum((counted - 1) // 2, 0)), keepdim)


def _median_all(input):
    if not input.size:
        return xp.full((), math.nan, dtype=input.dtype)
    x = input.reshape(-1)
    rank = (len(x) - 1) // 2
    found = xp.partition(bfloat16_to_float32(x), rank)  # NaN are last
    if input.dtype.kind in "fV" and (nan := xp.isnan(found[rank:])).any():
        return found[rank + xp.argmax(nan)].astype(input.dtype)
    return found[rank].astype(input.dtype)


def _nanmedian_all(input):
    if input.dtype.kind in "fV":
        nan = xp.isnan(input)
        if nan.any() and not nan.all():
            return _median_all(input[~nan])
    return _median_all(input)


def mode(input, dim=-1, keepdim=False):
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return input.copy(), xp.zeros((), dtype=xp.int64)
    check_not_empty("mode", input, dim)
    x = xp.moveaxis(bfloat16_to_float32(input), dim, -1)
    order = xp.argsort(x, axis=-1, kind="stable")
    ranked = take_along_last(x, order)
    place = xp.broadcast_to(xp.arange(x.shape[-1]), x.shape)
    starts = xp.ones(x.shape, dtype=bool)
    starts[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    run = place - xp.maximum.accumulate(xp.where(starts, place, 0), axis=-1)
    last = xp.argmax(run, axis=-1, keepdims=True)
    index = xp.moveaxis(take_along_last(order, last), -1, dim)
    return _gather_values_and_indices(input, dim, index, keepdim)


# Counts and histograms


def bincount(input, weights=None, minlength=0):
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.dtype.kind not in "iu":
        word = {"f4": "Float", "f8": "Double", "f2": "Half", "b1": "Bool"}.get(input.dtype.str[1:], str(input.dtype))
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{word}'")
    if input.ndim != 1 or (input.size and int(input.min()) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    # NumPy writes outside its memory if the length overflows.
    most = (1 << 63) - 1
    if input.size and int(input.max()) >= most:
        raise RuntimeError(f"maximum value of input overflowed, it should be < {most} but got {int(input.max())}")
    if weights is None:
        return xp.bincount(input.astype(xp.int64), minlength=minlength).astype(xp.int64)
    if weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    out = xp.bincount(input.astype(xp.int64), weights.astype(xp.float64), minlength)
    return out.astype(xp.float32 if weights.dtype == xp.float32 else xp.float64)


def _resolve_histogram_range(name, x, low, high):
    """Return the limits of a histogram: the arguments, or the data's range where both are equal."""
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    return histogram_range(name, low, high)


def histc(input, bins=100, min=0, max=0):
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if input.dtype.kind not in "fV":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{from_np(input.dtype).scalar_name}'")
    x = _cast_half_to_float(input.reshape(-1))
    low, high = _resolve_histogram_range("torch.histc", x, float(min), float(max))
    x = x[(x >= low) & (x <= high)]
    if not x.dtype.type(high) > x.dtype.type(low):  # so large that the limits are one number
        place = xp.full(x.size, bins // 2)
        return xp.bincount(place, minlength=bins).astype(input.dtype)
    scale = histogram_scale(low, high, bins, float(xp.finfo(x.dtype).max))
    if scale != 1:
        x, low, high = x * x.dtype.type(scale), low * scale, high * scale
    place = xp.minimum(((x - x.dtype.type(low)) * bins / x.dtype.type(high - low)).astype(xp.int64), bins - 1)
    return xp.bincount(place, minlength=bins).astype(input.dtype)


def _find_even_bins(edges, values):
    """Return the bin of each value within the limits, if all bins have about the same width, else None."""
    bins = edges.shape[0] - 1
    low, high = float(edges[0]), float(edges[-1])
    width = (high - low) / bins
    if not (0 < width < math.inf and values.dtype.kind == "f" and edges.size < min(values.size, 1 << 16)):
        return None
    # An estimate is wrong by one bin at most if each edge is within a quarter of a bin of its place.
    exact = low + width * xp.arange(bins + 1)
    if not float(xp.max(xp.abs(edges - exact))) < width / 4 or not (edges[1:] > edges[:-1]).all():
        return None
    place = ((values - edges.dtype.type(low)) * edges.dtype.type(1 / width)).astype(xp.int64)
    place = xp.minimum(place, bins - 1)
    place -= values < edges[place]
    place += values >= edges[1:][place]
    return xp.minimum(place, bins - 1)


def _histogram_counts(input, edges, weight=None):
    """Return the weight of `input` (samples, dimensions) between the edges of each dimension; the last bin is
    closed.
    """
    x = input.reshape(-1, input.shape[-1])
    inside = xp.ones(x.shape[0], dtype=bool)
    place = xp.zeros(x.shape[0], dtype=xp.int64)
    shape = tuple(e.shape[0] - 1 for e in edges)
    for column, e in enumerate(edges):
        values = x[:, column]
        here = (values >= e[0]) & (values <= e[-1])
        bin_of = _find_even_bins(e, xp.where(here, values, e[0]))
        if bin_of is None:
            bin_of = xp.searchsorted(e, values, side="right") - 1
            bin_of = xp.where(values == e[-1], shape[column] - 1, bin_of)
        inside &= here
        place = place * shape[column] + bin_of
    chosen = None if weight is None else weight.reshape(-1)[inside].astype(xp.float64)
    return xp.bincount(place[inside], chosen, math.prod(shape)).astype(input.dtype).reshape(shape)
