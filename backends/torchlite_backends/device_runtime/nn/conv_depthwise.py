"""Depthwise convolutions, computed position by position: a matrix product would have one column."""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

import numpy as np

from torchlite_backends.kernel_sources.conv_depthwise import depthwise_source, depthwise_weight_grad_source

from ..core.array import Array
from ..core.device import Device
from ..core.host_transfer import from_numpy
from .conv_indexing import compute_offsets, compute_transposed_phases, row_major_steps, scale_steps, zero_pad
from .conv_shape import ConvShape

# Maximum filters per group; its matrix product would have few columns.
_FEW = 4


class Launch(NamedTuple):
    """Table of offsets, and the kernels' numbers."""

    table: Array
    numbers: bytes
    pieces: int


class DepthwisePlan(NamedTuple):
    """Plan for one array of the convolution: padding of the operand read by position, then the launches."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    slack: int
    launches: tuple[Launch, ...]


def is_supported(g: ConvShape, kind: str) -> bool:
    """True if this module computes a convolution."""
    return (
        g.groups > 1
        and g.channels == g.groups
        and g.filters // g.groups <= _FEW
        and kind in ("f16", "bf16", "f32", "f64")
    )


def choose_outputs_per_item(device: Device, kind: str) -> int:
    """Return adjacent outputs per work-item."""
    return 1 if not device.is_cpu else 8 if kind == "f64" else 16


def _launch(device: Device, rows_in, rows_out, moves, taps, pieces: int, *numbers: int) -> Launch:
    table = from_numpy(np.concatenate([rows_in, rows_out, moves, taps]).astype(np.int32), device)
    return Launch(table, struct.pack("14i", *numbers), pieces)


def plan_forward(device: Device, kind: str, g: ConvShape, biased: bool) -> DepthwisePlan:
    """Plan y from x."""
    return _plan_over_places(device, kind, g, biased)


def plan_weight_grad(device: Device, kind: str, g: ConvShape, biased: bool) -> DepthwisePlan:
    """Plan the weight's gradient from x and y, with the positions of the forward pass."""
    return _plan_over_places(device, kind, g, biased)


def _plan_over_places(device: Device, kind: str, g: ConvShape, biased: bool) -> DepthwisePlan:
    around = tuple(n + 2 * p for n, p in zip(g.size, g.padding, strict=True))
    steps, area, places = row_major_steps(around), math.prod(around), math.prod(g.out)
    rows_in = compute_offsets(g.out[:-1], scale_steps(steps, g.stride)[:-1])
    rows_out = compute_offsets(g.out[:-1], row_major_steps(g.out)[:-1])
    moves, taps = compute_offsets(g.kernel, scale_steps(steps, g.dilation)), np.arange(math.prod(g.kernel))
    width = choose_outputs_per_item(device, kind)
    pieces = g.batch * g.filters * len(rows_in) * -(-g.out[-1] // width)
    launch = _launch(
        device,
        rows_in,
        rows_out,
        moves,
        taps,
        pieces,
        g.batch,
        g.filters,
        len(rows_in),
        g.out[-1],
        len(taps),
        g.filters // g.groups,
        g.channels * area,
        area,
        g.filters * places,
        places,
        g.stride[-1],
        1,
        len(taps),
        int(biased),
    )
    return DepthwisePlan(g.padding, g.padding, 2 * width * g.stride[-1] if width > 1 else 0, (launch,))


def plan_input_grad(device: Device, kind: str, g: ConvShape, biased: bool) -> DepthwisePlan:
    """Plan x from y: each position of x sums over all filters of its group and the taps that reach it."""
    before, after, around, phases = compute_transposed_phases(g)
    steps, area, size, taps = row_major_steps(around), math.prod(around), math.prod(g.size), math.prod(g.kernel)
    share, width, launches = g.filters // g.groups, choose_outputs_per_item(device, kind), []
    for phase in phases:
        rows_in = compute_offsets(phase.counts[:-1], steps[:-1], phase.window)
        rows_out = compute_offsets(phase.counts[:-1], scale_steps(row_major_steps(g.size), g.stride)[:-1], phase.first)
        moves = (np.arange(share)[:, None] * area + phase.moves).reshape(-1)
        chosen = (np.arange(share)[:, None] * taps + phase.taps).reshape(-1)
        pieces = g.batch * g.channels * len(rows_in) * -(-phase.counts[-1] // width)
        launches.append(
            _launch(
                device,
                rows_in,
                rows_out,
                moves,
                chosen,
                pieces,
                g.batch,
                g.channels,
                len(rows_in),
                phase.counts[-1],
                len(moves),
                1,
                g.filters * area,
                share * area,
                g.channels * size,
                size,
                1,
                g.stride[-1],
                share * taps,
                int(biased),
            )
        )
    return DepthwisePlan(before, after, 2 * width if width > 1 else 0, tuple(launches))


def _choose_launch_sizes(device: Device, pieces: int) -> tuple[tuple[int], tuple[int]]:
    if device.is_cpu:
        return (max(1, min(device.units * 4, pieces // 64)),), (1,)
    return (-(-pieces // device.group) * device.group,), (device.group,)


def run(way: DepthwisePlan, images: Array, weight: Array, out: Array, bias: Array | None, then: str = "") -> Array:
    """Run the convolution or its transpose, with a fused op of `gemm.EPILOGUES`."""
    device, kind = out.device, out.kind
    images = zero_pad(images, way.before, way.after, way.slack)
    width = choose_outputs_per_item(device, kind)
    function = device.function(depthwise_source(width, then), "direct", "pppppx", (width,) if width > 1 else (), T=kind)
    for launch in way.launches:
        function(
            *_choose_launch_sizes(device, launch.pieces),
            images,
            weight,
            out,
            images if bias is None else bias,
            launch.table,
            launch.numbers,
        )
    return out


def run_weight_grad(way: DepthwisePlan, x: Array, y: Array, out: Array) -> Array:
    """Run the weight's gradient."""
    device, kind = out.device, out.kind
    x = zero_pad(x, way.before, way.after, way.slack)
    width = choose_outputs_per_item(device, kind)
    function = device.function(
        depthwise_weight_grad_source(width), "direct_weight", "ppppx", (width,) if width > 1 else (), T=kind
    )
    function(
        (min(out.size, device.units * 4),) if device.is_cpu else (out.size,),
        (1,) if device.is_cpu else None,
        x,
        y,
        out,
        way.launches[0].table,
        way.launches[0].numbers,
    )
    return out
