"""3x3 convolutions with stride 1 by Winograd's minimal filtering F(2x2, 3x3).

Four outputs take 16 multiplications per channel instead of 36 (Lavin and Gray, 2015, arXiv:1509.09308). Tiles of 4x4
inputs, two apart, and the weights are transformed by sums and halves to a domain of 16 positions. There a convolution
is one matrix product per position, and the sum over channels is transformed back. The gradient of the weight is
computed the same way, with tiles of 2x2 gradients. Inside, arrays have positions outermost and (image, channel)
innermost. The transforms of a block's rows, and then of its columns, are one product each with a matrix of ones and
zeros, over long runs whatever the images' size (half the time of NumPy's sums, and a fifth of the calls, between which
threads contend for the GIL).

Rounding: the matrix products sum fewer terms than direct convolution, the transforms add some. Relative to the exact
result the error is that of direct convolution, or up to twice it (`tests/backends/numpy/test_conv.py`). Infinities and
NaN spread over a tile here; the caller then uses direct convolution.
"""

from __future__ import annotations

import numpy as np

from .blas import get_gemm_function, get_transposing_copy
from .cache_blocking import get_scratch_buffer, parallel_for, parallel_sum
from .deterministic_gemm import READS_SLOWLY

# Transform of weights and, transposed, of the weight gradient back. Positions are numbered (row, column).
_G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_WEIGHT_TRANSFORM = np.einsum("ai,bj->abij", _G, _G).reshape(16, 9)
# Transform of gradient tiles but for a sign in their last row and column.
_SIGN = np.array([1, 1, 1, -1])
_WEIGHT_GRAD_TRANSFORM = _WEIGHT_TRANSFORM * np.outer(_SIGN, _SIGN).reshape(16, 1)
# Row or column transforms of inputs, and of gradients but for that sign. And inverse transforms of outputs.
_INPUT_TRANSFORM = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
_GRAD_TRANSFORM = np.array([[1, 0], [1, 1], [1, -1], [0, 1]])
_OUTPUT_TRANSFORM = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])

# Cost of transforming an input or output, and a weight, in multiplications of a matrix product (45 per ns on one thread
# of Zen 4 with AVX-512). On two threads, forward and both gradients, 128 channels of 16 images of 16x16 take 0.8 of
# direct convolution's time and 256 of 8x8 take 0.75; 64 channels would take 1.7, 256 of 4 images of 14x14 1.0.
# Intel's processors transform slower: 96 channels of 52x52 take 1.9 of the time of direct convolution on one thread,
# 128 channels 1.0.
_TRANSFORM, _WEIGHT = 220 if READS_SLOWLY else 150, 600
# Minimum outputs of a channel: with fewer the weights' transforms, which threads share badly, cost as much as is gained
# (512 channels of 16 images of 4x4 1.2 of direct convolution's time on two threads, 128 of one image of 28x28 2.3).
_PLACES = 1024
# Rows (tile, image) of a block's products, if one thread computes the block, and the maximum elements in the domain of
# all blocks for which the 16 products are shared instead.
_ROWS, _FEW = 256, 1 << 22
# Minimum elements of a run (image, channel): NumPy's loops cost 60 to 80 ns each in addition.
_RUN = 1024
# Elements in the domain that are transformed at a time for a weight gradient.
_CHUNK = 1 << 21
# Parts of a block's rows, each transformed by one thread.
_SHARES = 4
# Maximum elements of the gradient's domain for which every share of the work has a partial sum.
_SUM = 1 << 18


def is_faster(plan, dtype) -> bool:
    """True if this algorithm is faster."""
    if (
        plan.kernel != (3, 3)
        or plan.groups != 1
        or max(plan.stride + plan.dilation) != 1
        or get_transposing_copy(dtype) is None
    ):
        return False
    places, matrix = plan.batch * plan.places, plan.channels * plan.filters
    if places < _PLACES:
        return False
    covered = 4 * plan.batch * -(-plan.out[0] // 2) * -(-plan.out[1] // 2)
    transforms = _TRANSFORM * covered * (plan.channels + plan.filters) + _WEIGHT * matrix
    return 4 * covered * matrix + transforms < 8 * places * matrix


class _Tiles:
    """Tiles of a convolution with `batch` images, in blocks of at most `limit` tiles.

    A block has few images, or as many as leave `tall` rows of tiles.
    """

    def __init__(self, plan, limit, tall=0):
        self.plan = plan
        self.high, self.wide = -(-plan.out[0] // 2), -(-plan.out[1] // 2)
        # Few images at a time if channels alone make long runs; full rows of tiles.
        images = max(1, -(-_RUN // min(plan.channels, plan.filters)), limit // (self.wide * tall) if tall else 0)
        images = min(plan.batch, images, max(1, limit // self.wide))
        self.images = -(-plan.batch // -(-plan.batch // images))
        rows = max(1, min(self.high, limit // (self.wide * self.images)))
        self.rows = -(-self.high // -(-self.high // rows))

    def blocks(self):
        """Return (first image, one past the last, first row of tiles, one past the last)."""
        plan = self.plan
        return [
            (i, min(i + self.images, plan.batch), top, min(top + self.rows, self.high))
            for i in range(0, plan.batch, self.images)
            for top in range(0, self.high, self.rows)
        ]


def _data_address(array):
    return array.__array_interface__["data"][0]


def _pad_input_rows(x, plan, block):
    """Return the zero-padded input rows of a block, (rows, width, images, channels)."""
    first, last, top, bottom = block
    images, channels = last - first, x.shape[1]
    (height, width), above = plan.size, plan.padding[0]
    lines = get_scratch_buffer(0, (2 * (bottom - top) + 2, width, images, channels), x.dtype)
    begin, end = max(2 * top - above, 0), min(2 * bottom + 2 - above, height)
    at = begin + above - 2 * top
    lines[:at] = 0
    lines[at + max(end - begin, 0) :] = 0
    if end > begin:
        # The channels of all images are rows of one matrix. A call for each image would have the threads wait for each
        # other's Python.
        source, target = _data_address(x[first, :, begin:]), _data_address(lines[at:])
        get_transposing_copy(x.dtype)(
            images * channels, (end - begin) * width, source, height * width, target, images * channels
        )
    return lines


def _view_overlapping_runs(array, count, size):
    """View runs of `size` along the second last axis, two apart: (..., count, size, n)."""
    *lead, row, last = array.strides
    shape = (*array.shape[:-2], count, size, array.shape[-1])
    return np.ndarray(shape, array.dtype, array, 0, (*lead, 2 * row, row, last))


def _transform_axis(matrix, array, count, out):
    """Multiply runs of rows (..., positions, n) of `array`, two apart, by the matrix: (matrix rows, ..., count, n).

    NumPy computes a product with few rows in one call, where sums take one each; two threads would contend for the GIL
    between these.
    """
    matrix = matrix.astype(array.dtype)
    np.matmul(
        matrix, _view_overlapping_runs(array, count, matrix.shape[1]), out=out.transpose(*range(1, out.ndim - 1), 0, -1)
    )


def _merge_channels(array):
    """View (..., images, channels) as (..., images * channels)."""
    *lead, images, channels = array.shape
    return array.reshape(*lead, images * channels)


def _transform_input_rows(lines, left, wide):
    """Transform a block's input rows, with zeros left and right: (4, rows of tiles, columns, images * channels)."""
    height, width = lines.shape[:2]
    rows, run = height // 2 - 1, lines.shape[2] * lines.shape[3]
    half = get_scratch_buffer(1, (4, rows, 2 * wide + 2, run), lines.dtype)
    half[:, :, :left] = 0
    half[:, :, left + width :] = 0
    inside = half.reshape(4, rows, -1)[:, :, left * run : (left + width) * run]
    _transform_axis(_INPUT_TRANSFORM, lines.reshape(height, -1), rows, inside)
    return half


class _OutputTiles:
    """A block's outputs, accumulated from the products of the domain's rows."""

    def __init__(self, plan, block, filters, dtype):
        self.plan, self.block, self.wide = plan, block, -(-plan.out[1] // 2)
        first, last, top, bottom = block
        self.shape = bottom - top, self.wide, last - first, filters
        self.half = get_scratch_buffer(4, (4, bottom - top, self.wide, 2, (last - first) * filters), dtype)

    def add(self, row, products):
        """Add the products (4, rows of tiles, tiles, images, filters) of one row of the domain."""
        np.matmul(
            _OUTPUT_TRANSFORM.astype(products.dtype),
            _merge_channels(products).transpose(1, 2, 0, 3),
            out=self.half[row],
        )

    def finish(self, bias, out):
        """Write them into `out`; return True if all are finite."""
        first, _, top, bottom = self.block
        rows, wide, images, filters = self.shape
        height, width = self.plan.out
        begin, end = 2 * top, min(2 * bottom, height)
        lines = get_scratch_buffer(0, (2 * rows, 2 * wide, images, filters), out.dtype)
        half = self.half.reshape(4, rows, -1).swapaxes(0, 1)
        np.matmul(_OUTPUT_TRANSFORM.astype(out.dtype), half, out=lines.reshape(rows, 2, -1))
        if width < 2 * wide:
            whole, lines = lines, get_scratch_buffer(1, (end - begin, width, images, filters), out.dtype)
            np.copyto(lines, whole[: end - begin, :width])
        lines = lines[: end - begin]
        if bias is not None:
            lines += bias
        source, target = _data_address(lines), _data_address(out[first, :, begin:])
        get_transposing_copy(out.dtype)(
            len(lines) * width, images * filters, source, images * filters, target, height * width
        )
        flat = lines.reshape(-1)
        return bool(np.isfinite(flat.dot(flat)))


def _allocate_planes(first, second, dtype):
    """Return memory (16, first, second), whose planes begin at different cache sets."""
    flat = np.empty((16, first * second + 16), dtype)
    return flat[:, : first * second].reshape(16, first, second)


def _transform_weight(weight, turned):
    """Return the transformed weights (4, 4, channels, filters); `turned` is as in `conv_forward`."""
    filters, channels = weight.shape[:2]
    weight, dtype = np.ascontiguousarray(weight), weight.dtype
    if turned:
        domain, to, matrix = (
            _allocate_planes(filters, channels, dtype),
            _WEIGHT_TRANSFORM[:, ::-1].astype(dtype),
            weight.reshape(-1, 9),
        )

        def transform_part(start, stop):
            np.matmul(to, matrix[start * channels : stop * channels].T, out=domain[:, start:stop].reshape(16, -1))

        parallel_for(transform_part, _split_rows(filters, channels))
    else:
        domain, to, turn = (
            _allocate_planes(channels, filters, dtype),
            _WEIGHT_TRANSFORM.astype(dtype),
            get_transposing_copy(dtype),
        )

        def transform_part(start, stop):
            taps = get_scratch_buffer(0, (stop - start, 9, filters), dtype)
            turn(
                filters,
                9 * (stop - start),
                _data_address(weight[:, start:]),
                9 * channels,
                _data_address(taps),
                filters,
            )
            np.matmul(to, taps, out=domain[:, start:stop].swapaxes(0, 1))

        parallel_for(transform_part, _split_rows(channels, filters))
    return domain.reshape(4, 4, *domain.shape[1:])


def _split_rows(rows, length):
    """Return (start, stop) of parts of rows of some length."""
    step = max(1, (1 << 14) // length)
    return [(i, min(i + step, rows)) for i in range(0, rows, step)]


def conv_forward(x, weight, bias, plan, out, turned=False):
    """Forward pass into `out`; False if the result is not finite.

    `turned`: flip the kernels and exchange filters and channels, for the gradient of the input.
    """
    x, weights = np.ascontiguousarray(x), _transform_weight(weight, turned)
    channels, filters = weights.shape[2:]
    tiles, dtype, finite = _Tiles(plan, _ROWS), x.dtype, []
    wide, left = tiles.wide, plan.padding[1]
    if 16 * tiles.high * wide * plan.batch * (channels + filters) <= _FEW:
        _convolve_all_images(x, weights, bias, plan, tiles, out, finite)
        return all(finite)

    def convolve_block(*block):
        first, last, top, bottom = block
        shape = (4, bottom - top, wide, last - first)
        lines, outputs = _pad_input_rows(x, plan, block), _OutputTiles(plan, block, filters, dtype)
        domain, products = (
            get_scratch_buffer(2, (*shape, channels), dtype),
            get_scratch_buffer(3, (*shape, filters), dtype),
        )
        half = _transform_input_rows(lines, left, wide)
        for row in range(4):
            _transform_axis(_INPUT_TRANSFORM, half[row], wide, _merge_channels(domain))
            np.matmul(domain.reshape(4, -1, channels), weights[row], out=products.reshape(4, -1, filters))
            outputs.add(row, products)
        finite.append(outputs.finish(bias, out))

    parallel_for(convolve_block, tiles.blocks())
    return all(finite)


def _convolve_all_images(x, weights, bias, plan, tiles, out, finite):
    """The same for all images: the threads share the 16 products."""
    channels, filters = weights.shape[2:]
    shape = (4, 4, tiles.high, tiles.wide, plan.batch)
    domain, sums = np.empty((*shape, channels), x.dtype), np.empty((*shape, filters), x.dtype)
    rows = max(1, tiles.high // 4)
    blocks = [(0, plan.batch, top, min(top + rows, tiles.high)) for top in range(0, tiles.high, rows)]

    def transform_inputs(*block):
        half = _transform_input_rows(_pad_input_rows(x, plan, block), plan.padding[1], tiles.wide)
        for row in range(4):
            _transform_axis(
                _INPUT_TRANSFORM, half[row], tiles.wide, _merge_channels(domain[row, :, block[2] : block[3]])
            )

    def multiply(row, column):
        a, b = (array[row, column : column + 2].reshape(2, -1, array.shape[-1]) for array in (domain, sums))
        np.matmul(a, weights[row, column : column + 2], out=b)

    def transform_outputs(*block):
        outputs = _OutputTiles(plan, block, filters, x.dtype)
        for row in range(4):
            outputs.add(row, sums[row, :, block[2] : block[3]])
        finite.append(outputs.finish(bias, out))

    parallel_for(transform_inputs, blocks)
    parallel_for(multiply, [(row, column) for row in range(4) for column in (0, 2)])
    parallel_for(transform_outputs, blocks)


def _transform_grads(g, plan, block, wide, out):
    """Write the transform of a block's gradient tiles to `out` (4, 4, rows of tiles, tiles, images, filters)."""
    first, last, top, bottom = block
    images, filters, rows = last - first, g.shape[1], bottom - top
    height, width = plan.out
    begin, end = 2 * top, min(2 * bottom, height)
    lines = get_scratch_buffer(0, (2 * rows, 2 * wide, images, filters), g.dtype)
    lines[end - begin :] = 0
    lines[:, width:] = 0
    turn = get_transposing_copy(g.dtype)
    whole = width == 2 * wide
    for row, count in ((begin, (end - begin) * width),) if whole else [(r, width) for r in range(begin, end)]:
        source, target = _data_address(g[first, :, row:]), _data_address(lines[row - begin :])
        turn(images * filters, count, source, height * width, target, images * filters)
    half = get_scratch_buffer(1, (4, rows, 2 * wide, images * filters), g.dtype)
    _transform_axis(_GRAD_TRANSFORM, lines.reshape(2 * rows, -1), rows, half.reshape(4, rows, -1))
    for row in range(4):
        _transform_axis(_GRAD_TRANSFORM, half[row], wide, _merge_channels(out[row]))


def weight_gradient(g, x, gradient, plan):
    """Gradient of the weight into `gradient`; False if it is not finite."""
    filters, channels = gradient.shape[:2]
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    if 16 * filters * channels <= _SUM:
        total = _compute_weight_grad_by_blocks(g, x, gradient, plan)
    else:
        total = _compute_weight_grad_by_places(g, x, gradient, plan)
    flat, result = total.reshape(16, -1), gradient.reshape(-1, 9)
    back = _WEIGHT_GRAD_TRANSFORM.astype(x.dtype)
    parallel_for(lambda a, b: np.matmul(flat[:, a:b].T, back, out=result[a:b]), _split_rows(len(result), 1))
    summed = result.reshape(-1)
    return bool(np.isfinite(summed.dot(summed)))


def _multiply_accumulate(grads, inputs, total, beta):
    """Compute total = grads^T @ inputs + beta * total, per position."""
    gemm, length = get_gemm_function(total.dtype), grads[0].size // total.shape[1]
    filters, channels = total.shape[1:]
    for a, b, c in zip(grads, inputs, total, strict=True):
        addresses = [_data_address(array) for array in (a, b, c)]
        left, right, target = addresses
        gemm(
            False, filters, channels, length, left, filters, right, channels, beta, target, channels, transposed_a=True
        )


def _compute_weight_grad_by_blocks(g, x, gradient, plan):
    """Return the gradient's domain (16, filters, channels), if small: each share of the blocks has a partial sum."""
    filters, channels = gradient.shape[:2]
    tiles, dtype = _Tiles(plan, _ROWS), x.dtype

    def sum_blocks(blocks):
        total = np.empty((16, filters, channels), dtype)
        for k, block in enumerate(blocks):
            first, last, top, bottom = block
            lead = (4, bottom - top, tiles.wide, last - first)
            grads, inputs = (
                get_scratch_buffer(2, (4, *lead, filters), dtype),
                get_scratch_buffer(3, (*lead, channels), dtype),
            )
            _transform_grads(g, plan, block, tiles.wide, grads)
            half = _transform_input_rows(_pad_input_rows(x, plan, block), plan.padding[1], tiles.wide)
            for row in range(4):
                _transform_axis(_INPUT_TRANSFORM, half[row], tiles.wide, _merge_channels(inputs))
                _multiply_accumulate(grads[row], inputs, total[4 * row : 4 * row + 4], float(k > 0))
        return total

    return parallel_sum(sum_blocks, tiles.blocks(), gradient.size)


def _compute_weight_grad_by_places(g, x, gradient, plan):
    """The same for a large domain: the threads share its positions."""
    filters, channels = gradient.shape[:2]
    dtype = x.dtype
    total = _allocate_planes(filters, channels, dtype)
    tiles = _Tiles(plan, max(1, _CHUNK // (16 * max(channels, filters))), _SHARES)
    for k, (first, last, top, bottom) in enumerate(tiles.blocks()):
        lead = (4, 4, bottom - top, tiles.wide, last - first)
        inputs, grads = np.empty((*lead, channels), dtype), np.empty((*lead, filters), dtype)

        def transform_tiles(a, b, first=first, last=last, top=top, inputs=inputs, grads=grads):
            block = (first, last, a, b)
            _transform_grads(g, plan, block, tiles.wide, grads[:, :, a - top : b - top])
            half = _transform_input_rows(_pad_input_rows(x, plan, block), plan.padding[1], tiles.wide)
            for row in range(4):
                _transform_axis(
                    _INPUT_TRANSFORM, half[row], tiles.wide, _merge_channels(inputs[row, :, a - top : b - top])
                )

        def multiply(a, b, k=k, inputs=inputs, grads=grads):
            left, right = grads.reshape(16, *lead[2:], filters), inputs.reshape(16, *lead[2:], channels)
            _multiply_accumulate(left[a:b], right[a:b], total[a:b], float(k > 0))

        step = max(1, (bottom - top) // _SHARES)
        parallel_for(transform_tiles, [(a, min(a + step, bottom)) for a in range(top, bottom, step)])
        parallel_for(multiply, [(a, a + 2) for a in range(0, 16, 2)])
    return total
