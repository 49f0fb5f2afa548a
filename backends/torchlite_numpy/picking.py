"""Elements and rows of large arrays by index: by NumPy's `take` in parts on several threads.

`take` with a mode does not test each index by itself, which costs as much as the rest; what is out of bounds is found
before.
"""

from __future__ import annotations

import numpy as np

from torchlite._dispatch.shapes import wrap_dim
from torchlite_array.scatter import gather as _shared_gather

from .blocks import buffer, run

# Indices from which parts are worth it, and of a part.
LARGE, _PART = 1 << 12, 1 << 17


def within(indices: np.ndarray, length: int) -> bool:
    """Whether none of some int64 indices is negative or too large."""
    return not indices.size or indices.view(np.uint64).max() < length


def gather(input, dim, index, *, sparse_grad=False):
    if (
        index.size < LARGE
        or input.ndim != index.ndim
        or wrap_dim(dim, input.ndim) != input.ndim - 1
        or input.shape[:-1] != index.shape[:-1]
        or index.dtype != np.int64
        or not (input.flags.c_contiguous and index.flags.c_contiguous)
        or not within(index, input.shape[-1])
    ):
        return _shared_gather(input, dim, index, sparse_grad=sparse_grad)
    length = input.shape[-1]
    out = np.empty(index.shape, input.dtype)
    rows, places, result = (
        input.reshape(-1, length),
        index.reshape(-1, index.shape[-1]),
        out.reshape(-1, index.shape[-1]),
    )

    def body(start: int, stop: int) -> None:
        flat = buffer(0, (stop - start, places.shape[1]), np.int64)
        np.add(places[start:stop], np.arange(0, (stop - start) * length, length)[:, None], out=flat)
        np.take(rows[start:stop], flat, out=result[start:stop], mode="clip")

    run(body, *places.shape, _PART)
    return out


def rows_at(table: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The rows of a matrix at int64 indices, which are within its bounds."""
    width = table.shape[1]
    if indices.size * width < LARGE or not table.flags.c_contiguous:
        return table.take(indices, 0)
    out = np.empty((*indices.shape, width), table.dtype)
    flat, rows = indices.reshape(-1), out.reshape(-1, width)

    def body(start: int, stop: int) -> None:
        np.take(table, flat[start:stop], 0, rows[start:stop], "clip")

    run(body, *rows.shape)
    return out
