"""Constant padding."""

from __future__ import annotations

import struct

from torchlite_backends.kernel_sources.rearrange import PAD

from ..core.array import Array, empty
from ..core.broadcasting import collapse_dims
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.copy_fill import fill_with
from ..core.views import slice_view
from .device_cache import get_cached_scalar
from .launch_sizes import choose_work_sizes, copy_kind


def constant_pad_nd(input, pad, value=0):
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    before, after = [0] * input.ndim, [0] * input.ndim
    for i in range(len(pad) // 2):
        before[-1 - i], after[-1 - i] = pad[2 * i], pad[2 * i + 1]
    shape = tuple([n + b + a for n, b, a in zip(input.shape, before, after, strict=True)])
    if min(shape, default=0) < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    x = input
    for d, (b, a) in enumerate(zip(before, after, strict=True)):
        if b < 0 or a < 0:
            x = slice_view(x, d, max(0, -b), max(0, x.shape[d] - max(0, -b) - max(0, -a)))
    if x.shape == shape:
        return clone_row_major(x)
    out = empty(x.device, shape, x.kind)
    if not x.size:
        return fill_with(out, value)
    if out.size:
        _pad_rows(x, out, [max(0, b) for b in before], value)
    return out


def _pad_rows(x: Array, out: Array, before: list[int], value) -> None:
    """Copy rows of the innermost padded dimension, each between two runs of the value."""
    steps = x.steps
    inner, last = 1, x.ndim - 1
    while last > 0 and x.shape[last] == out.shape[last]:
        inner *= x.shape[last]
        last -= 1
    if (
        collapse_dims(x.shape[last:], steps[last:])[1] != [[1]]
        and x.size > 1
        and x.shape[last:] != (1,) * (x.ndim - last)
        or last > 6
    ):
        x = as_contiguous(clone_row_major(x))
        steps = x.steps
    device, width = x.device, out.shape[last] * inner
    how = [
        last,
        *_pad_to_seven(out.shape[:last]),
        *_pad_to_seven(x.shape[:last]),
        *_pad_to_seven(before[:last]),
        *_pad_to_seven(steps[:last]),
    ]
    rows = out.size // width
    take, items, group = choose_work_sizes(device, rows, max(1, 1024 // width))
    run = device.function(PAD, "pad", "pppiiiiix", (16,), T=copy_kind(x))
    run(
        items,
        group,
        x,
        get_cached_scalar(device, value, x.kind),
        out,
        rows,
        take,
        width,
        before[last] * inner,
        x.shape[last] * inner,
        struct.pack("29i", *how),
    )


def _pad_to_seven(numbers) -> list[int]:
    return [*numbers, *[0] * (7 - len(numbers))]
