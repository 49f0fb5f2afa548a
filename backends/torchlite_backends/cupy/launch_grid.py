"""Conversion of global work sizes to CUDA's grids and blocks.

Blocks are chosen if the kernel leaves them to the runtime, and grids beyond CUDA's limits are folded. If the sizes do
not fit, the kernel is built a second time, *guarded*: its last parameter has the true sizes, and threads beyond them
return immediately.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

_MOST_BLOCKS = 65535  # of a grid's second and third direction
_MIN_THREADS, _MOST_THREADS = 64, 256
_GUARD = r"""
typedef struct { int x, y, z, rows; } Guard;
#undef BLOCK_Y
#undef BLOCK_Z
#undef ITEM_Y
#undef ITEM_Z
#undef ITEMS
#define LINE_OF_BLOCKS (blockIdx.y + gridDim.y * blockIdx.z)
#define BLOCK_Y ((int)(LINE_OF_BLOCKS % guard_.rows))
#define BLOCK_Z ((int)(LINE_OF_BLOCKS / guard_.rows))
#define ITEM_Y ((int)(BLOCK_Y * blockDim.y + threadIdx.y))
#define ITEM_Z ((int)(BLOCK_Z * blockDim.z + threadIdx.z))
#define ITEMS (guard_.x)
"""
_RETURN = " if (ITEM >= guard_.x || ITEM_Y >= guard_.y || ITEM_Z >= guard_.z) return;"


class Grid(NamedTuple):
    """CUDA's grid and block, and the guard's bytes if the kernel needs one."""

    sizes: tuple[int, int, int, int, int, int]
    guard: bytes | None = None


def compute_grid(items: tuple[int, ...], block: tuple[int, ...] | None) -> Grid:
    """Return the grid for a number of work-items in blocks of a size that divides it, or of any size."""
    padded = _pad_to_three_sizes(items)
    if block is None:
        found = choose_dividing_block(padded)
        exact = found is not None
        threads = found or choose_covering_block(padded)
    else:
        threads, exact = _pad_to_three_sizes(block), True
    x, y, z = (-(-n // t) for n, t in zip(padded, threads, strict=True))
    if exact and y <= _MOST_BLOCKS and z <= _MOST_BLOCKS:
        return Grid((x, y, z, *threads))
    lines = y * z
    deep = -(-lines // _MOST_BLOCKS)
    return Grid((x, -(-lines // deep), deep, *threads), struct.pack("4i", *padded, y))


def _pad_to_three_sizes(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z, *_ = *sizes, 1, 1
    return x, y, z


def choose_dividing_block(items: tuple[int, int, int]) -> tuple[int, int, int] | None:
    """Return a block of suitable size that divides the work-items in each direction, or None."""
    left, block = _MOST_THREADS, []
    for n in items:
        side = next(t for t in range(min(n, left), 0, -1) if n % t == 0)
        block.append(side)
        left //= side
    threads, total = block[0] * block[1] * block[2], items[0] * items[1] * items[2]
    return (block[0], block[1], block[2]) if threads >= min(_MIN_THREADS, total) else None


def choose_covering_block(items: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return a block with power-of-two sides."""
    left, block = _MOST_THREADS, []
    for n in items:
        side = min(left, 1 << (n - 1).bit_length())
        block.append(side)
        left //= side
    return block[0], block[1], block[2]


def with_bounds_guard(text: str, name: str) -> str:
    """Return the source with the kernel `name` in its guarded form."""
    found = re.search(rf"\bKERNEL\b[^;{{}}]*?\bvoid\s+{name}\s*\(", text)
    if found is None:
        raise ValueError(f"no kernel '{name}' in the text")
    at, depth = found.end(), 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    body = text.index("{", at) + 1
    return (
        f"{text[: found.start()]}{_GUARD}{text[found.start() : at - 1]}, const Guard "
        f"guard_){text[at:body]}{_RETURN}{text[body:]}"
    )
