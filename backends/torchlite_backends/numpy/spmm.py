"""Sparse-dense matrix products."""

from __future__ import annotations

import numpy as np

from .cache_blocking import parallel_for
from .deterministic_gemm import deterministic_matmul
from .gather import argsort_small_integers

# Numbers multiplied and summed at a time: with fewer, which one core's cache would hold, several threads contend for
# the GIL (ten elements a row and 64 columns: 0.72 of one thread's time, with an eighth of it 1.5).
_MAX_GATHERED = 1 << 19
# For a product of dense matrices: least elements, cells for each element, and columns of the other matrix.
_MANY, _DENSE, _WIDE = 1 << 12, 4, 16


def _check_in_range(index, size: int) -> None:
    """Raise IndexError for an index out of range, so that `take` need not check."""
    if index.size and (index.min() < 0 or index.max() >= size):
        raise IndexError("index out of range in self")


def _stable_argsort_rows(rows, size):
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=size), out=starts[1:])
    return argsort_small_integers(rows, size), starts


def fills_matrix(columns, starts, values, dense) -> bool:
    """True if the sparse matrix is best written as a dense one, whose zeros meet no infinity and no NaN."""
    cells = (starts.size - 1) * dense.shape[0]
    return (
        _MANY <= columns.size
        and cells <= _DENSE * columns.size
        and dense.shape[1] >= _WIDE
        and values.dtype.kind == dense.dtype.kind == "f"
        and bool(np.isfinite(dense).all())
    )


def _csr_mm(columns, starts, values, dense):
    rows, height = starts.size - 1, dense.shape[0]
    out = np.zeros((rows, dense.shape[1]), dense.dtype)
    _check_in_range(columns, height)
    counts, dense = np.diff(starts), np.ascontiguousarray(dense)
    if fills_matrix(columns, starts, values, dense):
        places = np.repeat(np.arange(0, rows * height, max(height, 1)), counts)
        places += columns
        filled = np.bincount(places, values, rows * height).reshape(rows, height)
        return deterministic_matmul(filled.astype(dense.dtype), dense)
    if dense.shape[1] == 1:
        used = np.flatnonzero(counts)
        if used.size:
            out[used, 0] = np.add.reduceat(dense[:, 0].take(columns) * values, starts[used], dtype=dense.dtype)
        return out

    def multiply_rows(rows, first, count):
        # They are a batch of products: of each row's values with its rows of `dense`.
        places, part = _gather_elements(first, count, columns, dense)
        out[rows] = np.matmul(values[places][:, None], part)[:, 0]

    parallel_for(multiply_rows, _batch_rows_by_count(starts, dense.shape[1]))
    return out


def _group_rows_by_count(counts):
    """Yield the rows grouped by their number of elements."""
    if counts.size and (counts == counts[0]).all():
        yield from [np.arange(counts.size)] if counts[0] else []
        return
    order = counts.argsort(kind="stable")
    sizes, first = np.unique(counts[order], return_index=True)
    for size, begin, end in zip(sizes, first, [*first, counts.size][1:], strict=True):
        if size:
            yield order[begin:end]


def _batch_rows_by_count(starts, width):
    """Return [(rows with equal numbers of elements, their starts, the number), ...]."""
    found = []
    for rows in _group_rows_by_count(np.diff(starts)):
        first = starts[rows]
        count = int(starts[rows[0] + 1] - first[0])
        step = max(1, _MAX_GATHERED // max(width * count, 1))
        found += [(rows[at : at + step], first[at : at + step], count) for at in range(0, rows.size, step)]
    return found


def _gather_elements(first, count, columns, dense):
    """Return the positions of some rows' elements, and the rows of `dense` at their columns."""
    places = first[:, None] + np.arange(count)
    return places, dense.take(columns[places], 0, mode="clip")


def _csr_mm_extremes(columns, starts, values, dense, largest):
    out = np.full((starts.size - 1, dense.shape[1]), values.size)
    _check_in_range(columns, dense.shape[0])
    dense = np.ascontiguousarray(dense)

    def combine_rows(rows, first, count):
        places, part = _gather_elements(first, count, columns, dense)
        part *= values[places][..., None]
        out[rows] = places[:, :1] + (part.argmax(1) if largest else part.argmin(1))

    parallel_for(combine_rows, _batch_rows_by_count(starts, dense.shape[1]))
    return out


def _sampled_mm(rows, columns, left, right):
    _check_in_range(rows, left.shape[0])
    _check_in_range(columns, right.shape[0])
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    out = np.empty(rows.size, left.dtype)
    step = max(1, _MAX_GATHERED // max(left.shape[1], 1))

    def multiply_samples(at):
        one = left.take(rows[at : at + step], 0, mode="clip")
        two = right.take(columns[at : at + step], 0, mode="clip")
        np.vecdot(one.conj() if left.dtype.kind == "c" else one, two, out=out[at : at + step])

    parallel_for(multiply_samples, [(at,) for at in range(0, rows.size, step)])
    return out
