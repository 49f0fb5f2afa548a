"""Products of sparse matrices and dense ones."""

from __future__ import annotations

import numpy as np

# Numbers that are multiplied and added up at once: what a core's cache holds.
_AT_ONCE = 1 << 16


def _inside(index, size: int) -> None:
    """IndexError for an index that is none, so that `take` need not look."""
    if index.size and (index.min() < 0 or index.max() >= size):
        raise IndexError("index out of range in self")


def _rows_in_order(rows, size):
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=size), out=starts[1:])
    # Numbers of two bytes are sorted digit by digit, in a tenth of the time.
    order = rows.astype(np.uint16).argsort(kind="stable")
    for digit in range(16, int(size).bit_length(), 16):
        order = order.take((rows >> digit).astype(np.uint16).take(order).argsort(kind="stable"))
    return order, starts


def _rows_times(starts, columns, values, dense):
    out = np.zeros((starts.size - 1, dense.shape[1]), dense.dtype)
    _inside(columns, dense.shape[0])
    counts, dense = np.diff(starts), np.ascontiguousarray(dense)
    if dense.shape[1] == 1:
        used = np.flatnonzero(counts)
        if used.size:
            out[used, 0] = np.add.reduceat(dense[:, 0].take(columns) * values, starts[used], dtype=dense.dtype)
        return out
    for rows in _by_count(counts):
        # They are a batch of products: of each row's values with its rows of `dense`.
        for at, places, part in _gathered(rows, starts, columns, dense):
            out[at] = np.matmul(values[places][:, None], part)[:, 0]
    return out


def _by_count(counts):
    """The rows that have as many elements as each other."""
    if counts.size and (counts == counts[0]).all():
        yield from [np.arange(counts.size)] if counts[0] else []
        return
    order = counts.argsort(kind="stable")
    sizes, first = np.unique(counts[order], return_index=True)
    for size, rows in zip(sizes, np.split(order, first[1:]), strict=True):
        if size:
            yield rows


def _gathered(rows, starts, columns, dense):
    """Of some rows with as many elements as each other at a time: (the rows, their elements' places, these' rows of
    `dense`).
    """
    first, width = starts[rows], dense.shape[1]
    count = int(starts[rows[0] + 1] - first[0])
    step = max(1, _AT_ONCE // max(width * count, 1))
    for at in range(0, rows.size, step):
        places = first[at : at + step, None] + np.arange(count)
        yield rows[at : at + step], places, dense.take(columns[places], 0, mode="clip")


def _rows_extremes(starts, columns, values, dense, largest):
    out = np.full((starts.size - 1, dense.shape[1]), values.size)
    _inside(columns, dense.shape[0])
    dense = np.ascontiguousarray(dense)
    for rows in _by_count(np.diff(starts)):
        for at, places, part in _gathered(rows, starts, columns, dense):
            part *= values[places][..., None]
            out[at] = places[:, :1] + (part.argmax(1) if largest else part.argmin(1))
    return out


def _products_at(rows, columns, left, right):
    _inside(rows, left.shape[0])
    _inside(columns, right.shape[0])
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    out = np.empty(rows.size, left.dtype)
    step = max(1, _AT_ONCE // max(left.shape[1], 1))
    for at in range(0, rows.size, step):
        one = left.take(rows[at : at + step], 0, mode="clip")
        two = right.take(columns[at : at + step], 0, mode="clip")
        np.vecdot(one.conj() if left.dtype.kind == "c" else one, two, out=out[at : at + step])
    return out
