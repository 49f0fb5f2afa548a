"""Depthwise convolution in one or two dimensions: a multiply-add over shifted inputs for each kernel position.

With one input channel per filter there are no matrix products. Large images with rows that are not short use
`conv_banded`. Blocks of images and channels are transposed so that positions come first: a shift is then a number
of long runs, an image's edge shortens the range of positions, and a stride is a step between runs. A block stays in a
core's cache while all kernel positions are added. For small images the calls take longer than what they compute: NumPy
then sums over the kernel positions in one call.
"""

from __future__ import annotations

import functools
from itertools import product

import numpy as np

from . import conv_banded, conv_row_bands
from .blas import get_transposing_copy
from .cache_blocking import LONG_ROW, get_scratch_buffer, parallel_for
from .conv_banded import view_as_2d
from .row_blocks import ones

# Maximum elements of a block of outputs: with 1 << 16 a call has too little to do (1.4 of the time at 48x48), with more
# nothing stays in cache. And minimum channels of its images, if there are as many.
_BLOCK, _RUN = 1 << 18, 256
# Elements up to which one thread is as fast as two, which wait for each other's GIL.
_LITTLE = 1 << 18
# Minimum channels of a block, if there are as many.
_CHANNELS = 64
# Positions up to which NumPy transposes a block of images faster than BLAS, image by image; a quarter for the result.
_FEW_PLACES = 64
# Nanoseconds: of a multiplication in NumPy's sums of products, a row of channels in them, and a multiplication and a
# pass of the sums over kernel positions.
_SUMMED, _ROW_CALL, _ADDED, _PASS = 0.11, 6, 0.45, 2500


def is_faster(plan, dtype) -> bool:
    """True if this module supports a depthwise convolution."""
    return (
        plan.channels == plan.filters == plan.groups > 1
        and len(plan.size) <= 2
        and get_transposing_copy(dtype) is not None
    )


def _data_address(array):
    return array.__array_interface__["data"][0]


def _geometry_2d(plan):
    """Return (size, out, kernel, stride, padding, dilation) in two dimensions."""
    fields = (plan.size, plan.out, plan.kernel, plan.stride, plan.padding, plan.dilation)
    if len(plan.size) == 2:
        return fields
    return tuple((filler, *f) for f, filler in zip(fields, (1, 1, 1, 1, 0, 1), strict=True))


def _choose_blocks(plan, height, width):
    """Return blocks of arrays with images of a size.

    A block is (first image, one past the last, first channel, one past the last, first row, one past the last).
    """
    total = plan.batch * plan.channels * height * width
    block = max(min(_BLOCK, total // 4), min(_BLOCK // 4, -(-total // 2)))
    most = max(_CHANNELS, _RUN // plan.batch, block // (height * width * plan.batch))
    channels = -(-plan.channels // -(-plan.channels // most))
    images = max(1, min(plan.batch, max(block // (height * width * channels), -(-_RUN // channels))))
    images = -(-plan.batch // -(-plan.batch // images))
    rows = max(1, min(height, block // (width * images * channels)))
    rows = -(-height // -(-height // rows))
    return [
        (i, min(i + images, plan.batch), c, min(c + channels, plan.channels), r, min(r + rows, height))
        for i in range(0, plan.batch, images)
        for c in range(0, plan.channels, channels)
        for r in range(0, height, rows)
    ]


def _load_rows(array, block, first, last, slot):
    """Return the rows `first` to `last` of a block as (rows, columns, images, channels)."""
    image, end, channel, stop, *_ = block
    out = get_scratch_buffer(slot, (last - first, array.shape[-1], end - image, stop - channel), array.dtype)
    return _load_rows_into(out, array, block, first, last)


def _load_rows_into(out, array, block, first, last):
    image, end, channel, stop, *_ = block
    width, steps = array.shape[-1], array.shape[-1] * array.shape[-2]
    turn, channels, line = get_transposing_copy(array.dtype), stop - channel, (end - image) * (stop - channel)
    if (last - first) * width <= _FEW_PLACES:
        out[...] = array[image:end, channel:stop, first:last].transpose(2, 3, 0, 1)
    else:
        for i in range(image, end):
            source, target = _data_address(array[i, channel:, first:]), _data_address(out[:, :, i - image :])
            turn(channels, (last - first) * width, source, steps, target, line)
    return out


def _store_rows(lines, block, first, array):
    """Write rows in the layout of `_load_rows` back."""
    image, end, channel, stop = block[:4]
    rows, width, images, channels = lines.shape
    if rows * width <= _FEW_PLACES // 4:
        array[image:end, channel:stop, first : first + rows] = lines.transpose(2, 3, 0, 1)
        return
    turn, steps = get_transposing_copy(array.dtype), array.shape[-1] * array.shape[-2]
    for i in range(image, end):
        source, target = _data_address(lines[:, :, i - image :]), _data_address(array[i, channel:, first:])
        turn(rows * width, channels, source, images * channels, target, steps)


def _compute_valid_outputs(tap, n, out, stride, padding, dilation, first, last):
    """Return the outputs (start, stop) among first..last whose kernel position lies in an input of length `n`.

    Also the first of these inputs.
    """
    at = tap * dilation - padding
    start = max(first, -(at // stride), 0)
    stop = max(min(last, (n - 1 - at) // stride + 1, out), start)
    return start, stop, start * stride + at


@functools.lru_cache(maxsize=512)
def _list_taps(plan, first, last, first_out, first_in):
    """Return each kernel position that some output rows `first` to `last` use: its number, and output and input slices.

    The slices are relative to rows that begin at `first_out` and `first_in`.
    """
    size, out, kernel, stride, padding, dilation = _geometry_2d(plan)
    taps = []
    for number, place in enumerate(product(*(range(k) for k in kernel))):
        outer, inner = [], []
        for d, (begin, end, before_out, before_in) in enumerate(
            ((first, last, first_out, first_in), (0, out[1], 0, 0))
        ):
            start, stop, at = _compute_valid_outputs(
                place[d], size[d], out[d], stride[d], padding[d], dilation[d], begin, end
            )
            outer.append(slice(start - before_out, stop - before_out))
            inner.append(slice(at - before_in, at - before_in + (stop - start - 1) * stride[d] + 1, stride[d]))
        if all(s.start < s.stop for s in outer):
            taps.append((number, tuple(outer), tuple(inner), outer[1].stop - outer[1].start))
    return taps


def _input_rows_of_outputs(plan, first, last):
    """Return the input rows that output rows read."""
    size, _, kernel, stride, padding, dilation = (f[0] for f in _geometry_2d(plan))
    start = min(max(first * stride - padding, 0), size)
    return start, max(start, min((last - 1) * stride + (kernel - 1) * dilation - padding + 1, size))


def _output_rows_of_inputs(plan, first, last):
    """Return the output rows that read input rows."""
    _, out, kernel, stride, padding, dilation = (f[0] for f in _geometry_2d(plan))
    start = min(max(-(-(first + padding - (kernel - 1) * dilation) // stride), 0), out)
    return start, max(start, min((last - 1 + padding) // stride + 1, out))


def _tile_weight(weight, channels, length, images):
    """Return the weights of some channels for each kernel position, tiled to (positions, length, images, channels)."""
    part = weight[channels].reshape(channels.stop - channels.start, -1)
    out = get_scratch_buffer(3, (part.shape[1], length, images, part.shape[0]), weight.dtype)
    out[...] = part.T[:, None, None]
    return out


def conv_forward(x, weight, bias, plan, out):
    """Forward pass into `out`."""
    if conv_row_bands.is_faster(plan):
        if conv_row_bands.conv_forward(x, weight, bias, plan, out):
            return out
    elif conv_banded.is_faster(plan, x) and conv_banded.conv_forward(x, weight, bias, plan, out):
        return out
    x, target = view_as_2d(np.ascontiguousarray(x)), view_as_2d(out)
    if _is_one_sum_faster(plan):
        return _convolve_by_sums(x, weight, bias, plan, target, out)
    length = 1 if max(plan.stride) > 1 else target.shape[-1]

    def convolve_block(*block):
        image, end, channel, stop, first, last = block
        start, finish = _input_rows_of_outputs(plan, first, last)
        inner = _load_rows(x, block, start, finish, 0)
        outer = get_scratch_buffer(1, (last - first, target.shape[-1], *inner.shape[2:]), x.dtype)
        outer[...] = 0 if bias is None else bias[channel:stop]
        weights, scratch = (
            _tile_weight(weight, slice(channel, stop), length, end - image),
            get_scratch_buffer(2, outer.shape, x.dtype),
        )
        for number, there, here, columns in _list_taps(plan, first, last, first, start):
            add_to = outer[there]
            add_to += np.multiply(inner[here], weights[number, :columns], out=scratch[: len(add_to), :columns])
        _store_rows(outer, block, first, target)

    _parallel_for(convolve_block, _choose_blocks(plan, *target.shape[2:]), max(x.size, out.size))
    return out


@functools.lru_cache(maxsize=512)
def _is_one_sum_faster(plan):
    """True if `_convolve_by_sums` is faster than the passes of each kernel position."""
    size, out, kernel, stride, padding, dilation = _geometry_2d(plan)
    used = 1  # pairs of an output and a kernel position that read an input and not the padding
    for n, outs, taps, step, before, distance in zip(size, out, kernel, stride, padding, dilation, strict=True):
        at = np.arange(outs)[:, None] * step - before + np.arange(taps) * distance
        used *= int(((at >= 0) & (at < n)).sum())
    images = plan.batch * plan.channels
    sums = images * plan.places * plan.taps * (_SUMMED + _ROW_CALL / plan.channels)
    return sums < images * used * _ADDED + plan.taps * _PASS


def _convolve_by_sums(x, weight, bias, plan, target, out):
    """Forward pass of small images: NumPy sums over all kernel positions in one call, for each image."""
    size, _, kernel, stride, padding, dilation = _geometry_2d(plan)
    rows, columns = (
        max(n + 2 * p, (o - 1) * s + (k - 1) * d + 1)
        for n, o, k, s, p, d in zip(size, target.shape[2:], kernel, stride, padding, dilation, strict=True)
    )
    weights = np.ascontiguousarray(weight.reshape(plan.channels, *kernel).transpose(1, 2, 0))
    (above, left), (height, width) = padding, size

    def convolve_image(image):
        padded = get_scratch_buffer(0, (rows, columns, plan.channels), x.dtype)
        padded[...] = 0
        padded[above : above + height, left : left + width] = x[image].transpose(1, 2, 0)
        row, column, item = padded.strides
        windows = np.ndarray(
            (*kernel, *target.shape[2:], plan.channels),
            x.dtype,
            padded,
            0,
            (dilation[0] * row, dilation[1] * column, stride[0] * row, stride[1] * column, item),
        )
        sums = get_scratch_buffer(1, (*target.shape[2:], plan.channels), x.dtype)
        np.einsum("klijc,klc->ijc", windows, weights, out=sums)
        if bias is not None:
            sums += bias
        target[image] = sums.transpose(2, 0, 1)

    _parallel_for(convolve_image, [(image,) for image in range(plan.batch)], max(x.size, out.size))
    return out


def conv_transpose(g, weight, plan, out):
    """Gradient of the input into `out`."""
    if conv_banded.is_faster(plan, out) and conv_banded.conv_transpose(g, weight, plan, out):
        return out
    g, target = view_as_2d(np.ascontiguousarray(g)), view_as_2d(out)
    length = 1 if max(plan.stride) > 1 else g.shape[-1]

    def convolve_block(*block):
        image, end, channel, stop, first, last = block
        start, finish = _output_rows_of_inputs(plan, first, last)
        outer = _load_rows(g, block, start, finish, 0)
        inner = get_scratch_buffer(1, (last - first, target.shape[-1], *outer.shape[2:]), g.dtype)
        inner[...] = 0
        weights, scratch = (
            _tile_weight(weight, slice(channel, stop), length, end - image),
            get_scratch_buffer(2, outer.shape, g.dtype),
        )
        for number, there, here, columns in _list_transposed_taps(plan, start, finish, first, last):
            add_to = inner[here]
            add_to += np.multiply(outer[there], weights[number, :columns], out=scratch[: len(add_to), :columns])
        _store_rows(inner, block, first, target)

    _parallel_for(convolve_block, _choose_blocks(plan, *target.shape[2:]), max(g.size, out.size))
    return out


@functools.lru_cache(maxsize=512)
def _list_transposed_taps(plan, start, finish, first, last):
    """Return `_taps` of the output rows `start` to `finish` for inputs in the rows `first` to `last`."""
    stride = _geometry_2d(plan)[3][0]
    taps = []
    for number, (rows, columns), (inner, across), count in _list_taps(plan, start, finish, start, 0):
        # Of the outputs whose input position is inner.start, inner.start + stride, ...
        skipped = max(0, -((inner.start - first) // stride))
        kept = min(rows.stop - rows.start, (last - 1 - inner.start) // stride + 1)
        if skipped < kept:
            at = inner.start + skipped * stride - first
            here = slice(at, at + (kept - skipped - 1) * stride + 1, stride)
            taps.append((number, (slice(rows.start + skipped, rows.start + kept), columns), (here, across), count))
    return taps


def weight_gradient(g, x, gradient, plan):
    """Gradient of the weight into `gradient`."""
    if conv_banded.is_faster_for_weight_grad(plan, x) and conv_banded.weight_gradient(g, x, gradient, plan):
        return gradient
    g, x = view_as_2d(np.ascontiguousarray(g)), view_as_2d(np.ascontiguousarray(x))
    blocks = _choose_blocks(plan, *g.shape[2:])
    sums = [None] * len(blocks)

    def sum_block(k, block):
        image, end, channel, stop, first, last = block
        start, finish = _input_rows_of_outputs(plan, first, last)
        inner, outer = _load_rows(x, block, start, finish, 0), _load_rows(g, block, first, last, 1)
        total, scratch = (
            np.zeros((plan.taps, end - image, stop - channel), x.dtype),
            get_scratch_buffer(2, outer.shape, x.dtype),
        )
        scratch = scratch.reshape(-1)
        for number, there, here, _ in _list_taps(plan, first, last, first, start):
            a = outer[there]
            products = scratch[: a.size].reshape(a.shape)
            np.multiply(a, inner[here], out=products)
            rows = a.shape[0] * a.shape[1]
            np.dot(ones(rows, x.dtype), products.reshape(rows, -1), out=total[number].reshape(-1))
        sums[k] = np.add.reduce(total, 1).T

    _parallel_for(sum_block, list(enumerate(blocks)), max(g.size, x.size))
    result = gradient.reshape(plan.channels, plan.taps)
    result[...] = 0
    for block, part in zip(blocks, sums, strict=True):
        result[block[2] : block[3]] += part
    return gradient


def _parallel_for(body, items, size):
    """Call `body(*item)` for all items, on several threads for arrays with enough elements.

    NumPy's buffer size is set so that it does not copy operands for long runs.
    """

    def run_item(*item):
        usual = np.setbufsize(LONG_ROW)
        try:
            body(*item)
        finally:
            np.setbufsize(usual)

    if size <= _LITTLE:
        for item in items:
            run_item(*item)
    else:
        parallel_for(run_item, items)
