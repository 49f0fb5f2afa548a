"""Sorting, top-k, selection by rank, searchsorted."""

from __future__ import annotations

import math
import struct

import numpy as np

from torchlite._dispatch.memory_layout import warn_of_strides_in_search
from torchlite._dispatch.shape_and_value_checks import check_search, check_sorter, searches_right
from torchlite._dispatch.shapes import wrap_dim
from torchlite._types.dtypes import from_np
from torchlite_backends.kernel_sources.sort import has_64bit_keys, sort_source

from ..core.array import Array, empty, kind_of, make_view
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device, Function, round_up_to_groups
from ..core.device_asserts import check_takes
from ..core.host_transfer import from_numpy, to_numpy
from ..core.pointwise_dispatch import cast
from .scan import scan_along_dim

_pack = struct.Struct("8i").pack
_MAX_INSERTION_K = 64  # the most elements that are selected by insertion into a list
_SHORT_LENGTH = 64  # rows up to which `topk` orders equal elements as PyTorch does
_MIN_RADIX_LENGTH = 1 << 15  # minimum elements of a single row for the radix sort on the full device


class SortRows:
    """Rows of a contiguous array along a dimension: `length` elements that are `inner` apart."""

    __slots__ = ("x", "dim", "count", "length", "inner", "device")

    def __init__(self, x: Array, dim: int):
        self.x, self.dim, self.device = as_contiguous(x), dim, x.device
        self.length = x.shape[dim] if x.shape else 1
        self.inner = math.prod(x.shape[dim + 1 :])
        self.count = x.size // self.length if self.length else 0

    def pack(self, width: int = 0, keep: int = 0, parts: int = 1, chunk: int = 0, items: int = 0) -> bytes:
        """Return the kernels' struct."""
        return _pack(self.count, self.length, self.inner, width, keep, parts, chunk, items)

    def shape(self, length: int, keepdim: bool = True) -> tuple[int, ...]:
        """Return the array's shape with rows of another length."""
        shape = self.x.shape
        return shape[: self.dim] + ((length,) if keepdim else ()) + shape[self.dim + 1 :] if shape else ()

    def function(
        self,
        family: str,
        name: str,
        signature: str,
        descending: bool = False,
        widths: tuple[int, ...] = (),
        **kinds: str,
    ) -> Function:
        return self.device.function(
            sort_source(family, self.x.kind, descending), name, signature, widths, T=self.x.kind, **kinds
        )

    def items(self, count: int) -> Array:
        """Allocate items."""
        return empty(self.device, (count * (2 if has_64bit_keys(self.x.kind) else 1),), "i64")


def _choose_group_size(device: Device, items: int) -> int:
    if not device.is_cpu:
        return min(64, device.group)
    return 16 if items >= 64 * device.units else 1


def _launch_items(function: Function, items: int, *arguments) -> None:
    """Launch a kernel with much work per work-item."""
    group = _choose_group_size(function.device, items)
    function(round_up_to_groups(items, group), (group,), *arguments)


def _launch_elements(function: Function, count: int, *arguments) -> None:
    """Launch a kernel with one element per work-item."""
    group = min(64, function.device.max_group)
    function(round_up_to_groups(count, group), (group,), *arguments)


def sort_items(rows: SortRows, descending: bool) -> tuple[Array, int]:
    """Return the items of all rows sorted stably, and the distance of two rows of items."""
    device = rows.device
    if not device.is_cpu:
        return _bitonic_sort(rows, descending)
    if rows.length >= _MIN_RADIX_LENGTH and rows.count < 2 * device.units:
        return _radix_sort(rows, descending), rows.length
    out, items = rows.items(rows.count * rows.length), min(rows.count, 4 * device.units)
    spare = out if rows.length <= 48 else rows.items(items * rows.length)
    rows.function("rows", "rows", "pppx", descending)((items,), (1,), rows.x, out, spare, rows.pack(items=items))
    return out, rows.length


def _radix_sort(rows: SortRows, descending: bool) -> Array:
    device, total = rows.device, rows.count * rows.length
    parts = 2 * device.units
    form = rows.pack(rows.length, 0, parts, -(-rows.length // parts))
    items, spare = rows.items(total), rows.items(total)
    counts = empty(device, (rows.count, 256 * parts), "i32")
    _launch_elements(rows.function("long", "make", "ppx", descending), total, rows.x, items, form)
    tally, scatter = (
        rows.function("long", "tally", "ppxi", descending),
        rows.function("long", "scatter", "ppppxi", descending),
    )
    for shift in range(0, 8 * min(rows.x.itemsize if rows.x.kind not in ("f16", "bf16") else 4, 8), 8):
        _launch_items(tally, rows.count * parts, items, counts, form, shift)
        _launch_items(
            scatter,
            rows.count * parts,
            items,
            counts,
            scan_along_dim("cumsum", counts, 1, "i32", "i32")[0],
            spare,
            form,
            shift,
        )
        items, spare = spare, items
    return items


def _bitonic_sort(rows: SortRows, descending: bool) -> tuple[Array, int]:
    device = rows.device
    width = 1 << max(rows.length - 1, 1).bit_length()
    total, group = rows.count * width, min(256, device.group)
    items, span = rows.items(total), str(2 * group)
    _launch_elements(rows.function("long", "make", "ppx", descending), total, rows.x, items, rows.pack(width))
    near, far = (rows.function("network", name, "piiii", descending, SPAN=span) for name in ("near", "far"))
    near(round_up_to_groups(-(-total // 2), group), (group,), items, total, width - 1, 2, min(width, 2 * group))
    size = 4 * group
    while size <= width:
        step = size // 2
        while step >= 2 * group:
            _launch_elements(far, total // 2, items, total, width - 1, size, step)
            step //= 2
        near(round_up_to_groups(-(-total // 2), group), (group,), items, total, width - 1, size, size)
        size *= 2
    return items, width


def _write_sorted(rows: SortRows, items: Array, width: int, keep: int) -> tuple[Array, Array]:
    """Return elements and indices of the first `keep` items of each row."""
    device = rows.device
    values, places = empty(device, rows.shape(keep), rows.x.kind), empty(device, rows.shape(keep), "i64")
    parts = max(1, min(-(-keep // 256), -(-4 * device.units // rows.count))) if device.is_cpu else keep
    form = rows.pack(width, keep, parts, -(-keep // parts))
    _launch_items(rows.function("write", "write", "ppppx"), rows.count * parts, rows.x, items, values, places, form)
    return values, places


def _scalar_type_name(x: Array) -> str:
    return from_np(x.dtype).scalar_name


def _return_scalar_and_index(x: Array) -> tuple[Array, Array]:
    """Return a 0-d array's only element and its index."""
    return cast(x, x.kind, empty(x.device, (), x.kind)), from_numpy(np.zeros((), np.int64), x.device)


def sort(input, dim=-1, descending=False, stable=False):
    if input.kind[0] == "c":
        raise RuntimeError("Sort does not support complex dtypes on CPU")
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return _return_scalar_and_index(input)
    if not input.size:
        return empty(input.device, input.shape, input.kind), empty(input.device, input.shape, "i64")
    rows = SortRows(input, dim)
    return _write_sorted(rows, *sort_items(rows, bool(descending)), rows.length)


def topk(input, k, dim=-1, largest=True, sorted=True):
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim] if input.ndim else 1
    if not 0 <= k <= size:
        raise RuntimeError("selected index k out of range")
    if not input.ndim and k:
        return _return_scalar_and_index(input)
    rows = SortRows(input, dim)
    shape = rows.shape(k) if input.ndim else (0,)
    if not input.size or not k:
        return empty(input.device, shape, input.kind), empty(input.device, shape, "i64")
    if size <= _SHORT_LENGTH:
        found = rows.items(rows.count * k)
        function = rows.function("short", "select_short", "ppx", largest, LONGEST=str(_SHORT_LENGTH))
        _launch_items(function, rows.count, rows.x, found, rows.pack(k, k))
        return _write_sorted(rows, found, k, k)
    if k > _MAX_INSERTION_K or 4 * k > size:
        return _write_sorted(rows, *sort_items(rows, largest), k)
    return _write_sorted(rows, *_select_topk(rows, k, largest), k)


def _select_topk(rows: SortRows, k: int, largest: bool) -> tuple[Array, int]:
    """Return the items of the first k of each row in order, and the distance of two rows of items."""
    device = rows.device
    target, least = (4 * device.units, 16384) if device.is_cpu else (1024 * device.units, max(64, 8 * k))
    parts = max(1, min(-(-target // rows.count), rows.length // least)) if rows.count < target else 1
    chunk = max(-(-rows.length // parts), k)
    parts = -(-rows.length // chunk)
    vectors = device.is_cpu and rows.inner == 1 and rows.length > 2 * k + 32
    kinds = {"MOST": str(max(8, 1 << (k - 1).bit_length()))}
    if vectors:
        kinds["BEYOND"] = "<=" if largest else ">="
    found = rows.items(rows.count * parts * k)
    form = rows.pack(k, k, parts, chunk)
    _launch_items(
        rows.function("select", "select_parts", "ppx", largest, (16,) if vectors else (), **kinds),
        rows.count * parts,
        rows.x,
        found,
        form,
    )
    if parts > 1:
        _launch_items(
            rows.function("select", "select_all", "px", largest, (16,) if vectors else (), **kinds),
            rows.count,
            found,
            form,
        )
    return found, parts * k


def select_by_rank(input: Array, dim: int, keepdim: bool, which: int, rank: int = 0) -> tuple[Array, Array]:
    """Return one element of each row and its index.

    `which` is 0 for the element of a rank, 1 for the median, 2 for the median without NaN, 3 for the mode.
    """
    check_takes(input, "fib", ("kthvalue_cpu", "median_cpu", "nanmedian_cpu", "mode_cpu")[which])
    rows = SortRows(input, dim)
    device = rows.device
    shape = rows.shape(1, keepdim)
    values, places = empty(device, shape, input.kind), empty(device, shape, "i64")
    if values.size:
        if which < 3 and device.is_cpu:
            items = min(rows.count, 4 * device.units)
            spare = rows.items(items * rows.length)
            rows.function("rank", "rank", "ppppx", RANK=str(which))(
                (items,), (1,), rows.x, values, places, spare, rows.pack(keep=rank, items=items)
            )
        else:
            ranked, width = sort_items(rows, False)
            _launch_items(
                rows.function("pick", "pick", "ppppx", RANK=str(which)),
                rows.count,
                rows.x,
                ranked,
                values,
                places,
                rows.pack(width, rank),
            )
    return values, places


def kthvalue(input, k, dim=-1, keepdim=False):
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim] if input.ndim else 1
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return _return_scalar_and_index(input) if not input.ndim else select_by_rank(input, dim, keepdim, 0, k - 1)


# Search


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    warn_of_strides_in_search(sorted_sequence, input, sorter)
    right = searches_right(right, side)
    if sorter is not None:  # the kernel reads at these offsets
        check_sorter(sorted_sequence.shape, sorter.shape, from_np(sorter.dtype), to_numpy(sorter))
    keys, values = as_contiguous(sorted_sequence), input
    device = keys.device
    if values.__class__ is not Array:
        values = from_numpy(np.asarray(values), device)
    check_search(keys, values)
    kind = kind_of(np.promote_types(keys.dtype, values.dtype)) if keys.kind != values.kind else keys.kind
    if values is not input and keys.kind[0] in "fb":
        kind = keys.kind
    keys, values = as_contiguous(cast(keys, kind)), as_contiguous(cast(values, kind))
    out = empty(device, values.shape, "i32" if out_int32 else "i64")
    if out.size:
        length = keys.shape[-1] if keys.ndim else 1
        per_row = values.shape[-1] if values.ndim else 1
        kinds = {"T": kind, "O": out.kind, "BEYOND": ">" if right else ">="} | (
            {"SORTED_BY": "1"} if sorter is not None else {}
        )
        function = device.function(sort_source("search", kind), "search", "ppppiiii", **kinds)
        _launch_elements(
            function,
            out.size,
            keys,
            keys if sorter is None else as_contiguous(sorter),
            values,
            out,
            out.size // per_row,
            per_row,
            length,
            int(keys.ndim <= 1),
        )
    return out


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    if elements.__class__ is not Array and test_elements.__class__ is not Array:
        raise TypeError(
            f"isin() received an invalid combination of arguments - got ({type(elements).__name__}, "
            f"{type(test_elements).__name__}), but expected one of:\n"
            " * (Tensor elements, Tensor test_elements)\n"
            " * (Number element, Tensor test_elements)\n"
            " * (Tensor elements, Number test_element)"
        )
    sides = [elements, test_elements]
    for side in sides:
        if side.__class__ is Array and (side.kind[0] == "c" or side.kind == "b8"):
            raise RuntimeError(f"Unsupported input type encountered for isin(): {_scalar_type_name(side)}")
    device = next(side.device for side in sides if side.__class__ is Array)
    dtypes = [side.dtype if side.__class__ is Array else side for side in sides]
    kind = kind_of(np.result_type(*dtypes)) if not any(d == "bfloat16" for d in dtypes) else "f32"
    x, test = (
        as_contiguous(cast(side if side.__class__ is Array else from_numpy(np.asarray(side), device), kind))
        for side in sides
    )
    out = empty(device, x.shape, "b8")
    if out.size:
        test = make_view(test, (test.size,), (1,), test.offset)
        rows = SortRows(test, 0)
        items = sort_items(rows, False)[0] if test.size else rows.items(1)
        _launch_elements(
            device.function(sort_source("among", kind), "among", "pppiii", T=kind),
            out.size,
            x,
            items,
            out,
            out.size,
            test.size,
            int(bool(invert)),
        )
    return out
