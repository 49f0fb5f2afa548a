"""Reductions of blocks in float64, and dot products on several threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .blas import single_threaded
from .cache_blocking import get_scratch_buffer, parallel_for
from .row_blocks import F64, as_contiguous, dot_row, ones

# Elements of a block whose copy in float64 stays in the cache.
_BLOCK = 1 << 16
# Elements of a part of a dot product, maximum number of parts, and elements up to which one thread computes all.
_PART, _PARTS, _SHARED = 1 << 18, 8, 1 << 20


def parallel_dot(first: np.ndarray, second: np.ndarray) -> Any:
    """Return the dot product of long contiguous vectors, in float64, on several threads."""
    if len(first) <= _PART:
        with single_threaded:
            return np.float64(dot_row(first, second))
    step = max(_PART, -(-len(first) // _PARTS))
    starts = range(0, len(first), step)
    parts = np.empty(len(starts))

    def dot_part(k: int) -> None:
        here = slice(k * step, (k + 1) * step)
        parts[k] = dot_row(first[here], second[here])

    with single_threaded:
        if len(first) <= _SHARED:
            for k in range(len(starts)):
                dot_part(k)
        else:
            parallel_for(dot_part, [(k,) for k in range(len(starts))])
    return np.add.reduce(parts)


def as_cube(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return a contiguous array (before, count, after) whose middle dimension has the elements to reduce."""
    axes = tuple(sorted(axes))
    if not axes:
        return as_contiguous(x).reshape(-1, 1, 1)
    if axes[-1] - axes[0] + 1 != len(axes) or not x.flags.c_contiguous:
        kept = [d for d in range(x.ndim) if d not in axes]
        x = x.transpose(*kept, *axes)
        axes = tuple(range(len(kept), x.ndim))
    before, count, after = (
        math.prod(x.shape[a:b]) for a, b in ((0, axes[0]), (axes[0], axes[-1] + 1), (axes[-1] + 1, x.ndim))
    )
    return as_contiguous(x).reshape(before, count, after)


def reduce_in_blocks(cube: np.ndarray, body: Any, outputs: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Reduce the middle dimension block by block.

    `body(block)` returns `outputs` arrays (before, after) in float64 for a block (before, count, after) in float64,
    which it may overwrite. Return the arrays (pieces, before, after) of all, and the pieces' counts.
    """
    before, count, after = cube.shape
    height = min(count, max(1, _BLOCK // min(after, _BLOCK)))
    pieces = -(-count // height)
    bounds = [count * k // pieces for k in range(pieces + 1)]
    width = max(1, min(after, _BLOCK // height))
    thick = max(1, _BLOCK // (height * width))
    found = [np.empty((pieces, before, after)) for _ in range(outputs)]

    def reduce_block(first: int, k: int, left: int) -> None:
        here = slice(first, first + thick), slice(left, left + width)
        part = cube[here[0], bounds[k] : bounds[k + 1], here[1]]
        wide = get_scratch_buffer(2, part.shape, F64)
        np.copyto(wide, part)
        for out, value in zip(found, body(wide), strict=True):
            out[k][here] = value

    items = [
        (first, k, left) for first in range(0, before, thick) for k in range(pieces) for left in range(0, after, width)
    ]
    with single_threaded:
        if cube.size <= 2 * _BLOCK:
            for item in items:
                reduce_block(*item)
        else:
            parallel_for(reduce_block, items)
    return found, np.diff(bounds)


def sum_middle(block: np.ndarray) -> np.ndarray:
    """Return the sums over the middle dimension of a contiguous block (before, count, after)."""
    if block.shape[2] == 1:
        return np.add.reduce(block[:, :, 0], 1)[:, None]
    if block.shape[0] == 1:
        return np.dot(ones(block.shape[1], F64), block[0])[None]
    return np.add.reduce(block, 1)


def sum_of_squares(block: np.ndarray) -> np.ndarray:
    """Return the sums of squares over the middle dimension of a contiguous block (before, count, after)."""
    if block.shape[2] == 1:
        flat = block[:, :, 0]
        return np.vecdot(flat, flat)[:, None]
    return sum_middle(np.multiply(block, block, out=block))
