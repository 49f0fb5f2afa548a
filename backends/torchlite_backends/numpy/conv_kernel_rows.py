"""Convolution of one small image with constant weights, by products with a row of the kernel: for loaded modules.

The image is transposed so that channels come last, with zeros around it. The places of a kernel's row are adjacent
then, and every k-th window along a row (k: the kernel's width by the stride) begins where the one before ends. So the
windows are matrices in the image itself, and nothing is gathered. Rows of the output follow each other without a gap:
products run over the zeros between them too. With a stride, the image's rows are stored by their remainder, so that
neighbours of the output are neighbours there.

The products are so small that BLAS's kernels for AVX-512 copy no matrix. NumPy runs many of them in one call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlite._settings.equal_arrays import share_equal

from .blas import get_transposing_copy, has_avx512_kernels, single_threaded
from .cache_blocking import get_scratch_buffer, parallel_for
from .deterministic_gemm import UNCOPIED

# Elements of a block's products, which stay in a core's second-level cache.
_BLOCK = 1 << 16
# Elements of an image up to which this is faster, and channels, and rows of a product that BLAS does not copy, from
# which it is. With few filters it is faster for any size.
_MOST, _FEWEST_CHANNELS, _FEWEST_ROWS, _FEW_FILTERS = 1 << 17, 8, 32, 16


def is_faster(plan: Any, dtype: np.dtype) -> bool:
    """True if this algorithm is faster for constant weights."""
    if len(plan.size) != 2 or plan.batch != 1 or plan.groups != 1 or plan.dilation[1] != 1 or plan.taps == 1:
        return False
    if plan.channels < _FEWEST_CHANNELS or not plan.places or not has_avx512_kernels(dtype):
        return False
    if _count_rows(plan) < _FEWEST_ROWS:
        return False
    size = max(plan.channels * plan.padded[0] * plan.padded[1], plan.filters * plan.places)
    is_small = size <= _MOST * max(plan.stride) ** 2
    return is_small or plan.filters <= _FEW_FILTERS <= plan.channels


def _count_rows(plan: Any) -> int:
    """Return the rows of a product that BLAS does not copy."""
    return UNCOPIED // (plan.kernel[1] * plan.channels * plan.filters) // 4 * 4


class KernelRows:
    """A convolution `run(x)`. clamp: changes blocks of results in place."""

    def __init__(
        self, weight: np.ndarray, bias: np.ndarray | None, plan: Any, clamp: Callable[[np.ndarray], object] | None
    ) -> None:
        self.plan, self.clamp = plan, clamp
        (high, wide), (across, along) = plan.kernel, plan.stride
        shape = (high, wide * plan.channels, plan.filters)
        self.weights = share_equal(np.ascontiguousarray(weight.transpose(2, 3, 1, 0)).reshape(shape))
        self.bias = None if bias is None else bias[:, None, None]
        self.apart = -(-wide // along)  # windows of a row after which one begins where the first one ends
        self.columns = -(-max(plan.padded[1], wide) // along)
        reach = (plan.out[0] - 1) * across + (high - 1) * plan.dilation[0] + 1
        self.height = -(-max(plan.padded[0], reach) // across)
        count = -(-plan.out[0] * self.columns * plan.filters // _BLOCK)
        count = min(count + (count > 1 and count % 2), plan.out[0])
        cuts = [plan.out[0] * k // count for k in range(count + 1)]
        self.blocks = list(itertools.pairwise(cuts))
        most = max(stop - start for start, stop in self.blocks) * self.columns
        parts, rows = self._cut(most)
        self.behind = (parts * rows * self.apart + self.apart) * along * plan.channels + shape[1]  # read beyond the end

    def _cut(self, positions: int) -> tuple[int, int]:
        """Return the number of equal products for so many positions, and their rows."""
        rows = -(-positions // self.apart)
        parts = -(-rows // _count_rows(self.plan))
        return parts, -(-rows // parts)

    def run(self, x: np.ndarray) -> np.ndarray:
        plan = self.plan
        out = np.empty((1, plan.filters, *plan.out), x.dtype)
        with single_threaded:
            image = self._make_image(np.ascontiguousarray(x))
            if plan.is_little:
                for block in self.blocks:
                    self._convolve_block(image, out[0], *block)
            else:
                parallel_for(lambda start, stop: self._convolve_block(image, out[0], start, stop), self.blocks)
        return out

    def _make_image(self, x: np.ndarray) -> np.ndarray:
        """Return the rows by their remainder, then rows, columns and channels, with zeros around them and behind."""
        (rows, columns), (above, left), (across, along) = self.plan.size, self.plan.padding, self.plan.stride
        channels, width = self.plan.channels, self.columns * along
        size = across * self.height * width * channels
        memory = get_scratch_buffer(0, (size + self.behind,), x.dtype)
        image = memory[:size].reshape(across, self.height, width, channels)
        memory[size:] = 0
        turned = get_scratch_buffer(1, (rows, columns, channels), x.dtype)
        _turn(channels, rows * columns, x, rows * columns, turned, channels)
        for remainder, part in enumerate(image):
            first = (remainder - above) % across
            top = (first + above) // across
            source = turned[first::across]
            inside = part[top : top + len(source)]
            part[:top] = 0
            part[top + len(source) :] = 0
            inside[:, :left] = 0
            inside[:, left + columns :] = 0
            inside[:, left : left + columns] = source
        return memory

    def _convolve_block(self, image: np.ndarray, out: np.ndarray, start: int, stop: int) -> None:
        """Write the output rows from `start` to `stop`."""
        plan, columns, apart = self.plan, self.columns, self.apart
        (across, along), filters, item = plan.stride, plan.filters, image.itemsize
        positions = (stop - start) * columns
        parts, rows = self._cut(positions)
        count = parts * rows * apart
        products = get_scratch_buffer(2, (min(len(self.weights), 2), count, filters), image.dtype)
        step = apart * along * plan.channels * item
        for i, weight in enumerate(self.weights):
            row, remainder = divmod(i * plan.dilation[0], across)
            place = (remainder * self.height + row + start) * columns * along * plan.channels
            target = products[min(i, 1)]
            for k in range(apart):
                at = (place + k * along * plan.channels) * item
                windows = np.ndarray((parts, rows, len(weight)), image.dtype, image, at, (rows * step, step, item))
                np.matmul(windows, weight, out=target.reshape(parts, rows, apart, filters)[:, :, k])
            if i:
                np.add(products[0], target, out=products[0])
        turned = get_scratch_buffer(3, (filters, count), image.dtype)
        _turn(count, filters, products[0], filters, turned, count)
        kept = turned[:, :positions].reshape(filters, stop - start, columns)[:, :, : plan.out[1]]
        if self.bias is None:
            out[:, start:stop] = kept
        else:
            np.add(kept, self.bias, out=out[:, start:stop])
        if self.clamp is not None:
            self.clamp(out[:, start:stop])


def _turn(rows: int, columns: int, source: np.ndarray, row: int, target: np.ndarray, turned_row: int) -> None:
    """Write the transpose of a matrix."""
    turn: Any = get_transposing_copy(source.dtype)
    turn(rows, columns, source.__array_interface__["data"][0], row, target.__array_interface__["data"][0], turned_row)
