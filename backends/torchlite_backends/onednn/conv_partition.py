"""Partition of a convolution into pieces of one thread each, by shape alone.

Results therefore do not depend on the number of threads. A piece covers some of the images, of the rows (the first
spatial dimension) and of the channels. Images are split first; rows if there are few images and many rows; filters or
channels if weights outweigh images, so that a thread reads only its part of them.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

FORWARD, DATA, WEIGHTS = "forward", "data", "weights"
# Pieces at most, and multiply-adds and elements that a piece has at least, 0.1 to 0.3 ms of one core: less costs more
# to share than is won.
_MAX_PIECES, _MIN_MULS, _MIN_ELEMENTS = 8, 1 << 24, 1 << 18
# Minimum rows and channels of a piece, and oneDNN's channel blocks.
_ROWS, _CHANNELS, _BLOCK = 8, 32, 16


class ConvShape(NamedTuple):
    """Convolution from `channels` to `filters`; `size` is the input's spatial size, `out` the output's."""

    batch: int
    channels: int
    filters: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    out: tuple[int, ...]


Range = tuple[int, int]


class Piece(NamedTuple):
    """Ranges of a convolution that form a convolution again.

    `low` and `high` are the zero rows around it; `channels` and `filters` are counted over all groups.
    """

    images: Range
    source_rows: Range
    target_rows: Range
    low: int
    high: int
    channels: Range
    filters: Range
    groups: int


def split_into_ranges(length: int, count: int, step: int = 1) -> list[Range]:
    """Return about `count` even ranges that cover `length`, of multiples of `step`; fewer if it is short."""
    units = -(-length // step)
    count = max(1, min(count, units))
    bounds = [min(length, units * k // count * step) for k in range(count + 1)]
    return list(itertools.pairwise(bounds))


def _floor_power_of_two(count: int) -> int:
    """Return the largest power of two up to `count`, which two or four threads share evenly."""
    return 1 << max(1, count).bit_length() - 1


def split_into_pieces(g: ConvShape, kind: str, by_images_alone: bool = False) -> list[Piece]:
    """Return the pieces of one of the three passes."""
    weights = g.filters * (g.channels // g.groups) * math.prod(g.kernel)
    images = g.batch * (g.channels * math.prod(g.size) + g.filters * math.prod(g.out))
    work = weights * g.batch * math.prod(g.out)
    count = _floor_power_of_two(min(_MAX_PIECES, max(work // _MIN_MULS, images // _MIN_ELEMENTS)))
    whole = Piece(
        (0, g.batch), (0, g.size[0]), (0, g.out[0]), g.padding[0], g.padding[0], (0, g.channels), (0, g.filters),
        g.groups,
    )  # fmt: skip
    if by_images_alone:
        return _split_images(whole, g, min(count, 4) if kind == WEIGHTS else count)
    if kind == WEIGHTS:
        # Each piece of images has a partial sum, which must stay small relative to the images.
        shares = min(count, images // (2 * weights))
        if shares < min(count, 2):
            return _split_channels(whole, g, kind, count)
        count = _floor_power_of_two(shares)
    elif weights >= images:
        return _split_channels(whole, g, kind, count)
    cut = _split_images(whole, g, count)
    more = -(-count // len(cut))
    if more < 2:
        return cut
    if g.groups > 1:
        return [part for piece in cut for part in _split_channels(piece, g, kind, more)]
    return [part for piece in cut for part in _split_rows(piece, g, kind, more)]


def _split_images(piece: Piece, g: ConvShape, count: int) -> list[Piece]:
    return [piece._replace(images=images) for images in split_into_ranges(g.batch, count)]


def _split_channels(piece: Piece, g: ConvShape, kind: str, count: int) -> list[Piece]:
    if g.groups > 1:
        # Each part with a number of channels that oneDNN's blocks fit into.
        step = max(1, _BLOCK // math.gcd(_BLOCK, g.channels // g.groups, g.filters // g.groups))
        per_channels, per_filters = g.channels // g.groups, g.filters // g.groups
        return [
            piece._replace(
                channels=(a * per_channels, b * per_channels), filters=(a * per_filters, b * per_filters), groups=b - a
            )
            for a, b in split_into_ranges(g.groups, count, step)
        ]
    length = g.channels if kind == DATA else g.filters
    parts = split_into_ranges(length, _floor_power_of_two(min(count, length // _CHANNELS)), _BLOCK)
    return [piece._replace(channels=part) if kind == DATA else piece._replace(filters=part) for part in parts]


def _split_rows(piece: Piece, g: ConvShape, kind: str, count: int) -> list[Piece]:
    reach, stride, padding = g.dilation[0] * (g.kernel[0] - 1), g.stride[0], g.padding[0]
    rows = g.size[0] if kind == DATA else g.out[0]
    count = _floor_power_of_two(min(count, rows // _ROWS))
    if count < 2 or padding > reach or kind == DATA and reach < stride - 1:
        return [piece]
    cut = []
    for a, b in split_into_ranges(rows, count):
        if kind == DATA:
            top, bottom = max(0, -(-(a + padding - reach) // stride)), min(g.out[0] - 1, (b - 1 + padding) // stride)
            source, target = (a, b), (top, bottom + 1)
        else:
            first, last = a * stride - padding, (b - 1) * stride - padding + reach
            source, target = (max(0, first), min(g.size[0], last + 1)), (a, b)
        low = padding + source[0] - target[0] * stride
        high = max(0, (target[1] - 1) * stride - padding + reach - (source[1] - 1))
        fits = (source[1] - source[0] + low + high - reach - 1) // stride + 1 == target[1] - target[0]
        if low < 0 or target[1] <= target[0] or source[1] <= source[0] or not fits:
            return [piece]
        cut.append(piece._replace(source_rows=source, target_rows=target, low=low, high=high))
    return cut
