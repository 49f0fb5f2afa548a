"""Masks: nonzero indices, masked select and assignment; and repeat_interleave, which needs the same prefix sums."""

from __future__ import annotations

import struct

from torchlite._types.dtypes import from_np
from torchlite_backends.kernel_sources.stream_compaction import BLOCK_SUMS, COMPRESS, REPEAT, TRUE_INDICES

from ..core.array import Array, empty, make_view
from ..core.broadcasting import broadcast_shape
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.device_asserts import REPEATS, encode_error, make_error_from_code
from ..core.host_transfer import to_numpy
from ..core.pointwise_dispatch import select_where
from ..core.views import broadcast_view
from .launch_sizes import choose_work_sizes, copy_kind, get_heavy_item_local_size


def _choose_block_length(count: int) -> tuple[int, int]:
    """Return the block length for counting `count` elements, and the number of blocks."""
    length = max(256, -(-count // 4096))
    return length, -(-count // length)


def _compute_block_offsets(counted: Array) -> tuple[Array, int]:
    """Return for each block the sum of the elements before it, and the block length.

    `counted` is a contiguous array of masks, whose sums are int32, or counts (int64). The total follows the sums, and a
    flag for negative counts.
    """
    device = counted.device
    length, blocks = _choose_block_length(counted.size)
    sums = empty(device, (blocks + 2,), "i32" if counted.kind == "b8" else "i64")
    text = ("#define MASK\n" if counted.kind == "b8" else "") + BLOCK_SUMS
    kinds = {"T": counted.kind, "S": sums.kind}
    device.function(text, "block_sums", "ppii", **kinds)(
        (blocks,), get_heavy_item_local_size(device), counted, sums, counted.size, length
    )
    device.function(text, "running_sums", "pi", **kinds)((1,), (1,), sums, blocks)
    return sums, length


def _compute_offsets_and_count(mask: Array) -> tuple[Array, int, int]:
    """Return `_compute_block_offsets` of a non-empty mask, and its number of true elements. Waits for the device."""
    sums, length = _compute_block_offsets(mask)
    return sums, length, int(to_numpy(make_view(sums, (1,), (1,), sums.size - 2))[0])


def find_flat_true_indices(mask: Array) -> Array:
    """Return the flat int32 indices at which a mask is true."""
    mask = as_contiguous(mask)
    if not mask.size:
        return empty(mask.device, (0,), "i32")
    sums, length, total = _compute_offsets_and_count(mask)
    out = empty(mask.device, (total,), "i32")
    if total:
        mask.device.function(TRUE_INDICES, "flat_places", "pppii")(
            (sums.size - 2,), get_heavy_item_local_size(mask.device), mask, sums, out, mask.size, length
        )
    return out


def find_true_indices(mask: Array) -> list[Array]:
    """Return an int32 array of coordinates for each dimension at which a mask is true."""
    flat, device = find_flat_true_indices(mask), mask.device
    if mask.ndim < 2:
        return [flat]
    total = flat.size
    out = empty(device, (mask.ndim, total), "i32")
    if total:
        take, items, group = choose_work_sizes(device, total)
        shape = struct.pack("16i", mask.ndim, *mask.shape, *[0] * (15 - mask.ndim))
        device.function(TRUE_INDICES, "coordinates", "ppiix")(items, group, flat, out, total, take, shape)
    return [make_view(out, (total,), (1,), d * total) for d in range(mask.ndim)]


def compress_by_mask(x: Array, mask: Array) -> Array:
    """Return the elements of `x` at which a mask of its shape is true, as a vector."""
    x, mask = as_contiguous(x), as_contiguous(mask)
    if not x.size:
        return empty(x.device, (0,), x.kind)
    sums, length, total = _compute_offsets_and_count(mask)
    out = empty(x.device, (total,), x.kind)
    if total:
        x.device.function(COMPRESS, "taken", "ppppii", T=copy_kind(x))(
            (sums.size - 2,), get_heavy_item_local_size(x.device), mask, sums, x, out, x.size, length
        )
    return out


def assign_where_masked(out: Array, mask: Array, value: Array) -> None:
    """Write `value`, broadcast, into `out` where the broadcast mask is true."""
    select_where(mask, value, out, out)


def masked_scatter(input, mask, source):
    if mask.kind != "b8":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {from_np(mask.dtype).scalar_name}"
        )
    if input.kind != source.kind:
        mine, theirs = (from_np(x.dtype).scalar_name for x in (input, source))
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got{mine} and {theirs}")
    shape = broadcast_shape((input.shape, mask.shape))
    out, mask = clone_row_major(broadcast_view(input, shape)), as_contiguous(broadcast_view(mask, shape))
    if out.size:
        sums, length, total = _compute_offsets_and_count(mask)
        if total > source.size:
            raise RuntimeError("Number of elements of source < number of ones in mask")
        run = out.device.function(COMPRESS, "fill_masked", "ppppii", T=copy_kind(out))
        run(
            (sums.size - 2,),
            get_heavy_item_local_size(out.device),
            mask,
            sums,
            as_contiguous(source),
            out,
            out.size,
            length,
        )
    return out


def _repeat_interleave_indices(repeats):
    """Return the index that repeats element i `repeats[i]` times. Waits for the device: the sum decides the shape."""
    kind = from_np(repeats.dtype)
    if kind.category != 1 or repeats.kind[0] == "u":
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{kind.scalar_name}'")
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    device, repeats = repeats.device, as_contiguous(repeats)
    if not repeats.size:
        return empty(device, (0,), repeats.kind)
    sums, length = _compute_block_offsets(repeats)
    blocks = sums.size - 2
    total, negative = (int(v) for v in to_numpy(make_view(sums, (2,), (1,), blocks)))
    if negative:
        raise make_error_from_code(encode_error(REPEATS), 0, 0)
    out = empty(device, (total,), repeats.kind)
    if total:
        device.function(REPEAT, "repeat_places", "pppii", T=repeats.kind)(
            (blocks,), get_heavy_item_local_size(device), repeats, sums, out, repeats.size, length
        )
    return out
