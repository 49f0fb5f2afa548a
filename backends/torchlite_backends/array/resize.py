"""Resampling of images on a grid (interpolate), with antialiasing, and its backward pass."""

from __future__ import annotations

import math

import numpy as xp

# Resampling: for each axis the input positions (out, taps) that an output reads, and their weights.


def _input_step_per_output(n, out, align_corners, factor, real):
    """Return input positions per output position, in the precision that PyTorch computes it in."""
    if align_corners:
        return real((n - 1) / (out - 1)) if out > 1 else real(0)
    return real(1.0 / factor) if factor is not None and factor > 0 else real(n) / real(out)


def _compute_source_positions(n, out, align_corners, factor, real):
    if max(n, out) > _SINGLE_SIZES:
        real = xp.float64
    scale = _input_step_per_output(n, out, align_corners, factor, real)
    i = xp.arange(out).astype(real)
    return scale * i if align_corners else scale * (i + real(0.5)) - real(0.5)


# Elements of the largest matrix of weights, with which gradients are multiplied.
_LARGEST_MATRIX = 1 << 20
# Sizes up to which places and a half are float32 numbers.
_SINGLE_SIZES = 1 << 22


def _compute_nearest_taps(n, out, factor, exact):
    single = xp.float32 if max(n, out) <= _SINGLE_SIZES else xp.float64
    scale = _input_step_per_output(n, out, False, factor, single)
    i = xp.arange(out).astype(single)
    places = xp.floor((i + single(0.5)) * scale if exact else i * scale).astype(xp.int64)
    return xp.minimum(places, n - 1)[:, None], None


def _compute_linear_taps(n, out, align_corners, factor, real):
    at = xp.maximum(_compute_source_positions(n, out, align_corners, factor, real), real(0))
    low = xp.minimum(at.astype(xp.int64), n - 1)
    part = xp.minimum(xp.maximum(at - low.astype(real), real(0)), real(1))
    return xp.stack([low, xp.minimum(low + 1, n - 1)], axis=1), xp.stack([real(1) - part, part], axis=1)


def _cubic_convolution_kernel(distance, a):
    """The cubic convolution kernel (Keys, 1981) at non-negative distances."""
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return xp.where(distance <= 1, near, xp.where(distance < 2, far, 0 * distance))


def _compute_cubic_taps(n, out, align_corners, factor, real):
    at = _compute_source_positions(n, out, align_corners, factor, real)
    low = xp.floor(at)
    part = at - low
    places = low.astype(xp.int64)[:, None] + xp.arange(-1, 3)
    weights = _cubic_convolution_kernel(xp.abs(part[:, None] - xp.arange(-1, 3).astype(real)), real(-0.75))
    return xp.minimum(xp.maximum(places, 0), n - 1), weights.astype(real)


def _lanczos_kernel(distance):
    inside = distance < 3
    return xp.where(inside, xp.sinc(distance) * xp.sinc(distance / 3), 0 * distance)


# Filters of the antialiased modes: reach, and weight at a non-negative distance.
_FILTERS = {
    "bilinear": (1, lambda t: xp.maximum(1 - t, 0 * t)),
    "bicubic": (2, lambda t: _cubic_convolution_kernel(t, -0.5)),
    "lanczos": (3, _lanczos_kernel),
}


def _compute_antialias_taps(n, out, align_corners, factor, real, mode):
    """Return taps and weights of the filter, stretched over as many inputs as one output covers."""
    reach, weight = _FILTERS[mode]
    scale = float(_input_step_per_output(n, out, align_corners, factor, real))
    wide = max(scale, 1.0)
    support = reach * wide
    centre = scale * (xp.arange(out) + 0.5)
    start = xp.maximum((centre - support + 0.5).astype(xp.int64), 0)
    end = xp.minimum((centre + support + 0.5).astype(xp.int64), n)
    taps = max(1, int((end - start).max()))
    places = start[:, None] + xp.arange(taps)
    distance = xp.abs((places - centre[:, None] + 0.5) / wide)
    weights = xp.where(places < end[:, None], weight(distance), 0.0)
    total = weights.sum(axis=1, keepdims=True)
    weights = weights / xp.where(total == 0, 1, total)
    return xp.minimum(places, n - 1), weights.astype(real)


def _compute_taps_and_weights(n, out, mode, align_corners, factor, antialias, real):
    if mode in ("nearest", "nearest-exact"):
        return _compute_nearest_taps(n, out, factor, mode == "nearest-exact")
    if antialias:
        return _compute_antialias_taps(n, out, align_corners, factor, real, mode)
    rule = _compute_cubic_taps if mode == "bicubic" else _compute_linear_taps
    return rule(n, out, align_corners, factor, real)


def _cast_half_to_float(x):
    return x.astype(xp.float32) if x.dtype.kind in "biuV" or x.dtype.itemsize <= 2 else x


def _is_identity(n, out, factor):
    return n == out and (factor is None or factor == 1)


def _quantize_weights(places, weights):
    """Return weights as integers of up to 15 bits, and their shift. Weights of one position are summed first."""
    for tap in range(places.shape[1] - 1):
        same = places[:, tap] == places[:, tap + 1]
        weights[:, tap + 1] += xp.where(same, weights[:, tap], 0)
        weights[:, tap] = xp.where(same, 0, weights[:, tap])
    bits = 0
    while bits < 22 and int(0.5 + weights.max() * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = weights * (1 << bits)
    return xp.where(scaled < 0, scaled - 0.5, scaled + 0.5).astype(xp.int32), bits


def _resize_uint8(input, size, mode, align_corners, factors, antialias):
    """Resize uint8 images as PyTorch does: integer sums, rounded to bytes after the rows and after the columns."""
    x = input
    for axis, n, out, factor in (
        (-1, input.shape[-1], size[1], factors[1]),
        (-2, input.shape[-2], size[0], factors[0]),
    ):
        if n == out:
            continue
        places, weights = _compute_taps_and_weights(n, out, mode, align_corners, factor, antialias, xp.float64)
        weights, bits = _quantize_weights(places, weights)
        total = xp.int32(1 << (bits - 1))
        for tap in range(places.shape[1]):
            line = weights[:, tap] if axis == -1 else weights[:, tap, None]
            total = total + xp.take(x, places[:, tap], axis=axis).astype(xp.int32) * line
        x = xp.clip(total >> bits, 0, 255).astype(xp.uint8)
    return x.copy() if x is input else x


def _resize(input, size, mode, align_corners, factors, antialias):
    if input.dtype == xp.uint8 and len(size) == 2 and mode in ("bilinear", "bicubic", "lanczos"):
        return _resize_uint8(input, size, mode, align_corners, factors, antialias)
    nearest = mode in ("nearest", "nearest-exact")
    x = input if nearest else _cast_half_to_float(input)
    count = len(size)
    real = xp.float64 if x.dtype.itemsize >= 8 and x.dtype.kind == "f" else xp.float32
    for i in range(count - 1, -1, -1):
        axis, n = input.ndim - count + i, input.shape[input.ndim - count + i]
        if _is_identity(n, size[i], factors[i]):
            continue
        places, weights = _compute_taps_and_weights(n, size[i], mode, align_corners, factors[i], antialias, real)
        if weights is None:
            x = xp.take(x, places[:, 0], axis=axis)
            continue
        shape = (-1, *(1,) * (count - 1 - i))
        total = None
        for tap in range(places.shape[1]):
            piece = xp.take(x, places[:, tap], axis=axis)
            piece *= weights[:, tap].reshape(shape)
            total = piece if total is None else xp.add(total, piece, out=total)
        x = total
    if x is input:
        return x.copy()
    if x.dtype == input.dtype:
        return x
    if input.dtype.kind in "iu":
        limits = xp.iinfo(input.dtype)
        x = xp.clip(xp.rint(x), limits.min, limits.max)
    return x.astype(input.dtype)


def _transpose_table(places, weights, n, out, real):
    """Return for each input position the outputs that read it, and the weights."""
    used = weights.reshape(-1) != 0
    where, which, weights = (
        places.reshape(-1)[used],
        xp.repeat(xp.arange(out), places.shape[1])[used],
        weights.reshape(-1)[used],
    )
    order = where.argsort(kind="stable")
    counts = xp.bincount(where, minlength=n)
    width = max(1, int(counts.max(initial=0)))
    turn = xp.arange(where.size) - xp.repeat(counts.cumsum() - counts, counts)
    to, weight = xp.zeros((n, width), xp.int64), xp.zeros((n, width), real)
    to[where[order], turn], weight[where[order], turn] = which[order], weights[order]
    return to, weight


def _add_up_outputs(g, axis, places, weights, n, real):
    """Return for each input position along an axis the weighted sum of the outputs that read it."""
    out = g.shape[axis]
    weights = xp.ones(places.shape, real) if weights is None else weights
    places, weights = _transpose_table(places, weights, n, out, real)
    total, shape = None, (-1, *(1,) * (g.ndim - 1 - axis))
    for tap in range(places.shape[1]):
        piece = xp.take(g, places[:, tap], axis=axis)
        piece *= weights[:, tap].reshape(shape)
        total = piece if total is None else xp.add(total, piece, out=total)
    return total


def _resize_backward(grad_output, size, mode, align_corners, factors, antialias):
    g, count = _cast_half_to_float(grad_output), len(size)
    real = g.dtype.type
    for i in range(count):
        axis, n = g.ndim - count + i, size[i]
        out = g.shape[axis]
        if _is_identity(n, out, factors[i]):
            continue
        places, weights = _compute_taps_and_weights(n, out, mode, align_corners, factors[i], antialias, real)
        if n * out > _LARGEST_MATRIX:
            g = _add_up_outputs(g, axis, places, weights, n, real)
            continue
        matrix = xp.zeros((n, out), g.dtype)
        columns = xp.broadcast_to(xp.arange(out)[:, None], places.shape)
        xp.add.at(matrix, (places, columns), real(1) if weights is None else weights)
        if axis == g.ndim - 1:
            g = xp.matmul(g, matrix.T)
        else:
            lead, rest = g.shape[:axis], g.shape[axis + 1 :]
            g = xp.matmul(matrix, g.reshape(*lead, out, math.prod(rest))).reshape(*lead, n, *rest)
    return g.copy() if g is grad_output else g.astype(grad_output.dtype)
