"""Convolutions as matrix products whose operands are found through tables of offsets: images are padded, never
unfolded.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchlite_kernels.gemm import THEN

from ..elements.pointwise import KERNELS as POINTWISE
from ..elements.reduce import sum as reduced_sum
from ..linalg import matmul
from ..linalg.gemm import Plan, Sizes, plan_of
from ..machinery.array import Array, empty
from ..machinery.device import Device
from ..machinery.row_major import contiguous_array
from ..machinery.transfer import from_numpy
from . import conv_depthwise
from .conv_geometry import Geometry, offsets, padded, reach, row_steps, scaled

# Kept plans of convolutions with their tables.
_KEPT = 512
# Output places from which a convolution with kernel size 1 is a plain product image by image.
_PLACES = 64


class Step(NamedTuple):
    """One launch of a product: its plan, by the op of `THEN` behind it, and its table."""

    plan: Callable[[str], Plan]
    table: Array | None


class Way(NamedTuple):
    """How to compute one of a convolution's arrays: zeros before and after each spatial dimension of the operand read
    by places, then some products.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    steps: tuple[Step, ...]


def _planned(*product: Any) -> Callable[[str], Plan]:
    return functools.cache(lambda then: plan_of(*product, then=then))


def _table(device: Device, rows, places, depth_a, depth_b) -> Array:
    return from_numpy(np.concatenate([rows, places, depth_a, depth_b]).astype(np.int32), device)


# --- the three products ---------------------------------------------------------------------------


def _forward(device: Device, kind: str, g: Geometry, biased: bool, conj: bool) -> Way:
    """y from x and the weight: rows are places of y, columns are filters."""
    per_group, filters, taps, places = (
        g.channels // g.groups,
        g.filters // g.groups,
        math.prod(g.kernel),
        math.prod(g.out),
    )
    inner = per_group * taps
    if g.pointwise and places >= _PLACES:
        sizes = Sizes(
            filters,
            places,
            inner,
            (inner, 1),
            (places, 1),
            (places, 1),
            (1, 0),
            (g.batch, g.groups),
            (0, filters * inner),
            (g.channels * places, per_group * places),
            (g.filters * places, filters * places),
            (0, filters),
        )
        return Way(g.padding, g.padding, (Step(_planned(device, kind, sizes, biased, (conj, False)), None),))
    around = tuple(n + 2 * p for n, p in zip(g.size, g.padding, strict=True))
    steps, area = row_steps(around), math.prod(around)
    rows = offsets((g.batch, *g.out), (g.channels * area, *scaled(steps, g.stride)))
    depth = offsets((per_group, *g.kernel), (area, *scaled(steps, g.dilation)))
    table = _table(device, rows, offsets((g.batch, places), (g.filters * places, 1)), depth, np.arange(inner))
    sizes = Sizes(
        g.batch * places,
        filters,
        inner,
        (0, 0),
        (1, inner),
        (1, places),
        (0, 1),
        (1, g.groups),
        (0, per_group * area),
        (0, filters * inner),
        (0, filters * places),
        (0, filters),
    )
    return Way(g.padding, g.padding, (Step(_planned(device, kind, sizes, biased, (False, conj), True), table),))


def _backward(device: Device, kind: str, g: Geometry, biased: bool, conj: bool) -> Way:
    """x from y and the weight, the transpose of `_forward`: places of x that are a stride apart are reached by the same
    taps, and are one product.
    """
    per_group, filters, taps, size = (
        g.channels // g.groups,
        g.filters // g.groups,
        math.prod(g.kernel),
        math.prod(g.size),
    )
    if g.pointwise and size >= _PLACES:
        sizes = Sizes(
            per_group,
            size,
            filters,
            (1, per_group),
            (size, 1),
            (size, 1),
            (1, 0),
            (g.batch, g.groups),
            (0, filters * per_group),
            (g.filters * size, filters * size),
            (g.channels * size, per_group * size),
            (0, per_group),
        )
        return Way(g.padding, g.padding, (Step(_planned(device, kind, sizes, biased, (conj, False)), None),))
    before, after, around, phases = reach(g)
    steps, area, launches = row_steps(around), math.prod(around), []
    for phase in phases:
        rows = offsets((g.batch, *phase.counts), (g.filters * area, *steps), phase.window)
        places = offsets(
            (g.batch, *phase.counts), (g.channels * size, *scaled(row_steps(g.size), g.stride)), phase.first
        )
        depth_a = (np.arange(filters)[:, None] * area + phase.moves).reshape(-1)
        depth_b = (np.arange(filters)[:, None] * per_group * taps + phase.taps).reshape(-1)
        sizes = Sizes(
            len(rows),
            per_group,
            len(depth_a),
            (0, 0),
            (0, taps),
            (0, size),
            (0, 1),
            (1, g.groups),
            (0, filters * area),
            (0, filters * per_group * taps),
            (0, per_group * size),
            (0, per_group),
        )
        plan = _planned(device, kind, sizes, biased, (False, conj), True, len(rows) == g.batch * size)
        launches.append(Step(plan, _table(device, rows, places, depth_a, depth_b)))
    return Way(before, after, tuple(launches))


def _weight(device: Device, kind: str, g: Geometry, conj_x: bool, conj_y: bool) -> Way:
    """The weight's gradient from x (padded) and y: rows are (channel, tap), columns are filters, and sums run over the
    batch and the places of y.
    """
    per_group, filters, taps, places = (
        g.channels // g.groups,
        g.filters // g.groups,
        math.prod(g.kernel),
        math.prod(g.out),
    )
    around = tuple(n + 2 * p for n, p in zip(g.size, g.padding, strict=True))
    steps, area = row_steps(around), math.prod(around)
    rows = offsets((per_group, *g.kernel), (area, *scaled(steps, g.dilation)))
    depth_a = offsets((g.batch, *g.out), (g.channels * area, *scaled(steps, g.stride)))
    depth_b = offsets((g.batch, places), (g.filters * places, 1))
    count = per_group * taps
    sizes = Sizes(
        count,
        filters,
        len(depth_a),
        (0, 0),
        (0, places),
        (1, count),
        (0, 0),
        (1, g.groups),
        (0, per_group * area),
        (0, filters * places),
        (0, filters * count),
    )
    return Way(
        g.padding,
        g.padding,
        (
            Step(
                _planned(device, kind, sizes, False, (conj_x, conj_y), True),
                _table(device, rows, np.arange(count), depth_a, depth_b),
            ),
        ),
    )


_WAYS: dict[str, Callable[..., Any]] = {
    "forward": _forward,
    "backward": _backward,
    "weight": _weight,
    "direct forward": conv_depthwise.forward,
    "direct backward": conv_depthwise.backward,
    "direct weight": conv_depthwise.weight,
}


def _way(device: Device, what: str, kind: str, g: Geometry, *how: bool) -> Any:
    """The kept way of computing something, made when first asked for."""
    kept = device.kept("convolutions", _KEPT)
    key = (what, kind, g, how)
    found = kept.get(key)
    if found is None:
        found = kept[key] = _WAYS[what](device, kind, g, *how)
    return found


# --- operands -------------------------------------------------------------------------------------


def _images(
    what: str,
    g: Geometry,
    images: Array,
    weight: Array,
    out: Array,
    bias: Array | None = None,
    conj: bool = False,
    then: str = "",
) -> Array:
    """ "forward" or "backward": y from x, or x from y, and the op of `THEN` behind it."""
    device, kind = out.device, out.kind
    if conv_depthwise.fits(g, kind):
        way = _way(device, "direct " + what, kind, g, bias is not None)
        return conv_depthwise.run(way, images, weight, out, bias, then)
    return _run(_way(device, what, kind, g, bias is not None, conj), images, weight, out, bias, then)


def _weights(g: Geometry, x: Array, y: Array, out: Array, conj_x: bool) -> Array:
    device, kind = out.device, out.kind
    if conv_depthwise.fits(g, kind):
        return conv_depthwise.run_weight(_way(device, "direct weight", kind, g, False), x, y, out)
    return _run(_way(device, "weight", kind, g, conj_x, not conj_x), x, y, out)


def _run(way: Way, images: Array, other: Array, out: Array, bias: Array | None = None, then: str = "") -> Array:
    """The products of a way, and an op of `THEN`: `images` is the operand that is read by places."""
    images, done = padded(images, way.before, way.after), True
    for step in way.steps:
        plan = step.plan(then)
        if step.table is None:
            plan.run(other, images, out, bias)
        else:
            plan.run(images, other, out, bias, table=step.table)
        done = done and getattr(plan, "then", "") == then
    return out if done else POINTWISE[then](out)


def numbers(value, count: int) -> tuple[int, ...]:
    value = (value,) if isinstance(value, int) else tuple(map(int, value))
    return value * count if len(value) == 1 else value


@functools.lru_cache(4096)
def geometry(x_shape, y_shape, weight_shape, stride, padding, dilation, groups) -> Geometry:
    return Geometry(
        x_shape[0],
        x_shape[1],
        y_shape[1],
        tuple(x_shape[2:]),
        tuple(y_shape[2:]),
        tuple(weight_shape[2:]),
        stride,
        padding,
        dilation,
        groups,
    )


# --- kernels --------------------------------------------------------------------------------------


def _check(input, weight, bias, stride, padding, dilation, filters: int) -> None:
    """The arguments fit each other. Errors raised here are worded by the record's shape rule."""
    if (
        weight.ndim != input.ndim
        or min(stride) < 1
        or min(padding) < 0
        or min(dilation) < 1
        or input.kind != weight.kind
    ):
        raise RuntimeError("convolution: arguments do not fit each other")
    if bias is not None and (bias.shape != (filters,) or bias.kind != input.kind):
        raise RuntimeError("convolution: the bias does not fit")


def checked(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
) -> tuple[Geometry, tuple[int, ...]]:
    """A convolution's geometry and the shape of its result. RuntimeError for arguments that do not fit each other."""
    spatial = input.ndim - 2
    stride, padding, dilation, extra = [numbers(v, spatial) for v in (stride, padding, dilation, output_padding)]
    _check(input, weight, bias, stride, padding, dilation, weight.shape[1] * groups if transposed else weight.shape[0])
    if input.kind == "b8":
        raise NotImplementedError(
            f"\"slow_conv{'_transpose' if transposed else ''}{max(spatial, 2)}d_cpu\" not implemented for 'Bool'"
        )
    return _fitted(input.shape, weight.shape, stride, padding, dilation, bool(transposed), extra, groups)


@functools.lru_cache(4096)
def _fitted(
    x_shape, weight_shape, stride, padding, dilation, transposed, extra, groups
) -> tuple[Geometry, tuple[int, ...]]:
    """The geometry and the result's shape. RuntimeError for shapes that do not fit each other."""
    if 0 in weight_shape[2:]:
        raise RuntimeError("a window without places")
    sizes = zip(x_shape[2:], weight_shape[2:], stride, padding, dilation, extra, strict=True)
    if transposed:
        out_shape = (
            x_shape[0],
            weight_shape[1] * groups,
            *((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in sizes),
        )
        g = geometry(out_shape, x_shape, weight_shape, stride, padding, dilation, groups)
    else:
        out_shape = (
            x_shape[0],
            weight_shape[0],
            *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in sizes),
        )
        g = geometry(x_shape, out_shape, weight_shape, stride, padding, dilation, groups)
    matching = x_shape[1] == (weight_shape[0] if transposed else weight_shape[1] * groups)
    if not matching or groups < 1 or weight_shape[0] < groups or weight_shape[0] % groups or min(extra) < 0:
        raise RuntimeError("convolution: channels do not fit")
    if min(out_shape[2:], default=1) <= 0:
        raise RuntimeError("the kernel does not fit the input")
    return g, out_shape


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    return _convolved("", input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _convolved(then: str, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    g, out_shape = checked(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    out = empty(input.device, out_shape, input.kind)
    if not out.size:
        return out
    input, weight = contiguous_array(input), contiguous_array(weight)
    return _images("backward" if transposed else "forward", g, input, weight, out, bias, then=then)


def with_op(name: str, then: str) -> Callable[..., Array] | None:
    """The kernel of a product or a convolution that an elementwise op follows; None where the two cannot be one."""
    if name == "convolution":
        return functools.partial(_convolved, then) if then in THEN else None
    return matmul.with_op(name, then)


def checked_gradient(
    grad_output, input, weight, stride, padding, dilation, transposed, groups
) -> tuple[Geometry, Array, Array]:
    """The convolution's geometry, and its x and y."""
    spatial = len(input.shape) - 2
    stride, padding, dilation = numbers(stride, spatial), numbers(padding, spatial), numbers(dilation, spatial)
    x, y = (grad_output, input) if transposed else (input, grad_output)
    return geometry(x.shape, y.shape, weight.shape, stride, padding, dilation, groups), x, y


def _convolution_backward(
    grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs
):
    device, kind = input.device, input.kind
    grad_output, input, weight = contiguous_array(grad_output), contiguous_array(input), contiguous_array(weight)
    g, x, y = checked_gradient(grad_output, input, weight, stride, padding, dilation, transposed, groups)
    grad_input = grad_weight = grad_bias = None
    if needs[0]:
        grad_input = empty(device, input.shape, kind)
        if grad_input.size:
            _images("forward" if transposed else "backward", g, grad_output, weight, grad_input, conj=True)
    if needs[1]:
        grad_weight = empty(device, weight.shape, kind)
        if grad_weight.size:
            _weights(g, x, y, grad_weight, not transposed)
    if needs[2]:
        grad_bias = reduced_sum(grad_output, (0, *range(2, grad_output.ndim)))
    return grad_input, grad_weight, grad_bias
