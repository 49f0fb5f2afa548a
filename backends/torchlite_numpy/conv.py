"""Convolution on the CPU: windows gathered block by block into a reused buffer, then one BLAS call a block.

Two layouts of a block are used. Per image, the columns are (channel, kernel place, image, output place): the result is written straight into the output. Where
the images are small, their rows are too short to copy fast, so the whole batch becomes the innermost dimension: (channel, kernel place, output place, image).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .blocks import buffer, run

# Elements of a block of columns: 4 MiB of float32, which the second-level caches of two cores hold.
BLOCK = 1 << 20
# Elements that one thread gathers at a time.
_PIECE = 1 << 17
# Output rows shorter than this are gathered with the batch innermost.
_SHORT_ROW = 12


class _Plan:
    """Sizes of one convolution from `channels` to `filters`, and how it is cut into blocks. `size` is the input's spatial size, `out` the output's."""

    def __init__(self, batch, channels, size, kernel, stride, padding, dilation, groups):
        self.batch, self.channels, self.size, self.kernel = batch, channels, size, kernel
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True))
        if min(self.out, default=1) <= 0 or groups < 1 or channels % groups:
            raise RuntimeError("the kernel does not fit the input")
        self.places = math.prod(self.out)
        self.taps = math.prod(kernel)
        self.padded = tuple(n + 2 * p for n, p in zip(size, padding, strict=True))
        self.pointwise = self.taps == 1 and max(stride) == 1 and max(padding) == 0
        per_image = max(1, channels * self.taps * self.places)
        self.images = min(batch, max(1, BLOCK // per_image))
        self.batch_inner = self.out[-1] < _SHORT_ROW and batch >= 4 and not self.pointwise
        # Rows of output a block holds, where one image alone is too much.
        self.rows = self.out[0] if self.images > 1 else max(1, min(self.out[0], BLOCK // max(1, per_image // self.out[0])))

    def blocks(self):
        """(first image, one past the last, first output row, one past the last)."""
        for i in range(0, self.batch, self.images):
            for row in range(0, self.out[0], self.rows):
                yield i, min(i + self.images, self.batch), row, min(row + self.rows, self.out[0])


def _padded(x, plan):
    """The input with its zeros around it, as a view (batch, channel, *size) of memory in the plan's layout."""
    spatial = len(plan.size)
    if plan.batch_inner:
        order = (1, *range(2, 2 + spatial), 0)
        out = np.zeros if max(plan.padding) else np.empty
        memory = out((plan.channels, *plan.padded, plan.batch), x.dtype)
        memory[(slice(None), *(slice(p, p + n) for p, n in zip(plan.padding, plan.size, strict=True)))] = x.transpose(order)
        return np.moveaxis(memory, -1, 0)
    if not max(plan.padding):
        return x
    memory = np.zeros((plan.batch, plan.channels, *plan.padded), x.dtype)
    memory[(slice(None), slice(None), *(slice(p, p + n) for p, n in zip(plan.padding, plan.size, strict=True)))] = x
    return memory


def _windows(padded, plan):
    """Every window of the padded input: a view (batch, channel, *kernel, *out)."""
    steps = padded.strides[2:]
    taps = tuple(step * d for step, d in zip(steps, plan.dilation, strict=True))
    moves = tuple(step * s for step, s in zip(steps, plan.stride, strict=True))
    return as_strided(padded, (*padded.shape[:2], *plan.kernel, *plan.out), (*padded.strides[:2], *taps, *moves), writeable=False)


def _gather(windows, plan, block):
    """The columns of a block, (groups, channels of a group * taps, images * places)."""
    first, last, top, bottom = block
    spatial = len(plan.size)
    piece = windows[(slice(first, last), *(slice(None),) * (spatial + 1), slice(top, bottom))]
    if plan.batch_inner:
        source = np.moveaxis(piece, 0, -1)
    else:
        source = piece.transpose(*range(1, spatial + 2), 0, *range(spatial + 2, 2 * spatial + 2))
    columns = buffer(0, source.shape, source.dtype)
    run(lambda a, b: np.copyto(columns[a:b], source[a:b]), plan.channels, columns.size // max(plan.channels, 1), _PIECE)
    return columns.reshape(plan.groups, plan.channels // plan.groups * plan.taps, -1)


def _to_rows(g, plan, block):
    """A block of an output-shaped array as (groups, filters of a group, images * places) in the order of the columns."""
    first, last, top, bottom = block
    filters = g.shape[1]
    piece = g[first:last, :, top:bottom]
    if last - first == 1:
        return piece.reshape(plan.groups, filters // plan.groups, -1)
    spatial = len(plan.size)
    order = (1, *range(2, 2 + spatial), 0) if plan.batch_inner else (1, 0, *range(2, 2 + spatial))
    source = piece.transpose(order)
    rows = buffer(1, source.shape, g.dtype)
    np.copyto(rows, source)
    return rows.reshape(plan.groups, filters // plan.groups, -1)


def _from_rows(rows, out, plan, block):
    """Write (filters, images * places) into a block of an output-shaped array."""
    first, last, top, bottom = block
    filters = out.shape[1]
    inner = (bottom - top, *plan.out[1:])
    if plan.batch_inner:
        out[first:last, :, top:bottom] = np.moveaxis(rows.reshape(filters, *inner, last - first), -1, 0)
    else:
        out[first:last, :, top:bottom] = np.moveaxis(rows.reshape(filters, last - first, *inner), 1, 0)


def _product(a, b, slot):
    """a @ b in scratch memory."""
    out = buffer(slot, (*a.shape[:-1], b.shape[-1]), a.dtype)
    return np.matmul(a, b, out=out)


def _correlate(x, weight, bias, plan):
    """The forward pass: weight (filters, channels of a group, *kernel)."""
    filters = weight.shape[0]
    groups, spatial = plan.groups, len(plan.size)
    out = np.empty((plan.batch, filters, *plan.out), x.dtype)
    if not out.size:
        return out
    if not plan.channels:
        out[...] = 0
        return _add_bias(out, bias)
    if plan.channels == groups:
        return _depthwise(x, weight, bias, plan, out)
    matrix = weight.reshape(groups, filters // groups, -1)
    if plan.pointwise and (plan.places >= 64 or plan.batch == 1):
        source = x.reshape(plan.batch, groups, plan.channels // groups, plan.places)
        np.matmul(matrix, source, out=out.reshape(plan.batch, groups, filters // groups, plan.places))
        if bias is not None:
            out += bias.reshape(-1, *(1,) * spatial)
        return out
    windows = _windows(_padded(x, plan), plan)
    column_bias = None if bias is None else bias.reshape(groups, -1, 1)
    for block in plan.blocks():
        columns = _gather(windows, plan, block)
        first, last, top, bottom = block
        if last - first == 1:
            target = out[first].reshape(groups, filters // groups, -1, plan.places // plan.out[0])[:, :, top:bottom]
            if bottom - top == plan.out[0]:
                target = target.reshape(groups, filters // groups, -1)
                np.matmul(matrix, columns, out=target)
                if bias is not None:
                    target += column_bias
                continue
        rows = _product(matrix, columns, 1)
        if bias is not None:
            rows += column_bias
        _from_rows(rows, out, plan, block)
    return out


def _depthwise(x, weight, bias, plan, out):
    """One input channel a group: a sum over the taps, image by image, instead of matrix products with a single row."""
    multiplier = weight.shape[0] // plan.groups
    shape = (plan.channels, multiplier, *plan.out)
    windows = _windows(_padded(x, plan), plan)
    taps = weight.reshape(plan.channels, multiplier, plan.taps, *(1,) * len(plan.size))
    result = out.reshape(plan.batch, *shape)
    places = list(product(*(range(k) for k in plan.kernel)))
    ones = (1,) * len(plan.size)

    def body(start, stop):
        for i in range(plan.batch):
            target = result[i, start:stop]
            scratch = buffer(2, target.shape, x.dtype)
            for number, place in enumerate(places):
                window = windows[(i, slice(start, stop), *place)][:, None]
                np.multiply(window, taps[start:stop, :, number], out=scratch if number else target)
                if number:
                    target += scratch
            if bias is not None:
                target += bias.reshape(plan.channels, multiplier, *ones)[start:stop]

    run(body, plan.channels, multiplier * plan.places * plan.taps)
    return out


def _spread(g, weight, bias, plan):
    """The transpose of `_correlate`: from output-shaped `g` to an input-shaped array (the gradient of the input, and the transposed convolution)."""
    filters, groups = weight.shape[0], plan.groups
    out = np.empty((plan.batch, plan.channels, *plan.size), g.dtype)
    if not out.size:
        return out
    if not g.size:
        out[...] = 0
        return _add_bias(out, bias)
    matrix = weight.reshape(groups, filters // groups, -1).swapaxes(1, 2)
    if plan.pointwise and (plan.places >= 64 or plan.batch == 1):
        source = g.reshape(plan.batch, groups, filters // groups, plan.places)
        np.matmul(matrix, source, out=out.reshape(plan.batch, groups, plan.channels // groups, plan.places))
        return _add_bias(out, bias)
    reach = tuple(d * (k - 1) - p for d, k, p in zip(plan.dilation, plan.kernel, plan.padding, strict=True))
    if max(plan.stride) == 1 and min(reach) >= 0 and filters <= 4 * plan.channels:
        # With stride 1 this is a correlation with the turned-over kernel: gathering is faster than adding up.
        turned = weight[(slice(None), slice(None), *(slice(None, None, -1),) * len(plan.size))]
        turned = turned.reshape(groups, filters // groups, plan.channels // groups, *plan.kernel).swapaxes(1, 2)
        turned = turned.reshape(plan.channels, filters // groups, *plan.kernel)
        back = _Plan(plan.batch, filters, plan.out, plan.kernel, plan.stride, reach, plan.dilation, groups)
        if back.out == plan.size:
            return _correlate(g, turned, bias, back)
    _add_up(g, matrix, out, plan)
    return _add_bias(out, bias)


def _add_bias(out, bias):
    if bias is not None:
        out += bias.reshape(-1, *(1,) * (out.ndim - 2))
    return out


def _add_up(g, matrix, out, plan):
    """Columns of the gradient, added tap by tap into a padded image, whose middle is the result."""
    spatial = len(plan.size)
    inside = tuple(slice(p, p + n) for p, n in zip(plan.padding, plan.size, strict=True))
    places = list(product(*(range(k) for k in plan.kernel)))
    for first in range(0, plan.batch, plan.images):
        last = min(first + plan.images, plan.batch)
        count = last - first
        if plan.batch_inner:
            padded = buffer(2, (plan.channels, *plan.padded, count), g.dtype)
            image = np.moveaxis(padded, -1, 1)
        else:
            padded = image = buffer(2, (plan.channels, count, *plan.padded), g.dtype)
        padded[...] = 0
        for top in range(0, plan.out[0], plan.rows):
            bottom = min(top + plan.rows, plan.out[0])
            rows = (bottom - top, *plan.out[1:])
            columns = _product(matrix, _to_rows(g, plan, (first, last, top, bottom)), 0)
            if plan.batch_inner:
                columns = np.moveaxis(columns.reshape(plan.channels, plan.taps, *rows, count), -1, 2)
            else:
                columns = columns.reshape(plan.channels, plan.taps, count, *rows)

            def add(start, stop, image=image, columns=columns, top=top, bottom=bottom):
                for number, place in enumerate(places):
                    where = [slice(j * d, j * d + (n - 1) * s + 1, s)
                             for j, d, n, s in zip(place, plan.dilation, plan.out, plan.stride, strict=True)]
                    begin = place[0] * plan.dilation[0] + top * plan.stride[0]
                    where[0] = slice(begin, begin + (bottom - top - 1) * plan.stride[0] + 1, plan.stride[0])
                    image[(slice(start, stop), slice(None), *where)] += columns[start:stop, number]

            run(add, plan.channels, columns.size // plan.channels, _PIECE)
        out[first:last] = np.moveaxis(image[(slice(None), slice(None), *inside)], 1, 0) if spatial else image


def _weight_gradient(g, x, shape, plan):
    """The gradient of the weight: the sum over blocks of g @ columns^T."""
    filters, groups = shape[0], plan.groups
    if not g.size or not math.prod(shape):
        return np.zeros(shape, x.dtype)
    gradient = np.empty(shape, x.dtype)
    if plan.channels == groups:
        return _depthwise_weight_gradient(g, x, gradient, plan)
    result = gradient.reshape(groups, filters // groups, -1)
    windows = None if plan.pointwise else _windows(_padded(x, plan), plan)
    started = False
    for block in plan.blocks():
        if plan.pointwise:
            columns = _pointwise_columns(x, plan, block)
        else:
            columns = _gather(windows, plan, block)
        rows = _to_rows(g, plan, block)
        if started:
            result += _product(rows, columns.swapaxes(1, 2), 2)
        else:
            np.matmul(rows, columns.swapaxes(1, 2), out=result)
            started = True
    return gradient


def _pointwise_columns(x, plan, block):
    first, last, top, bottom = block
    source = np.moveaxis(x[first:last, :, top:bottom], 1, 0)
    if last - first > 1:
        columns = buffer(0, source.shape, x.dtype)
        np.copyto(columns, source)
        source = columns
    return source.reshape(plan.groups, plan.channels // plan.groups, -1)


def _depthwise_weight_gradient(g, x, gradient, plan):
    multiplier = gradient.shape[0] // plan.groups
    windows = _windows(_padded(x, plan), plan)
    grad = g.reshape(plan.batch, plan.channels, multiplier, *plan.out)
    result = gradient.reshape(plan.channels, multiplier, plan.taps)
    axes = "xyz"[: len(plan.size)]
    for number, place in enumerate(product(*(range(k) for k in plan.kernel))):
        window = windows[(slice(None), slice(None), *place)]
        result[:, :, number] = np.einsum(f"bcm{axes},bc{axes}->cm", grad, window)
    return gradient


# -- the records' kernels -------------------------------------------------------------------------------------------------------------------------------


def _spatial(value, count):
    if isinstance(value, int):
        return (value,) * count
    value = tuple(value)
    return value * count if len(value) == 1 else value


def _checked(input, weight, stride, padding, dilation):
    """The geometry as tuples. Any error raised here is worded by the record's shape rule."""
    count = input.ndim - 2
    stride, padding, dilation = (_spatial(v, count) for v in (stride, padding, dilation))
    if weight.ndim != input.ndim or min(stride) < 1 or min(padding) < 0 or min(dilation) < 1 or input.dtype != weight.dtype:
        raise RuntimeError("convolution: arguments do not fit each other")
    return stride, padding, dilation


def _working(array):
    """Half precision is computed in single."""
    if array is None:
        return None
    if array.dtype.itemsize <= 2 and array.dtype.kind in "fV":
        array = array.astype(np.float32)
    return array


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    stride, padding, dilation = _checked(input, weight, stride, padding, dilation)
    kernel = weight.shape[2:]
    if bias is not None and (bias.ndim != 1 or bias.dtype != input.dtype or bias.shape[0] != (weight.shape[1] * groups if transposed else weight.shape[0])):
        raise RuntimeError("convolution: the bias does not fit")
    dtype = input.dtype
    x, w, b = _working(input), _working(weight), _working(bias)
    if transposed:
        extra = _spatial(output_padding, input.ndim - 2)
        if input.shape[1] != weight.shape[0] or min(extra) < 0:
            raise RuntimeError("convolution: channels do not fit")
        size = _transposed_size(input.shape[2:], kernel, stride, padding, dilation, extra)
        plan = _Plan(x.shape[0], weight.shape[1] * groups, size, kernel, stride, padding, dilation, groups)
        out = _spread(_covering(x, plan), w, b, plan)
    else:
        if input.shape[1] != weight.shape[1] * groups or weight.shape[0] < groups or weight.shape[0] % groups:
            raise RuntimeError("convolution: channels do not fit")
        plan = _Plan(x.shape[0], x.shape[1], x.shape[2:], kernel, stride, padding, dilation, groups)
        out = _correlate(x, w, b, plan)
    return out if out.dtype == dtype else out.astype(dtype)


def _transposed_size(size, kernel, stride, padding, dilation, extra):
    out = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in zip(size, kernel, stride, padding, dilation, extra, strict=True))
    if min(out) <= 0:
        raise RuntimeError("convolution: output size is too small")
    return out


def _covering(g, plan):
    """`g` with zeros after it, where the size of the output would let a window more fit than `g` has places (a large output_padding)."""
    if g.shape[2:] == plan.out:
        return g
    larger = np.zeros((*g.shape[:2], *plan.out), g.dtype)
    larger[(..., *(slice(n) for n in g.shape[2:]))] = g
    return larger


def _conjugated(array):
    return array.conj() if array.dtype.kind == "c" else array


def _convolution_backward(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs):
    stride, padding, dilation = _checked(input, weight, stride, padding, dilation)
    kernel = weight.shape[2:]
    dtype = input.dtype
    g = _working(grad_output)
    x = _conjugated(_working(input)) if needs[1] else None
    w = _conjugated(_working(weight)) if needs[0] else None
    grad_input = grad_weight = grad_bias = None
    if transposed:
        plan = _Plan(g.shape[0], g.shape[1], g.shape[2:], kernel, stride, padding, dilation, groups)
        if needs[0]:
            grad_input = _correlate(g, w, None, plan)
            if grad_input.shape != input.shape:
                grad_input = np.ascontiguousarray(grad_input[(..., *(slice(n) for n in input.shape[2:]))])
        if needs[1]:
            grad_weight = _weight_gradient(_covering(x, plan), g, weight.shape, plan)
    else:
        plan = _Plan(g.shape[0], input.shape[1], input.shape[2:], kernel, stride, padding, dilation, groups)
        if needs[0]:
            grad_input = _spread(g, w, None, plan)
        if needs[1]:
            grad_weight = _weight_gradient(g, x, weight.shape, plan)
    if needs[2]:
        grad_bias = g.sum(axis=(0, *range(2, g.ndim)), dtype=g.dtype)
    return tuple(a if a is None or a.dtype == dtype else a.astype(dtype) for a in (grad_input, grad_weight, grad_bias))
