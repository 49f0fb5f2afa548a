"""Partition of arrays for elementwise work on several threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cache_blocking import SMALL, can_share_work, parallel_range, run_blocks

# Of a step parts of flat arrays have a multiple: they end where lines of cache do. An axis is long enough if it can be
# cut evenly for any number of cores.
_STEP, _LONG = 1 << 12, 64
_ndarray = np.ndarray


def apply_to_elementwise_parts(body: Any, out: np.ndarray, operands: tuple, most: int = 0) -> None:
    """Call `body(part of out, *parts of operands)` for one part per thread, or for blocks of about `most` elements.

    Operands broadcast to `out`; numbers are passed unchanged.
    """
    if most and 0 < out.size <= SMALL:  # `run_blocks` would call it once
        body(out, *operands)
        return
    shape = out.shape
    cut = [a.__class__ is _ndarray and a.ndim > 0 for a in operands]
    alike = all(a.flags.c_contiguous and a.shape == shape for a, c in zip(operands, cut, strict=True) if c)
    if alike and out.flags.c_contiguous:
        out, operands = out.reshape(-1), tuple(a.reshape(-1) if c else a for a, c in zip(operands, cut, strict=True))
        axis, step = 0, _STEP
    else:
        axis, step = choose_axis_to_cut(out), 1
    length, behind = out.shape[axis], out.ndim - axis
    cut = [c and a.ndim >= behind and a.shape[-behind] == length for a, c in zip(operands, cut, strict=True)]

    def apply_to_part(start: int, stop: int) -> None:
        here: Any = (..., slice(start, stop), *[slice(None)] * (behind - 1))
        body(out[here], *[a[here] if c else a for a, c in zip(operands, cut, strict=True)])

    if most:
        run_blocks(apply_to_part, length, out.size // length, most)
    else:
        parallel_range(apply_to_part, length, step)


# Elements of a block of a chain of ops: a few arrays of them stay in a core's second-level cache (five ops on 2^17
# elements: 0.67 of the time of one block, 0.9 with half of this size). Two threads wait for each other's GIL between
# calls of this length. So they share many elements alone, in larger blocks: four ops on 3.2 million take 2.5 ms on one
# thread of a Xeon, 3.0 on two with blocks for the cache and 2.1 with larger ones. On 400,000 one thread takes 0.34 ms,
# and two 0.47 and 0.45. Blocks do not change results, as each op computes each element alone.
_CACHE_SIZE, _SHARED_SIZE, _SHARED_FROM = 1 << 16, 1 << 18, 1 << 20


class BlockwiseFunction:
    """Function of contiguous arrays to new ones, filled by `body(*output blocks, *input blocks)` on threads.

    All arrays are viewed as `rows` rows of `size` elements. outs: (shape, dtype, shape with the rows as first
    dimension); arrays: (shape of a block, whether it is split into blocks of rows). text: the source, for readers.
    """

    text = ""

    def __init__(self, body: Any, outs: list, arrays: list, rows: int, size: int) -> None:
        self.body, self.outs, self.arrays, self.rows, self.size = body, outs, arrays, rows, size

    def __call__(self, *arrays: np.ndarray) -> tuple:
        made = tuple([np.empty(shape, dtype) for shape, dtype, _ in self.outs])
        cut = [array.reshape(seen) for array, (*_, seen) in zip(made, self.outs, strict=True)]
        seen = [(array.reshape(shape), is_cut) for array, (shape, is_cut) in zip(arrays, self.arrays, strict=True)]
        body = self.body

        def apply_to_part(start: int, stop: int) -> None:
            body(*[a[start:stop] for a in cut], *[a[start:stop] if is_cut else a for a, is_cut in seen])

        is_shared = self.rows * self.size > _SHARED_FROM and can_share_work()
        block = _SHARED_SIZE if is_shared else _CACHE_SIZE
        run_blocks(apply_to_part, self.rows, self.size, block, _SHARED_FROM)
        return made


def choose_axis_to_cut(out: np.ndarray) -> int:
    """Return the outermost axis in memory that is long enough, else the longest."""
    order = sorted(range(out.ndim), key=lambda d: -abs(out.strides[d]))
    return next((d for d in order if out.shape[d] >= _LONG), max(order, key=lambda d: out.shape[d]))
