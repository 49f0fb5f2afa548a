"""Fused CPU kernels of layer, RMS and batch norm, forward and backward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import cache_blocking
from .blas import get_gemm_function, single_threaded
from .cache_blocking import get_scratch_buffer
from .row_blocks import (
    COLUMN_RUN,
    F32,
    F64,
    LONGEST_DOT,
    SMALL,
    choose_in_place_rows,
    dot_rows,
    is_half,
    matvec,
    ones,
    raise_not_implemented,
    sum_along_axis,
    sum_columns,
)
from .statistics import compute_moments

# Minimum elements per channel of a sample for a separate row; shorter channels are processed as one row per sample.
LONG = 256


def _as_compute_dtype(x):
    """Return a contiguous array in the compute dtype: half precision as float32."""
    if x is None:
        return None
    if is_half(x.dtype):
        return x.astype(F32)
    return x if x.flags.c_contiguous else x.copy()


def _check_float_dtype(x, kernel):
    if x.dtype != F32 and x.dtype != F64 and not is_half(x.dtype):
        raise_not_implemented(x, kernel)


def _cast_result(x, dtype):
    return x if x is None or x.dtype == dtype else x.astype(dtype)


# Powers of two by which rows are divided whose variance overflows, and the term that then stands for `eps`, which is
# lost beside such a variance. In backward passes, reciprocal deviations whose cubes keep their digits.
_HUGE = {F32: 96, F64: 768}
_NO_EPS = {F32: 2.0**-120, F64: 2.0**-1000}
_LEAST_RSTD = {F32: 2.0**-36, F64: 2.0**-300}


def _find_overflowed(x, var):
    """Return the channels whose variance is no finite number, None if there are none."""
    return None if not x.size or np.maximum.reduce(var) < math.inf else np.flatnonzero(~(var < math.inf))


def _is_any_overflowed(x, rstd):
    """True if a reciprocal deviation is 0, or no number: the variance of its row overflowed, or has infinite parts."""
    return x.size and not (rstd.item() if rstd.size == 1 else np.minimum.reduce(rstd, None)) > 0


def _normalize_huge_rows(kernel, found, input, columns, parameters):
    """Compute the rows whose variance overflowed again, divided by a power of two."""
    out, *mean, rstd = found
    rows = np.flatnonzero(~(rstd > 0))
    x = _as_compute_dtype(input).reshape(-1, columns)[rows]
    parameters = [None if p is None else _as_compute_dtype(p).reshape(columns) for p in parameters]
    part, *part_mean, part_rstd = kernel(np.ldexp(x, -_HUGE[x.dtype]), *parameters, 1, _NO_EPS[x.dtype])
    out.reshape(-1, columns)[rows] = part.astype(out.dtype, copy=False)
    rstd.reshape(-1)[rows] = np.ldexp(part_rstd[:, 0], -_HUGE[x.dtype])
    for target, values in zip(mean, part_mean, strict=True):
        target.reshape(-1)[rows] = np.ldexp(values[:, 0], _HUGE[x.dtype])
    return found


def _scale_huge_rows(input, rstd, n_dims):
    """Return exponents for rows whose reciprocal deviations are too small for a backward pass, the rows and the
    reciprocal deviations with these; None if there are no such rows.
    """
    bound = _LEAST_RSTD[rstd.dtype]
    if not (rstd.item() if rstd.size == 1 else np.fmin.reduce(rstd, None)) < bound:
        return None
    exponent = np.where(rstd < bound, np.frexp(rstd)[1], 0)
    exponent = exponent.reshape(exponent.shape + (1,) * (input.ndim - exponent.ndim))
    return exponent, np.ldexp(_as_compute_dtype(input), exponent), np.ldexp(rstd, -exponent.reshape(rstd.shape))


def _allocate_rows_like(x, shape):
    """Return a new array that owns its memory, as a gradient must, and a view of its rows like those of `x`."""
    whole = np.empty(shape, x.dtype)
    return whole, whole.reshape(x.shape)


class _ColumnSums:
    """Sums over rows that blocks add to, in an order independent of the threads."""

    def __init__(self):
        self.parts = {}

    def add(self, start, block):
        with single_threaded:
            self.parts[start] = sum_columns(block)

    def total(self, columns, dtype):
        if not self.parts:
            return np.zeros(columns, dtype)
        parts = [self.parts[start] for start in sorted(self.parts)]
        return (parts[0] if len(parts) == 1 else np.add.reduce(parts, 0)).astype(dtype, copy=False)


# --- layer norm -----------------------------------------------------------------------------------


def _layer_norm(input, weight, bias, n_dims, eps):
    dtype = input.dtype
    if (
        n_dims == 1
        and input.size == input.shape[-1]
        and 0 < input.size <= LONGEST_DOT
        and (dtype is F32 or dtype is F64)
    ):
        found = _layer_norm_one_row(input, weight, bias, eps)
    else:
        found = _layer_norm_of_rows(input, weight, bias, n_dims, eps)
    if _is_any_overflowed(input, found[2]):
        columns = math.prod(input.shape[input.ndim - n_dims :])
        return _normalize_huge_rows(_layer_norm_of_rows, found, input, columns, (weight, bias))
    return found


def _layer_norm_of_rows(input, weight, bias, n_dims, eps):
    _check_float_dtype(input, "LayerNormKernelImpl")
    x, weight, bias = _as_compute_dtype(input), _as_compute_dtype(weight), _as_compute_dtype(bias)
    lead = x.shape[: x.ndim - n_dims]
    small = lead + (1,) * n_dims
    if x.size == 0:
        nothing = np.zeros(small, x.dtype)
        return np.empty(input.shape, input.dtype), nothing, nothing
    columns = math.prod(x.shape[x.ndim - n_dims :])
    x = x.reshape(-1, columns)
    weight, bias = (None if p is None else p.reshape(columns) for p in (weight, bias))
    if x.size <= SMALL and x.dtype == input.dtype:
        out, mean, rstd = _layer_norm_few_rows(x, weight, bias, eps)
        return out.reshape(input.shape), mean.reshape(small), rstd.reshape(small)
    if columns > LONGEST_DOT and x.dtype == F32:
        out, mean, rstd = _layer_norm_long_rows(x, weight, bias, eps)
        return _cast_result(out.reshape(input.shape), input.dtype), mean.reshape(small), rstd.reshape(small)
    out = np.empty_like(x)
    mean, rstd = np.empty((x.shape[0], 1), x.dtype), np.empty((x.shape[0], 1), x.dtype)
    lines = RowAffine(columns, x.dtype, weight, bias)

    def normalize_rows(start, stop):
        rows, centre, inverse = x[start:stop], mean[start:stop, 0], rstd[start:stop, 0]
        rows = lines.place_rows(rows, out[start:stop])
        plain = _compute_mean_and_var(rows, centre, inverse)
        np.add(inverse, eps, out=inverse)
        np.sqrt(inverse, out=inverse)
        np.divide(1, inverse, out=inverse)
        if plain:
            lines.multiply_add(rows, inverse, centre * -inverse, out[start:stop])
        else:
            lines.multiply_add(_subtract_mean(rows, centre), inverse, None, out[start:stop])

    cache_blocking.run_blocks(
        normalize_rows, *x.shape, cache_blocking.ROWS_BLOCK, cache_blocking.MIN_SIZE_FEWEST_PASSES
    )
    return _cast_result(out.reshape(input.shape), input.dtype), mean.reshape(small), rstd.reshape(small)


# Numbers of columns for which products of thin matrices serve (see `RowAffine`).
SHORT = range(32, 640)
# A variance is the mean of squares less the square of the mean if that is at most so many times the variance: the
# difference then loses two bits.
FAR_MEAN = 4


def _compute_mean_and_var(rows, mean, var):
    """Write means and variances of rows; return False if the rows must be centred (`_subtract_mean`) for later
    computations.

    That is so if a mean is large relative to the variance.
    """
    columns = rows.shape[1]
    np.divide(sum_along_axis(rows)[:, 0], columns, out=mean)
    np.divide(dot_rows(rows, rows), columns, out=var)
    square = np.multiply(mean, mean)
    np.subtract(var, square, out=var)
    np.divide(square, FAR_MEAN, out=square)
    if (square <= var).all() and np.maximum.reduce(var) < math.inf:
        return True
    # The mean's rounding error may exceed the variance: for constant rows of a large number the variance is zero.
    np.add(mean, sum_along_axis(_subtract_mean(rows, mean))[:, 0] / columns, out=mean)
    centred = _subtract_mean(rows, mean)
    np.divide(dot_rows(centred, centred), columns, out=var)
    return False


def _subtract_mean(rows, mean):
    return np.subtract(rows, mean[:, None], out=get_scratch_buffer(0, rows.shape, rows.dtype))


class RowAffine:
    """Rows times row factors and column weights, plus shifts along rows or columns.

    For short rows the factors of all elements are a product of two thin matrices, and so are the shifts, which BLAS
    accumulates: NumPy takes twice the time for broadcast columns or rows. With 256 columns that takes 0.7 of the time
    of four passes, with 512 0.8, with 768 1.07, with 1024 1.4 (two threads, two machines).
    """

    def __init__(self, columns, dtype, weight=None, bias=None):
        self.weight, self.bias = weight, bias
        self.factors: Any = None
        self.terms: Any = None
        if weight is not None and columns in SHORT and get_gemm_function(dtype) is not None:
            self.factors, self.terms = np.zeros((2, columns), dtype), np.zeros((2, columns), dtype)
            self.factors[0] = self.terms[0] = weight
            self.terms[1] = 0 if bias is None else bias

    def place_rows(self, rows, out):
        """Return the rows, in `out` if `multiply_add` works there in place."""
        return rows if self.factors is not None else choose_in_place_rows(rows, out)

    def multiply(self, rows, by, out):
        """Compute out = rows * by * weight; `by` is a vector over rows."""
        if self.factors is not None:
            np.dot(_interleave_pairs(by, 0), self.factors, out=out)
            np.multiply(out, rows, out=out)
            return
        if self.weight is not None:  # first: a sum over one column then leaves nothing, not even rounding
            rows = np.multiply(rows, self.weight, out=out)
        np.multiply(rows, by[:, None], out=out)

    def multiply_add(self, rows, by, shift, out):
        """Compute out = (rows * by + shift) * weight + bias; the shift may be None."""
        if self.factors is not None:
            self.multiply(rows, by, out)
            left = _interleave_pairs(np.zeros_like(by) if shift is None else shift, 1)
            first, second, third = (a.__array_interface__["data"][0] for a in (left, self.terms, out))
            columns = out.shape[1]
            gemm: Any = get_gemm_function(out.dtype)
            gemm(False, len(out), columns, 2, first, 2, second, columns, 1.0, third, columns)
            return
        np.multiply(rows, by[:, None], out=out)
        if shift is not None:
            np.add(out, shift[:, None], out=out)
        if self.weight is not None:
            np.multiply(out, self.weight, out=out)
        if self.bias is not None:
            np.add(out, self.bias, out=out)


def _interleave_pairs(first, second):
    pairs = np.empty((len(first), 2), first.dtype)
    pairs[:, 0], pairs[:, 1] = first, second
    return pairs


def _layer_norm_one_row(x, weight, bias, eps):
    """`_layer_norm` of a single row, with numbers for its statistics: the bits of `_layer_norm_few_rows`."""
    row, number = x.reshape(-1), x.dtype.type
    columns = number(len(row))
    mean = row.dot(ones(len(row), x.dtype)) / columns
    out = row - mean
    rstd = number(1) / np.sqrt(out.dot(out) / columns + number(eps))
    np.multiply(out, rstd, out)
    if weight is not None:
        np.multiply(out, weight, out)
    if bias is not None:
        np.add(out, bias, out)
    small = (1,) * x.ndim
    return out.reshape(x.shape), mean.reshape(small), rstd.reshape(small)


def _layer_norm_few_rows(x, weight, bias, eps):
    """`_layer_norm` of rows in as few calls as possible. Each row has the bits that it has alone."""
    columns = x.shape[1]
    mean = (np.vecdot(x, ones(columns, x.dtype))[:, None] if columns <= LONGEST_DOT else sum_along_axis(x)) / columns
    out = x - mean
    rstd = dot_rows(out, out)[:, None] / columns
    rstd += eps
    np.sqrt(rstd, rstd)
    np.divide(1, rstd, rstd)
    np.multiply(out, rstd, out)
    if weight is not None:
        np.multiply(out, weight, out)
    if bias is not None:
        np.add(out, bias, out)
    return out, mean, rstd


# Numbers whose products and differences stay in float32's range, and the part of a deviation that rounding hides.
_LEAST_PLAIN, _LARGEST_PLAIN, _HIDDEN = 1e-30, 1e30, 2.0**-27


def _split_means(mean, rstd, deviation):
    """Return two numbers of float32 a row whose sum is the mean; None in place of the second if they are all too small
    to count beside the standard deviations. None if float32 cannot hold the rows' differences or factors.
    """
    if not (rstd.min() > _LEAST_PLAIN and rstd.max() < _LARGEST_PLAIN and np.abs(mean).max() < _LARGEST_PLAIN):
        return None
    high = mean.astype(F32)
    low = mean - high
    return high, low.astype(F32) if (np.abs(low) > deviation * _HIDDEN).any() else None


def _layer_norm_long_rows(x, weight, bias, eps):
    """`_layer_norm` of long rows of float32, with statistics in float64, by blocks."""
    rows, columns = x.shape
    mean, squares = compute_moments(x[:, :, None])
    rstd = 1 / np.sqrt(squares / columns + eps)
    out = np.empty_like(x)
    step = cache_blocking.BLOCK
    split = _split_means(mean, rstd, np.sqrt(squares / columns))

    def normalize_block(row, start):
        here = slice(start, start + step)
        if split is not None:
            high, low = split
            part = np.subtract(x[row, here], high[row], out=out[row, here])
            if low is not None:
                part -= low[row]
            part *= F32.type(rstd[row, 0])
            if weight is not None:
                part *= weight[here]
            if bias is not None:
                part += bias[here]
            return
        wide = get_scratch_buffer(2, x[row, here].shape, F64)
        np.copyto(wide, x[row, here])
        wide -= mean[row]
        wide *= rstd[row]
        if weight is not None:
            wide *= weight[here]
        if bias is not None:
            wide += bias[here]
        np.copyto(out[row, here], wide, casting="same_kind")

    cache_blocking.parallel_for(
        normalize_block, [(row, start) for row in range(rows) for start in range(0, columns, step)]
    )
    return out, mean.astype(F32), rstd.astype(F32)


def _layer_norm_backward(grad, input, weight, mean, rstd, n_dims, eps, needs):
    scaled = _scale_huge_rows(input, rstd, n_dims) if input.size else None
    if scaled is None:
        return _layer_norm_backward_of_rows(grad, input, weight, mean, rstd, n_dims, needs)
    exponent, x, rstd = scaled
    mean = np.ldexp(mean, exponent.reshape(mean.shape))
    found = _layer_norm_backward_of_rows(
        _as_compute_dtype(grad), x, _as_compute_dtype(weight), mean, rstd, n_dims, needs
    )
    of_input = None if found[0] is None else np.ldexp(found[0], exponent)
    return tuple(_cast_result(g, input.dtype) for g in (of_input, *found[1:]))


def _layer_norm_backward_of_rows(grad, input, weight, mean, rstd, n_dims, needs):
    dtype = input.dtype
    shape = input.shape[input.ndim - n_dims :]
    columns = math.prod(shape)
    if input.size == 0:
        return tuple(
            np.zeros(s, dtype) if need else None for s, need in zip((input.shape, shape, shape), needs, strict=True)
        )
    grad, x = _as_compute_dtype(grad).reshape(-1, columns), _as_compute_dtype(input).reshape(-1, columns)
    weight = None if weight is None else _as_compute_dtype(weight).reshape(columns)
    mean, rstd = mean.reshape(-1), rstd.reshape(-1)
    whole, out = _allocate_rows_like(x, input.shape) if needs[0] else (None, None)
    weight_sums, bias_sums = _ColumnSums(), _ColumnSums()
    lines = RowAffine(columns, x.dtype, weight)
    one = ones(columns, x.dtype) if weight is None else weight

    def compute_rows(start, stop):
        # With a row's mean m, s = 1 / std and normalised elements n = (x - m) s, all sums by products of matrices:
        # gx = s (g w - mean(g w) - n mean(g w n)).
        g, rows, inverse, centre = grad[start:stop], x[start:stop], rstd[start:stop], mean[start:stop]
        distance = np.multiply(centre, inverse)
        result = None if out is None else out[start:stop]
        if (np.multiply(distance, distance) <= FAR_MEAN).all():
            rows = rows if result is None else choose_in_place_rows(rows, result)
        else:
            rows, centre, distance = _subtract_mean(rows, centre), np.zeros_like(centre), np.zeros_like(distance)
        product = np.multiply(g, rows, out=get_scratch_buffer(1, g.shape, g.dtype))
        if needs[1]:
            weight_sums.parts[start] = sum_columns(product, inverse) - sum_columns(g, distance)
        if needs[2]:
            bias_sums.parts[start] = sum_columns(g)
        if result is None:
            return
        average = matvec(g, one)
        average /= columns
        projection = matvec(product, one)
        projection /= columns
        projection -= average * centre
        projection *= -inverse * inverse * inverse
        np.multiply(rows, projection[:, None], out=result)
        np.subtract(result, (average * inverse + projection * centre)[:, None], out=result)
        lines.multiply(g, inverse, product)
        np.add(result, product, out=result)

    cache_blocking.run_blocks(compute_rows, *x.shape, cache_blocking.ROWS_BLOCK, cache_blocking.MIN_SIZE_FEW_PASSES)
    return (
        _cast_result(whole, dtype),
        _cast_result(weight_sums.total(columns, x.dtype).reshape(shape), dtype) if needs[1] else None,
        _cast_result(bias_sums.total(columns, x.dtype).reshape(shape), dtype) if needs[2] else None,
    )


# --- RMS norm -------------------------------------------------------------------------------------


def _rms_norm(input, weight, n_dims, eps):
    found = _rms_norm_of_rows(input, weight, n_dims, eps)
    if not _is_any_overflowed(input, found[1]):
        return found
    columns = math.prod(input.shape[input.ndim - n_dims :])
    return _normalize_huge_rows(_rms_norm_of_rows, found, input, columns, (weight,))


def _rms_norm_of_rows(input, weight, n_dims, eps):
    _check_float_dtype(input, "rms_norm")
    x, weight = _as_compute_dtype(input), _as_compute_dtype(weight)
    small = x.shape[: x.ndim - n_dims] + (1,) * n_dims
    if x.size == 0:
        return np.empty(input.shape, input.dtype), np.zeros(small, x.dtype)
    columns = math.prod(x.shape[x.ndim - n_dims :])
    x = x.reshape(-1, columns)
    weight = None if weight is None else weight.reshape(columns)
    out, rstd = np.empty_like(x), np.empty((x.shape[0], 1), x.dtype)
    lines = RowAffine(columns, x.dtype, weight)

    def normalize_rows(start, stop):
        rows, inverse = x[start:stop], rstd[start:stop, 0]
        np.divide(dot_rows(rows, rows), columns, out=inverse)
        np.add(inverse, eps, out=inverse)
        np.sqrt(inverse, out=inverse)
        np.divide(1, inverse, out=inverse)
        lines.multiply(rows, inverse, out[start:stop])

    cache_blocking.run_blocks(
        normalize_rows, *x.shape, cache_blocking.ROWS_BLOCK, cache_blocking.MIN_SIZE_FEWEST_PASSES
    )
    return _cast_result(out.reshape(input.shape), input.dtype), rstd.reshape(small)


def _rms_norm_backward(grad, input, weight, rstd, n_dims, eps, needs):
    scaled = _scale_huge_rows(input, rstd, n_dims) if input.size else None
    if scaled is None:
        return _rms_norm_backward_of_rows(grad, input, weight, rstd, n_dims, needs)
    exponent, x, rstd = scaled
    found = _rms_norm_backward_of_rows(_as_compute_dtype(grad), x, _as_compute_dtype(weight), rstd, n_dims, needs)
    of_input = None if found[0] is None else np.ldexp(found[0], exponent)
    return tuple(_cast_result(g, input.dtype) for g in (of_input, *found[1:]))


def _rms_norm_backward_of_rows(grad, input, weight, rstd, n_dims, needs):
    dtype = input.dtype
    shape = input.shape[input.ndim - n_dims :]
    columns = math.prod(shape)
    if input.size == 0:
        return tuple(np.zeros(s, dtype) if need else None for s, need in zip((input.shape, shape), needs, strict=True))
    grad, x = _as_compute_dtype(grad).reshape(-1, columns), _as_compute_dtype(input).reshape(-1, columns)
    weight = None if weight is None else _as_compute_dtype(weight).reshape(columns)
    rstd = rstd.reshape(-1)
    whole, out = _allocate_rows_like(x, input.shape) if needs[0] else (None, None)
    weight_sums, lines = _ColumnSums(), RowAffine(columns, x.dtype, weight)

    def compute_rows(start, stop):
        # With s = 1 / (root mean square): gx = s g w - x s^3 mean(g w x).
        g, rows, inverse = grad[start:stop], x[start:stop], rstd[start:stop]
        result = None if out is None else out[start:stop]
        rows = rows if result is None else choose_in_place_rows(rows, result)
        product = np.multiply(g, rows, out=get_scratch_buffer(1, g.shape, g.dtype))
        if needs[1]:
            weight_sums.parts[start] = sum_columns(product, inverse)
        if result is None:
            return
        projection = matvec(product, ones(columns, x.dtype) if weight is None else weight)
        projection *= -inverse * inverse * inverse / columns
        np.multiply(rows, projection[:, None], out=result)
        lines.multiply(g, inverse, product)
        np.add(result, product, out=result)

    cache_blocking.run_blocks(compute_rows, *x.shape, cache_blocking.ROWS_BLOCK, cache_blocking.MIN_SIZE_FEW_PASSES)
    return (
        _cast_result(whole, dtype),
        _cast_result(weight_sums.total(columns, x.dtype).reshape(shape), dtype) if needs[1] else None,
    )


# --- batch norm -----------------------------------------------------------------------------------


class _ChannelLayout:
    """An array (N, C, ...) as contiguous rows, with a vector over channels broadcast along them.

    Long channels are separate rows, (N * C, L), and short ones are one row per sample, (N, C * L): so every inner loop
    is long.
    """

    def __init__(self, shape):
        self.samples, self.channels = shape[:2]
        self.length = math.prod(shape[2:])
        self.long = self.length >= LONG
        self.rows = (
            (self.samples * self.channels, self.length) if self.long else (self.samples, self.channels * self.length)
        )
        self.count = self.samples * self.length
        # A pass over so few elements takes no longer than waking another thread.
        self.block = cache_blocking.LARGEST_BLOCK if math.prod(self.rows) <= cache_blocking.LARGEST_BLOCK else 0

    def run(self, body):
        cache_blocking.run_blocks(body, *self.rows, self.block)

    def broadcast_over_rows(self, vector):
        """Return a vector over channels, shaped to broadcast against rows: (rows, 1), or (columns,)."""
        return np.tile(vector, self.samples)[:, None] if self.long else np.repeat(vector, self.length)

    def slice_rows(self, spread, start, stop):
        return spread[start:stop] if self.long else spread

    def make_sums(self, dtype):
        return np.empty(self.rows[0], dtype) if self.long else _ColumnSums()

    def add(self, sums, start, stop, block):
        if self.long:
            sums[start:stop] = sum_along_axis(block)[:, 0]
        else:
            sums.add(start, block)

    def add_products(self, sums, start, stop, first, second, scratch):
        if self.long:
            sums[start:stop] = dot_rows(first, second)
        else:
            sums.add(start, np.multiply(first, second, out=scratch))

    def combine_per_channel(self, sums, dtype):
        if self.long:
            return np.add.reduce(sums.reshape(self.samples, self.channels), 0, F64).astype(dtype, copy=False)
        return np.add.reduce(sums.total(self.rows[1], dtype).reshape(self.channels, self.length), 1)


def _batch_norm_train(input, weight, bias, eps):
    out, mean, var = _batch_norm_of_channels(input, weight, bias, eps)
    huge = _find_overflowed(input, var)
    if huge is not None:
        x = _as_compute_dtype(input)[:, huge]
        parameters = [None if p is None else _as_compute_dtype(p)[huge] for p in (weight, bias)]
        found = _batch_norm_of_channels(np.ldexp(x, -_HUGE[x.dtype]), *parameters, _NO_EPS[x.dtype])
        out[:, huge] = found[0].astype(out.dtype, copy=False)
        mean[huge] = np.ldexp(found[1], _HUGE[x.dtype])
        var[huge] = np.ldexp(found[2], 2 * _HUGE[x.dtype])
    return out, _cast_result(mean, input.dtype), _cast_result(var, input.dtype)


def _batch_norm_of_channels(input, weight, bias, eps):
    _check_float_dtype(input, "batch_norm")
    if 0 < input.size <= SMALL and not is_half(input.dtype):
        return _batch_norm_few_elements(input, weight, bias, eps)
    x, weight, bias = _as_compute_dtype(input), _as_compute_dtype(weight), _as_compute_dtype(bias)
    layout, dtype = _ChannelLayout(x.shape), x.dtype
    if x.size == 0:
        nothing = np.full(layout.channels, np.nan, dtype)
        return np.empty(input.shape, input.dtype), nothing, nothing
    x = x.reshape(layout.rows)
    sums = layout.make_sums(dtype)
    layout.run(lambda start, stop: layout.add(sums, start, stop, x[start:stop]))
    mean = layout.combine_per_channel(sums, dtype) / layout.count
    centre, squares = layout.broadcast_over_rows(mean), layout.make_sums(dtype)

    def add_squares(start, stop):
        centred = get_scratch_buffer(0, (stop - start, x.shape[1]), dtype)
        np.subtract(x[start:stop], layout.slice_rows(centre, start, stop), out=centred)
        layout.add_products(squares, start, stop, centred, centred, centred)

    layout.run(add_squares)
    var = layout.combine_per_channel(squares, dtype) / layout.count
    scale = 1 / np.sqrt(var + dtype.type(eps))
    if weight is not None:
        scale *= weight
    shift = -mean * scale
    if bias is not None:
        shift += bias
    out = _apply_affine_to_rows(x, scale, shift, layout)
    return _cast_result(out.reshape(input.shape), input.dtype), mean, var


def _moving_average_(target, new, keep, take):
    np.multiply(target, keep, target)
    np.add(target, new * take, target, casting="same_kind")


def _batch_norm_few_elements(x, weight, bias, eps):
    """`_batch_norm_train` in as few calls as possible."""
    batch, channels = x.shape[:2]
    rows = x.reshape(batch, channels, -1)
    count = batch * rows.shape[2]
    wide = F64 if count > COLUMN_RUN else x.dtype
    mean = (np.add.reduce(rows, (0, 2), wide) / count).astype(x.dtype, copy=False)
    centred = rows - mean[:, None]
    var = (np.add.reduce(centred * centred, (0, 2), wide) / count).astype(x.dtype, copy=False)
    scale = var + x.dtype.type(eps)
    np.sqrt(scale, scale)
    np.divide(1 if weight is None else weight, scale, scale)
    np.multiply(centred, scale[:, None], centred)
    if bias is not None:
        np.add(centred, bias[:, None], centred)
    return centred.reshape(x.shape), mean, var


def _apply_affine_to_rows(x, scale, shift, layout):
    out = np.empty_like(x)
    scale, shift = layout.broadcast_over_rows(scale), layout.broadcast_over_rows(shift)

    def apply_affine(start, stop):
        result = out[start:stop]
        np.multiply(choose_in_place_rows(x[start:stop], result), layout.slice_rows(scale, start, stop), out=result)
        np.add(result, layout.slice_rows(shift, start, stop), out=result)

    layout.run(apply_affine)
    return out


def _channel_affine(input, scale, shift):
    if input.dtype.kind not in "fV":
        shape = (1, -1) + (1,) * (input.ndim - 2)
        return input * scale.reshape(shape) + shift.reshape(shape)
    if input.size == 0:
        return input.copy()
    x = _as_compute_dtype(input)
    layout = _ChannelLayout(x.shape)
    out = _apply_affine_to_rows(x.reshape(layout.rows), _as_compute_dtype(scale), _as_compute_dtype(shift), layout)
    return _cast_result(out.reshape(input.shape), input.dtype)


def _batch_norm_backward(grad, input, weight, mean, var, eps, needs):
    found = _batch_norm_backward_of_channels(grad, input, weight, mean, var, eps, needs)
    huge = _find_overflowed(input, var)
    if huge is None:
        return found
    grad, x, weight = _as_compute_dtype(grad)[:, huge], _as_compute_dtype(input)[:, huge], _as_compute_dtype(weight)
    weight, power = None if weight is None else weight[huge], 0
    if input.dtype != np.float16:  # the range of that one is exceeded by the variance, and that of float32 is not
        power, eps = _HUGE[x.dtype], _NO_EPS[x.dtype]
        x = np.ldexp(x, -power)
    _, mean, var = _batch_norm_of_channels(x, None, None, eps)
    parts = _batch_norm_backward_of_channels(grad, x, weight, mean, var, eps, needs)
    if needs[0]:
        found[0][:, huge] = np.ldexp(parts[0], -power).astype(input.dtype)
    for target, values in zip(found[1:], parts[1:], strict=True):
        if target is not None:
            target[huge] = values.astype(input.dtype)
    return found


def _batch_norm_backward_of_channels(grad, input, weight, mean, var, eps, needs):
    given = input.dtype
    if 0 < input.size <= SMALL and not is_half(given):
        return _batch_norm_backward_few_elements(grad, input, weight, mean, var, eps, needs)
    layout = _ChannelLayout(input.shape)
    if input.size == 0:
        channels = (layout.channels,)
        return tuple(
            np.zeros(s, given) if need else None
            for s, need in zip((input.shape, channels, channels), needs, strict=True)
        )
    grad, x, weight, mean, var = (_as_compute_dtype(a) for a in (grad, input, weight, mean, var))
    dtype = x.dtype
    grad, x = grad.reshape(layout.rows), x.reshape(layout.rows)
    rstd = 1 / np.sqrt(var + dtype.type(eps))
    centre, totals, products = layout.broadcast_over_rows(mean), layout.make_sums(dtype), layout.make_sums(dtype)

    def add_block_sums(start, stop):
        g = grad[start:stop]
        centred = get_scratch_buffer(0, g.shape, dtype)
        np.subtract(x[start:stop], layout.slice_rows(centre, start, stop), out=centred)
        layout.add(totals, start, stop, g)
        layout.add_products(products, start, stop, g, centred, centred)

    layout.run(add_block_sums)
    total, product = layout.combine_per_channel(totals, dtype), layout.combine_per_channel(products, dtype) * rstd
    out = None
    if needs[0]:
        # (g - mean(g) - xhat mean(g xhat)) w / std, as a line in g and x for each channel.
        of_grad = rstd if weight is None else rstd * weight
        of_x = -rstd * product / layout.count
        constant = -total / layout.count - of_x * mean
        out = _combine_channelwise(grad, x, of_grad, of_x, constant, layout, input.shape)
    return (
        _cast_result(out, given),
        _cast_result(product, given) if needs[1] else None,
        _cast_result(total, given) if needs[2] else None,
    )


def _batch_norm_backward_few_elements(grad, x, weight, mean, var, eps, needs):
    batch, channels = x.shape[:2]
    grad, rows = grad.reshape(batch, channels, -1), x.reshape(batch, channels, -1)
    count = batch * rows.shape[2]
    rstd = 1 / np.sqrt(var + x.dtype.type(eps))
    centred = rows - mean[:, None]
    wide = F64 if count > COLUMN_RUN else x.dtype
    total = np.add.reduce(grad, (0, 2), wide).astype(x.dtype, copy=False)
    product = np.add.reduce(grad * centred, (0, 2), wide).astype(x.dtype, copy=False)
    product *= rstd
    out = None
    if needs[0]:
        np.multiply(centred, (product * rstd / count)[:, None], centred)
        out = grad - (total / count)[:, None]
        out -= centred
        out *= (rstd if weight is None else rstd * weight)[:, None]
        out = out.reshape(x.shape)
    return out, product if needs[1] else None, total if needs[2] else None


def _combine_channelwise(grad, x, of_grad, of_x, constant, layout, shape):
    """Return (x * of_x + grad + constant) * of_grad in a shape; the factors are vectors over channels."""
    whole, out = _allocate_rows_like(x, shape)
    of_grad, of_x, constant = (layout.broadcast_over_rows(v) for v in (of_grad, of_x, constant))

    def combine_block(start, stop):
        result, part = out[start:stop], layout.slice_rows
        np.multiply(choose_in_place_rows(x[start:stop], result), part(of_x, start, stop), out=result)
        np.add(result, grad[start:stop], out=result)
        np.add(result, part(constant, start, stop), out=result)
        np.multiply(result, part(of_grad, start, stop), out=result)

    layout.run(combine_block)
    return whole
