"""Convolution with stride 1 without im2col (kn2row): one matrix product per kernel position, on the padded image.

Stored as one long row per channel, the padded image shifted by a kernel position is again a matrix (channels,
positions) with the same row length, so BLAS can read it in place and accumulate the products. Results have the padded
width, with a few meaningless columns at the end of each row, which are dropped. This saves gathering and reading the
columns (9 times the image for a 3x3 kernel), and pays for long rows.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from .blas import get_gemm_function
from .cache_blocking import get_scratch_buffer, parallel_sum, run_blocks

# Elements of a block's result: 512 KiB of float32, which stay in a core's second-level cache while products accumulate.
_BLOCK = 1 << 17
# Elements of a part of the images at least, and parts at most: with more, threads wait for each other's Python.
_PIECE, _FILLS = 1 << 16, 4


# Channels and filters at least, and multiplications of one product: two threads that make shorter calls than 20 us
# wait for each other's Python (32 channels of 16x16: 0.6 of the speed that columns have, one thread 1.2; 24 channels
# of 128x128: 1.3).
_FEWEST, _PRODUCT = 24, 5 << 18


def _choose_product_length(plan) -> int:
    """Return the approximate number of positions of one product."""
    return min(plan.out[0] * plan.padded[1] * min(plan.batch, 4) // 4, _BLOCK // plan.filters)


def is_faster(plan, dtype) -> bool:
    """True if this algorithm is faster."""
    return (
        len(plan.size) == 2
        and plan.groups == 1
        and plan.taps > 1
        and max(plan.stride) == 1
        and plan.out[1] >= 14
        and not plan.by_filters
        and plan.channels >= _FEWEST
        and plan.filters >= _FEWEST
        and plan.padded[1] <= 1.25 * plan.out[1]
        and plan.channels * plan.filters * _choose_product_length(plan) >= _PRODUCT
        and get_gemm_function(dtype) is not None
    )


class _PaddedImage:
    """Padded images as long rows, and the offset of each kernel position in them."""

    def __init__(self, x, plan):
        height, self.width = plan.padded
        self.row = height * self.width + plan.kernel[1] * plan.dilation[1]
        self.memory = np.empty((plan.batch, plan.channels, self.row), x.dtype)
        self.offsets = [
            i * plan.dilation[0] * self.width + j * plan.dilation[1]
            for i, j in product(*(range(k) for k in plan.kernel))
        ]
        (above, left), (rows, columns) = plan.padding, plan.size

        def fill(start, stop):
            piece = self.memory[start:stop]
            piece[...] = 0
            image = piece[:, :, : height * self.width].reshape(stop - start, plan.channels, height, self.width)
            image[:, :, above : above + rows, left : left + columns] = x[start:stop]

        run_blocks(fill, plan.batch, plan.channels * self.row, max(_PIECE, self.memory.size // _FILLS))
        self.address, self.item = self.memory.ctypes.data, x.dtype.itemsize

    def matrix_address(self, image, top, offset):
        """Return the address of a matrix (channels, positions) that begins at an output row, shifted by a kernel
        position.
        """
        return self.address + self.item * (image * self.memory.shape[1] * self.row + top * self.width + offset)


def _split_into_blocks(plan, width):
    """Return (image, first output row, one past the last), in even shares."""
    pieces = -(-plan.filters * plan.out[0] * width // _BLOCK)
    pieces = max(pieces, -(-4 // plan.batch))
    rows = -(-plan.out[0] // min(pieces, plan.out[0]))
    return [(i, top, min(top + rows, plan.out[0])) for i in range(plan.batch) for top in range(0, plan.out[0], rows)]


def _parallel_for(body, items, size):
    def run_items(start, stop):
        for item in items[start:stop]:
            body(*item)

    run_blocks(run_items, len(items), max(1, size), 1)


def conv_forward(x, weight, bias, plan, out):
    """Forward pass into `out`."""
    gemm, image = get_gemm_function(x.dtype), _PaddedImage(x, plan)
    taps = np.ascontiguousarray(weight.transpose(2, 3, 0, 1))
    step = taps.itemsize * plan.filters * plan.channels
    weights = [taps.ctypes.data + i * step for i in range(plan.taps)]
    width, filters, channels = image.width, plan.filters, plan.channels

    def convolve_block(number, top, bottom):
        length = (bottom - top) * width
        rows = get_scratch_buffer(1, (filters, length), x.dtype)
        target = rows.ctypes.data
        for i, offset in enumerate(image.offsets):
            gemm(
                False,
                filters,
                length,
                channels,
                weights[i],
                channels,
                image.matrix_address(number, top, offset),
                image.row,
                float(i > 0),
                target,
                length,
            )
        kept = rows.reshape(filters, bottom - top, width)[:, :, : plan.out[1]]
        if bias is None:
            out[number, :, top:bottom] = kept
        else:
            np.add(kept, bias[:, None, None], out=out[number, :, top:bottom])

    blocks = _split_into_blocks(plan, width)
    _parallel_for(convolve_block, blocks, channels * plan.taps * plan.places * plan.batch // len(blocks))
    return out


def weight_gradient(g, x, gradient, plan):
    """Gradient of the weight into `gradient`: products of the zero-padded output gradient with the shifted images."""
    gemm, image = get_gemm_function(x.dtype), _PaddedImage(x, plan)
    width, filters, channels = image.width, plan.filters, plan.channels
    step = x.dtype.itemsize * filters * channels

    def sum_blocks(blocks):
        total = np.empty((plan.taps, filters, channels), x.dtype)
        for k, block in enumerate(blocks):
            add_products(total.ctypes.data, float(k > 0), *block)
        return total

    def add_products(target, beta, number, top, bottom):
        length = (bottom - top) * width
        rows = get_scratch_buffer(1, (filters, bottom - top, width), x.dtype)
        rows[:, :, plan.out[1] :] = 0
        rows[:, :, : plan.out[1]] = g[number, :, top:bottom]
        source = rows.ctypes.data
        for i, offset in enumerate(image.offsets):
            gemm(
                True,
                filters,
                channels,
                length,
                source,
                length,
                image.matrix_address(number, top, offset),
                image.row,
                beta,
                target + i * step,
                channels,
            )

    total = parallel_sum(sum_blocks, _split_into_blocks(plan, width), gradient.size)
    gradient.reshape(filters, channels, plan.taps)[...] = total.transpose(1, 2, 0)
    return gradient
