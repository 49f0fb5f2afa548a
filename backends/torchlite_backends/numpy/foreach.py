"""Multi-tensor (foreach) ops in place: one norm, scale or clamp of a list of arrays.

Small arrays are the cost: each NumPy call takes as long as thousands of elements.
"""

from __future__ import annotations

import math

import numpy as np

from .blas import single_threaded
from .cache_blocking import parallel_for
from .norms import are_squares_in_range, scaled_norm_of_all

# Arrays of at most this many elements are concatenated, up to _PART elements: that is faster than a call for each.
# Larger ones are split into parts of this size; from _SHARED elements in total several threads share the parts.
_GATHERED, _PART, _SHARED = 1 << 12, 1 << 15, 1 << 17

# NumPy's function without its Python wrapper, which takes longer than a small array.
_clip = getattr(getattr(getattr(np, "_core", None), "umath", None), "clip", np.clip)


def _total_norm(arrays):
    parts, small = [], []
    for array in arrays:
        if array.size <= _GATHERED:
            small.append(array)
        else:
            parts += _view_flat_chunks(array if array.flags.forc else array.copy())
    parts += _concat_small(small)
    squares = [0.0] * len(parts)

    def compute_square(k):
        squares[k] = float(parts[k].dot(parts[k]))

    with single_threaded:  # BLAS adds up in another order on more threads
        _run_parallel_chunks(compute_square, len(parts))
    total, dtype = math.fsum(squares) if all(map(math.isfinite, squares)) else math.inf, arrays[0].dtype
    if not are_squares_in_range(total, dtype):  # of squares beyond it, or so small that they lost digits
        return scaled_norm_of_all(arrays)
    return dtype.type(math.sqrt(total))


def _scale_all(arrays, factor):
    if factor == 1:
        return
    multiply, large = np.multiply, []
    for array in arrays:
        if array.size <= _PART or not array.flags.forc:
            multiply(array, factor, array)
        else:
            large += _view_flat_chunks(array)
    _run_parallel_chunks(lambda k: multiply(large[k], factor, large[k]), len(large))


def _clamp_all(arrays, low, high):
    least, most = (np.array(limit, arrays[0].dtype) for limit in (low, high))

    large = []
    for array in arrays:
        if array.size <= _PART or not array.flags.forc:
            _clip(array, least, most, out=array)
        else:
            large += _view_flat_chunks(array)
    _run_parallel_chunks(lambda k: _clip(large[k], least, most, out=large[k]), len(large))


def _view_flat_chunks(array):
    """Return flat views of parts of an array that occupies one block."""
    flat = array.ravel("K")
    return [flat[start : start + _PART] for start in range(0, flat.size, _PART)]


def _concat_small(arrays):
    """Concatenate small arrays to few flat copies."""
    found, together, size = [], [], 0
    for array in arrays:
        together.append(array)
        size += array.size
        if size >= _PART:
            found.append(np.concatenate(together, None))
            together, size = [], 0
    if together:
        found.append(np.concatenate(together, None))
    return found


def _run_parallel_chunks(body, count):
    """Call `body(k)` for all k, several parts per call, on threads if there are many."""
    step = max(1, _SHARED // 4 // _PART)
    runs = [(k, min(k + step, count)) for k in range(0, count, step)]

    def run(start, stop):
        for k in range(start, stop):
            body(k)

    if count * _PART < _SHARED:
        run(0, count)
    else:
        parallel_for(run, runs)
