"""Offset tables of a convolution's positions and taps, and zero-padded copies of images."""

from __future__ import annotations

import itertools
import math
import struct
from typing import NamedTuple

import numpy as np

from torchlite_backends.kernel_sources.conv_depthwise import PAD

from ..core.array import Array, empty, make_view, row_major_layout
from ..core.device import Device, round_up_to_groups
from .conv_shape import ConvShape

# The unsigned kind of each element size.
_COPY_KINDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "c128"}


def compute_offsets(counts, steps, start: int = 0) -> np.ndarray:
    """Return offsets of all positions of a grid in row-major order."""
    total = np.full((1,) * len(counts), start, np.int64)
    for d, (count, step) in enumerate(zip(counts, steps, strict=True)):
        total = total + (np.arange(count) * step).reshape((-1,) + (1,) * (len(counts) - d - 1))
    return total.reshape(-1)


def row_major_steps(shape) -> tuple[int, ...]:
    steps = [1]
    for n in reversed(shape[1:]):
        steps.append(steps[-1] * n)
    return tuple(reversed(steps))


def scale_steps(steps, by):
    return tuple(s * b for s, b in zip(steps, by, strict=True))


class Phase(NamedTuple):
    """Positions of x, a stride apart, that the same taps reach.

    The fields are their count along each dimension, the offsets of the first in x and of its window in the padded y,
    the taps' offsets from there, and the taps.
    """

    counts: tuple[int, ...]
    first: int
    window: int
    moves: np.ndarray
    taps: np.ndarray


class TransposedPhases(NamedTuple):
    """Padding of y that makes every window of a position of x fit, the padded size, and the phases of x."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    around: tuple[int, ...]
    phases: list[Phase]


def _iter_phases_along(n: int, kernel: int, stride: int, padding: int, dilation: int):
    """Yield for the positions e, e + stride, ... of one dimension of x: (e, count, taps, the taps' positions in y)."""
    for e in range(min(stride, n)):
        taps = [t for t in range(kernel) if (e + padding - t * dilation) % stride == 0]
        yield e, -(-(n - e) // stride), taps, [(e + padding - t * dilation) // stride for t in taps]


def compute_transposed_phases(g: ConvShape) -> TransposedPhases:
    """Return the positions of y and the taps that each position of x contributes to."""
    dims = [
        list(_iter_phases_along(*numbers))
        for numbers in zip(g.size, g.kernel, g.stride, g.padding, g.dilation, strict=True)
    ]
    ends = [[(s, s + count - 1) for _, count, _, starts in dim for s in starts] or [(0, 0)] for dim in dims]
    before = tuple(max(0, -min(first for first, _ in dim)) for dim in ends)
    after = tuple(max(0, max(last for _, last in dim) - (n - 1)) for dim, n in zip(ends, g.out, strict=True))
    around = tuple(n + b + a for n, b, a in zip(g.out, before, after, strict=True))
    steps, x_steps, tap_steps = row_major_steps(around), row_major_steps(g.size), row_major_steps(g.kernel)

    def weighted_sum(values, by) -> int:
        return sum(v * s for v, s in zip(values, by, strict=True))

    found = []
    for phase in itertools.product(*dims):
        first, counts, taps, starts = zip(*phase, strict=True)
        moves, chosen = (
            np.array([weighted_sum(v, by) for v in itertools.product(*values)], np.int64)
            for values, by in ((starts, steps), (taps, tap_steps))
        )
        found.append(Phase(counts, weighted_sum(first, x_steps), weighted_sum(before, steps), moves, chosen))
    return TransposedPhases(before, after, around, found)


def zero_pad(x: Array, before, after, slack: int = 0) -> Array:
    """Return a zero-padded copy with readable memory behind it, or `x` if neither is needed."""
    if slack == 0 and not any(before) and not any(after):
        return x
    device, key = x.device, ("padded", x.shape, before, after, x.itemsize)
    plan = device.plans.get(key)
    if plan is None:
        plan = device.plans[key] = _pad_launch(device, x.shape, before, after, _COPY_KINDS[x.itemsize])
    function, global_size, local_size, numbers, shape = plan
    count, steps = row_major_layout(shape)
    out = make_view(empty(device, (count + slack,), x.kind), shape, steps, 0)
    function(global_size, local_size, x, out, numbers)
    return out


def _pad_launch(device: Device, old: tuple[int, ...], before, after, word: str) -> tuple:
    """Return the padding kernel, its sizes and numbers, and the result's shape."""
    size = old[2:]
    around = tuple(n + b + a for n, b, a in zip(size, before, after, strict=True))
    shape = (*old[:2], *around)
    count = math.prod(shape)
    lead = (0,) * (3 - len(before))
    ones = (1,) * (3 - len(before))
    rows = count // around[-1]
    numbers = struct.pack("10i", rows, *ones, *size, *lead, *before, *ones, *around)
    if device.is_cpu:
        wide = {
            "MOVE16(to, from)": "vstore16(vload16(0, from), 0, to)"
            if word[0] == "u"
            else "for (int e = 0; e < 16; ++e) { (to)[e] = (from)[e]; }"
        }
        function = device.function(PAD, "pad", "ppx", T=word, ZERO="0", **wide)
        return function, (max(1, min(rows, device.units * 4, count // 16384)),), (1,), numbers, shape
    function = device.function(PAD, "pad", "ppx", T=word, ZERO="0", BY_ELEMENT="1")
    return function, round_up_to_groups(count, device.group), (device.group,), numbers, shape
