"""Sizes of a convolution, and its partition into blocks of columns."""

from __future__ import annotations

import functools
import math

from torchlite._settings.cached_property import cached_property

# Elements of a block of columns: 2 MiB of float32, about a core's second-level cache.
BLOCK = 1 << 19


# Output rows shorter than this are gathered with the batch innermost.
SHORT_ROW = 12


# With the batch innermost: minimum images of a block, which is the length of runs (LeNet's second layer, 32 images:
# blocks of 8 take 1.1 to 1.7 of the time of one block, and 3 to 4 of it in the backward pass); and minimum channels for
# which threads share these in the backward pass if blocks are few (Zen 4, two threads: 0.62 of the time).
_RUN, MIN_SHARED_CHANNELS = 32, 128


# Blocks that a convolution is cut into at least, where it is large enough, so that threads get even shares.
MIN_BLOCKS = 4


# If results are so many times the weights, a scale per filter is folded into these.
FOLD_RATIO = 2


# Multiplications below which one thread does it all: waking others and blocking the rest of the work would cost more.
# (At 40 to 48 per nanosecond, and 4 elements gathered in one: 200 us.)
_LITTLE, _GATHERED = 1 << 23, 12


class ConvGeometry:
    """Sizes of one convolution from `channels` to `filters`, and its blocks. `size` is the input's spatial size, `out`
    the output's.
    """

    def __init__(self, batch, channels, filters, size, kernel, stride, padding, dilation, groups):
        self.batch, self.channels, self.filters, self.size, self.kernel = batch, channels, filters, size, kernel
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.out = tuple(
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
        )
        if min(self.out, default=1) <= 0 or groups < 1 or channels % groups:
            raise RuntimeError("the kernel does not fit the input")
        self.places, self.taps = math.prod(self.out), math.prod(kernel)
        self.padded = tuple(n + 2 * p for n, p in zip(size, padding, strict=True))
        self.pointwise = self.taps == 1 and max(stride) == 1 and max(padding) == 0
        self.batch_inner = self.out[-1] < SHORT_ROW and batch >= 4 and not self.pointwise
        columns = channels * self.taps * self.places
        self.by_filters = (
            groups == 1
            and filters >= 32
            and channels >= 32
            and batch * self.places <= 4 * filters
            and batch * columns <= 16 * BLOCK
        )
        self._set_block_sizes(max(1, columns))

    @cached_property
    def flat(self) -> ConvGeometry | None:
        """The same convolution without the dimensions that add nothing, None if there are none. With a kernel of one
        all positions are one dimension. Others drop dimensions of one position: all of a volume, an image's columns.
        """
        count = len(self.size)
        if self.pointwise and count > 2:
            kept = [0]
            size: tuple[int, ...] = (math.prod(self.size),)
        else:
            fields = zip(self.size, self.kernel, self.padding, strict=True)
            alone = [field == (1, 1, 0) and (count > 2 or d == count - 1) for d, field in enumerate(fields)]
            kept = [d for d in range(count) if not alone[d]] or [0]
            size = tuple(self.size[d] for d in kept)
        if len(kept) == count or count == 1:
            return None
        kernel, stride, padding, dilation = (
            tuple(values[d] for d in kept) for values in (self.kernel, self.stride, self.padding, self.dilation)
        )
        return get_conv_geometry(
            self.batch, self.channels, self.filters, size, kernel, stride, padding, dilation, self.groups
        )

    def _set_block_sizes(self, columns):
        """Set the number of images and of output rows per block."""
        total = self.batch * columns
        work = total * (self.filters // self.groups + (0 if self.pointwise else _GATHERED))
        self.is_little = work < _LITTLE
        if self.by_filters:
            self.images, self.rows = self.batch, self.out[0]
            return
        limit = max(1, total if self.is_little else min(BLOCK, total // MIN_BLOCKS))
        batch = max(1, self.batch)
        self.images = max(1, min(batch, limit // columns))
        if self.batch_inner:
            self.images = max(self.images, min(batch, _RUN))
        # Even shares: as many blocks as the limit requires, none much smaller than the others.
        self.images = -(-batch // -(-batch // self.images))
        self.rows = -(-self.out[0] // min(self.out[0], -(-columns * self.images // limit)))

    @cached_property
    def blocks(self):
        """Return (first image, one past the last, first output row, one past the last)."""
        return [
            (i, min(i + self.images, self.batch), row, min(row + self.rows, self.out[0]))
            for i in range(0, self.batch, self.images)
            for row in range(0, self.out[0], self.rows)
        ]


@functools.lru_cache(maxsize=1024)
def get_conv_geometry(batch, channels, filters, size, kernel, stride, padding, dilation, groups):
    """Return the cached geometry of a convolution: a network repeats the same ones at every step."""
    return ConvGeometry(batch, channels, filters, size, kernel, stride, padding, dilation, groups)
