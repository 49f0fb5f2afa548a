"""Fused CPU kernels of the normalisations: layer, RMS and batch norm, each with its backward."""

from __future__ import annotations

import math

import numpy as np

from . import blocks
from .blocks import buffer
from .products import steady_dot
from .rows import F32, F64, SMALL, is_half, ones, refuse, row_dots, row_sums

# From this many elements a channel of one sample is a row of its own; shorter ones are worked on as one row of all
# channels.
LONG = 256


def _wide(x):
    """A contiguous array that kernels compute with: half precision as float32."""
    if x is None:
        return None
    if is_half(x.dtype):
        return x.astype(F32)
    return x if x.flags.c_contiguous else x.copy()


def _check(x, kernel):
    if x.dtype != F32 and x.dtype != F64 and not is_half(x.dtype):
        refuse(x, kernel)


def _narrow(x, dtype):
    return x if x is None or x.dtype == dtype else x.astype(dtype)


class _ColumnSums:
    """Sums over rows that blocks add to, in an order that does not depend on which thread was first."""

    def __init__(self):
        self.parts = {}

    def add(self, start, block):
        self.parts[start] = steady_dot(ones(block.shape[0], block.dtype), block)

    def total(self, columns, dtype):
        if not self.parts:
            return np.zeros(columns, dtype)
        parts = [self.parts[start] for start in sorted(self.parts)]
        return parts[0] if len(parts) == 1 else np.add.reduce(parts, 0)


# --- layer norm -----------------------------------------------------------------------------------


def _layer_norm(input, weight, bias, n_dims, eps):
    _check(input, "LayerNormKernelImpl")
    x, weight, bias = _wide(input), _wide(weight), _wide(bias)
    lead = x.shape[: x.ndim - n_dims]
    small = lead + (1,) * n_dims
    if x.size == 0:
        nothing = np.zeros(small, x.dtype)
        return np.empty(input.shape, input.dtype), nothing, nothing
    columns = math.prod(x.shape[x.ndim - n_dims :])
    x = x.reshape(-1, columns)
    weight, bias = (None if p is None else p.reshape(columns) for p in (weight, bias))
    if x.size <= SMALL and x.dtype == input.dtype:
        out, mean, rstd = _small_layer_norm(x, weight, bias, eps)
        return out.reshape(input.shape), mean.reshape(small), rstd.reshape(small)
    out = np.empty_like(x)
    mean, rstd = np.empty((x.shape[0], 1), x.dtype), np.empty((x.shape[0], 1), x.dtype)

    def block(start, stop):
        rows, result, centre, inverse = x[start:stop], out[start:stop], mean[start:stop], rstd[start:stop]
        np.divide(row_sums(rows), columns, out=centre)
        centred = buffer(0, rows.shape, rows.dtype)
        np.subtract(rows, centre, out=centred)
        inverse[:, 0] = row_dots(centred, centred)
        np.divide(inverse, columns, out=inverse)
        np.add(inverse, eps, out=inverse)
        np.sqrt(inverse, out=inverse)
        np.divide(1, inverse, out=inverse)
        np.multiply(centred, inverse, out=result if weight is None else centred)
        if weight is not None:
            np.multiply(centred, weight, out=result)
        if bias is not None:
            np.add(result, bias, out=result)

    blocks.run(block, *x.shape)
    return _narrow(out.reshape(input.shape), input.dtype), mean.reshape(small), rstd.reshape(small)


def _small_layer_norm(x, weight, bias, eps):
    """`_layer_norm` of rows in as few calls as can be."""
    mean = row_sums(x) / x.shape[1]
    out = x - mean
    rstd = row_dots(out, out)[:, None] / x.shape[1]
    rstd += eps
    np.sqrt(rstd, rstd)
    np.divide(1, rstd, rstd)
    np.multiply(out, rstd, out)
    if weight is not None:
        np.multiply(out, weight, out)
    if bias is not None:
        np.add(out, bias, out)
    return out, mean, rstd


def _layer_norm_backward(grad, input, weight, mean, rstd, n_dims, eps, needs):
    dtype = input.dtype
    shape = input.shape[input.ndim - n_dims :]
    columns = math.prod(shape)
    if input.size == 0:
        return tuple(
            np.zeros(s, dtype) if need else None for s, need in zip((input.shape, shape, shape), needs, strict=True)
        )
    grad, x = _wide(grad).reshape(-1, columns), _wide(input).reshape(-1, columns)
    weight = None if weight is None else _wide(weight).reshape(columns)
    mean, rstd = mean.reshape(-1, 1), rstd.reshape(-1, 1)
    out = np.empty_like(x) if needs[0] else None
    weight_sums, bias_sums = _ColumnSums(), _ColumnSums()

    one = ones(columns, x.dtype) if weight is None else weight

    def block(start, stop):
        # With c = x - mean and s = 1 / std: gx = s (g w - mean(g w) - c s^2 mean(g w c)). Row and column sums are dot
        # products.
        g, inverse = grad[start:stop], rstd[start:stop]
        centred, product = buffer(0, g.shape, g.dtype), buffer(1, g.shape, g.dtype)
        np.subtract(x[start:stop], mean[start:stop], out=centred)
        np.multiply(g, centred, out=product)
        if needs[1]:
            weight_sums.parts[start] = steady_dot(inverse[:, 0], product)
        if needs[2]:
            bias_sums.parts[start] = steady_dot(ones(stop - start, x.dtype), g)
        if out is None:
            return
        average = row_dots(g, one)[:, None]
        projection = row_dots(product, one)[:, None]
        average *= inverse / columns
        projection *= inverse**3 / columns
        np.multiply(centred, projection, out=centred)
        np.add(centred, average, out=centred)
        scaled = g if weight is None else np.multiply(g, weight, out=product)
        np.multiply(scaled, inverse, out=product)
        np.subtract(product, centred, out=out[start:stop])

    blocks.run(block, *x.shape)
    return (
        _narrow(out.reshape(input.shape), dtype) if needs[0] else None,
        _narrow(weight_sums.total(columns, x.dtype).reshape(shape), dtype) if needs[1] else None,
        _narrow(bias_sums.total(columns, x.dtype).reshape(shape), dtype) if needs[2] else None,
    )


# --- RMS norm -------------------------------------------------------------------------------------


def _rms_norm(input, weight, n_dims, eps):
    _check(input, "rms_norm")
    x, weight = _wide(input), _wide(weight)
    small = x.shape[: x.ndim - n_dims] + (1,) * n_dims
    if x.size == 0:
        return np.empty(input.shape, input.dtype), np.zeros(small, x.dtype)
    columns = math.prod(x.shape[x.ndim - n_dims :])
    x = x.reshape(-1, columns)
    weight = None if weight is None else weight.reshape(columns)
    out, rstd = np.empty_like(x), np.empty((x.shape[0], 1), x.dtype)

    def block(start, stop):
        rows, result = x[start:stop], out[start:stop]
        inverse = row_dots(rows, rows)
        inverse /= columns
        inverse += eps
        np.sqrt(inverse, out=inverse)
        np.divide(1, inverse, out=rstd[start:stop, 0])
        if weight is None:
            np.multiply(rows, rstd[start:stop], out=result)
            return
        normalized = buffer(0, rows.shape, rows.dtype)
        np.multiply(rows, rstd[start:stop], out=normalized)
        np.multiply(normalized, weight, out=result)

    blocks.run(block, *x.shape)
    return _narrow(out.reshape(input.shape), input.dtype), rstd.reshape(small)


def _rms_norm_backward(grad, input, weight, rstd, n_dims, eps, needs):
    dtype = input.dtype
    shape = input.shape[input.ndim - n_dims :]
    columns = math.prod(shape)
    if input.size == 0:
        return tuple(np.zeros(s, dtype) if need else None for s, need in zip((input.shape, shape), needs, strict=True))
    grad, x = _wide(grad).reshape(-1, columns), _wide(input).reshape(-1, columns)
    weight = None if weight is None else _wide(weight).reshape(columns)
    rstd = rstd.reshape(-1, 1)
    out = np.empty_like(x) if needs[0] else None
    weight_sums = _ColumnSums()

    def block(start, stop):
        g, inverse = grad[start:stop], rstd[start:stop]
        normalized, scratch = buffer(0, g.shape, g.dtype), buffer(1, g.shape, g.dtype)
        np.multiply(x[start:stop], inverse, out=normalized)
        if needs[1]:
            np.multiply(g, normalized, out=scratch)
            weight_sums.add(start, scratch)
        if out is None:
            return
        scaled = g if weight is None else np.multiply(g, weight, out=scratch)
        projection = row_dots(scaled, normalized)[:, None]
        projection /= columns
        np.multiply(normalized, projection, out=normalized)
        np.subtract(scaled, normalized, out=normalized)
        np.multiply(normalized, inverse, out=out[start:stop])

    blocks.run(block, *x.shape)
    return (
        _narrow(out.reshape(input.shape), dtype) if needs[0] else None,
        _narrow(weight_sums.total(columns, x.dtype).reshape(shape), dtype) if needs[1] else None,
    )


# --- batch norm -----------------------------------------------------------------------------------


class _Channels:
    """An array (N, C, ...) as contiguous rows, with a vector over channels laid along them.

    Long channels are rows of their own, (N * C, L), and short ones lie in one row a sample, (N, C * L): so every inner
    loop is long.
    """

    def __init__(self, shape):
        self.samples, self.channels = shape[:2]
        self.length = math.prod(shape[2:])
        self.long = self.length >= LONG
        self.rows = (
            (self.samples * self.channels, self.length) if self.long else (self.samples, self.channels * self.length)
        )
        self.count = self.samples * self.length

    def spread(self, vector):
        """A vector over channels, shaped to broadcast against rows: (rows, 1), or (columns,)."""
        return np.tile(vector, self.samples)[:, None] if self.long else np.repeat(vector, self.length)

    def part(self, spread, start, stop):
        return spread[start:stop] if self.long else spread

    def sums(self, dtype):
        return np.empty(self.rows[0], dtype) if self.long else _ColumnSums()

    def add(self, sums, start, stop, block):
        if self.long:
            sums[start:stop] = row_sums(block)[:, 0]
        else:
            sums.add(start, block)

    def add_products(self, sums, start, stop, first, second, scratch):
        if self.long:
            sums[start:stop] = row_dots(first, second)
        else:
            sums.add(start, np.multiply(first, second, out=scratch))

    def per_channel(self, sums, dtype):
        if self.long:
            return np.add.reduce(sums.reshape(self.samples, self.channels), 0)
        return np.add.reduce(sums.total(self.rows[1], dtype).reshape(self.channels, self.length), 1)


def _batch_norm_train(input, weight, bias, eps):
    _check(input, "batch_norm")
    if 0 < input.size <= SMALL and not is_half(input.dtype):
        return _small_batch_norm(input, weight, bias, eps)
    x, weight, bias = _wide(input), _wide(weight), _wide(bias)
    layout, dtype = _Channels(x.shape), x.dtype
    if x.size == 0:
        nothing = np.full(layout.channels, np.nan, dtype)
        return np.empty(input.shape, input.dtype), nothing, nothing
    x = x.reshape(layout.rows)
    sums = layout.sums(dtype)
    blocks.run(lambda start, stop: layout.add(sums, start, stop, x[start:stop]), *x.shape)
    mean = layout.per_channel(sums, dtype) / layout.count
    centre, squares = layout.spread(mean), layout.sums(dtype)

    def add_squares(start, stop):
        centred = buffer(0, (stop - start, x.shape[1]), dtype)
        np.subtract(x[start:stop], layout.part(centre, start, stop), out=centred)
        layout.add_products(squares, start, stop, centred, centred, centred)

    blocks.run(add_squares, *x.shape)
    var = layout.per_channel(squares, dtype) / layout.count
    scale = 1 / np.sqrt(var + dtype.type(eps))
    if weight is not None:
        scale *= weight
    shift = -mean * scale
    if bias is not None:
        shift += bias
    out = _affine_rows(x, scale, shift, layout)
    return _narrow(out.reshape(input.shape), input.dtype), _narrow(mean, input.dtype), _narrow(var, input.dtype)


def _moving_average_(target, new, keep, take):
    np.multiply(target, keep, target)
    np.add(target, new * take, target, casting="same_kind")


def _small_batch_norm(x, weight, bias, eps):
    """`_batch_norm_train` in as few calls as can be."""
    batch, channels = x.shape[:2]
    rows = x.reshape(batch, channels, -1)
    count = batch * rows.shape[2]
    mean = np.add.reduce(rows, (0, 2))
    mean /= count
    centred = rows - mean[:, None]
    var = np.add.reduce(centred * centred, (0, 2))
    var /= count
    scale = var + x.dtype.type(eps)
    np.sqrt(scale, scale)
    np.divide(1 if weight is None else weight, scale, scale)
    np.multiply(centred, scale[:, None], centred)
    if bias is not None:
        np.add(centred, bias[:, None], centred)
    return centred.reshape(x.shape), mean, var


def _affine_rows(x, scale, shift, layout):
    out = np.empty_like(x)
    scale, shift = layout.spread(scale), layout.spread(shift)

    def block(start, stop):
        result = out[start:stop]
        scratch = buffer(0, result.shape, result.dtype)
        np.multiply(x[start:stop], layout.part(scale, start, stop), out=scratch)
        np.add(scratch, layout.part(shift, start, stop), out=result)

    blocks.run(block, *x.shape)
    return out


def _channel_affine(input, scale, shift):
    if input.dtype.kind not in "fV":
        shape = (1, -1) + (1,) * (input.ndim - 2)
        return input * scale.reshape(shape) + shift.reshape(shape)
    if input.size == 0:
        return input.copy()
    x = _wide(input)
    layout = _Channels(x.shape)
    out = _affine_rows(x.reshape(layout.rows), _wide(scale), _wide(shift), layout)
    return _narrow(out.reshape(input.shape), input.dtype)


def _batch_norm_backward(grad, input, weight, mean, var, eps, needs):
    given = input.dtype
    if 0 < input.size <= SMALL and not is_half(given):
        return _small_batch_norm_backward(grad, input, weight, mean, var, eps, needs)
    layout = _Channels(input.shape)
    if input.size == 0:
        channels = (layout.channels,)
        return tuple(
            np.zeros(s, given) if need else None
            for s, need in zip((input.shape, channels, channels), needs, strict=True)
        )
    grad, x, weight, mean, var = (_wide(a) for a in (grad, input, weight, mean, var))
    dtype = x.dtype
    grad, x = grad.reshape(layout.rows), x.reshape(layout.rows)
    rstd = 1 / np.sqrt(var + dtype.type(eps))
    centre, totals, products = layout.spread(mean), layout.sums(dtype), layout.sums(dtype)

    def add(start, stop):
        g = grad[start:stop]
        centred = buffer(0, g.shape, dtype)
        np.subtract(x[start:stop], layout.part(centre, start, stop), out=centred)
        layout.add(totals, start, stop, g)
        layout.add_products(products, start, stop, g, centred, centred)

    blocks.run(add, *x.shape)
    total, product = layout.per_channel(totals, dtype), layout.per_channel(products, dtype) * rstd
    out = None
    if needs[0]:
        # (g - mean(g) - xhat mean(g xhat)) w / std, as a line in g and x for each channel.
        of_grad = rstd if weight is None else rstd * weight
        of_x = -of_grad * rstd * product / layout.count
        constant = -of_grad * total / layout.count - of_x * mean
        out = _lines(grad, x, of_grad, of_x, constant, layout).reshape(input.shape)
    return (
        _narrow(out, given),
        _narrow(product, given) if needs[1] else None,
        _narrow(total, given) if needs[2] else None,
    )


def _small_batch_norm_backward(grad, x, weight, mean, var, eps, needs):
    batch, channels = x.shape[:2]
    grad, rows = grad.reshape(batch, channels, -1), x.reshape(batch, channels, -1)
    count = batch * rows.shape[2]
    rstd = 1 / np.sqrt(var + x.dtype.type(eps))
    centred = rows - mean[:, None]
    total = np.add.reduce(grad, (0, 2))
    product = np.add.reduce(grad * centred, (0, 2))
    product *= rstd
    out = None
    if needs[0]:
        np.multiply(centred, (product * rstd / count)[:, None], centred)
        out = grad - (total / count)[:, None]
        out -= centred
        out *= (rstd if weight is None else rstd * weight)[:, None]
        out = out.reshape(x.shape)
    return out, product if needs[1] else None, total if needs[2] else None


def _lines(grad, x, of_grad, of_x, constant, layout):
    out = np.empty_like(x)
    of_grad, of_x, constant = (layout.spread(v) for v in (of_grad, of_x, constant))

    def block(start, stop):
        result, part = out[start:stop], layout.part
        scratch = buffer(0, result.shape, result.dtype)
        np.multiply(x[start:stop], part(of_x, start, stop), out=scratch)
        np.add(scratch, part(constant, start, stop), out=scratch)
        np.multiply(grad[start:stop], part(of_grad, start, stop), out=result)
        np.add(result, scratch, out=result)

    blocks.run(block, *x.shape)
    return out
