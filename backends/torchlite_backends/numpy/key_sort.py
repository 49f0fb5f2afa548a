"""Sorting and top-k of many rows by packed keys: 64-bit integers with an element's rank above its index.

NumPy sorts such keys several times faster than it computes an argsort, and ties stay stable.
"""

from __future__ import annotations

import numpy as np

from torchlite._dispatch.shapes import wrap_dim
from torchlite_backends.array.sort import sort as _shared_sort
from torchlite_backends.array.sort import take_along_last
from torchlite_backends.array.sort import topk as _shared_topk

from .cache_blocking import get_scratch_buffer, parallel_for
from .threaded_copy import copy_row_major
from .topk_ties import order_ties

# Minimum elements, and the longest rows whose indices fit.
MIN_SIZE, _LONGEST = 1 << 12, 1 << 31
_PLACE, _LAST = (1 << 32) - 1, (1 << 63) - 1
_CANDIDATE_SETS = 64
_PART = 1 << 17  # elements of a part of the work
_KEY_DTYPES = frozenset("bhiBHef")


def _has_keys(x: np.ndarray) -> bool:
    return x.dtype.char in _KEY_DTYPES and x.size >= MIN_SIZE and 1 < x.shape[-1] < _LONGEST


def _pack_sort_keys(x: np.ndarray, places: np.ndarray, descending: bool) -> np.ndarray:
    """Return the keys of elements at indices, in scratch memory."""
    keys = get_scratch_buffer(0, x.shape, np.int64)
    if x.dtype.kind == "f":
        wide, flips = get_scratch_buffer(1, x.shape, np.float32), get_scratch_buffer(2, x.shape, np.int32)
        np.add(x, np.float32(0), out=wide)  # merges the two zeros
        bits = wide.view(np.int32)
        np.right_shift(bits, 31, out=flips)
        np.bitwise_and(flips, 0x7FFFFFFF, out=flips)
        np.bitwise_xor(bits, flips, out=keys, casting="unsafe")
        missing = np.isnan(wide)
        if missing.any():  # the largest of all
            keys[missing] = 0x7FFFFFFF
    else:
        keys[...] = x
    if descending:
        np.invert(keys, out=keys)
    np.left_shift(keys, 32, out=keys)
    return np.bitwise_or(keys, places, out=keys)


def sort(input, dim=-1, descending=False, stable=False):
    x = input.swapaxes(wrap_dim(dim, input.ndim), -1) if input.ndim else input
    if not (x.ndim and _has_keys(x)):
        return _shared_sort(input, dim, descending, stable)
    rows = (x if x.flags.c_contiguous else copy_row_major(x)).reshape(-1, x.shape[-1])
    values, places = np.empty(rows.shape, rows.dtype), np.empty(rows.shape, np.int64)

    def sort_rows(start: int, stop: int) -> None:
        keys = _pack_sort_keys(rows[start:stop], np.arange(rows.shape[1]), descending)
        keys.sort(-1)
        np.bitwise_and(keys, _PLACE, out=places[start:stop])
        values[start:stop] = take_along_last(rows[start:stop], places[start:stop])

    _run_row_parts(sort_rows, *rows.shape)
    return tuple(_move_rows_to_dim(a, x.shape, dim) for a in (values, places))


def _run_row_parts(body, count: int, length: int, part: int = _PART) -> None:
    """Call `body(start, stop)` for parts that cover `range(count)`, of rows of a length."""
    step = max(1, part // length)
    parallel_for(body, [(start, min(start + step, count)) for start in range(0, count, step)])


def _move_rows_to_dim(rows: np.ndarray, shape: tuple[int, ...], dim: int) -> np.ndarray:
    """Move the last dimension of rows to `dim`."""
    result = rows.reshape(shape[:-1] + rows.shape[-1:]).swapaxes(wrap_dim(dim, len(shape)), -1)
    # `reshape` gives dimensions of size 1 row-major strides.
    return result.reshape(-1).reshape(result.shape) if result.flags.c_contiguous else copy_row_major(result)


def topk(input, k, dim=-1, largest=True, sorted=True):
    x = input.swapaxes(wrap_dim(dim, input.ndim), -1) if input.ndim else input
    if not (x.ndim and _has_keys(x) and 0 < k < x.shape[-1]):
        values, places = _shared_topk(input, k, dim, largest, sorted)
        if 0 < x.size < MIN_SIZE and k and x.ndim and x.shape[-1] > 3:
            dim = wrap_dim(dim, input.ndim)
            found = order_ties(x, largest, values.swapaxes(dim, -1), places.swapaxes(dim, -1))
            values, places = (part.swapaxes(dim, -1).reshape(-1).reshape(values.shape) for part in found)
        return values, places
    rows = (x if x.flags.c_contiguous else copy_row_major(x)).reshape(-1, x.shape[-1])
    values, places = np.empty((len(rows), k), rows.dtype), np.empty((len(rows), k), np.int64)

    def select_rows(start: int, stop: int) -> None:
        part = rows[start:stop]
        keys = _select_candidates(part, k, largest)
        if keys is None:
            keys = _pack_sort_keys(part, np.arange(rows.shape[1]), largest)
            keys.partition(k - 1, -1)
            keys = keys[:, :k]
        keys.sort(-1)
        np.bitwise_and(keys[:, :k], _PLACE, out=places[start:stop])
        values[start:stop] = take_along_last(part, places[start:stop])

    _run_row_parts(select_rows, *rows.shape, 2 * _PART)  # many short calls, for which threads would contend for the GIL
    return tuple(_move_rows_to_dim(a, x.shape, dim) for a in (values, places))


def _select_candidates(rows: np.ndarray, k: int, largest: bool) -> np.ndarray | None:
    """Return padded keys that include each row's first k; None if they are too many, or not numbers.

    The k-th of the largest elements of disjoint sets is a bound: k elements reach it, and few others do.
    """
    count, length = rows.shape
    sets, best = length, np.maximum if largest else np.minimum
    firsts = rows
    while sets // 2 >= max(
        _CANDIDATE_SETS, 4 * k
    ):  # the better of the two remaining halves; an element may be left over
        half = sets // 2
        kept = best(firsts[:, :half], firsts[:, half : 2 * half])
        if sets % 2:
            best(kept[:, 0], firsts[:, -1], out=kept[:, 0])
        firsts, sets = kept, half
    if 4 * sets > length:
        return None
    place = sets - k if largest else k - 1
    bound = np.partition(firsts, place, -1)[:, place : place + 1]
    found = np.flatnonzero(rows >= bound if largest else rows <= bound)
    if found.size > count * (4 * k + 8) or rows.dtype.kind == "f" and np.isnan(firsts).any():
        return None
    ends = np.searchsorted(found, np.arange(length, (count + 1) * length, length))
    numbers = np.diff(ends, prepend=0)
    if numbers.max() > 4 * k + 8:
        return None
    padded = np.full((count, numbers.max()), _LAST)
    slots = np.arange(found.size) + np.repeat(np.arange(count) * padded.shape[1] - (ends - numbers), numbers)
    padded.reshape(-1)[slots] = _pack_sort_keys(rows.reshape(-1)[found], found % length, largest)
    return padded
