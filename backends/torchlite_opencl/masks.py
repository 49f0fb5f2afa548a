"""Masks: where they hold, and writing there; and repetition by count, which needs the same running sums."""
from __future__ import annotations

import numpy as np

from torchlite_kernels import indexing
from torchlite_kernels.masks import MASKS

from .array import Array, empty, view_of
from .checks import REPEATS, error_code, failure
from .copying import clone_row_major, contiguous_array
from .indexed import Planes, moved_kind, span
from .layout import broadcast_shape
from .transfer import to_numpy
from .views import repeated_to


def _blocks(count: int) -> tuple[int, int]:
    """The length of the blocks in which `count` elements are counted, and how many there are."""
    length = max(256, -(-count // 4096))
    return length, -(-count // length)


def _starts(counted: Array) -> tuple[Array, int]:
    """For each block of a row-major array of masks or counts the sum of the elements before it, int32, with the total at the end; and the length of the blocks."""
    device = counted.device
    length, blocks = _blocks(counted.size)
    sums = empty(device, (blocks + 2,), "i32")
    device.function(MASKS, "block_sums", "ppii", T=counted.kind)((blocks,), None, counted, sums, counted.size, length)
    device.function(MASKS, "running_sums", "pi", T=counted.kind)((1,), None, sums, blocks)
    return sums, length


def places_of_true(mask: Array) -> list[Array]:
    """One int32 array of coordinates for each dimension: where a mask holds, in row-major order. Waits for the device: the number of places decides the shape."""
    device, mask = mask.device, contiguous_array(mask)
    if not mask.size:
        return [empty(device, (0,), "i32") for _ in range(max(mask.ndim, 1))]
    sums, length = _starts(mask)
    blocks = sums.size - 2
    total = int(to_numpy(view_of(sums, (1,), (1,), blocks))[0])
    out = empty(device, (max(mask.ndim, 1), total), "i32")
    if total:
        shape = np.array([mask.ndim, *mask.shape, *[0] * (15 - mask.ndim)], np.int32)
        device.function(MASKS, "coordinates", "pppiiix", T="u8")((blocks,), None, mask, sums, out, mask.size, length, total, shape.tobytes())
    return [view_of(out, (total,), (1,), d * total) for d in range(out.shape[0])]


def write_where(out: Planes, mask: Array, value: Planes) -> None:
    """out[p, b, q] = value[p, 0, q] where mask[b]."""
    device, count = mask.device, out.sizes[0] * out.sizes[1] * out.sizes[2]
    if count:
        take, items, group = span(device, count)
        vp, _, vq = value.steps
        run = device.function(indexing.MASKED, "write_masked", "pppiiii" + "i" * 6, T=moved_kind(out.array))
        run(items, group, out.array, contiguous_array(mask), value.array, count, take, out.sizes[1], out.sizes[2], *out.steps, vp, 0, vq)


def masked_scatter(input, mask, source):
    if mask.kind != "b8":
        from torchlite._dtype import from_np
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {from_np(mask.dtype).scalar_name}")
    if input.kind != source.kind:
        from torchlite._dtype import from_np
        mine, theirs = (from_np(x.dtype).scalar_name for x in (input, source))
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got{mine} and {theirs}")
    shape = broadcast_shape((input.shape, mask.shape))
    out, mask = clone_row_major(repeated_to(input, shape)), contiguous_array(repeated_to(mask, shape))
    if out.size:
        device = out.device
        sums, length = _starts(mask)
        blocks = sums.size - 2
        total = int(to_numpy(view_of(sums, (1,), (1,), blocks))[0])
        if total > source.size:
            raise RuntimeError("Number of elements of source < number of ones in mask")
        device.function(MASKS, "fill_masked", "ppppii", T=moved_kind(out))((blocks,), None, mask, sums, contiguous_array(source), out, out.size, length)
    return out


def repeat_interleave_index(repeats):
    """The index that repeats element i `repeats[i]` times. Waits for the device: the sum decides the shape."""
    from torchlite._dtype import from_np
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
        device.function(MASKS, "repeat_places", "pppii", T=repeats.kind)((blocks,), None, repeats, sums, out, repeats.size, length)
    return out
