"""Launches of the gather and scatter kernels over arrays viewed as (P, N, Q); the ops are in `index` and `scatter`."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from torchlite._settings.backend_flags import FLAGS
from torchlite_backends.kernel_sources import atomics
from torchlite_backends.kernel_sources import gather_scatter as texts
from torchlite_backends.kernel_sources.dtype_kinds import CATEGORY

from ..core.array import Array, empty, make_view
from ..core.broadcasting import collapse_dims
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.device import Device, round_up_to_groups
from ..core.device_asserts import get_error_array, make_error_from_code, raise_if_blocking
from ..core.host_transfer import to_numpy
from ..core.pointwise_dispatch import cast
from .launch_sizes import choose_work_sizes, copy_kind, get_heavy_item_local_size

_ACCUMULATION_KINDS = {"f16": "f32", "bf16": "f32"}


class ThreeDimView(NamedTuple):
    """Array viewed as (P, N, Q) with a stride for each, from the array's offset."""

    array: Array
    sizes: tuple[int, int, int]
    steps: tuple[int, int, int]


def _merge_dims(shape, steps) -> tuple[int, int] | None:
    """Merge several dimensions into one length and stride; None if memory does not allow it."""
    sizes, (merged,) = collapse_dims(shape, steps)
    return (sizes[0], merged[0]) if len(sizes) == 1 else None


@functools.lru_cache(4096)
def _row_major_3d_view(shape, first: int, last: int, joined: bool) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    before, middle, after = math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:])
    if joined:
        return (before, (middle - 1) * after + 1, after), (middle * after, 1, 1)
    return (before, middle, after), (middle * after, after, 1)


def try_as_3d(x: Array, first: int, last: int, joined: bool = False) -> ThreeDimView | None:
    """View `x` as 3-d: dimensions before `first`, from `first` to `last`, and the others; None if impossible.

    With `joined` the middle covers all memory of those dimensions, for flat indices into it.
    """
    if x.contiguous:
        return ThreeDimView(x, *_row_major_3d_view(x.shape, first, last, joined))
    parts = [_merge_dims(x.shape[a:b], x.steps[a:b]) for a, b in ((0, first), (first, last), (last, x.ndim))]
    if joined:
        parts[1] = (
            1 + sum([(n - 1) * s for n, s in zip(x.shape[first:last], x.steps[first:last], strict=True)])
            if x.size
            else 0,
            1,
        )
    before, middle, after = parts
    if before is None or middle is None or after is None:
        return None
    return ThreeDimView(x, (before[0], middle[0], after[0]), (before[1], middle[1], after[1]))


def as_3d_view_or_copy(x: Array, first: int, last: int, joined: bool = False) -> ThreeDimView:
    """Return `try_as_3d` of `x`, or of a copy."""
    found = try_as_3d(x, first, last, joined)
    return as_3d_view_or_copy(clone_row_major(x), first, last, joined) if found is None else found


def as_contiguous_index(index: Array) -> Array:
    """Return an index array as contiguous int32 or int64."""
    return as_contiguous(index if index.kind in ("i64", "i32") else cast(index, "i64"))


def check_dim_not_empty(index: Array, size: int, code: int) -> None:
    """Raise for indices into a dimension without elements."""
    if index.size and not size:
        raise make_error_from_code(code, int(to_numpy(index).reshape(-1)[0]), 0)


def take_slices(x: ThreeDimView, index: Array, out: Array, size: int, wrap: bool, code: int) -> Array:
    """Gather slices: out[p, b, q] = x[p, index[b], q]."""
    device = out.device
    check_dim_not_empty(index, size, code)
    if out.size:
        take, items, group = choose_work_sizes(device, out.size)
        kinds = {"T": copy_kind(out), "I": index.kind}
        run = device.function(texts.TAKE_SLICES, "take_slices", "ppppiiiiiiiiii", (16,), **kinds)
        run(
            items,
            group,
            x.array,
            index,
            out,
            get_error_array(device),
            code,
            out.size,
            take,
            index.size,
            x.sizes[2],
            *x.steps,
            size,
            wrap,
        )
        raise_if_blocking(device)
    return out


def gather_3d(x: ThreeDimView, index: Array, out: Array, code: int) -> Array:
    """Gather elements: out[p, n, q] = x[p, index[p, n, q], q] for contiguous `index` and `out` of one shape."""
    device, (P, size, Q) = out.device, x.sizes
    check_dim_not_empty(index, size, code)
    if out.size:
        count = out.size // (P * Q)
        sp, sd, sq = x.steps
        J, D, sj = (count, 1, 0) if Q == 1 else (Q, count, sq)
        take, items, group = choose_work_sizes(device, out.size)
        if device.is_cpu and Q == 1 and sd == 1:
            run = device.function(texts.GATHER_ROWS, "gather_rows", "ppppiiiiii", T=copy_kind(out), I=index.kind)
            run(items, group, x.array, index, out, get_error_array(device), code, out.size, take, J, sp, size)
            raise_if_blocking(device)
            return out
        run = device.function(texts.GATHER, "gather", "ppppiiiiiiiii", T=copy_kind(out), I=index.kind)
        run(items, group, x.array, index, out, get_error_array(device), code, out.size, take, J, D, sp, sd, sj, size)
        raise_if_blocking(device)
    return out


def _scatter_program(
    device: Device, operation: str, out: Array, source: Array, index: Array, parallel: bool
) -> tuple[str, dict[str, Any], tuple[int, ...]]:
    kinds = {"O": out.kind, "S": source.kind, "I": index.kind}
    if operation == "set" and out.kind == source.kind:
        kinds["O"] = kinds["S"] = copy_kind(out)
    text = atomics.combine_macro(operation, kinds["O"])
    if parallel:
        if operation != "set":
            text += "#define ATOMIC\n" + atomics.combine_at_source(kinds["O"])
        return text + texts.SCATTER_ATOMIC, kinds, ()
    wide = operation in ("set", "add") and kinds["O"] == kinds["S"] and kinds["O"][0] != "c" and kinds["O"] != "b8"
    return ("#define WIDE\n" if wide else "") + text + texts.SCATTER, kinds, (16,) if wide else ()


def _depends_on_order(operation: str, kind: str) -> bool:
    """True if the order in which equal indices are combined is visible in the result."""
    return operation == "set" or operation in ("add", "multiply") and kind[0] in "fc"


def scatter_3d(
    operation: str, out: ThreeDimView, index: ThreeDimView, source: ThreeDimView, wrap: bool, code: int
) -> None:
    """Scatter: combine out[p, index[p, n, q], q] with source[p, n, q] by set, add, multiply, amax or amin.

    Strides of 0 repeat the index or the source. On a CPU repeated indices are combined in order, on a GPU in any,
    unless `torch.use_deterministic_algorithms` is on.
    """
    device = out.array.device
    P, N, Q = out.sizes[0], index.sizes[1], out.sizes[2]
    size = out.sizes[1]
    if not P * N * Q:
        return
    check_dim_not_empty(index.array, size, code)
    parallel = (
        not device.is_cpu
        and (operation == "set" or atomics.is_supported(operation, out.array.kind, device.long_atomics))
        and not (FLAGS.deterministic and _depends_on_order(operation, out.array.kind))
    )
    text, kinds, widths = _scatter_program(device, operation, out.array, source.array, index.array, parallel)
    tail = (*out.steps, *index.steps, *source.steps, size, wrap)
    error = get_error_array(device)
    if parallel:
        run = device.function(text, "scatter_atomic", "ppppiiii" + "i" * 11, widths, **kinds)
        run(
            round_up_to_groups(P * N * Q, device.group),
            (device.group,),
            out.array,
            index.array,
            source.array,
            error,
            code,
            P * N * Q,
            N,
            Q,
            *tail,
        )
    else:
        chunk = max(16, -(-Q * P // (4 * device.units))) if device.is_cpu else 1
        columns = P * -(-Q // chunk)
        take = max(1, columns // (8 * device.units)) if device.is_cpu else 1
        run = device.function(text, "scatter", "ppppiiiiii" + "i" * 11, widths, **kinds)
        run(
            (-(-columns // take),),
            get_heavy_item_local_size(device),
            out.array,
            index.array,
            source.array,
            error,
            code,
            P,
            N,
            Q,
            chunk,
            take,
            *tail,
        )
    raise_if_blocking(device)


def scatter_in_float32(operation: str, out: Array, scatter: Callable[[Array], None]) -> Array:
    """Run `scatter` on `out`, or for combinations in half precision on a float32 copy; return `out`."""
    wide = _ACCUMULATION_KINDS.get(out.kind) if operation != "set" else None
    if wide is None:
        scatter(out)
        return out
    copy = cast(out, wide)
    scatter(copy)
    return cast(copy, out.kind)


def broadcast_scalar_to_3d(value: Array, sizes: tuple[int, int, int]) -> ThreeDimView:
    """View a 0-d array as repeated."""
    return ThreeDimView(value, sizes, (0, 0, 0))


def compute_flat_indices(indices: list[Array], shape, sizes, steps, codes, wrap: bool = True) -> Array:
    """Return the flat indices of index arrays broadcast to `shape`: int32, -1 for one out of bounds.

    `sizes`, `steps` and `codes` (of errors) are those of the indexed dimensions.
    """
    device, count = indices[0].device, len(indices)
    kind = "i32" if all(i.kind == "i32" for i in indices) else "i64"
    indices = [i if i.kind == kind else cast(i, kind) for i in indices]
    out = empty(device, shape, "i32")
    for i, size, code in zip(indices, sizes, codes, strict=True):
        check_dim_not_empty(i, size, code)
    if out.size:
        dims, walks = collapse_dims(shape, *[_broadcast_view(i, shape) for i in indices])
        if len(dims) > 8:
            dims, walks = [out.size], [[1] for _ in indices]
            indices = [clone_row_major(make_view(i, shape, _broadcast_view(i, shape), i.offset)) for i in indices]
        how = [len(dims), *_pad_numbers(dims)]
        for walk in walks:
            how += _pad_numbers(walk)
        how += [*sizes, *steps, *codes, wrap]
        take, items, group = choose_work_sizes(device, out.size)
        run = device.function(texts.flat_index_source(count), "places", "p" * count + "ppiix", I=kind)
        run(items, group, *indices, out, get_error_array(device), out.size, take, _pack_numbers(how))
        raise_if_blocking(device)
    return out


def _broadcast_view(x: Array, shape) -> tuple[int, ...]:
    lead = len(shape) - x.ndim
    return (0,) * lead + tuple([s if n == m else 0 for n, s, m in zip(x.shape, x.steps, shape[lead:], strict=True)])


def _pad_numbers(numbers) -> list[int]:
    return [*numbers, *[0] * (8 - len(numbers))]


def _pack_numbers(numbers) -> bytes:
    return struct.pack(f"{len(numbers)}i", *numbers)


def divide_by_count(x: Array, counts: Array) -> Array:
    """Divide x by max(counts, 1), rounding down for integers; both contiguous."""
    device, out = x.device, empty(x.device, x.shape, x.kind)
    if out.size:
        whole = CATEGORY[x.kind] in "ib"
        text = (
            ("#define WHOLE\n" if whole else "")
            + f"#define DIVISOR {'double' if x.kind in ('f64', 'c128') else 'float'}\n"
            + texts.DIVIDE_BY_COUNT
        )
        take, items, group = choose_work_sizes(device, out.size)
        device.function(text, "divide_by_count", "pppii", T=x.kind)(items, group, x, counts, out, out.size, take)
    return out
