"""Shape of a convolution."""

from __future__ import annotations

import math
from typing import NamedTuple


class ConvShape(NamedTuple):
    """Convolution of `x` (batch, channels, *size) to `y` (batch, filters, *out) by a weight (filters, channels /
    groups, *kernel).
    """

    batch: int
    channels: int
    filters: int
    size: tuple[int, ...]
    out: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @property
    def is_pointwise(self) -> bool:
        """True if each position of y depends only on the same position of x."""
        return math.prod(self.kernel) == 1 and max(self.stride) == 1 and max(self.padding) == 0
