"""The geometry of convolutions: places and their offsets, and copies of images with zeros around them."""

from __future__ import annotations

import itertools
import math
import struct
from typing import NamedTuple

import numpy as np

from torchlite_backends.kernel_sources.conv import PAD

from ..core.array import Array, empty, row_major, view_of
from ..core.device import Device, grid

# The unsigned kind of each element size.
_COPY_KINDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "c128"}


class ConvShape(NamedTuple):
    """One convolution from `x` (batch, channels, *size) to `y` (batch, filters, *out) with its weight (filters,
    channels / groups, *kernel).
    """

    batch: int
    channels: int
    filters: int
    size: tuple[int, ...]
    out: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @property
    def pointwise(self) -> bool:
        """Whether each place of y depends on one place of x, the same one."""
        return math.prod(self.kernel) == 1 and max(self.stride) == 1 and max(self.padding) == 0


def offsets(counts, steps, start: int = 0) -> np.ndarray:
    """Offsets of all places of a grid in row-major order."""
    total = np.full((1,) * len(counts), start, np.int64)
    for d, (count, step) in enumerate(zip(counts, steps, strict=True)):
        total = total + (np.arange(count) * step).reshape((-1,) + (1,) * (len(counts) - d - 1))
    return total.reshape(-1)


def row_steps(shape) -> tuple[int, ...]:
    steps = [1]
    for n in reversed(shape[1:]):
        steps.append(steps[-1] * n)
    return tuple(reversed(steps))


def scale_steps(steps, by):
    return tuple(s * b for s, b in zip(steps, by, strict=True))


class Phase(NamedTuple):
    """The places of x a stride apart, which the same taps reach: how many along each dimension, the offset of the first
    in x and of its windows in the padded y, the moves of the taps from there, and which taps they are.
    """

    counts: tuple[int, ...]
    first: int
    window: int
    moves: np.ndarray
    taps: np.ndarray


class TransposedPhases(NamedTuple):
    """The zeros around y with which every window of a place of x lies inside, the padded size, and the phases of x."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    around: tuple[int, ...]
    phases: list[Phase]


def _phases_along(n: int, kernel: int, stride: int, padding: int, dilation: int):
    """For the places e, e + stride, ... of one dimension of x: (e, how many there are, the taps that reach them, and
    each one's place of y from place e on).
    """
    for e in range(min(stride, n)):
        taps = [t for t in range(kernel) if (e + padding - t * dilation) % stride == 0]
        yield e, -(-(n - e) // stride), taps, [(e + padding - t * dilation) // stride for t in taps]


def transposed_phases(g: ConvShape) -> TransposedPhases:
    """Which places of y and which taps each place of x goes to."""
    dims = [
        list(_phases_along(*numbers)) for numbers in zip(g.size, g.kernel, g.stride, g.padding, g.dilation, strict=True)
    ]
    ends = [[(s, s + count - 1) for _, count, _, starts in dim for s in starts] or [(0, 0)] for dim in dims]
    before = tuple(max(0, -min(first for first, _ in dim)) for dim in ends)
    after = tuple(max(0, max(last for _, last in dim) - (n - 1)) for dim, n in zip(ends, g.out, strict=True))
    around = tuple(n + b + a for n, b, a in zip(g.out, before, after, strict=True))
    steps, x_steps, tap_steps = row_steps(around), row_steps(g.size), row_steps(g.kernel)

    def total(values, by) -> int:
        return sum(v * s for v, s in zip(values, by, strict=True))

    found = []
    for phase in itertools.product(*dims):
        first, counts, taps, starts = zip(*phase, strict=True)
        moves, chosen = (
            np.array([total(v, by) for v in itertools.product(*values)], np.int64)
            for values, by in ((starts, steps), (taps, tap_steps))
        )
        found.append(Phase(counts, total(first, x_steps), total(before, steps), moves, chosen))
    return TransposedPhases(before, after, around, found)


def zero_pad(x: Array, before, after, slack: int = 0) -> Array:
    """A copy with zeros around and some memory after it that may be read, or `x` itself where neither is asked for."""
    if slack == 0 and not any(before) and not any(after):
        return x
    device, key = x.device, ("padded", x.shape, before, after, x.itemsize)
    plan = device.plans.get(key)
    if plan is None:
        plan = device.plans[key] = _pad_launch(device, x.shape, before, after, _COPY_KINDS[x.itemsize])
    function, global_size, local_size, numbers, shape = plan
    count, steps = row_major(shape)
    out = view_of(empty(device, (count + slack,), x.kind), shape, steps, 0)
    function(global_size, local_size, x, out, numbers)
    return out


def _pad_launch(device: Device, old: tuple[int, ...], before, after, word: str) -> tuple:
    """The kernel that puts zeros around images, its sizes and numbers, and the shape of its result."""
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
    return function, grid(count, device.group), (device.group,), numbers, shape
