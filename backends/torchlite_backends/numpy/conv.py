"""Convolution on the CPU by im2col: windows gathered block by block into a reused buffer, one BLAS call per block.

Other algorithms serve where they are faster: `conv_depthwise` and `conv_banded`, `winograd` (3x3, many channels),
`conv_kn2row` (stride 1, long rows) and `conv_nonoverlapping` (adjacent windows). Each has `is_faster(plan, dtype)`.
Volumes are batches of images (`conv_volumes`), and so are the phases of dilated images (`conv_dilated`).

Work is shared among threads in one of two ways. Usually a thread processes a block of images (or of one image's rows)
completely. If weights outweigh images (the last layers of a network), the columns of the batch are gathered once and a
thread computes some of the filters.

Two layouts of columns are used: (channel, kernel position, image, output position), and for images with rows too short
to copy fast, (channel, kernel position, output position, image).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from torchlite._types.dtypes import is_complex32

from . import (
    conv_cpu_engine,
    conv_depthwise,
    conv_dilated,
    conv_kn2row,
    conv_nonoverlapping,
    conv_onednn,
    conv_volumes,
    winograd,
)
from .blas import can_limit, single_threaded
from .cache_blocking import MIN_SIZE, can_share_work, get_scratch_buffer, parallel_range, parallel_sum, run_blocks
from .conv_geometry import FOLD_RATIO, MIN_BLOCKS, MIN_SHARED_CHANNELS, SHORT_ROW, get_conv_geometry
from .deterministic_gemm import multiply_in_blocks
from .half_casts import cast_half
from .row_blocks import sum_along_axis

# Minimum elements for which the bias gradient sums rows on several threads.
_PIECE = 1 << 16
# Filters of a channel from which, and elements of an image's result below which, a depthwise convolution is a matrix
# product for each channel. Else it is a sum over the taps of each image.
_MULTIPLIER, _SHORT_IMAGE = 4, 1024


def _parallel_for(body, items, size):
    """Call body(item) for each item, on several threads; `size` is an item's approximate number of elements."""
    if len(items) < 2 or not can_limit():
        for item in items:
            body(item)
        return

    def run_items(start, stop):
        for item in items[start:stop]:
            body(item)

    run_blocks(run_items, len(items), max(1, size), 1)


def _cut_into_even_slices(count):
    """Return slices that cut `count` rows into even shares."""
    step = -(-count // MIN_BLOCKS)
    return [slice(i, min(i + step, count)) for i in range(0, count, step)]


def _pad_input(x, plan):
    """Return the zero-padded input, as a view (batch, channel, *size) of memory in the plan's layout."""
    inside = tuple(slice(p, p + n) for p, n in zip(plan.padding, plan.size, strict=True))
    spatial = len(plan.size)
    make = np.zeros if max(plan.padding) else np.empty
    if plan.batch_inner:
        memory = make((plan.channels, *plan.padded, plan.batch), x.dtype)
        memory[(slice(None), *inside)] = x.transpose(1, *range(2, 2 + spatial), 0)
        return memory.transpose(spatial + 1, *range(spatial + 1))
    if not max(plan.padding):
        return x
    memory = make((plan.batch, plan.channels, *plan.padded), x.dtype)
    _copy_threaded(memory[(slice(None), slice(None), *inside)], x)
    return memory


def _copy_threaded(out, source):
    """Copy an array: a large one on the free threads, in one call each. Short calls of two threads wait for the GIL."""
    if source.size > MIN_SIZE and can_share_work():
        parallel_range(lambda a, b: np.copyto(out[a:b], source[a:b]), len(out))
    else:
        np.copyto(out, source)


def _view_windows(padded, plan):
    """View the windows of the padded input: (batch, channel, *kernel, *out)."""
    steps = padded.strides[2:]
    taps = tuple(step * d for step, d in zip(steps, plan.dilation, strict=True))
    moves = tuple(step * s for step, s in zip(steps, plan.stride, strict=True))
    shape, strides = (*padded.shape[:2], *plan.kernel, *plan.out), (*padded.strides[:2], *taps, *moves)
    if padded.base is None and padded.flags.c_contiguous:
        return np.ndarray(shape, padded.dtype, padded, 0, strides)  # as_strided does the same with more ceremony
    return as_strided(padded, shape, strides, writeable=False)


def _compute_im2col_block(windows, plan, block):
    """Return the columns of a block, (groups, channels of a group * taps, images * positions)."""
    first, last, top, bottom = block
    spatial = len(plan.size)
    piece = windows[(slice(first, last), *(slice(None),) * (spatial + 1), slice(top, bottom))]
    if plan.batch_inner:
        source = piece.transpose(*range(1, 2 * spatial + 2), 0)
    else:
        source = piece.transpose(*range(1, spatial + 2), 0, *range(spatial + 2, 2 * spatial + 2))
    columns = get_scratch_buffer(0, source.shape, source.dtype)
    _copy_threaded(columns, source)
    return columns.reshape(plan.groups, plan.channels // plan.groups * plan.taps, -1)


def _to_rows(g, plan, block, slot=1):
    """Return a block of an output-shaped array as (groups, channels of a group, images * positions), ordered like the
    columns.
    """
    first, last, top, bottom = block
    piece = g[first:last, :, top:bottom]
    if last - first == 1:
        return piece.reshape(plan.groups, g.shape[1] // plan.groups, -1)
    spatial = len(plan.size)
    source = piece.transpose((1, *range(2, 2 + spatial), 0) if plan.batch_inner else (1, 0, *range(2, 2 + spatial)))
    rows = get_scratch_buffer(slot, source.shape, g.dtype)
    _copy_threaded(rows, source)
    return rows.reshape(plan.groups, g.shape[1] // plan.groups, -1)


def _from_rows(rows, out, plan, block):
    """Write (channels, images * positions) into a block of an output-shaped array."""
    first, last, top, bottom = block
    inner = (bottom - top, *plan.out[1:])
    if plan.batch_inner:
        source = np.moveaxis(rows.reshape(out.shape[1], *inner, last - first), -1, 0)
    else:
        source = np.moveaxis(rows.reshape(out.shape[1], last - first, *inner), 1, 0)
    out[first:last, :, top:bottom] = source


def _matmul_into_scratch(a, b, slot):
    """Return a @ b in scratch memory."""
    out = get_scratch_buffer(slot, (*a.shape[:-1], b.shape[-1]), a.dtype)
    return np.matmul(a, b, out=out)


def _add_bias(out, bias):
    if bias is not None:
        out += bias.reshape(-1, *(1,) * (out.ndim - 2))
    return out


def _make_columns_function(x, plan):
    """Return a function from a block to its columns."""
    if plan.pointwise:
        return lambda block: _to_rows(x, plan, block, 0)
    windows = _view_windows(_pad_input(x, plan), plan)
    return lambda block: _compute_im2col_block(windows, plan, block)


def _with_size(array, size):
    """Return an array (images, channels, *) with these sizes."""
    return array.reshape(*array.shape[:2], *size)


def _conv_forward(x, weight, bias, plan, finish=None):
    """Forward pass with weight (filters, channels of a group, *kernel). `finish` (`fused_inference.ConvEpilogue`) is
    applied.
    """
    if plan.flat is not None:
        x, weight = _with_size(x, plan.flat.size), _with_size(weight, plan.flat.kernel)
        return _with_size(_conv_forward(x, weight, bias, plan.flat, finish), plan.out)
    if (served := conv_cpu_engine.conv_forward(x, weight, bias, plan, finish)) is not None:
        return served
    if finish is None:
        return _conv_forward_numpy(x, weight, bias, plan)
    if finish.scale is not None and FOLD_RATIO * weight.size <= plan.batch * plan.filters * plan.places:
        weight, bias = finish.fold_into_weight(weight)
    out = _conv_forward_numpy(x, weight, bias, plan, finish)
    if not finish.done:
        finish.apply_to_images(out)
    return out


def _sums_over_taps(plan):
    """True if a depthwise convolution is faster as a sum over the taps than as matrix products."""
    return (
        plan.channels == plan.groups > 1
        and plan.filters < _MULTIPLIER * plan.groups
        and plan.filters * plan.places >= _SHORT_IMAGE
    )


def _conv_forward_numpy(x, weight, bias, plan, finish=None):
    if (served := conv_onednn.conv_forward(x, weight, bias, plan)) is not None:
        return served
    groups, filters = plan.groups, plan.filters
    out = np.empty((plan.batch, filters, *plan.out), x.dtype)
    if not out.size:
        return out
    if not plan.channels:
        out[...] = 0
        return _add_bias(out, bias)
    if conv_volumes.is_faster(plan, x.dtype) and not conv_nonoverlapping.is_faster(plan, x.dtype):
        return conv_volumes.conv_forward(x, weight, bias, plan, out, _conv_forward)
    if conv_depthwise.is_faster(plan, x.dtype):
        return conv_depthwise.conv_forward(x, weight, bias, plan, out)
    if _sums_over_taps(plan):
        return _convolve_depthwise(x, weight, bias, plan, out)
    if winograd.is_faster(plan, x.dtype) and winograd.conv_forward(x, weight, bias, plan, out):
        return out
    if conv_dilated.is_faster(plan, x.dtype):
        return conv_dilated.conv_forward(x, weight, bias, plan, out, _conv_forward_numpy)
    if conv_kn2row.is_faster(plan, x.dtype):
        return conv_kn2row.conv_forward(x, weight, bias, plan, out)
    if conv_nonoverlapping.is_faster(plan, x.dtype):
        return conv_nonoverlapping.conv_forward(x, weight, bias, plan, out)
    matrix = weight.reshape(groups, filters // groups, -1)
    columns_of = _make_columns_function(x, plan)
    if plan.by_filters:
        return _convolve_by_filters(matrix[0], columns_of, bias, plan, out)
    column_bias = None if bias is None else bias.reshape(groups, -1, 1)
    flat = out.reshape(plan.batch, groups, filters // groups, plan.places)
    width = plan.places // plan.out[0]

    def convolve_block(block):
        first, last, top, bottom = block
        columns = columns_of(block)
        if last - first == 1:
            rows = flat[first, :, :, top * width : bottom * width]
            if groups == 1:
                multiply_in_blocks(matrix[0], columns[0], rows[0])
            else:
                np.matmul(matrix, columns, out=rows)
        else:
            rows = _matmul_into_scratch(matrix, columns, 1)
        if bias is not None:
            rows += column_bias
        if finish is not None:
            finish.channels(rows)
        if last - first > 1:
            _from_rows(rows, out, plan, block)

    blocks = plan.blocks
    if finish is not None:
        finish.done = True
    _parallel_for(convolve_block, blocks, plan.channels * plan.taps * plan.places * plan.batch // len(blocks))
    return out


def _convolve_by_filters(matrix, columns_of, bias, plan, out):
    """Forward pass with the filters shared among the threads."""
    block = (0, plan.batch, 0, plan.out[0])
    columns = columns_of(block)[0]
    rows = (
        out.reshape(plan.filters, plan.places)
        if plan.batch == 1
        else get_scratch_buffer(1, (plan.filters, columns.shape[1]), out.dtype)
    )

    def convolve_filters(part):
        piece = multiply_in_blocks(matrix[part], columns, rows[part])
        if bias is not None:
            piece += bias[part, None]

    parts = [slice(0, plan.filters)] if plan.is_little else _cut_into_even_slices(plan.filters)
    _parallel_for(convolve_filters, parts, columns.size)
    if plan.batch > 1:
        _from_rows(rows, out, plan, block)
    return out


def _convolve_depthwise(x, weight, bias, plan, out):
    """Depthwise forward pass: a sum over the taps, image by image, instead of matrix products with a single row."""
    multiplier = weight.shape[0] // plan.groups
    shape = (plan.channels, multiplier, *plan.out)
    windows = _view_windows(_pad_input(x, plan), plan)
    taps = weight.reshape(plan.channels, multiplier, plan.taps, *(1,) * len(plan.size))
    result = out.reshape(plan.batch, *shape)
    places = list(product(*(range(k) for k in plan.kernel)))
    ones = (1,) * len(plan.size)

    def convolve_channels(start, stop):
        for i in range(plan.batch):
            target = result[i, start:stop]
            scratch = get_scratch_buffer(2, target.shape, x.dtype)
            for number, place in enumerate(places):
                window = windows[(i, slice(start, stop), *place)][:, None]
                np.multiply(window, taps[start:stop, :, number], out=scratch if number else target)
                if number:
                    target += scratch
            if bias is not None:
                target += bias.reshape(plan.channels, multiplier, *ones)[start:stop]

    run_blocks(convolve_channels, plan.channels, multiplier * plan.places * plan.taps)
    return out


def _conv_transpose(g, weight, bias, plan):
    """Transpose of `_conv_forward`: from output-shaped `g` to an input-shaped array.

    That is the gradient of the input, and the transposed convolution.
    """
    if plan.flat is not None:
        g, weight = _with_size(g, plan.flat.out), _with_size(weight, plan.flat.kernel)
        return _with_size(_conv_transpose(g, weight, bias, plan.flat), plan.size)
    for other in (conv_cpu_engine, conv_onednn):
        if (served := other.conv_transpose(g, weight, bias, plan)) is not None:
            return served
    filters, groups = plan.filters, plan.groups
    out = np.empty((plan.batch, plan.channels, *plan.size), g.dtype)
    if not out.size:
        return out
    if not g.size:
        out[...] = 0
        return _add_bias(out, bias)
    if conv_volumes.is_faster(plan, g.dtype) and not conv_nonoverlapping.is_faster_transposed(plan, g.dtype):
        return _add_bias(conv_volumes.conv_transpose(g, weight, plan, out, _conv_transpose), bias)
    if conv_depthwise.is_faster(plan, g.dtype):
        return _add_bias(conv_depthwise.conv_transpose(g, weight, plan, out), bias)
    if conv_nonoverlapping.is_faster_transposed(plan, g.dtype):
        return _add_bias(conv_nonoverlapping.conv_transpose(g, weight, plan, out), bias)
    reach = tuple(d * (k - 1) - p for d, k, p in zip(plan.dilation, plan.kernel, plan.padding, strict=True))
    if max(plan.stride) == 1 and min(reach) >= 0:
        back = get_conv_geometry(
            plan.batch, filters, plan.channels, plan.out, plan.kernel, plan.stride, reach, plan.dilation, groups
        )
        if (
            back.out == plan.size
            and winograd.is_faster(back, g.dtype)
            and winograd.conv_forward(g, weight, bias, back, out, turned=True)
        ):
            return out
    if (
        plan.pointwise
        or max(plan.stride) == 1
        and min(reach) >= 0
        and filters <= 2 * plan.channels
        and not plan.by_filters
    ):
        # With stride 1 this is a correlation with the turned-over kernel: gathering is faster than adding up.
        turned = weight[(slice(None), slice(None), *(slice(None, None, -1),) * len(plan.size))]
        turned = turned.reshape(groups, filters // groups, plan.channels // groups, *plan.kernel).swapaxes(1, 2)
        turned = turned.reshape(plan.channels, filters // groups, *plan.kernel)
        back = get_conv_geometry(
            plan.batch, filters, plan.channels, plan.out, plan.kernel, plan.stride, reach, plan.dilation, groups
        )
        if back.out == plan.size:
            return _conv_forward(g, turned, bias, back)
    matrix = weight.reshape(groups, filters // groups, -1).swapaxes(1, 2)
    few = plan.batch_inner and plan.images * MIN_BLOCKS > plan.batch
    if plan.by_filters or few and groups == 1 and plan.channels >= MIN_SHARED_CHANNELS:
        _fold_columns_by_channels(g, matrix[0], out, plan)
    else:
        first_images = list(range(0, plan.batch, plan.images))
        _parallel_for(
            lambda first: _fold_columns(g, matrix, out, plan, first),
            first_images,
            plan.channels * plan.taps * plan.places * plan.images,
        )
    return _add_bias(out, bias)


class _Col2Im:
    """Sum of a block's columns at their input positions (col2im), from which the gradient is read.

    Position y of the padded input is position y // stride of phase y % stride, so that every tap is added to one phase
    at adjacent positions. If that makes the matrix product little larger, the output's rows are zero-padded to the
    phases' width: then a tap's columns are one long run, which NumPy adds at full speed.
    """

    def __init__(self, plan, channels, count, dtype):
        self.plan, self.channels, self.count = plan, channels, count
        reach = [d * (k - 1) // s for d, k, s in zip(plan.dilation, plan.kernel, plan.stride, strict=True)]
        self.size = [
            max(o + r, (n - 1 + p) // s + 1)
            for o, r, n, p, s in zip(plan.out, reach, plan.size, plan.padding, plan.stride, strict=True)
        ]
        self.steps = [math.prod(self.size[i + 1 :]) for i in range(len(self.size))]
        self.width = self.size[1:] if 5 * self.steps[0] <= 6 * math.prod(plan.out[1:]) else list(plan.out[1:])
        self.inner = count if plan.batch_inner else 1
        self.slots: dict[tuple[int, ...], int] = {}
        self.taps = []
        for place in product(*(range(k) for k in plan.kernel)):
            at = [j * d for j, d in zip(place, plan.dilation, strict=True)]
            phase = tuple(y % s for y, s in zip(at, plan.stride, strict=True))
            offset = [y // s for y, s in zip(at, plan.stride, strict=True)]
            self.taps.append((self.slots.setdefault(phase, len(self.slots)), offset))
        tail = sum(r * step for r, step in zip(reach, self.steps, strict=True))
        lead = (channels,) if plan.batch_inner else (channels, count)
        self.memory = get_scratch_buffer(2, (len(self.slots), *lead, (math.prod(self.size) + tail) * self.inner), dtype)
        self.memory[...] = 0

    def add(self, columns, top, bottom):
        """Add columns (channels * taps, positions of the output rows from top to bottom)."""
        lead, rows = self.memory.shape[1:-1], bottom - top
        if self.width == self.size[1:]:
            length = rows * self.steps[0] * self.inner
            columns = columns.reshape(lead[0], self.plan.taps, *lead[1:], length)
            for number, (slot, offset) in enumerate(self.taps):
                start = (
                    top * self.steps[0] + sum(o * step for o, step in zip(offset, self.steps, strict=True))
                ) * self.inner
                target = self.memory[slot][..., start : start + length]
                np.add(target, columns[:, number], out=target)
            return
        last = (self.inner,) if self.plan.batch_inner else ()
        columns = columns.reshape(lead[0], self.plan.taps, *lead[1:], rows, *self.width, *last)
        images = self.memory[..., : math.prod(self.size) * self.inner].reshape(
            len(self.slots), *lead, *self.size, *last
        )
        for number, (slot, offset) in enumerate(self.taps):
            where = [slice(o, o + n) for o, n in zip(offset, (rows, *self.width), strict=True)]
            where[0] = slice(top + offset[0], top + offset[0] + rows)
            target = images[slot][(*(slice(None),) * len(lead), *where)]
            np.add(target, columns[:, number], out=target)

    def write(self, out):
        """Write the image without padding into `out` (images, channels, *size)."""
        plan = self.plan
        kept = self.memory[..., : math.prod(self.size) * self.inner]
        if plan.batch_inner:
            images = np.moveaxis(kept.reshape(len(self.slots), self.channels, *self.size, self.count), -1, 1)
        else:
            images = np.moveaxis(kept.reshape(len(self.slots), self.channels, self.count, *self.size), 2, 1)
        for phase in product(*(range(s) for s in plan.stride)):
            first = [(r - p) % s for r, p, s in zip(phase, plan.padding, plan.stride, strict=True)]
            where = tuple(slice(y, None, s) for y, s in zip(first, plan.stride, strict=True))
            target = out[(slice(None), slice(None), *where)]
            if phase not in self.slots:
                target[...] = 0
                continue
            begin = [(y + p) // s for y, p, s in zip(first, plan.padding, plan.stride, strict=True)]
            source = tuple(slice(b, b + n) for b, n in zip(begin, target.shape[2:], strict=True))
            target[...] = images[self.slots[phase]][(slice(None), slice(None), *source)]


def _dilate_grad_rows(g, plan, block, width):
    """Return a block of the output's gradient as rows (groups, filters of a group, positions).

    Its dimensions but the first are zero-padded.
    """
    first, last, top, bottom = block
    piece = g[first:last, :, top:bottom]
    filters, spatial = g.shape[1], len(plan.size)
    inside = (slice(None), *(slice(n) for n in plan.out[1:]))
    if plan.batch_inner:
        rows = get_scratch_buffer(1, (filters, bottom - top, *width, last - first), g.dtype)
        source = piece.transpose(1, *range(2, 2 + spatial), 0)
        where = (slice(None), *inside)
    else:
        rows = get_scratch_buffer(1, (filters, last - first, bottom - top, *width), g.dtype)
        source = piece.transpose(1, 0, *range(2, 2 + spatial))
        where = (slice(None), slice(None), *inside)
    if tuple(width) != tuple(plan.out[1:]):
        rows[...] = 0
    rows[where] = source
    return rows.reshape(plan.groups, filters // plan.groups, -1)


def _fold_columns(g, matrix, out, plan, first):
    """Compute the input's gradient of one block: its columns added up tap by tap."""
    last = min(first + plan.images, plan.batch)
    phases = _Col2Im(plan, plan.channels, last - first, g.dtype)
    for top in range(0, plan.out[0], plan.rows):
        bottom = min(top + plan.rows, plan.out[0])
        phases.add(
            _matmul_into_scratch(matrix, _dilate_grad_rows(g, plan, (first, last, top, bottom), phases.width), 0),
            top,
            bottom,
        )
    phases.write(out[first:last])


def _fold_columns_by_channels(g, matrix, out, plan):
    """The same for the full batch, with the channels shared among the threads."""
    width = _Col2Im(plan, 0, plan.batch, g.dtype).width
    rows = _dilate_grad_rows(g, plan, (0, plan.batch, 0, plan.out[0]), width)[0]

    def fold_channels(part):
        columns = _matmul_into_scratch(matrix[part.start * plan.taps : part.stop * plan.taps], rows, 0)
        phases = _Col2Im(plan, part.stop - part.start, plan.batch, g.dtype)
        phases.add(columns, 0, plan.out[0])
        phases.write(out[:, part])

    _parallel_for(fold_channels, _cut_into_even_slices(plan.channels), rows.size * plan.taps)


def _weight_gradient(g, x, shape, plan):
    """Return the gradient of the weight: the sum over blocks of g @ columns^T."""
    if plan.flat is not None:
        g, x = _with_size(g, plan.flat.out), _with_size(x, plan.flat.size)
        return _weight_gradient(g, x, (*shape[:2], *plan.flat.kernel), plan.flat).reshape(shape)
    for other in (conv_cpu_engine, conv_onednn):
        if (served := other.weight_gradient(g, x, plan)) is not None:
            return served
    groups, filters = plan.groups, plan.filters
    if not g.size or not math.prod(shape):
        return np.zeros(shape, x.dtype)
    gradient = np.empty(shape, x.dtype)
    if conv_volumes.is_faster(plan, x.dtype) and not conv_nonoverlapping.is_faster(plan, x.dtype):
        return conv_volumes.weight_gradient(g, x, gradient, plan, _weight_gradient)
    if conv_depthwise.is_faster(plan, x.dtype):
        return conv_depthwise.weight_gradient(g, x, gradient, plan)
    if _sums_over_taps(plan):
        return _compute_depthwise_weight_gradient(g, x, gradient, plan)
    if winograd.is_faster(plan, x.dtype) and winograd.weight_gradient(g, x, gradient, plan):
        return gradient
    if conv_kn2row.is_faster(plan, x.dtype):
        return conv_kn2row.weight_gradient(g, x, gradient, plan)
    if conv_nonoverlapping.is_faster(plan, x.dtype):
        return conv_nonoverlapping.weight_gradient(g, x, gradient, plan)
    result = gradient.reshape(groups, filters // groups, -1)
    columns_of = _make_columns_function(x, plan)
    if plan.by_filters:
        block = (0, plan.batch, 0, plan.out[0])
        columns, rows = columns_of(block)[0], _to_rows(g, plan, block)[0]
        _parallel_for(
            lambda part: np.matmul(rows[part], columns.T, out=result[0, part]),
            _cut_into_even_slices(filters),
            columns.size,
        )
        return gradient

    def sum_blocks(blocks):
        total = None
        for block in blocks:
            columns, rows = columns_of(block), _to_rows(g, plan, block)
            if total is None:
                total = np.matmul(rows, columns.swapaxes(1, 2))
            else:
                total += _matmul_into_scratch(rows, columns.swapaxes(1, 2), 2)
        return total

    result[...] = parallel_sum(sum_blocks, plan.blocks, gradient.size)
    return gradient


def _compute_depthwise_weight_gradient(g, x, gradient, plan):
    multiplier = gradient.shape[0] // plan.groups
    windows = _view_windows(_pad_input(x, plan), plan)
    grad = g.reshape(plan.batch, plan.channels, multiplier, *plan.out)
    result = gradient.reshape(plan.channels, multiplier, plan.taps)
    axes = "xyz"[: len(plan.size)]
    for number, place in enumerate(product(*(range(k) for k in plan.kernel))):
        window = windows[(slice(None), slice(None), *place)]
        result[:, :, number] = np.einsum(f"bcm{axes},bc{axes}->cm", grad, window)
    return gradient


# -- the records' kernels --------------------------------------------------------------------------


def _expand_to_spatial(value, count):
    if isinstance(value, int):
        return (value,) * count
    value = tuple(value)
    return value * count if len(value) == 1 else value


def _normalize_geometry(input, weight, stride, padding, dilation):
    """Return the geometry as tuples. The record's shape function replaces the message of errors raised here."""
    count = input.ndim - 2
    stride, padding, dilation = (_expand_to_spatial(v, count) for v in (stride, padding, dilation))
    if (
        weight.ndim != input.ndim
        or min(stride) < 1
        or min(padding) < 0
        or min(dilation) < 1
        or input.dtype != weight.dtype
        or 0 in weight.shape[2:]
    ):
        raise RuntimeError("convolution: arguments do not fit each other")
    return stride, padding, dilation


def _cast_half_to_float(array):
    """Convert half precision to float32."""
    if array is None:
        return None
    if is_complex32(array.dtype):
        return array.astype(np.complex64)
    if array.dtype.itemsize <= 2 and array.dtype.kind in "fV":
        array = cast_half(array, np.dtype("f4"))
    return array


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    return conv_with_epilogue(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def conv_with_epilogue(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, finish=None):
    """`convolution` with an optional `finish` applied to the result, whose dtype it has."""
    stride, padding, dilation = _normalize_geometry(input, weight, stride, padding, dilation)
    kernel = weight.shape[2:]
    if bias is not None and (
        bias.ndim != 1
        or bias.dtype != input.dtype
        or bias.shape[0] != (weight.shape[1] * groups if transposed else weight.shape[0])
    ):
        raise RuntimeError("convolution: the bias does not fit")
    dtype = input.dtype
    x, w, b = _cast_half_to_float(input), _cast_half_to_float(weight), _cast_half_to_float(bias)
    if finish is not None and finish.scale is not None:  # the bias is in the shift
        b = None
    if transposed:
        extra = _expand_to_spatial(output_padding, input.ndim - 2)
        if input.shape[1] != weight.shape[0] or min(extra) < 0:
            raise RuntimeError("convolution: channels do not fit")
        size = _conv_transpose_size(input.shape[2:], kernel, stride, padding, dilation, extra)
        plan = get_conv_geometry(
            x.shape[0], weight.shape[1] * groups, weight.shape[0], size, kernel, stride, padding, dilation, groups
        )
        with single_threaded:
            out = _conv_transpose(_pad_to_cover(x, plan), w, b, plan)
        if finish is not None:
            finish.apply_to_images(out)
    else:
        if input.shape[1] != weight.shape[1] * groups or weight.shape[0] < groups or weight.shape[0] % groups:
            raise RuntimeError("convolution: channels do not fit")
        plan = get_conv_geometry(
            x.shape[0], x.shape[1], weight.shape[0], x.shape[2:], kernel, stride, padding, dilation, groups
        )
        with single_threaded:
            out = _conv_forward(x, w, b, plan, finish)
    return _cast_result(out, dtype)


def _cast_result(out, dtype):
    """Round a result to half precision, if that is the operands' dtype."""
    if out is None or out.dtype == dtype:
        return out
    return cast_half(out, dtype) if out.dtype == np.float32 else out.astype(dtype)


def _conv_transpose_size(size, kernel, stride, padding, dilation, extra):
    out = tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, d, e in zip(size, kernel, stride, padding, dilation, extra, strict=True)
    )
    if min(out) <= 0:
        raise RuntimeError("convolution: output size is too small")
    return out


def _pad_to_cover(g, plan):
    """Zero-pad `g` at the end if the output size admits a window more than `g` has positions (a large
    output_padding).
    """
    if g.shape[2:] == plan.out:
        return g
    larger = np.zeros((*g.shape[:2], *plan.out), g.dtype)
    larger[(..., *(slice(n) for n in g.shape[2:]))] = g
    return larger


def _conj_if_complex(array):
    return array.conj() if array.dtype.kind == "c" else array


def _convolution_backward(
    grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs
):
    with single_threaded:
        return _compute_gradients(grad_output, input, weight, stride, padding, dilation, transposed, groups, needs)


def _compute_bias_gradient(g):
    """Sum over all dimensions but the channels."""
    if (served := conv_cpu_engine.bias_gradient(g)) is not None:
        return served
    length = math.prod(g.shape[2:])
    if g.dtype.kind != "f" or not g.flags.c_contiguous or g.size < _PIECE or length < SHORT_ROW:
        return g.sum(axis=(0, *range(2, g.ndim)), dtype=g.dtype)
    rows = g.reshape(-1, length)
    sums = np.empty(rows.shape[:1], g.dtype)

    def sum_rows(start, stop):
        sums[start:stop] = sum_along_axis(rows[start:stop])[:, 0]

    run_blocks(sum_rows, *rows.shape)
    return np.add.reduce(sums.reshape(g.shape[:2]), 0)


def _compute_gradients(grad_output, input, weight, stride, padding, dilation, transposed, groups, needs):
    stride, padding, dilation = _normalize_geometry(input, weight, stride, padding, dilation)
    kernel = weight.shape[2:]
    dtype = input.dtype
    g = _cast_half_to_float(grad_output)
    x = _conj_if_complex(_cast_half_to_float(input)) if needs[1] else None
    w = _conj_if_complex(_cast_half_to_float(weight)) if needs[0] else None
    grad_input = grad_weight = grad_bias = None
    if transposed:
        plan = get_conv_geometry(
            g.shape[0], g.shape[1], weight.shape[0], g.shape[2:], kernel, stride, padding, dilation, groups
        )
        if needs[0]:
            grad_input = _conv_forward(g, w, None, plan)
            if grad_input.shape != input.shape:
                grad_input = np.ascontiguousarray(grad_input[(..., *(slice(n) for n in input.shape[2:]))])
        if needs[1]:
            grad_weight = _weight_gradient(_pad_to_cover(x, plan), g, weight.shape, plan)
    else:
        plan = get_conv_geometry(
            g.shape[0], input.shape[1], weight.shape[0], input.shape[2:], kernel, stride, padding, dilation, groups
        )
        if needs[0]:
            grad_input = _conv_transpose(g, w, None, plan)
        if needs[1]:
            grad_weight = _weight_gradient(g, x, weight.shape, plan)
    if needs[2]:
        grad_bias = _compute_bias_gradient(g)
    return tuple(_cast_result(a, dtype) for a in (grad_input, grad_weight, grad_bias))
