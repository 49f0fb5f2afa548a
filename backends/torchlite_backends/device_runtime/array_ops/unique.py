"""Unique elements, rows and runs."""

from __future__ import annotations

import functools
import math

from torchlite._dispatch.shapes import wrap_dim
from torchlite_backends.kernel_sources.sort import sort_source
from torchlite_backends.kernel_sources.unique_nonzero import PLACES, ROWS

from ..core.array import Array, empty, make_view, row_major_layout
from ..core.contiguous_copy import as_contiguous
from ..core.copy_fill import fill_with
from ..core.device import round_up_to_groups
from ..core.host_transfer import to_numpy
from .scan import scan_along_dim
from .sort import SortRows, sort_items
from .view_dtype import view_as_complex, view_as_real


def _launch_elementwise(x: Array, text: str, name: str, signature: str, count: int, *arguments, **kinds: str) -> None:
    """Launch a kernel with one work-item for each of `count` elements."""
    group = min(64, x.device.max_group)
    x.device.function(text, name, signature, **(kinds or {"T": x.kind}))(
        round_up_to_groups(count, group), (group,), *arguments
    )


@functools.cache
def _places_source(kind: str) -> str:
    return sort_source("", kind) + PLACES


def _make_empty_indices(x: Array) -> Array:
    return empty(x.device, (0,), "i64")


def _view_complex_as_real_rows(x: Array) -> Array:
    """Return complex elements of a contiguous array as rows of two reals; others as rows of one."""
    if x.kind[0] != "c":
        return make_view(x, (x.size, 1), (1, 1), x.offset)
    return view_as_real(make_view(x, (x.size,), (1,), x.offset))


def _make_iota(x: Array, count: int) -> Array:
    order = empty(x.device, (count,), "i32")
    _launch_elementwise(x, ROWS, "number", "pi", count, order, count)
    return order


def _argsort_rows(x: Array) -> Array:
    """Return the order that sorts the rows of a contiguous matrix."""
    count, width = x.shape
    order, other, run = _make_iota(x, count), empty(x.device, (count,), "i32"), 1
    while run < count:
        _launch_elementwise(x, ROWS, "merge_runs", "pppiii", count, x, order, other, count, width, run)
        order, other, run = other, order, 2 * run
    return order


def _run_starts(x: Array, order: Array) -> tuple[Array, Array, Array]:
    """Return the rows (of a contiguous matrix, in an order) that start a run, each row's run number, and run
    lengths.
    """
    device, (count, width) = x.device, x.shape
    flags = empty(device, (count,), "i32")
    _launch_elementwise(x, ROWS, "starts_of_runs", "pppii", count, x, order, flags, count, width)
    numbers = scan_along_dim("cumsum", flags, 0, "i32", "i32")[0]
    found = int(to_numpy(make_view(numbers, (), (), count - 1)))
    values, inverse, starts = (
        empty(device, (found, width), x.kind),
        empty(device, (count,), "i64"),
        empty(device, (found,), "i32"),
    )
    _launch_elementwise(
        x, ROWS, "write_runs", "ppppppii", count, x, order, numbers, values, inverse, starts, count, width
    )
    lengths = empty(device, (found,), "i64")
    _launch_elementwise(x, ROWS, "lengths", "ppii", found, starts, lengths, found, count)
    return values, inverse, lengths


def _unique_flat(input, return_inverse=False, return_counts=False):
    """Return sorted unique elements, inverse indices and counts (the latter two empty unless requested)."""
    if not input.size:
        return (
            empty(input.device, (0,), input.kind),
            empty(input.device, input.shape, "i64") if return_inverse else _make_empty_indices(input),
            _make_empty_indices(input),
        )
    x = as_contiguous(input)
    rows = _view_complex_as_real_rows(x)
    if x.kind[0] == "c":
        order = _argsort_rows(rows)
    else:
        items, _ = sort_items(SortRows(make_view(x, (x.size,), (1,), x.offset), 0), False)
        order = empty(x.device, (x.size,), "i32")
        _launch_elementwise(x, _places_source(x.kind), "places", "ppi", x.size, items, order, x.size)
    values, inverse, counts = _run_starts(rows, order)
    return (
        _view_real_rows_as_kind(values, x.kind),
        make_view(inverse, input.shape, row_major_layout(input.shape)[1], 0)
        if return_inverse
        else _make_empty_indices(x),
        counts if return_counts else _make_empty_indices(x),
    )


def _view_real_rows_as_kind(rows: Array, kind: str) -> Array:
    """Inverse of `_view_complex_as_real_rows`."""
    if kind[0] != "c":
        return make_view(rows, (rows.shape[0],), (1,), 0)
    return view_as_complex(rows)


def _moveaxis_contiguous(x: Array, source: int, target: int) -> Array:
    """Move a dimension, contiguous in memory."""
    order = [d for d in range(x.ndim) if d != source]
    order.insert(target, source)
    return as_contiguous(make_view(x, tuple([x.shape[d] for d in order]), tuple([x.steps[d] for d in order]), x.offset))


def _slices_to_rows(x: Array) -> Array:
    """Return the slices along the first dimension of a contiguous array as rows of real elements."""
    reals = _view_complex_as_real_rows(x)
    width = reals.size // x.shape[0]
    return make_view(reals, (x.shape[0], width), (width, 1), reals.offset)


def _rows_to_slices(rows: Array, shape: tuple[int, ...], kind: str, dim: int) -> Array:
    """Inverse of `_slices_to_rows`: rows as slices along `dim` of an array whose other dimensions are `shape`."""
    if kind[0] == "c":
        rows = view_as_complex(make_view(rows, (rows.size // 2, 2), (2, 1), 0))
    shape = (-1 if not math.prod(shape) else rows.size // math.prod(shape), *shape)
    return _moveaxis_contiguous(make_view(rows, shape, row_major_layout(shape)[1], 0), 0, dim)


def _unique_rows(input, dim):
    dim = wrap_dim(dim, input.ndim)
    if not input.size:
        if input.shape[dim]:
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        return empty(input.device, input.shape, input.kind), _make_empty_indices(input), _make_empty_indices(input)
    x = _moveaxis_contiguous(input, dim, 0)
    rows = _slices_to_rows(x)
    values, inverse, counts = _run_starts(rows, _argsort_rows(rows))
    return _rows_to_slices(values, x.shape[1:], x.kind, dim), inverse, counts


def _unique_runs(input, dim=None):
    """Return elements (or slices along `dim`) that differ from the previous one; inverse and counts as for unique."""
    if not input.size:
        if dim is None:
            return (
                empty(input.device, (0,), input.kind),
                empty(input.device, input.shape, "i64"),
                _make_empty_indices(input),
            )
        dim = wrap_dim(dim, input.ndim)
        count = input.shape[dim]  # slices without elements are equal
        shape = input.shape[:dim] + (min(count, 1),) + input.shape[dim + 1 :]
        inverse, counts = (empty(input.device, (n,), "i64") for n in (count, min(count, 1)))
        return empty(input.device, shape, input.kind), fill_with(inverse, 0), fill_with(counts, count)
    x = as_contiguous(input) if dim is None else _moveaxis_contiguous(input, wrap_dim(dim, input.ndim), 0)
    rows = _view_complex_as_real_rows(x) if dim is None else _slices_to_rows(x)
    values, inverse, counts = _run_starts(rows, _make_iota(rows, rows.shape[0]))
    if dim is None:
        return (
            _view_real_rows_as_kind(values, x.kind),
            make_view(inverse, input.shape, row_major_layout(input.shape)[1], 0),
            counts,
        )
    return _rows_to_slices(values, x.shape[1:], x.kind, wrap_dim(dim, input.ndim)), inverse, counts
