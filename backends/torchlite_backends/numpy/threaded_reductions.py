"""Threaded reductions of large arrays: extremes, products, integer sums, argmax and argmin.

The partial reductions depend on the shape alone, so results are the same for any number of threads. Sums of floats are
in `threaded_sums`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite._dispatch.shapes import wrap_dim

from .cache_blocking import parallel_for, parallel_range
from .row_blocks import F32, F64
from .threaded_copy import copy_row_major
from .threaded_sums import sum_threaded

# Minimum elements for parts, and number of parts of a reduction to few numbers.
MIN_SIZE, _PIECES = 1 << 17, 8
_FUNCTIONS = {"sum": "add", "max": "maximum", "min": "minimum"}


def make_threaded_reduce(ufunc: Any):
    """Return a `ufunc.reduce` that uses threads for large arrays."""

    def reduce(array, axis=0, dtype=None, out=None, keepdims=False, **options):
        if (
            array.__class__ is not np.ndarray
            or array.size < MIN_SIZE
            or out is not None
            or options
            or array.dtype == "O"
        ):
            return ufunc.reduce(array, axis, dtype, out, keepdims, **options)
        if ufunc is np.add and array.dtype in (F32, F64) and dtype in (None, array.dtype):
            return sum_threaded(array, axis, keepdims)
        return _reduce_in_parts(ufunc, array, axis, dtype, keepdims)

    return reduce


def make_threaded_functions(spread: dict[str, Any]) -> dict[str, Any]:
    """Return `sum`, `max` and `min` by threaded reductions of ufuncs."""

    def make_function(ufunc):
        return lambda a, axis=None, dtype=None, keepdims=False: ufunc.reduce(a, axis, dtype, None, keepdims)

    return {name: make_function(spread[ufunc]) for name, ufunc in _FUNCTIONS.items()}


def _reduce_in_parts(ufunc: Any, x: np.ndarray, axis: Any, dtype: Any, keepdims: Any) -> Any:
    given = range(x.ndim) if axis is None else axis if axis.__class__ is tuple else (axis,)
    axes = tuple(sorted({wrap_dim(d, x.ndim) for d in given}))
    kept = [d for d in range(x.ndim) if d not in axes]
    if not axes:
        return ufunc.reduce(x, (), dtype, None, keepdims)
    longest = max(kept, key=lambda d: x.shape[d], default=-1)
    if kept and x.shape[longest] >= _PIECES:
        shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
        out = np.empty(shape, _result_dtype_of(ufunc, x, dtype))
        cut: Any = (slice(None),) * longest

        def reduce_slice(start: int, stop: int) -> None:
            here = (*cut, slice(start, stop))
            ufunc.reduce(x[here], axes, dtype, out[here], True)

        parallel_range(reduce_slice, x.shape[longest])
        return out if keepdims else out.reshape([x.shape[d] for d in kept])
    along = max(axes, key=lambda d: x.shape[d])
    if x.shape[along] < _PIECES:
        return ufunc.reduce(x, axes, dtype, None, keepdims)
    parts: list[Any] = [None] * _PIECES
    pieces = np.array_split(x, _PIECES, along)

    def reduce_piece(k: int) -> None:
        parts[k] = ufunc.reduce(pieces[k], axes, dtype, None, keepdims)

    parallel_for(reduce_piece, [(k,) for k in range(_PIECES)])
    return ufunc.reduce(np.stack(parts), 0, dtype)


def _result_dtype_of(ufunc: Any, x: np.ndarray, dtype: Any) -> Any:
    return ufunc.reduce(np.zeros(1, x.dtype), dtype=dtype).dtype


# --- kernels ----------------------------------------------------------------------------------------


def find_argextreme(x: np.ndarray, dim: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the extremes along a dimension and their first indices, flat in the order of the other dimensions."""
    rows = np.moveaxis(x, dim, -1)
    rows = (rows if rows.flags.c_contiguous else copy_row_major(rows)).reshape(-1, x.shape[dim])
    places = np.empty(len(rows), np.int64)
    find: Any = np.argmax if largest else np.argmin
    parallel_range(lambda start, stop: find(rows[start:stop], 1, out=places[start:stop]), len(rows))
    return rows.reshape(-1)[places + np.arange(0, rows.size, rows.shape[1])], places


def can_argextreme(x: np.ndarray, dim: Any) -> bool:
    """True if `argextreme` applies: many rows of numbers."""
    if dim.__class__ is not int or not -x.ndim <= dim < x.ndim or x.dtype.kind not in "fiu":
        return False
    return x.size >= MIN_SIZE and 1 < x.shape[dim] <= x.size // _PIECES


def compute_reduced_shape(x: np.ndarray, dim: int, keepdim: bool) -> list[int]:
    """Return the shape after reducing a dimension."""
    shape = [*x.shape]
    shape[dim : dim % x.ndim + 1] = [1] if keepdim else []
    return shape
