"""Pooling kernels: extremes and sums over windows, one spatial axis after the other."""

from __future__ import annotations

import math
from itertools import product

import numpy as xp

from .storage import base_owner
from .window_reductions import (
    add_to_ranges,
    argmax_last_axis,
    argmax_ranges,
    argmax_windows,
    choose_later,
    index_along_axis,
    reduce_windows,
    sum_ranges,
)

# Elements of a window whose gradient is placed slice by slice.
_FEW_TAPS = 16
# Windows of fractional pooling up to which each one is a slice, not gathered.
_FEW_WINDOWS = 32


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


def _pad_axis(x, axis, before, after, value):
    """Pad one axis of `x` with `before` and `after` elements of `value`."""
    if before <= 0 and after <= 0:
        return x
    after = max(after, 0)
    n = x.shape[axis]
    out = xp.empty((*x.shape[:axis], before + n + after, *x.shape[axis + 1 :]), x.dtype)
    out[index_along_axis(x.ndim, axis, slice(0, before))] = value
    out[index_along_axis(x.ndim, axis, slice(before + n, None))] = value
    out[index_along_axis(x.ndim, axis, slice(before, before + n))] = x
    return out


def _pad_windows(x, axis, kernel, stride, padding, dilation, out, value):
    """Pad one axis of `x` for the windows of an output size."""
    reach = (out - 1) * stride + dilation * (kernel - 1) + 1
    return _pad_axis(x, axis, padding, reach - padding - x.shape[axis], value)


# -- maximum ---------------------------------------------------------------------------------------


def _max_pool(input, kernel, stride, padding, dilation, ceil_mode):
    _, out = _output_sizes_of(input, kernel, stride, padding, dilation, ceil_mode)
    x, first = _cast_half_to_float(input), input.ndim - len(kernel)
    for axis, k, s, p, d, o in zip(range(first, x.ndim), kernel, stride, padding, dilation, out, strict=True):
        x = _pad_windows(x, axis, k, s, p, d, o, _lowest_value_of(x.dtype))
        x = reduce_windows(x, axis, xp.maximum, k, s, d, o)
    x = x.copy() if base_owner(x) is base_owner(input) else x
    return x if x.dtype == input.dtype else x.astype(input.dtype)


def _max_pool_backward(grad_output, input, output, kernel, stride, padding, dilation, ceil_mode):
    if math.prod(kernel) > _FEW_TAPS or (output != output).any():
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


def _max_with_indices(input, count, reduce_axis):
    """Return the largest element of each window of the last `count` axes, and its flat spatial index.

    `reduce_axis(x, i, axis)` gives for the spatial axis i the largest elements, and their places along the axis. The
    last axis comes first, so that of equal elements the first one in row-major order stays.
    """
    x, index = _cast_half_to_float(input), None
    for i in range(count - 1, -1, -1):
        axis = x.ndim - count + i
        x, place = reduce_axis(x, i, axis)
        along = place * math.prod(input.shape[axis + 1 :])
        index = along if index is None else along + xp.take_along_axis(index, place, axis)
    x = x.copy() if base_owner(x) is base_owner(input) else x
    return x if x.dtype == input.dtype else x.astype(input.dtype), xp.ascontiguousarray(index)


# Elements of the input for each window, from which windows are reduced one by one.
_FOR_EACH_WINDOW = 1 << 11


def _max_of_blocks(x, bounds):
    """Return the largest element of each block of the last axes, and its flat spatial index.

    `bounds` has for each of these axes the starts and the ends of the blocks along it.
    """
    count = len(bounds)
    lead, size = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    each = math.prod(lead)
    cells = [
        [(int(start[k]), int(end[k])) for k, (start, end) in zip(cell, bounds, strict=True)]
        for cell in product(*(range(len(start)) for start, _ in bounds))
    ]
    places, values, line = (
        xp.empty((each, len(cells)), xp.int64),
        xp.empty((each, len(cells)), x.dtype),
        xp.arange(each),
    )

    def fill(function):
        for k, cell in enumerate(cells):
            rows = x[(..., *(slice(a, b) for a, b in cell))].reshape(each, -1)
            place = function(rows)
            places[:, k], values[:, k] = place, rows[line, place]

    fill(lambda rows: rows.argmax(1))
    if x.dtype.kind in "fV" and (values != values).any():
        fill(argmax_last_axis)  # of NaNs the last one
    index, step = 0, 1
    for axis in range(count - 1, -1, -1):
        first, last = (xp.asarray(side) for side in zip(*(cell[axis] for cell in cells), strict=True))
        index = index + (places % (last - first) + first) * step
        places = places // (last - first)
        step *= size[axis]
    shape = (*lead, *(len(start) for start, _ in bounds))
    return values.reshape(shape), index.reshape(shape)


def _has_few_blocks(x, blocks):
    return 0 < blocks * _FOR_EACH_WINDOW <= x.size


def _max_pool_with_indices(input, kernel, stride, padding, dilation, ceil_mode):
    _, out = _output_sizes_of(input, kernel, stride, padding, dilation, ceil_mode)
    if _has_few_blocks(input, math.prod(out)) and not any(padding) and all(d == 1 for d in dilation):
        starts = [xp.arange(o) * s for o, s in zip(out, stride, strict=True)]
        ends = [xp.minimum(a + k, n) for a, k, n in zip(starts, kernel, input.shape[-len(out) :], strict=True)]
        return _max_of_blocks(input, list(zip(starts, ends, strict=True)))

    def reduce_axis(x, i, axis):
        numbers = kernel[i], stride[i], padding[i], dilation[i], out[i]
        x = _pad_windows(x, axis, *numbers, _lowest_value_of(x.dtype))
        best, place = argmax_windows(x, axis, kernel[i], stride[i], dilation[i], out[i])
        place = place - padding[i]
        # A window of lowest values alone: its first place inside the input.
        return best, xp.where(place < 0, place % dilation[i], place) if padding[i] else place

    return _max_with_indices(input, len(kernel), reduce_axis)


def _compute_adaptive_bounds(n, out):
    i = xp.arange(out)
    return i * n // out, -(-(i + 1) * n // out)


def _adaptive_max_pool(input, output_size):
    count = len(output_size)
    if 0 in output_size:
        shape = (*input.shape[: input.ndim - count], *output_size)
        return xp.empty(shape, input.dtype), xp.empty(shape, xp.int64)
    if _has_few_blocks(input, math.prod(output_size)):
        sizes = input.shape[input.ndim - count :]
        return _max_of_blocks(
            input, [_compute_adaptive_bounds(n, out) for n, out in zip(sizes, output_size, strict=True)]
        )

    def reduce_axis(x, i, axis):
        n, out = x.shape[axis], output_size[i]
        if n % out == 0:
            return argmax_windows(x, axis, n // out, n // out, 1, out)
        return argmax_ranges(x, axis, *_compute_adaptive_bounds(n, out))

    return _max_with_indices(input, count, reduce_axis)


def _fractional_window_starts(samples, n, kernel, out):
    """Return the pseudo-random window starts of fractional pooling (Graham, 2014, arXiv:1412.6071), (..., out)."""
    if out < 2:
        return xp.full((*samples.shape, out), n - kernel, dtype=xp.int64)
    alpha = samples.dtype.type((n - kernel) / (out - 1))
    i = xp.arange(out - 1).astype(samples.dtype)
    starts = ((i + samples[..., None]) * alpha).astype(xp.int64) - (samples[..., None] * alpha).astype(xp.int64)
    return xp.concatenate([starts, xp.full((*samples.shape, 1), n - kernel, dtype=xp.int64)], axis=-1)


def _max_of_places(x, starts, kernel, axis):
    """Return the largest element of windows along one axis, and its place there.

    `starts` has those of each of the first two axes' elements.
    """
    batch, channels, out = starts.shape
    before, behind, n = math.prod(x.shape[2:axis]), math.prod(x.shape[axis + 1 :]), x.shape[axis]
    lines = xp.ascontiguousarray(x).reshape(-1, behind)  # an element for each place along the axis
    first = xp.arange(batch * channels * before).reshape(-1, before, 1) * n
    at = (first + starts.reshape(-1, 1, out)).reshape(-1)
    best = lines.take(at, 0)
    tap = xp.zeros(best.shape, xp.int64)
    for k in range(1, kernel):
        value = lines.take(at + k, 0)
        better = choose_later(best, value)
        best = xp.where(better, value, best)
        xp.maximum(tap, xp.multiply(better, k, dtype=xp.int64), out=tap)
    shape = (*x.shape[:axis], out, *x.shape[axis + 1 :])
    begin = xp.broadcast_to(starts.reshape(-1, 1, out, 1), (batch * channels, before, out, behind))
    return best.reshape(shape), (begin.reshape(tap.shape) + tap).reshape(shape)


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

    rows = input.shape[0] * input.shape[1]
    if _has_few_blocks(input, rows * math.prod(output_size)):
        pairs = [
            _max_of_blocks(input[n, c], [(s[n, c], s[n, c] + k) for s, k in zip(starts, kernel, strict=True)])
            for n, c in product(*map(range, input.shape[:2]))
        ]
        shape = (*input.shape[:2], *output_size)
        return tuple(xp.stack(part).reshape(shape) for part in zip(*pairs, strict=True))

    def reduce_axis(x, i, axis):
        batch, channels, out = starts[i].shape
        if starts[i].size <= _FEW_WINDOWS < kernel[i] * out:
            place = xp.empty((*x.shape[:axis], out, *x.shape[axis + 1 :]), xp.int64)
            for n, c, o in product(range(batch), range(channels), range(out)):
                start = int(starts[i][n, c, o])
                piece = x[n, c][index_along_axis(count, i, slice(start, start + kernel[i]))]
                place[n, c][index_along_axis(count, i, o)] = argmax_last_axis(xp.moveaxis(piece, i, -1)) + start
            return xp.take_along_axis(x, place, axis), place
        return _max_of_places(x, starts[i], kernel[i], axis)

    return _max_with_indices(input, count, reduce_axis)


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
    for axis, k, t, p, o in zip(range(first, x.ndim), kernel, stride, padding, out, strict=True):
        x = reduce_windows(_pad_windows(x, axis, k, t, p, 1, o, 0), axis, xp.add, k, t, 1, o)
    if base_owner(x) is base_owner(input):
        x = x.copy()
    x = _divide_truncating_integers(
        x, _avg_pool_divisor(size, kernel, stride, padding, out, count_include_pad, divisor_override, x.dtype)
    )
    x += 0  # a mean of -0 is 0
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
    if kernel <= stride:
        wide = xp.zeros((*g.shape[:axis], max(reach, out * stride), *g.shape[axis + 1 :]), g.dtype)
        windows = wide[index_along_axis(g.ndim, axis, slice(0, out * stride))]
        windows = windows.reshape(*g.shape[:axis], out, stride, *g.shape[axis + 1 :])
        windows[index_along_axis(windows.ndim, axis + 1, slice(0, kernel))] = xp.expand_dims(g, axis + 1)
    else:
        # An element gets the gradients of the `kernel` places up to it, of which each `stride`-th has one.
        spread = xp.zeros((*g.shape[:axis], kernel - 1 + reach, *g.shape[axis + 1 :]), g.dtype)
        spread[index_along_axis(g.ndim, axis, slice(kernel - 1, kernel + (out - 1) * stride, stride))] = g
        wide = reduce_windows(spread, axis, xp.add, kernel, 1, 1, reach)
    return (
        wide
        if wide.shape[axis] == n
        else xp.ascontiguousarray(wide[index_along_axis(g.ndim, axis, slice(padding, padding + n))])
    )


def _divide_along_axis(x, axis, divisors):
    return x / divisors.astype(x.dtype).reshape(-1, *(1,) * (x.ndim - 1 - axis))


def _adaptive_avg_pool(input, output_size):
    x, first = _cast_half_to_float(input), input.ndim - len(output_size)
    if max(output_size, default=0) == 1 and min(output_size) == 1:
        return x.mean(axis=tuple(range(first, x.ndim)), keepdims=True, dtype=x.dtype).astype(input.dtype)
    if 0 in output_size:
        return xp.empty((*input.shape[:first], *output_size), input.dtype)
    for axis, out in enumerate(output_size, first):
        n = x.shape[axis]
        if out and n % out == 0:
            x = reduce_windows(x, axis, xp.add, n // out, n // out, 1, out) if n > out else x
            x = x / (n // out) if n > out else x
        else:
            start, end = _compute_adaptive_bounds(n, out)
            x = _divide_along_axis(sum_ranges(x, axis, start, end), axis, end - start)
    return x.copy() if x is input else x.astype(input.dtype)


def _adaptive_avg_pool_backward(grad_output, size):
    g, first = _cast_half_to_float(grad_output), grad_output.ndim - len(size)
    if g.size and max(g.shape[first:]) == 1:
        return xp.broadcast_to(g / math.prod(size), (*g.shape[:first], *size)).astype(grad_output.dtype)
    for axis, n in enumerate(size, first):
        out = g.shape[axis]
        if n == out:
            continue
        if out and n % out == 0:
            g = xp.repeat(g / (n // out), n // out, axis)
            continue
        start, end = _compute_adaptive_bounds(n, out)
        g = add_to_ranges(_divide_along_axis(g, axis, end - start), axis, start, end, n)
    return g.copy() if g is grad_output else g.astype(grad_output.dtype)
