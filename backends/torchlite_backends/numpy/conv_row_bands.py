"""Forward pass of a depthwise convolution of images as products with banded matrices, for bands of output rows.

The rows of a band are the products of its input rows and a banded matrix for each column of the kernel. A product has
the bands of all images and one channel, so that few calls of BLAS do the work: NumPy needs two passes for each kernel
position (144 channels of 56x56: 0.75 ms for 1.44, and 1.26 by `conv_banded`, one thread of Zen 5).

Infinities and NaN spread over a band by products with zeros; the caller then uses another algorithm.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading

import numpy as np

from .cache_blocking import get_scratch_buffer, parallel_for

# Output rows of a band, and elements of a block's inputs, with which the calls of a block are long and all stays in a
# core's second-level cache (144 channels of 56x56: 1.34 ns a result, 1.4 with half as many elements).
_ROWS, _CACHED = range(4, 9), 1 << 17
# Side of an image's result (of a square one with as many places) times taps of a kernel from which it pays: of smaller
# images copies take most of the time (3x3 at 14x14: 1.08 of the time of `conv_depthwise`, at 7x7 1.9; 7x7 at 14x14
# 0.6). Then its least rows: a band of fewer computes rows in vain.
_LEAST, _LEAST_ROWS = 180, 3
# The greatest stride. All columns between the results' are computed: 3x3 with stride 2 takes 0.6 to 0.8 of the time of
# `conv_depthwise`, 5x5 over rows alone 0.1 to 0.4.
_MOST_STEP = 2
# Elements up to which one thread is as fast as two, which wait for each other's GIL (a Xeon: 64 channels of 56x56 took
# 350 us on one thread and 600 on two, 32 channels of 112x112 with stride 2 took 430 and 700).
_LITTLE = 1 << 19


class RowBands:
    """Partition of a forward pass into bands of output rows, for which a kernel's column is a banded matrix.

    A band's rows are the products of the band matrix and of its input rows, shifted by the column. The rows of all
    bands of an image, at the same place in each, are one long row, with zeros between two images' rows for the padding.
    """

    def __init__(self, plan):
        (height, self.width), (out, columns), (above, left) = plan.size, plan.out, plan.padding
        tall, wide = (d * (k - 1) for d, k in zip(plan.dilation, plan.kernel, strict=True))
        self.height = min(_ROWS, key=lambda rows: (-(-out // rows) * rows * (1 + 0.03 * (rows - 4)), rows))
        self.bands = -(-out // self.height)
        across, self.along = plan.stride
        self.step = self.height * across  # input rows between two bands
        self.inputs = self.step - across + 1 + tall
        self.columns = (columns - 1) * self.along + 1  # with those that a stride skips
        self.batch, self.channels = plan.batch, plan.channels
        # Zeros before and after an image's row, and offsets of the kernel's columns.
        self.before, self.behind = left, max(0, wide - left)
        self.shifts = range(0, wide + 1, plan.dilation[1])
        self.pitch = max(self.width + self.before, self.columns + self.behind)
        # For each input row of a band: the first and last band in which it lies within the image, and its place there.
        self.sources = []
        for row in range(self.inputs):
            begin = max(0, -(-(above - row) // self.step))
            end = min(self.bands, (height - 1 + above - row) // self.step + 1)
            if begin < end:
                self.sources.append((row, begin, end, begin * self.step + row - above))

    def blocks(self):
        """Return (first image, one past the last, first channel, one past the last), in an even number if large."""
        size = (self.inputs + 1) * self.bands * self.pitch
        images = max(1, min(self.batch, _CACHED // size))
        images = -(-self.batch // -(-self.batch // images))
        channels = max(1, min(self.channels, _CACHED // (size * images)))
        count = -(-self.channels // channels)
        count += count > 1 and count % 2
        cuts = [self.channels * k // count for k in range(count + 1)]
        return [
            (i, min(i + images, self.batch), c, d)
            for i in range(0, self.batch, images)
            for c, d in itertools.pairwise(cuts)
            if c < d
        ]


@functools.lru_cache(maxsize=512)
def _make_row_bands(plan):
    return RowBands(plan)


def is_faster(plan) -> bool:
    """True if this algorithm is faster."""
    if len(plan.size) != 2 or max(plan.stride) > _MOST_STEP or plan.out[0] < _LEAST_ROWS:
        return False
    if math.isqrt(plan.places) * plan.taps < _LEAST:
        return False
    cut = _make_row_bands(plan)
    matrices = cut.height * (cut.inputs + 1)
    return (
        cut.pitch <= 2 * cut.columns and cut.inputs <= 4 * cut.height and 2 * plan.batch * plan.places >= 3 * matrices
    )


def make_matrices(weight, bias, plan):
    """Return the matrices (kernel columns, channels, rows of a band, inputs and a one), with the bias in the first."""
    cut = _make_row_bands(plan)
    channels, tall, wide = plan.channels, *plan.kernel
    matrices = np.zeros((wide, channels, cut.height, cut.inputs + 1), weight.dtype)
    one, two, row, item = matrices.strides
    strides = (one, two, row + plan.stride[0] * item, plan.dilation[0] * item)
    diagonals = np.ndarray((wide, channels, cut.height, tall), weight.dtype, matrices, 0, strides)
    diagonals[...] = weight.reshape(channels, tall, wide).transpose(2, 0, 1)[:, :, None]
    if bias is not None:
        matrices[0, ..., -1] = bias[:, None]
    return matrices


def conv_forward(x, weight, bias, plan, out):
    """Forward pass into `out`; False if the result is not finite."""
    return conv_with_matrices(x, make_matrices(weight, bias, plan), plan, out)


def conv_with_matrices(x, matrices, plan, out, clamp=None):
    """Forward pass into `out` with the matrices of a weight; `clamp(sums)` changes blocks of results in place.

    False if the result is not finite.
    """
    cut, finite = _make_row_bands(plan), []
    blocks = cut.blocks()
    images, channels = (max(block[k + 1] - block[k] for block in blocks) for k in (0, 2))
    shape = (channels, cut.inputs + 1, images * cut.bands * cut.pitch + cut.before + cut.behind)
    held: dict = {}  # by thread: memory with zeros around the images' rows

    def convolve_block(image, end, channel, stop):
        images, channels = end - image, stop - channel
        memory = held.get(threading.get_ident())
        if memory is None:
            memory = held[threading.get_ident()] = get_scratch_buffer(0, shape, x.dtype)
            memory[:, :-1] = 0
            memory[:, -1] = 1
        length = images * cut.bands * cut.pitch
        memory = memory[:channels]
        inside = memory[..., cut.before : cut.before + length].reshape(channels, -1, images, cut.bands, cut.pitch)
        memory[:, :-1, cut.before + length : cut.before + length + cut.behind] = 0  # other blocks may have more images
        source = x[image:end, channel:stop].swapaxes(0, 1)
        for place, begin, last, first in cut.sources:
            rows = source[:, :, first :: cut.step]
            inside[:, place, :, begin:last, : cut.width] = rows[:, :, : last - begin]
        sums, scratch = (get_scratch_buffer(n, (channels, cut.height, length), x.dtype) for n in (1, 2))
        for number, shift in enumerate(cut.shifts):
            rows = memory[:, :, shift : shift + length]
            np.matmul(matrices[number, channel:stop], rows, out=scratch if number else sums)
            if number:
                np.add(sums, scratch, out=sums)
        finite.append(is_finite(sums))
        if clamp is not None:
            clamp(sums)
        bands = sums.reshape(channels, cut.height, images, cut.bands, cut.pitch)[..., : cut.columns : cut.along]
        target = out[image:end, channel:stop]
        whole, rest = divmod(plan.out[0], cut.height)
        places = target[:, :, : whole * cut.height].reshape(images, channels, whole, cut.height, plan.out[1])
        places[...] = bands[:, :, :, :whole].transpose(2, 0, 3, 1, 4)
        if rest:
            target[:, :, whole * cut.height :] = bands[:, :rest, :, whole].transpose(2, 0, 1, 3)

    if max(x.size, out.size) <= _LITTLE:
        for block in blocks:
            convolve_block(*block)
    else:
        parallel_for(convolve_block, blocks)
    return all(finite)


def is_finite(array) -> bool:
    """True if all elements of a contiguous array are finite, and their squares do not overflow."""
    flat = array.reshape(-1)
    return bool(np.isfinite(flat.dot(flat)))
