"""Masks: where they hold, and writing there; and repetition by count, which needs the same running sums."""

from __future__ import annotations

import struct

from torchlite._types.dtypes import from_np
from torchlite_kernels.masks import MOVES, PLACES, REPEAT, SUMS

from ..machinery.array import Array, empty, view_of
from ..machinery.checks import REPEATS, error_code, failure
from ..machinery.pointwise_apply import choose
from ..machinery.row_major import clone_row_major, contiguous_array
from ..machinery.steps import broadcast_shape
from ..machinery.transfer import to_numpy
from ..machinery.views import repeated_to
from .planes import alone, moved_kind, span


def _blocks(count: int) -> tuple[int, int]:
    """The length of the blocks in which `count` elements are counted, and how many there are."""
    length = max(256, -(-count // 4096))
    return length, -(-count // length)


def _starts(counted: Array) -> tuple[Array, int]:
    """For each block of a row-major array of masks or counts the sum of the elements before it, int32; and the length
    of the blocks.

    The total follows the sums, and after it whether a count was negative.
    """
    device = counted.device
    length, blocks = _blocks(counted.size)
    sums = empty(device, (blocks + 2,), "i32")
    text = ("#define MASK\n" if counted.kind == "b8" else "") + SUMS
    device.function(text, "block_sums", "ppii", T=counted.kind)(
        (blocks,), alone(device), counted, sums, counted.size, length
    )
    device.function(text, "running_sums", "pi", T=counted.kind)((1,), (1,), sums, blocks)
    return sums, length


def _counted(mask: Array) -> tuple[Array, int, int]:
    """`_starts` of a mask with elements, and how many of them are true. Waits for the device: the number decides a
    shape.
    """
    sums, length = _starts(mask)
    return sums, length, int(to_numpy(view_of(sums, (1,), (1,), sums.size - 2))[0])


def flat_places_of_true(mask: Array) -> Array:
    """Where a mask holds, as int32 places in its row-major order."""
    mask = contiguous_array(mask)
    if not mask.size:
        return empty(mask.device, (0,), "i32")
    sums, length, total = _counted(mask)
    out = empty(mask.device, (total,), "i32")
    if total:
        mask.device.function(PLACES, "flat_places", "pppii")(
            (sums.size - 2,), alone(mask.device), mask, sums, out, mask.size, length
        )
    return out


def places_of_true(mask: Array) -> list[Array]:
    """Where a mask holds: one int32 array of coordinates for each dimension."""
    flat, device = flat_places_of_true(mask), mask.device
    if mask.ndim < 2:
        return [flat]
    total = flat.size
    out = empty(device, (mask.ndim, total), "i32")
    if total:
        take, items, group = span(device, total)
        shape = struct.pack("16i", mask.ndim, *mask.shape, *[0] * (15 - mask.ndim))
        device.function(PLACES, "coordinates", "ppiix")(items, group, flat, out, total, take, shape)
    return [view_of(out, (total,), (1,), d * total) for d in range(mask.ndim)]


def taken_where(x: Array, mask: Array) -> Array:
    """The elements of `x` where a mask of its shape holds, as a vector."""
    x, mask = contiguous_array(x), contiguous_array(mask)
    if not x.size:
        return empty(x.device, (0,), x.kind)
    sums, length, total = _counted(mask)
    out = empty(x.device, (total,), x.kind)
    if total:
        x.device.function(MOVES, "taken", "ppppii", T=moved_kind(x))(
            (sums.size - 2,), alone(x.device), mask, sums, x, out, x.size, length
        )
    return out


def write_where(out: Array, mask: Array, value: Array) -> None:
    """Write `value`, broadcast, into `out` where the mask, broadcast, holds."""
    choose(mask, value, out, out)


def masked_scatter(input, mask, source):
    if mask.kind != "b8":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {from_np(mask.dtype).scalar_name}"
        )
    if input.kind != source.kind:
        mine, theirs = (from_np(x.dtype).scalar_name for x in (input, source))
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got{mine} and {theirs}")
    shape = broadcast_shape((input.shape, mask.shape))
    out, mask = clone_row_major(repeated_to(input, shape)), contiguous_array(repeated_to(mask, shape))
    if out.size:
        sums, length, total = _counted(mask)
        if total > source.size:
            raise RuntimeError("Number of elements of source < number of ones in mask")
        run = out.device.function(MOVES, "fill_masked", "ppppii", T=moved_kind(out))
        run((sums.size - 2,), alone(out.device), mask, sums, contiguous_array(source), out, out.size, length)
    return out


def _repeat_interleave_indices(repeats):
    """The index that repeats element i `repeats[i]` times. Waits for the device: the sum decides the shape."""
    kind = from_np(repeats.dtype)
    if kind.category != 1 or repeats.kind[0] == "u":
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{kind.scalar_name}'")
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    device, repeats = repeats.device, contiguous_array(repeats)
    if not repeats.size:
        return empty(device, (0,), repeats.kind)
    sums, length = _starts(repeats)
    blocks = sums.size - 2
    total, negative = (int(v) for v in to_numpy(view_of(sums, (2,), (1,), blocks)))
    if negative:
        raise failure(error_code(REPEATS), 0, 0)
    out = empty(device, (total,), repeats.kind)
    if total:
        device.function(REPEAT, "repeat_places", "pppii", T=repeats.kind)(
            (blocks,), alone(device), repeats, sums, out, repeats.size, length
        )
    return out
