"""Dilated convolutions with stride 1 as convolutions without dilation, where Winograd's filtering pays.

The results whose rows are `dilation` apart read input rows that are `dilation` apart. So each phase of rows and of
columns is an image of its own, and the phases are a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from . import winograd
from .conv_geometry import get_conv_geometry


def _plan_of_phases(plan: Any) -> Any:
    """Return the geometry of the phases. Those at the end may lack a row or column, and get one of zeros."""
    out = [-(-n // d) for n, d in zip(plan.out, plan.dilation, strict=True)]
    size = tuple(n + k - 1 for n, k in zip(out, plan.kernel, strict=True))
    batch = plan.batch * plan.dilation[0] * plan.dilation[1]
    return get_conv_geometry(batch, plan.channels, plan.filters, size, plan.kernel, (1, 1), (0, 0), (1, 1), plan.groups)


def is_faster(plan: Any, dtype: np.dtype) -> bool:
    """True if this algorithm is faster (64 channels and 128 filters of 620x16: 0.6 of the time)."""
    return (
        len(plan.size) == 2
        and plan.kernel == (3, 3)
        and max(plan.stride) == 1 < max(plan.dilation)
        and winograd.is_faster(_plan_of_phases(plan), dtype)
    )


def _phases(plan: Any) -> Iterator[tuple[tuple[int, int], list[tuple[slice, slice]]]]:
    """Yield each phase, and for rows and columns its part of the phase's image and of the input."""
    size = _plan_of_phases(plan).size
    for phase in product(*map(range, plan.dilation)):
        parts = []
        for first, d, p, n, length in zip(phase, plan.dilation, plan.padding, plan.size, size, strict=True):
            begin = max(0, -((first - p) // d))  # the first place that is not in the padding
            end = max(begin, min(length, (n - 1 + p - first) // d + 1))
            start = first - p + begin * d
            parts.append((slice(begin, end), slice(start, start + (end - begin) * d, d)))
        yield phase, parts


def conv_forward(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, plan: Any, out: np.ndarray, convolve: Callable
) -> np.ndarray:
    """Forward pass into `out`. `convolve` is that of images without dilation."""
    inner, (down, across) = _plan_of_phases(plan), plan.dilation
    images = np.zeros((plan.batch, down, across, plan.channels, *inner.size), x.dtype)
    for (row, column), (rows, columns) in _phases(plan):
        images[:, row, column, :, rows[0], columns[0]] = x[:, :, rows[1], columns[1]]
    made = convolve(images.reshape(-1, plan.channels, *inner.size), weight, bias, inner)
    found = made.reshape(plan.batch, down, across, plan.filters, *inner.out)
    for row, column in product(range(down), range(across)):
        target = out[:, :, row::down, column::across]
        target[...] = found[:, row, column, :, : target.shape[2], : target.shape[3]]
    return out
