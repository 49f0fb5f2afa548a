"""Convolutions as implicit GEMM: operands are addressed by offset tables into padded images, without im2col."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchlite_backends.kernel_sources.gemm import EPILOGUES

from ..array_ops.pointwise import KERNELS as POINTWISE
from ..array_ops.reduce import sum as reduced_sum
from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device
from ..core.host_transfer import from_numpy
from ..linalg import matmul
from ..linalg.gemm import GemmPlan, GemmShape, plan_gemm
from . import conv_depthwise
from .conv_indexing import compute_offsets, compute_transposed_phases, row_major_steps, scale_steps, zero_pad
from .conv_shape import ConvShape

# Cached convolution plans with their tables.
_MAX_CACHED_PLANS = 512
# Minimum output positions for a 1x1 convolution as plain products per image.
_MIN_PLACES_PER_IMAGE = 64


class GemmLaunch(NamedTuple):
    """Launch of a product: its plan, by its fused `EPILOGUES` op, and its table."""

    plan: Callable[[str], GemmPlan]
    table: Array | None


class ConvPlan(NamedTuple):
    """Plan for one array of a convolution: padding of the operand read by position, then some products."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    steps: tuple[GemmLaunch, ...]


def _make_epilogue_plan_cache(*product: Any) -> Callable[[str], GemmPlan]:
    return functools.cache(lambda then: plan_gemm(*product, then=then))


def _make_offset_table(device: Device, rows, places, depth_a, depth_b) -> Array:
    return from_numpy(np.concatenate([rows, places, depth_a, depth_b]).astype(np.int32), device)


# --- the three products ---------------------------------------------------------------------------


def _plan_forward(device: Device, kind: str, g: ConvShape, biased: bool, conj: bool) -> ConvPlan:
    """Plan y from x and the weight: rows are positions of y, columns are filters."""
    per_group, filters, taps, places = (
        g.channels // g.groups,
        g.filters // g.groups,
        math.prod(g.kernel),
        math.prod(g.out),
    )
    inner = per_group * taps
    if g.is_pointwise and places >= _MIN_PLACES_PER_IMAGE:
        sizes = GemmShape(
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
        return ConvPlan(
            g.padding,
            g.padding,
            (GemmLaunch(_make_epilogue_plan_cache(device, kind, sizes, biased, (conj, False)), None),),
        )
    around = tuple(n + 2 * p for n, p in zip(g.size, g.padding, strict=True))
    steps, area = row_major_steps(around), math.prod(around)
    rows = compute_offsets((g.batch, *g.out), (g.channels * area, *scale_steps(steps, g.stride)))
    depth = compute_offsets((per_group, *g.kernel), (area, *scale_steps(steps, g.dilation)))
    table = _make_offset_table(
        device, rows, compute_offsets((g.batch, places), (g.filters * places, 1)), depth, np.arange(inner)
    )
    sizes = GemmShape(
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
    return ConvPlan(
        g.padding,
        g.padding,
        (GemmLaunch(_make_epilogue_plan_cache(device, kind, sizes, biased, (False, conj), True), table),),
    )


def _plan_input_grad(device: Device, kind: str, g: ConvShape, biased: bool, conj: bool) -> ConvPlan:
    """Plan x from y and the weight, the transpose of `_plan_forward`.

    Positions of x that are a stride apart share their taps, and form one product.
    """
    per_group, filters, taps, size = (
        g.channels // g.groups,
        g.filters // g.groups,
        math.prod(g.kernel),
        math.prod(g.size),
    )
    if g.is_pointwise and size >= _MIN_PLACES_PER_IMAGE:
        sizes = GemmShape(
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
        return ConvPlan(
            g.padding,
            g.padding,
            (GemmLaunch(_make_epilogue_plan_cache(device, kind, sizes, biased, (conj, False)), None),),
        )
    before, after, around, phases = compute_transposed_phases(g)
    steps, area, launches = row_major_steps(around), math.prod(around), []
    for phase in phases:
        rows = compute_offsets((g.batch, *phase.counts), (g.filters * area, *steps), phase.window)
        places = compute_offsets(
            (g.batch, *phase.counts), (g.channels * size, *scale_steps(row_major_steps(g.size), g.stride)), phase.first
        )
        depth_a = (np.arange(filters)[:, None] * area + phase.moves).reshape(-1)
        depth_b = (np.arange(filters)[:, None] * per_group * taps + phase.taps).reshape(-1)
        sizes = GemmShape(
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
        plan = _make_epilogue_plan_cache(device, kind, sizes, biased, (False, conj), True, len(rows) == g.batch * size)
        launches.append(GemmLaunch(plan, _make_offset_table(device, rows, places, depth_a, depth_b)))
    return ConvPlan(before, after, tuple(launches))


def _plan_weight_grad(device: Device, kind: str, g: ConvShape, conj_x: bool, conj_y: bool) -> ConvPlan:
    """Plan the weight's gradient from x (padded) and y: rows are (channel, tap), columns are filters.

    Sums run over the batch and the positions of y.
    """
    per_group, filters, taps, places = (
        g.channels // g.groups,
        g.filters // g.groups,
        math.prod(g.kernel),
        math.prod(g.out),
    )
    around = tuple(n + 2 * p for n, p in zip(g.size, g.padding, strict=True))
    steps, area = row_major_steps(around), math.prod(around)
    rows = compute_offsets((per_group, *g.kernel), (area, *scale_steps(steps, g.dilation)))
    depth_a = compute_offsets((g.batch, *g.out), (g.channels * area, *scale_steps(steps, g.stride)))
    depth_b = compute_offsets((g.batch, places), (g.filters * places, 1))
    count = per_group * taps
    sizes = GemmShape(
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
    return ConvPlan(
        g.padding,
        g.padding,
        (
            GemmLaunch(
                _make_epilogue_plan_cache(device, kind, sizes, False, (conj_x, conj_y), True),
                _make_offset_table(device, rows, np.arange(count), depth_a, depth_b),
            ),
        ),
    )


_PLANNERS: dict[str, Callable[..., Any]] = {
    "forward": _plan_forward,
    "backward": _plan_input_grad,
    "weight": _plan_weight_grad,
    "direct forward": conv_depthwise.plan_forward,
    "direct backward": conv_depthwise.plan_input_grad,
    "direct weight": conv_depthwise.plan_weight_grad,
}


def _get_cached_plan(device: Device, what: str, kind: str, g: ConvShape, *how: bool) -> Any:
    """Return a cached plan, made on first use."""
    kept = device.kept("convolutions", _MAX_CACHED_PLANS)
    key = (what, kind, g, how)
    found = kept.get(key)
    if found is None:
        found = kept[key] = _PLANNERS[what](device, kind, g, *how)
    return found


# --- operands -------------------------------------------------------------------------------------


def _run_forward_or_input_grad(
    what: str,
    g: ConvShape,
    images: Array,
    weight: Array,
    out: Array,
    bias: Array | None = None,
    conj: bool = False,
    then: str = "",
) -> Array:
    """Run "forward" or "backward": y from x, or x from y, with a fused `EPILOGUES` op."""
    device, kind = out.device, out.kind
    if conv_depthwise.is_supported(g, kind):
        way = _get_cached_plan(device, "direct " + what, kind, g, bias is not None)
        return conv_depthwise.run(way, images, weight, out, bias, then)
    return _run_plan(_get_cached_plan(device, what, kind, g, bias is not None, conj), images, weight, out, bias, then)


def _compute_weight_grad(g: ConvShape, x: Array, y: Array, out: Array, conj_x: bool) -> Array:
    device, kind = out.device, out.kind
    if conv_depthwise.is_supported(g, kind):
        return conv_depthwise.run_weight_grad(_get_cached_plan(device, "direct weight", kind, g, False), x, y, out)
    return _run_plan(_get_cached_plan(device, "weight", kind, g, conj_x, not conj_x), x, y, out)


def _run_plan(
    way: ConvPlan, images: Array, other: Array, out: Array, bias: Array | None = None, then: str = ""
) -> Array:
    """Run the products of a plan with a fused `EPILOGUES` op: `images` is the operand that is read by position."""
    images, done = zero_pad(images, way.before, way.after), True
    for step in way.steps:
        plan = step.plan(then)
        if step.table is None:
            plan.run(other, images, out, bias)
        else:
            plan.run(images, other, out, bias, table=step.table)
        done = done and getattr(plan, "then", "") == then
    return out if done else POINTWISE[then](out)


def as_tuple(value, count: int) -> tuple[int, ...]:
    value = (value,) if isinstance(value, int) else tuple(map(int, value))
    return value * count if len(value) == 1 else value


@functools.lru_cache(4096)
def make_conv_shape(x_shape, y_shape, weight_shape, stride, padding, dilation, groups) -> ConvShape:
    return ConvShape(
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


def _check_arguments(input, weight, bias, stride, padding, dilation, filters: int) -> None:
    """Check that the arguments fit each other, with the errors of the record's shape function."""
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


def validate_shape(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
) -> tuple[ConvShape, tuple[int, ...]]:
    """Return a convolution's ConvShape and the result's shape. RuntimeError for inconsistent arguments."""
    spatial = input.ndim - 2
    stride, padding, dilation, extra = [as_tuple(v, spatial) for v in (stride, padding, dilation, output_padding)]
    _check_arguments(
        input, weight, bias, stride, padding, dilation, weight.shape[1] * groups if transposed else weight.shape[0]
    )
    if input.kind == "b8":
        raise NotImplementedError(
            f"\"slow_conv{'_transpose' if transposed else ''}{max(spatial, 2)}d_cpu\" not implemented for 'Bool'"
        )
    return _validate_shape_cached(input.shape, weight.shape, stride, padding, dilation, bool(transposed), extra, groups)


@functools.lru_cache(4096)
def _validate_shape_cached(
    x_shape, weight_shape, stride, padding, dilation, transposed, extra, groups
) -> tuple[ConvShape, tuple[int, ...]]:
    """Return the ConvShape and the result's shape. RuntimeError for inconsistent shapes."""
    if 0 in weight_shape[2:]:
        raise RuntimeError("a window without places")
    sizes = zip(x_shape[2:], weight_shape[2:], stride, padding, dilation, extra, strict=True)
    if transposed:
        out_shape = (
            x_shape[0],
            weight_shape[1] * groups,
            *((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in sizes),
        )
        g = make_conv_shape(out_shape, x_shape, weight_shape, stride, padding, dilation, groups)
    else:
        out_shape = (
            x_shape[0],
            weight_shape[0],
            *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in sizes),
        )
        g = make_conv_shape(x_shape, out_shape, weight_shape, stride, padding, dilation, groups)
    matching = x_shape[1] == (weight_shape[0] if transposed else weight_shape[1] * groups)
    if not matching or groups < 1 or weight_shape[0] < groups or weight_shape[0] % groups or min(extra) < 0:
        raise RuntimeError("convolution: channels do not fit")
    if min(out_shape[2:], default=1) <= 0:
        raise RuntimeError("the kernel does not fit the input")
    return g, out_shape


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    return _conv_with_epilogue("", input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _conv_with_epilogue(then: str, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    g, out_shape = validate_shape(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    out = empty(input.device, out_shape, input.kind)
    if not out.size:
        return out
    input, weight = as_contiguous(input), as_contiguous(weight)
    return _run_forward_or_input_grad("backward" if transposed else "forward", g, input, weight, out, bias, then=then)


def kernel_with_epilogue(name: str, then: str) -> Callable[..., Array] | None:
    """Return the kernel of a product or convolution with a fused elementwise op; None if they cannot be fused."""
    if name == "convolution":
        return functools.partial(_conv_with_epilogue, then) if then in EPILOGUES else None
    return matmul.kernel_with_epilogue(name, then)


def validate_gradient(
    grad_output, input, weight, stride, padding, dilation, transposed, groups
) -> tuple[ConvShape, Array, Array]:
    """Return the convolution's ConvShape, x and y."""
    spatial = len(input.shape) - 2
    stride, padding, dilation = as_tuple(stride, spatial), as_tuple(padding, spatial), as_tuple(dilation, spatial)
    x, y = (grad_output, input) if transposed else (input, grad_output)
    return make_conv_shape(x.shape, y.shape, weight.shape, stride, padding, dilation, groups), x, y


def _convolution_backward(
    grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs
):
    device, kind = input.device, input.kind
    grad_output, input, weight = as_contiguous(grad_output), as_contiguous(input), as_contiguous(weight)
    g, x, y = validate_gradient(grad_output, input, weight, stride, padding, dilation, transposed, groups)
    grad_input = grad_weight = grad_bias = None
    if needs[0]:
        grad_input = empty(device, input.shape, kind)
        if grad_input.size:
            _run_forward_or_input_grad(
                "forward" if transposed else "backward", g, grad_output, weight, grad_input, conj=True
            )
    if needs[1]:
        grad_weight = empty(device, weight.shape, kind)
        if grad_weight.size:
            _compute_weight_grad(g, x, y, grad_weight, not transposed)
    if needs[2]:
        grad_bias = reduced_sum(grad_output, (0, *range(2, grad_output.ndim)))
    return grad_input, grad_weight, grad_bias
