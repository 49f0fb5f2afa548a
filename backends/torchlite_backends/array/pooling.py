"""Pooling kernels: extremes and sums over strided slices, separably by dimension where the op allows it."""

from __future__ import annotations

import math
from itertools import product

import numpy as xp

from .storage import base_owner


def _lowest_value_of(dtype):
    if dtype.kind in "iu":
        return xp.iinfo(dtype).min
    return -math.inf


def _cast_half_to_float(x):
    """Convert half precision to float32."""
    return x.astype(xp.float32) if x.dtype.itemsize <= 2 and x.dtype.kind in "fV" else x


def _compute_output_size(n, kernel, stride, padding, dilation, ceil_mode):
    span = n + 2 * padding - dilation * (kernel - 1) - 1
    out = (-(-span // stride) if ceil_mode else span // stride) + 1
    # A last window has to begin inside the input or the padding before it.
    return out - 1 if ceil_mode and (out - 1) * stride >= n + padding else out


def _output_sizes_of(x, kernel, stride, padding, dilation, ceil_mode):
    size = x.shape[x.ndim - len(kernel) :]
    out = tuple(
        _compute_output_size(*numbers, ceil_mode)
        for numbers in zip(size, kernel, stride, padding, dilation, strict=True)
    )
    if (
        min(out) <= 0
        or min(stride) <= 0
        or min(dilation) <= 0
        or min(padding) < 0
        or any(2 * p > d * (k - 1) + 1 for p, d, k in zip(padding, dilation, kernel, strict=True))
    ):
        raise RuntimeError("the window does not fit the input")
    return size, out


def _index_along_axis(ndim, axis, where):
    return (slice(None),) * (ndim - 1 if axis < 0 else axis) + (where,)


def _pad_axis(x, axis, before, after, value):
    """Pad one axis of `x` with `before` and `after` elements of `value`."""
    if before <= 0 and after <= 0:
        return x
    after = max(after, 0)
    n = x.shape[axis]
    out = xp.empty((*x.shape[:axis], before + n + after, *x.shape[axis + 1 :]), x.dtype)
    out[_index_along_axis(x.ndim, axis, slice(0, before))] = value
    out[_index_along_axis(x.ndim, axis, slice(before + n, None))] = value
    out[_index_along_axis(x.ndim, axis, slice(before, before + n))] = x
    return out


def _reduce_windows(x, axis, combine, kernel, stride, padding, dilation, out, value):
    """Reduce the windows along one axis with combine()."""
    reach = (out - 1) * stride + dilation * (kernel - 1) + 1
    x = _pad_axis(x, axis, padding, reach - padding - x.shape[axis], value)
    pieces = [
        x[_index_along_axis(x.ndim, axis, slice(j * dilation, j * dilation + (out - 1) * stride + 1, stride))]
        for j in range(kernel)
    ]
    if kernel == 1:
        return xp.ascontiguousarray(pieces[0])
    result = combine(pieces[0], pieces[1])
    if result.dtype != x.dtype:
        result = result.astype(x.dtype)
    for piece in pieces[2:]:
        combine(result, piece, out=result)
    return result


# -- maximum ---------------------------------------------------------------------------------------


def _max_pool(input, kernel, stride, padding, dilation, ceil_mode):
    _, out = _output_sizes_of(input, kernel, stride, padding, dilation, ceil_mode)
    x, first = input, input.ndim - len(kernel)
    for i in range(len(kernel)):
        x = _reduce_windows(
            x,
            first + i,
            xp.maximum,
            kernel[i],
            stride[i],
            padding[i],
            dilation[i],
            out[i],
            _lowest_value_of(input.dtype),
        )
    return x.copy() if base_owner(x) is base_owner(input) else x


def _max_pool_backward(grad_output, input, output, kernel, stride, padding, dilation, ceil_mode):
    if (output != output).any():
        return _scatter_to_indices(
            grad_output,
            _max_pool_with_indices(input, kernel, stride, padding, dilation, ceil_mode)[1],
            input.shape,
            len(kernel),
        )
    size, out = _output_sizes_of(input, kernel, stride, padding, dilation, ceil_mode)
    count, first = len(kernel), input.ndim - len(kernel)
    reach = [(o - 1) * s + d * (k - 1) + 1 for o, s, d, k in zip(out, stride, dilation, kernel, strict=True)]
    x = input
    for i in range(count):
        x = _pad_axis(x, first + i, padding[i], reach[i] - padding[i] - size[i], _lowest_value_of(input.dtype))
    # Windows that do not overlap write each element once; elements outside all windows stay zero.
    apart = all(s >= d * (k - 1) + 1 for s, d, k in zip(stride, dilation, kernel, strict=True))
    covered = apart and x.shape == (*input.shape[:first], *(o * k for o, k in zip(out, kernel, strict=True)))
    grad = (xp.empty if covered else xp.zeros)(x.shape, grad_output.dtype)
    free = None
    for place in product(*(range(k) for k in kernel)):
        where = (
            ...,
            *(
                slice(j * d, j * d + (o - 1) * s + 1, s)
                for j, d, o, s in zip(place, dilation, out, stride, strict=True)
            ),
        )
        hit = x[where] == output
        if free is None:
            free = ~hit
        else:
            hit &= free
            free ^= hit
        if apart:
            xp.multiply(grad_output, hit.astype(grad_output.dtype), out=grad[where])
        else:
            piece = grad[where]
            xp.add(piece, grad_output * hit.astype(grad_output.dtype), out=piece)
    if grad.shape == input.shape:
        return grad
    return xp.ascontiguousarray(grad[(..., *(slice(p, p + n) for p, n in zip(padding, size, strict=True)))])


def _scatter_to_indices(g, indices, shape, count):
    """Return zeros of `shape` with `g` added at flat spatial `indices`."""
    lead, places = shape[: len(shape) - count], math.prod(shape[len(shape) - count :])
    rows = math.prod(lead)
    flat = (
        (xp.arange(rows)[:, None] * places + indices.reshape(rows, -1)).reshape(-1)
        if indices.size
        else indices.reshape(-1)
    )
    source = _cast_half_to_float(g).reshape(-1)
    if source.dtype == xp.float64 or source.dtype == xp.float32:
        return xp.bincount(flat, weights=source, minlength=rows * places).astype(g.dtype).reshape(shape)
    out = xp.zeros(rows * places, source.dtype)
    xp.add.at(out, flat, source)
    return out.astype(g.dtype).reshape(shape)


def _max_over_positions(x, places):
    """Return the largest element and its flat spatial index.

    `places` has for each spatial axis the input positions (out, taps) of a window.
    """
    count = len(places)
    first, size = x.ndim - count, x.shape[x.ndim - count :]
    steps = [math.prod(size[i + 1 :]) for i in range(count)]
    best = index = None
    for taps in product(*(range(p.shape[1]) for p in places)):
        value, place = x, 0
        for i, tap in enumerate(taps):
            position = places[i][:, tap]
            value = xp.take(value, position, axis=first + i)
            place = place + (position * steps[i]).reshape(-1, *(1,) * (count - 1 - i))
        if best is None:
            best, index = value, xp.broadcast_to(place, value.shape).copy()
            continue
        better = (value > best) | (value != value)
        best, index = xp.where(better, value, best), xp.where(better, place, index)
    return best, index


def _window_positions(n, kernel, stride, padding, dilation, out):
    """Return positions (out, kernel) along one axis.

    Those outside the input are clamped to the window's first or last one inside, which changes no maximum.
    """
    places = xp.arange(out)[:, None] * stride - padding + xp.arange(kernel) * dilation
    first = xp.min(xp.where(places >= 0, places, n), axis=1, keepdims=True)
    last = xp.max(xp.where(places < n, places, -1), axis=1, keepdims=True)
    return xp.minimum(xp.maximum(places, first), last)


def _max_pool_with_indices(input, kernel, stride, padding, dilation, ceil_mode):
    size, out = _output_sizes_of(input, kernel, stride, padding, dilation, ceil_mode)
    places = [_window_positions(*numbers) for numbers in zip(size, kernel, stride, padding, dilation, out, strict=True)]
    return _max_over_positions(input, places)


def _compute_adaptive_bounds(n, out):
    i = xp.arange(out)
    return i * n // out, -(-(i + 1) * n // out)


def _adaptive_max_pool(input, output_size):
    count = len(output_size)
    if 0 in output_size:
        shape = (*input.shape[: input.ndim - count], *output_size)
        return xp.empty(shape, input.dtype), xp.empty(shape, xp.int64)
    places = []
    for n, out in zip(input.shape[input.ndim - count :], output_size, strict=True):
        start, end = _compute_adaptive_bounds(n, out)
        places.append(xp.minimum(start[:, None] + xp.arange(int((end - start).max())), end[:, None] - 1))
    return _max_over_positions(input, places)


def _fractional_window_starts(samples, n, kernel, out):
    """Return the pseudo-random window starts of fractional pooling (Graham, 2014, arXiv:1412.6071), (..., out)."""
    if out < 2:
        return xp.full((*samples.shape, out), n - kernel, dtype=xp.int64)
    alpha = samples.dtype.type((n - kernel) / (out - 1))
    i = xp.arange(out - 1).astype(samples.dtype)
    starts = ((i + samples[..., None]) * alpha).astype(xp.int64) - (samples[..., None] * alpha).astype(xp.int64)
    return xp.concatenate([starts, xp.full((*samples.shape, 1), n - kernel, dtype=xp.int64)], axis=-1)


def _fractional_max_pool(input, random_samples, kernel, output_size):
    count = len(kernel)
    size = input.shape[2:]
    random_samples = random_samples[: input.shape[0], : input.shape[1]]
    samples = (
        random_samples.astype(input.dtype) if random_samples.dtype.itemsize > 2 else random_samples.astype(xp.float32)
    )
    # PyTorch's samples come width first in two dimensions, depth first in three.
    starts = [
        _fractional_window_starts(samples[:, :, i if count == 3 else count - 1 - i], size[i], kernel[i], output_size[i])
        for i in range(count)
    ]
    planes = input.reshape(*input.shape[:2], math.prod(size))
    best = index = None
    for taps in product(*(range(k) for k in kernel)):
        place = 0
        for i, tap in enumerate(taps):
            along = (starts[i] + tap).reshape(
                *input.shape[:2], *(output_size[j] if j == i else 1 for j in range(count))
            )
            place = place * size[i] + along
        place = xp.broadcast_to(place, (*input.shape[:2], *output_size))
        value = xp.take_along_axis(planes, place.reshape(*input.shape[:2], math.prod(output_size)), axis=2).reshape(
            place.shape
        )
        if best is None:
            best, index = value, place.copy()
            continue
        better = (value > best) | (value != value)
        best, index = xp.where(better, value, best), xp.where(better, place, index)
    return best, index


# -- average ---------------------------------------------------------------------------------------


def _avg_pool_divisor(size, kernel, stride, padding, out, count_include_pad, divisor_override, dtype):
    """Return each window's divisor: a number, or an array over the output's spatial dimensions."""
    if divisor_override is not None:
        return divisor_override
    total = xp.ones((), xp.int64)
    for i, (n, k, s, p, o) in enumerate(zip(size, kernel, stride, padding, out, strict=True)):
        start = xp.arange(o) * s - p
        end = xp.minimum(start + k, n + p)
        width = end - start if count_include_pad else xp.minimum(end, n) - xp.maximum(start, 0)
        total = total * width.reshape(-1, *(1,) * (len(size) - 1 - i))
    if bool((total == total.reshape(-1)[0]).all()):
        return int(total.reshape(-1)[0])
    return total if dtype.kind in "iu" else total.astype(dtype)


def _divide_truncating_integers(x, divisor):
    if x.dtype.kind in "iu":
        return xp.trunc(x / divisor).astype(x.dtype)
    return xp.divide(x, divisor, out=x)


def _avg_pool(input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    ones = (1,) * len(kernel)
    size, out = _output_sizes_of(input, kernel, stride, padding, ones, ceil_mode)
    x, first = _cast_half_to_float(input), input.ndim - len(kernel)
    for i in range(len(kernel)):
        x = _reduce_windows(x, first + i, xp.add, kernel[i], stride[i], padding[i], 1, out[i], 0)
    if base_owner(x) is base_owner(input):
        x = x.copy()
    x = _divide_truncating_integers(
        x, _avg_pool_divisor(size, kernel, stride, padding, out, count_include_pad, divisor_override, x.dtype)
    )
    return x if x.dtype == input.dtype else x.astype(input.dtype)


def _avg_pool_backward(grad_output, size, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    g = _cast_half_to_float(grad_output)
    first = g.ndim - len(kernel)
    out = g.shape[first:]
    g = g / _avg_pool_divisor(size, kernel, stride, padding, out, count_include_pad, divisor_override, g.dtype)
    for i in range(len(kernel) - 1, -1, -1):
        g = _scatter_add_windows(g, first + i, kernel[i], stride[i], padding[i], size[i])
    return g.astype(grad_output.dtype)


def _scatter_add_windows(g, axis, kernel, stride, padding, n):
    """Transpose of a window sum along one axis: add every element of `g` to the `kernel` elements of its window."""
    out = g.shape[axis]
    reach = max((out - 1) * stride + kernel, padding + n)
    wide = xp.zeros((*g.shape[:axis], reach, *g.shape[axis + 1 :]), g.dtype)
    for j in range(kernel):
        piece = wide[_index_along_axis(g.ndim, axis, slice(j, j + (out - 1) * stride + 1, stride))]
        if stride >= kernel:
            piece[...] = g
        else:
            piece += g
    return (
        wide if reach == n else xp.ascontiguousarray(wide[_index_along_axis(g.ndim, axis, slice(padding, padding + n))])
    )


def _adaptive_average_matrix(n, out, dtype):
    """Return the matrix (out, n) of adaptive average pooling along one axis."""
    start, end = _compute_adaptive_bounds(n, out)
    j = xp.arange(n)
    inside = (j >= start[:, None]) & (j < end[:, None])
    return inside.astype(dtype) / (end - start).astype(dtype)[:, None]


def _matmul_along_axis(x, axis, matrix):
    """Return x @ matrix^T along an axis."""
    if axis == x.ndim - 1:
        return xp.matmul(x, matrix.T)
    lead, n, rest = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    if not x.size or not matrix.size:
        return xp.zeros((*lead, matrix.shape[0], *rest), x.dtype)
    return xp.matmul(matrix, x.reshape(*lead, n, -1)).reshape(*lead, matrix.shape[0], *rest)


def _adaptive_avg_pool(input, output_size):
    x, first = _cast_half_to_float(input), input.ndim - len(output_size)
    if max(output_size, default=0) == 1 and min(output_size) == 1:
        return x.mean(axis=tuple(range(first, x.ndim)), keepdims=True, dtype=x.dtype).astype(input.dtype)
    for i, out in enumerate(output_size):
        if x.shape[first + i] != out:
            x = _matmul_along_axis(x, first + i, _adaptive_average_matrix(x.shape[first + i], out, x.dtype))
    return x.copy() if x is input else x.astype(input.dtype)


def _adaptive_avg_pool_backward(grad_output, size):
    g, first = _cast_half_to_float(grad_output), grad_output.ndim - len(size)
    if g.size and max(g.shape[first:]) == 1:
        return xp.broadcast_to(g / math.prod(size), (*g.shape[:first], *size)).astype(grad_output.dtype)
    for i, n in enumerate(size):
        if g.shape[first + i] != n:
            g = _matmul_along_axis(g, first + i, _adaptive_average_matrix(n, g.shape[first + i], g.dtype).T)
    return g.copy() if g is grad_output else g.astype(grad_output.dtype)
