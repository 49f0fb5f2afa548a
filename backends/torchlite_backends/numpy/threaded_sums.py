"""Threaded sums over dimensions of large float arrays, independent of the number of threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .blas import single_threaded
from .cache_blocking import parallel_for
from .row_blocks import F64, LONGEST_DOT, ones, sum_long_rows, sum_row, sum_short_rows

# Elements of a part, and maximum number of parts: two threads contend for the GIL, so parts are few and long. Of 2^22
# elements eight parts took a quarter of the time of 64.
_PART, _PARTS = 1 << 18, 8
# Rows that BLAS adds up one after the other, and rows that NumPy does; their sums are added up in float64.
_COLUMN_RUN, _LONGEST_COLUMN_RUN, _ROW_RUN = 128, 256, 64
# Numbers of a row of complex sums, real and imaginary parts in turn.
_COMPLEX_ROW = 128
# Minimum row lengths for which NumPy sums several rows well, and for which one piece of a row is a part.
_NARROW, _WIDE = 64, 1 << 13


def sum_threaded(x: np.ndarray, axes: Any, keepdim: Any = False, wide: bool = False) -> Any:
    """`np.add.reduce` over axes: None for all, a number, or a tuple; the result is float64 if `wide`."""
    if 0 < x.size <= _PART and x.flags.c_contiguous and (axes is None or _are_all(x.shape, axes)):
        total = sum_row(x.reshape(-1))
        if keepdim or axes is not None:
            total = np.reshape(total, _shape_of_sum(x.ndim, axes, keepdim))
    else:
        total = _sum_in_float64(x, axes, keepdim)
    return total if wide else total.astype(x.dtype, copy=False)


def sum_complex(x: np.ndarray, axes: Any, keepdim: Any = False) -> np.ndarray | None:
    """Return sums over the first dimensions, or over all, of a row-major complex array: those of its parts, with the
    precision of real sums. None for other dimensions or memory orders.
    """
    summed = _sort_axes(axes, x.ndim)
    if not (summed and x.size and x.flags.c_contiguous) or summed != list(range(len(summed))):
        return None
    count, after = math.prod(x.shape[: len(summed)]), 2 * math.prod(x.shape[len(summed) :])
    parts = x.reshape(-1).view(x.real.dtype)
    repeats = max(1, min(_COMPLEX_ROW // after, count))  # several rows are one, for sums of long vectors
    whole = count // repeats * repeats * after
    total = _sum_columns(parts[:whole].reshape(1, -1, repeats * after)).reshape(-1, after)
    if repeats > 1:
        total = np.add.reduce(total, 0)
    if whole < parts.size:
        total = total + np.add.reduce(parts[whole:].reshape(-1, after), 0, dtype=F64)
    kept = x.shape[len(summed) :]
    out = np.empty((1,) * len(summed) + kept if keepdim else kept, x.dtype)
    out.reshape(-1).view(parts.dtype)[...] = total.reshape(-1)
    return out


def _are_all(shape: tuple[int, ...], axes: Any) -> bool:
    """True if all elements are added up: the other dimensions have a length of one."""
    return math.prod(shape) == (shape[axes] if axes.__class__ is int else math.prod([shape[d] for d in axes]))


def _shape_of_sum(ndim: int, axes: Any, keepdim: bool) -> tuple[int, ...]:
    """Return the shape of one sum: dimensions of length one."""
    count = ndim if axes is None else 1 if axes.__class__ is int else len({d % ndim for d in axes})
    return (1,) * (ndim if keepdim else ndim - count)


def _sum_in_float64(x: np.ndarray, axes: Any, keepdim: Any = False) -> Any:
    summed = _sort_axes(axes, x.ndim)
    kept = tuple(n for d, n in enumerate(x.shape) if d not in summed)
    shape = tuple(1 if d in summed else n for d, n in enumerate(x.shape)) if keepdim else kept
    if not x.flags.c_contiguous and summed:
        order = sorted(range(x.ndim), key=lambda d: -x.strides[d])
        turned = x.transpose(order)
        if turned.flags.c_contiguous:
            total: Any = _sum_in_float64(turned, tuple(order.index(d) for d in summed), True)
            return total.transpose([order.index(d) for d in range(x.ndim)]).reshape(shape)
    if not x.flags.c_contiguous or not summed:
        total = np.add.reduce(x, axes, dtype=F64, keepdims=keepdim)
        return total.copy(order="C") if total.ndim else total
    first, last = summed[0], summed[-1]
    if last - first + 1 != len(summed):  # with others between: one run after the other
        inner = _sum_in_float64(x, tuple(d for d in summed if d > first))
        return _sum_in_float64(inner, first).reshape(shape)
    before, count, after = (math.prod(x.shape[a:b]) for a, b in ((0, first), (first, last + 1), (last + 1, x.ndim)))
    cube = x.reshape(before, count, after)
    return (_sum_rows(cube[:, :, 0]) if after == 1 else _sum_columns(cube)).reshape(shape)


def _choose_part_size(size: int) -> int:
    """Return the elements of a part of an array, by its size alone."""
    return max(_PART, -(-size // _PARTS))


def _sort_axes(axes, ndim: int) -> list[int]:
    if axes is None:
        return list(range(ndim))
    return sorted(d % ndim for d in (axes if axes.__class__ is tuple else (axes,)))


def _sum_rows(rows: np.ndarray) -> np.ndarray:
    count, length = rows.shape
    size = _choose_part_size(rows.size)
    if count < _PARTS and length > LONGEST_DOT:
        pieces = max(1, count * length // size // count)
        bounds = [length * k // pieces for k in range(pieces + 1)]
        partial = np.empty((count, pieces))

        def sum_piece(row: int, k: int) -> None:
            partial[row, k] = sum_row(rows[row, bounds[k] : bounds[k + 1]])

        with single_threaded:
            parallel_for(sum_piece, [(row, k) for row in range(count) for k in range(pieces)])
        return np.add.reduce(partial, 1)
    out = np.empty(count)
    step = max(1, size // max(length, 1))

    def sum_rows_part(start: int) -> None:
        block = rows[start : start + step]
        out[start : start + step] = sum_long_rows(block) if length > LONGEST_DOT else sum_short_rows(block)

    with single_threaded:
        parallel_for(sum_rows_part, [(start,) for start in range(0, count, step)])
    return out


def _sum_columns(cube: np.ndarray) -> np.ndarray:
    before, count, after = cube.shape
    if after >= _WIDE or before > 1 and after >= _NARROW:
        return _add_rows(cube)
    height = min(LONGEST_DOT, max(1, _choose_part_size(cube.size) // after))
    run = min(_LONGEST_COLUMN_RUN, max(_COLUMN_RUN, (1 << 12) // after))
    height = max(height // run, 1) * run
    pieces = -(-count // height)
    partial = np.empty((before, pieces, after))

    def sum_piece(place: int, k: int) -> None:
        rows = cube[place, k * height : (k + 1) * height]
        whole = len(rows) // run * run
        runs = np.matmul(ones(run, cube.dtype), rows[:whole].reshape(-1, run, after))
        total = np.add.reduce(runs, 0, dtype=F64, out=partial[place, k])
        if whole < len(rows):
            total += np.dot(ones(len(rows) - whole, cube.dtype), rows[whole:])

    with single_threaded:
        parallel_for(sum_piece, [(place, k) for place in range(before) for k in range(pieces)])
    return partial[:, 0] if pieces == 1 else np.add.reduce(partial, 1)


def _add_rows(cube: np.ndarray) -> np.ndarray:
    """Add up the sums of wide rows, few of them one after the other."""
    before, count, after = cube.shape
    out = np.empty((before, after))
    size = _choose_part_size(cube.size)
    width = max(_NARROW, min(after, size // count if before == 1 else after))
    height = max(1, size // (count * after))

    def add_part(first: int, start: int) -> None:
        here = slice(first, first + height), slice(start, start + width)
        part, total = cube[here[0], :, here[1]], out[here]
        np.copyto(total, np.add.reduce(part[:, :_ROW_RUN], 1))
        for row in range(_ROW_RUN, count, _ROW_RUN):
            total += np.add.reduce(part[:, row : row + _ROW_RUN], 1)

    parallel_for(add_part, [(first, start) for first in range(0, before, height) for start in range(0, after, width)])
    return out
