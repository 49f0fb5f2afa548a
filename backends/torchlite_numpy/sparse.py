"""Products of sparse matrices and dense ones."""

from __future__ import annotations

import itertools

import numpy as np

# Numbers that are multiplied and added up at once: what a core's cache holds.
_AT_ONCE = 1 << 16


def _rows_times(rows, starts, columns, values, dense):
    """The elements of some rows at a time: theirs of `dense`, times the values, added up row by row."""
    count, width = starts.size - 1, dense.shape[1]
    out = np.zeros((count, width), values.dtype)
    used = np.flatnonzero(starts[1:] > starts[:-1])
    first = starts[used]
    dense, target = (dense[:, 0], out[:, 0]) if width == 1 else (dense, out)
    factors = values if width == 1 else values[:, None]
    step = max(1, _AT_ONCE // max(width, 1))
    cuts = [*np.unique(np.searchsorted(first, np.arange(0, values.size, step))).tolist(), used.size]
    for at, end in itertools.pairwise(cuts):
        if at == end:
            continue
        low, high = int(first[at]), int(first[end]) if end < used.size else values.size
        part = dense.take(columns[low:high], 0)
        part *= factors[low:high]
        target[used[at:end]] = np.add.reduceat(part, first[at:end] - low, 0)
    return out
