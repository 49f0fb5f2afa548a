"""Convolution shapes for which oneDNN is faster than NumPy with OpenBLAS.

Measured on Zen 4 with AVX-512, oneDNN 3.2, processor time of one thread, as ratios to the implementation replaced:
dense kernels of several taps 0.6 to 0.85, depthwise 0.05 to 0.2, groups of 8 channels and more 0.45 to 0.65, volumes
0.4.
"""

from __future__ import annotations

import math

from .conv_partition import DATA, FORWARD, WEIGHTS, ConvShape

# Channels are computed in blocks of 16, groups in blocks of 8 or 4.
_BLOCK = 16
# Below this share of used channels in the blocks the rest costs more than is won (1.15 to 2.9).
_MIN_CHANNEL_SHARE = 0.6


def is_faster(kind: str, g: ConvShape) -> bool:
    """True if oneDNN should compute a pass: FORWARD, DATA (the input's gradient) or WEIGHTS."""
    taps, spatial = math.prod(g.kernel), len(g.size)
    if taps == 1:
        return False  # one matrix product without a copy: 1.0 to 3.1
    if g.groups == 1:
        # Two taps: 1.0 to 1.15, but 0.4 to 0.9 for one image, which NumPy's implementation hardly parallelises.
        return (taps > 2 or g.batch == 1) and _is_dense_faster(kind, g)
    channels, filters = g.channels // g.groups, g.filters // g.groups
    if channels == 1:
        if spatial == 1:
            return False  # 1.25 to 2.5
        # A volume's gradient of the weight, and several filters a channel, take 1.0 to 1.4.
        return kind == FORWARD or filters == 1 and (kind == DATA or spatial == 2)
    step = 8 if kind == WEIGHTS else 4
    return channels % step == filters % step == 0


def _is_dense_faster(kind: str, g: ConvShape) -> bool:
    used = math.prod(n / (-(-n // _BLOCK) * _BLOCK) for n in (g.channels, g.filters))
    if kind == DATA:
        return used >= _MIN_CHANNEL_SHARE
    if g.filters == 1:
        return False  # 1.4 to 1.6
    few = min(g.channels, g.filters) <= _BLOCK and (kind == FORWARD or len(g.size) < 3 or g.channels <= 3)
    return few or used >= _MIN_CHANNEL_SHARE
