"""Cached launch parameters of a pointwise kernel for its kinds and layout, and the launch."""

from __future__ import annotations

import math
from typing import Any

from .array import Array

GROUP = 64


class PointwiseLaunch:
    """Launch parameters but for arrays and numbers.

    They are the kernel's `start`, sizes, the layout's packed integers, and the result's shape, strides and kind.
    """

    __slots__ = (
        "start", "per_item", "global_size", "local_size", "tail", "pack", "shape", "steps", "size", "kind", "dtype",
        "numbers", "count", "waits",
    )  # fmt: skip

    start: Any
    per_item: int
    global_size: Any  # None where it depends on the arrays' size
    local_size: tuple[int, ...] | None
    tail: Any
    pack: Any
    shape: tuple[int, ...]
    steps: Any
    size: int
    kind: str
    dtype: Any
    numbers: Any
    count: int
    waits: bool  # whether it may be deferred


def compute_row_grid(sizes: list[int], per_item: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return global and local size for work-items along the innermost dimension and over all outer ones."""
    across, down = -(-sizes[-1] // per_item), math.prod(sizes[:-1])
    lx = 1
    while lx < GROUP and lx < across:
        lx *= 2
    ly = GROUP // lx
    return (-(-across // lx) * lx, -(-down // ly) * ly), (lx, ly)


def allocate_flat_result(device, plan: PointwiseLaunch, like: Array) -> Array:
    """Return a new contiguous array for the result, with the shape of `like`."""
    out = object.__new__(Array)
    out.device, out.shape, out.steps, out.size, out.kind, out.dtype = (
        device,
        like.shape,
        like.steps,
        like.size,
        plan.kind,
        plan.dtype,
    )
    out.offset, out.base, out.contiguous = 0, None, True
    out.buffer = device.allocate(like.size * plan.dtype.itemsize, out)
    return out


def launch_flat(device, plan: PointwiseLaunch, arrays, operands, numbers, first: Array, out: Array | None) -> Array:
    """Launch a kernel over contiguous arrays of one shape."""
    size = first.size
    if out is None:
        out = allocate_flat_result(device, plan, first)
    if size:
        layout = plan.pack(*[x.offset for x in arrays], out.offset, size) + plan.tail
        items = -(-size // plan.per_item)
        launch(plan, arrays, operands, numbers, out, layout, (-(-items // GROUP) * GROUP,))
    return out


def launch(plan: PointwiseLaunch, arrays, operands, numbers, out: Array, layout: bytes, global_size) -> None:
    """Launch a plan's kernel."""
    buffers, values = [x.buffer for x in arrays], [layout]
    buffers.append(out.buffer)
    if plan.numbers is not None:
        values += [plan.numbers(x) for x in operands if x.__class__ is not Array]
        values += map(plan.numbers, numbers)
    plan.start(global_size, plan.local_size, buffers, values)
