"""Running maxima and minima of large arrays of numbers, with the places of the latest ones.

NumPy's `accumulate` takes three nanoseconds a number. In pieces of a row the extremes of 2, 4, 8 ... neighbours are
found by vectors; the pieces follow each other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlite._dispatch.shapes import wrap_dim
from torchlite_backends.array import scan as shared

from .cache_blocking import run_blocks
from .row_blocks import as_contiguous

_FEW, _BLOCK = 1 << 12, 1 << 17  # elements below which the shared kernels serve, and of a block of rows
# Elements of a piece of a row, of a row in one piece, and of those that are in the cache together.
_PIECE, _LONGEST_PIECE, _CHUNK = 256, 512, 1 << 17
_WIDE = 256  # elements side by side from which whole rows are compared one after the other


def cummax(input, dim):
    return _run(np.maximum, shared.cummax, input, dim)


def cummin(input, dim):
    return _run(np.minimum, shared.cummin, input, dim)


def _run(extreme: np.ufunc, plain: Any, input: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    kind = input.dtype
    if input.size < _FEW or kind.kind not in "fiu" or kind.itemsize < 4 and kind.kind == "f":
        return plain(input, dim)
    dim = wrap_dim(dim, input.ndim)
    length, inner = input.shape[dim], math.prod(input.shape[dim + 1 :])
    if inner >= _WIDE:
        return plain(input, dim)
    rows = as_contiguous(np.moveaxis(input, dim, -1)).reshape(-1, length)
    values, places = np.empty(rows.shape, kind), np.empty(rows.shape, np.int64)

    def run_rows(start: int, stop: int) -> None:
        _accumulate(extreme, rows[start:stop], values[start:stop])
        _find_latest(rows[start:stop], values[start:stop], places[start:stop])

    run_blocks(run_rows, *rows.shape, block=_BLOCK)
    shape = (*input.shape[:dim], *input.shape[dim + 1 :], length)
    found = [as_contiguous(np.moveaxis(a.reshape(shape), -1, dim)) for a in (values, places)]
    return found[0], found[1]


def _accumulate(extreme: np.ufunc, rows: np.ndarray, out: np.ndarray) -> None:
    """Write the running extremes of each row."""
    count, length = rows.shape
    piece = length if length <= _LONGEST_PIECE else _PIECE
    step = piece * max(1, _CHUNK // (piece * count))
    for start in range(0, length, step):
        here, stop = out[:, start : start + step], min(start + step, length)
        whole = (stop - start) // piece * piece
        if whole:
            _accumulate_pieces(extreme, rows[:, start : start + whole], here[:, :whole], piece)
        if start + whole < stop:
            extreme.accumulate(rows[:, start + whole : stop], 1, out=here[:, whole:])
            if whole:
                extreme(here[:, whole - 1 : whole], here[:, whole:], out=here[:, whole:])
        if start:
            extreme(out[:, start - 1 : start], here, out=here)


def _accumulate_pieces(extreme: np.ufunc, rows: np.ndarray, out: np.ndarray, piece: int) -> None:
    """Write the running extremes of rows of several pieces. The pieces are columns in memory: shifts are contiguous."""
    pieces = rows.shape[1] // piece
    now = np.ascontiguousarray(rows.reshape(-1, piece).T)
    after, step = np.empty_like(now), 1
    while step < piece:
        after[:step] = now[:step]
        extreme(now[:-step], now[step:], out=after[step:])
        now, after, step = after, now, 2 * step
    if pieces == 1:
        out[...] = now.T
        return
    found = now.T.reshape(-1, pieces, piece)
    before = extreme.accumulate(found[:, :, -1], 1)
    blocks = out.reshape(-1, pieces, piece) if out.flags.c_contiguous else np.empty(found.shape, out.dtype)
    blocks[:, 0] = found[:, 0]
    extreme(before[:, :-1, None], found[:, 1:], out=blocks[:, 1:])
    if not out.flags.c_contiguous:
        out[...] = blocks.reshape(out.shape)


def _find_latest(rows: np.ndarray, values: np.ndarray, places: np.ndarray) -> None:
    """Write the place of each running extreme: of the latest equal element, or the latest NaN."""
    met = rows == values
    if rows.dtype.kind == "f" and np.isnan(values[:, -1]).any():
        met |= np.isnan(rows)
    length = rows.shape[1]
    found = np.flatnonzero(met)
    counts = np.diff(found, append=met.size)
    places.reshape(-1)[:] = np.repeat(found % length, counts)
