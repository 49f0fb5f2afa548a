"""Convolutions as matrix products whose operands are found through tables of offsets: images are padded, never unfolded."""
from __future__ import annotations

import itertools
import math
import struct
from typing import NamedTuple

import numpy as np

from torchlite_kernels.conv import PAD

from .array import Array, empty
from .copying import contiguous_array
from .products import Plan, Sizes, plan_of, run
from .reduce import sum as reduced_sum
from .runtime import Device, grid
from .transfer import from_numpy

# Kept plans of convolutions with their tables.
_KEPT = 512
# Output places from which a convolution with kernel size 1 is a plain product image by image.
_PLACES = 64
_WORDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "c128"}


class Geometry(NamedTuple):
    """One convolution from `x` (batch, channels, *size) to `y` (batch, filters, *out) with its weight (filters, channels / groups, *kernel)."""

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


class Step(NamedTuple):
    """One launch of a product: its plan and table."""

    plan: Plan
    table: Array | None


class Way(NamedTuple):
    """How to compute one of a convolution's arrays: zeros before and after each spatial dimension of the operand read by places, then some products."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    steps: tuple[Step, ...]


def _offsets(counts, steps, start: int = 0) -> np.ndarray:
    """Offsets of all places of a grid in row-major order."""
    total = np.full((1,) * len(counts), start, np.int64)
    for d, (count, step) in enumerate(zip(counts, steps, strict=True)):
        total = total + (np.arange(count) * step).reshape((-1,) + (1,) * (len(counts) - d - 1))
    return total.reshape(-1)


def _row_steps(shape) -> tuple[int, ...]:
    steps = [1]
    for n in reversed(shape[1:]):
        steps.append(steps[-1] * n)
    return tuple(reversed(steps))


def _table(device: Device, rows, places, depth_a, depth_b) -> Array:
    return from_numpy(np.concatenate([rows, places, depth_a, depth_b]).astype(np.int32), device)


def _scaled(steps, by):
    return tuple(s * b for s, b in zip(steps, by, strict=True))


# --- the three products ----------------------------------------------------------------------------------------------------------------------------


def _forward(device: Device, kind: str, g: Geometry, biased: bool, conj: bool) -> Way:
    """y from x and the weight: rows are places of y, columns are filters."""
    per_group, filters, taps, places = g.channels // g.groups, g.filters // g.groups, math.prod(g.kernel), math.prod(g.out)
    inner = per_group * taps
    if g.pointwise and places >= _PLACES:
        sizes = Sizes(filters, places, inner, (inner, 1), (places, 1), (places, 1), (1, 0), (g.batch, g.groups), (0, filters * inner),
                      (g.channels * places, per_group * places), (g.filters * places, filters * places), (0, filters))
        return Way(g.padding, g.padding, (Step(plan_of(device, kind, sizes, biased, (conj, False)), None),))
    padded = tuple(n + 2 * p for n, p in zip(g.size, g.padding, strict=True))
    steps, area = _row_steps(padded), math.prod(padded)
    rows = _offsets((g.batch, *g.out), (g.channels * area, *_scaled(steps, g.stride)))
    depth = _offsets((per_group, *g.kernel), (area, *_scaled(steps, g.dilation)))
    table = _table(device, rows, _offsets((g.batch, places), (g.filters * places, 1)), depth, np.arange(inner))
    sizes = Sizes(g.batch * places, filters, inner, (0, 0), (1, inner), (1, places), (0, 1), (1, g.groups), (0, per_group * area), (0, filters * inner),
                  (0, filters * places), (0, filters))
    return Way(g.padding, g.padding, (Step(plan_of(device, kind, sizes, biased, (False, conj), True), table),))


def _phases(n: int, out: int, kernel: int, stride: int, padding: int, dilation: int):
    """For the places e, e + stride, ... of one dimension of x: (e, how many there are, the taps that reach them, and each one's place of y from place 0 on)."""
    for e in range(min(stride, n)):
        taps = [t for t in range(kernel) if (e + padding - t * dilation) % stride == 0]
        yield e, -(-(n - e) // stride), taps, [(e + padding - t * dilation) // stride for t in taps]


def _backward(device: Device, kind: str, g: Geometry, biased: bool, conj: bool) -> Way:
    """x from y and the weight, the transpose of `_forward`: places of x that are a stride apart are reached by the same taps, and are one product."""
    per_group, filters, taps, size = g.channels // g.groups, g.filters // g.groups, math.prod(g.kernel), math.prod(g.size)
    dims = [list(_phases(*numbers)) for numbers in zip(g.size, g.out, g.kernel, g.stride, g.padding, g.dilation, strict=True)]
    shifts = [[(s, s + count - 1) for _, count, _, starts in dim for s in starts] or [(0, 0)] for dim in dims]
    before = tuple(max(0, -min(first for first, _ in dim)) for dim in shifts)
    after = tuple(max(0, max(last for _, last in dim) - (n - 1)) for dim, n in zip(shifts, g.out, strict=True))
    padded = tuple(n + b + a for n, b, a in zip(g.out, before, after, strict=True))
    if g.pointwise and size >= _PLACES:
        sizes = Sizes(per_group, size, filters, (1, per_group), (size, 1), (size, 1), (1, 0), (g.batch, g.groups), (0, filters * per_group),
                      (g.filters * size, filters * size), (g.channels * size, per_group * size), (0, per_group))
        return Way(before, after, (Step(plan_of(device, kind, sizes, biased, (conj, False)), None),))
    steps, area, x_steps, tap_steps = _row_steps(padded), math.prod(padded), _row_steps(g.size), _row_steps(g.kernel)
    launches = []
    for phase in itertools.product(*dims):
        counts = tuple(count for _, count, _, _ in phase)
        rows = _offsets((g.batch, *counts), (g.filters * area, *steps), sum(b * s for b, s in zip(before, steps, strict=True)))
        places = _offsets((g.batch, *counts), (g.channels * size, *_scaled(x_steps, g.stride)), sum(e * s for (e, *_), s in zip(phase, x_steps, strict=True)))
        moves = [sum(m * s for m, s in zip(move, steps, strict=True)) for move in itertools.product(*(starts for *_, starts in phase))]
        chosen = [sum(t * s for t, s in zip(tap, tap_steps, strict=True)) for tap in itertools.product(*(taps for _, _, taps, _ in phase))]
        depth_a = (np.arange(filters)[:, None] * area + np.array(moves, np.int64)).reshape(-1)
        depth_b = (np.arange(filters)[:, None] * per_group * taps + np.array(chosen, np.int64)).reshape(-1)
        sizes = Sizes(len(rows), per_group, len(depth_a), (0, 0), (0, taps), (0, size), (0, 1), (1, g.groups), (0, filters * area), (0, filters * per_group * taps),
                      (0, per_group * size), (0, per_group))
        launches.append(Step(plan_of(device, kind, sizes, biased, (False, conj), True, len(rows) == g.batch * size), _table(device, rows, places, depth_a, depth_b)))
    return Way(before, after, tuple(launches))


def _weight(device: Device, kind: str, g: Geometry, conj_x: bool, conj_y: bool) -> Way:
    """The weight's gradient from x (padded) and y: rows are (channel, tap), columns are filters, and sums run over the batch and the places of y."""
    per_group, filters, taps, places = g.channels // g.groups, g.filters // g.groups, math.prod(g.kernel), math.prod(g.out)
    padded = tuple(n + 2 * p for n, p in zip(g.size, g.padding, strict=True))
    steps, area = _row_steps(padded), math.prod(padded)
    rows = _offsets((per_group, *g.kernel), (area, *_scaled(steps, g.dilation)))
    depth_a = _offsets((g.batch, *g.out), (g.channels * area, *_scaled(steps, g.stride)))
    depth_b = _offsets((g.batch, places), (g.filters * places, 1))
    count = per_group * taps
    sizes = Sizes(count, filters, len(depth_a), (0, 0), (0, places), (1, count), (0, 0), (1, g.groups), (0, per_group * area), (0, filters * places), (0, filters * count))
    return Way(g.padding, g.padding, (Step(plan_of(device, kind, sizes, False, (conj_x, conj_y), True), _table(device, rows, np.arange(count), depth_a, depth_b)),))


_WAYS = {"forward": _forward, "backward": _backward, "weight": _weight}


def _way(device: Device, what: str, kind: str, g: Geometry, *how: bool) -> Way:
    """The kept way of a product, made when first asked for."""
    kept = device.plans.setdefault("convolutions", {})
    key = (what, kind, g, how)
    found = kept.get(key)
    if found is None:
        if len(kept) >= _KEPT:
            kept.pop(next(iter(kept)))
        found = kept[key] = _WAYS[what](device, kind, g, *how)
    return found


# --- operands --------------------------------------------------------------------------------------------------------------------------------------


def _padded(x: Array, before, after) -> Array:
    """A copy with zeros around, or `x` itself."""
    if not max(before) and not max(after):
        return x
    device, spatial = x.device, len(before)
    size = x.shape[2:]
    padded = tuple(n + b + a for n, b, a in zip(size, before, after, strict=True))
    out = empty(device, (*x.shape[:2], *padded), x.kind)
    lead = (0,) * (3 - spatial)
    ones = (1,) * (3 - spatial)
    rows = out.size // padded[-1]
    numbers = struct.pack("10i", rows, *ones, *size, *lead, *before, *ones, *padded)
    word = _WORDS[x.itemsize]
    if device.is_cpu:
        wide = {"MOVE16(to, from)": "vstore16(vload16(0, from), 0, to)" if word[0] == "u" else "for (int e = 0; e < 16; ++e) { (to)[e] = (from)[e]; }"}
        function = device.function(PAD, "pad", "ppx", T=word, ZERO="0", **wide)
        function((max(1, min(rows, device.units * 4, out.size // 16384)),), (1,), x, out, numbers)
    else:
        device.function(PAD, "pad", "ppx", T=word, ZERO="0", BY_ELEMENT="1")(grid(out.size, device.group), (device.group,), x, out, numbers)
    return out


def _run(way: Way, kind: str, images: Array, other: Array, out: Array, bias: Array | None = None) -> Array:
    """The products of a way: `images` is the operand that is read by places."""
    padded = _padded(images, way.before, way.after)
    for step in way.steps:
        if step.table is None:
            run(step.plan, other, padded, out, bias)
        else:
            run(step.plan, padded, other, out, bias, table=step.table)
    return out


def _numbers(value, count: int) -> tuple[int, ...]:
    value = (value,) if isinstance(value, int) else tuple(int(v) for v in value)
    return value * count if len(value) == 1 else value


def _geometry(x_shape, y_shape, weight_shape, stride, padding, dilation, groups) -> Geometry:
    return Geometry(x_shape[0], x_shape[1], y_shape[1], tuple(x_shape[2:]), tuple(y_shape[2:]), tuple(weight_shape[2:]), stride, padding, dilation, groups)


# --- kernels ---------------------------------------------------------------------------------------------------------------------------------------


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    spatial = input.ndim - 2
    stride, padding, dilation, extra = (_numbers(v, spatial) for v in (stride, padding, dilation, output_padding))
    sizes = zip(input.shape[2:], weight.shape[2:], stride, padding, dilation, extra, strict=True)
    if transposed:
        out_shape = (input.shape[0], weight.shape[1] * groups, *((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in sizes))
        g = _geometry(out_shape, input.shape, weight.shape, stride, padding, dilation, groups)
    else:
        out_shape = (input.shape[0], weight.shape[0], *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in sizes))
        g = _geometry(input.shape, out_shape, weight.shape, stride, padding, dilation, groups)
    if input.kind != weight.kind or bias is not None and bias.kind != input.kind:
        raise RuntimeError("operands of several dtypes")
    if min(out_shape[2:], default=1) <= 0 or groups < 1 or g.channels % groups or g.filters % groups or weight.shape[0] != g.filters or weight.shape[1] * groups != g.channels:
        raise RuntimeError("the kernel does not fit the input")
    out = empty(input.device, out_shape, input.kind)
    if not out.size:
        return out
    input, weight = contiguous_array(input), contiguous_array(weight)
    way = _way(input.device, "backward" if transposed else "forward", input.kind, g, bias is not None, False)
    return _run(way, input.kind, input, weight, out, bias)


def _convolution_backward(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs):
    spatial = input.ndim - 2
    stride, padding, dilation = (_numbers(v, spatial) for v in (stride, padding, dilation))
    device, kind = input.device, input.kind
    grad_output, input, weight = contiguous_array(grad_output), contiguous_array(input), contiguous_array(weight)
    x, y = (grad_output, input) if transposed else (input, grad_output)
    g = _geometry(x.shape, y.shape, weight.shape, stride, padding, dilation, groups)
    grad_input = grad_weight = grad_bias = None
    if needs[0]:
        grad_input = empty(device, input.shape, kind)
        if grad_input.size:
            _run(_way(device, "forward" if transposed else "backward", kind, g, False, True), kind, grad_output, weight, grad_input)
    if needs[1]:
        grad_weight = empty(device, weight.shape, kind)
        if grad_weight.size:
            _run(_way(device, "weight", kind, g, not transposed, transposed), kind, x, y, grad_weight)
    if needs[2]:
        grad_bias = reduced_sum(grad_output, (0, *range(2, grad_output.ndim)))
    return grad_input, grad_weight, grad_bias
