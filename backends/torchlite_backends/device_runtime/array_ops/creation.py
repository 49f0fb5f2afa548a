"""Array creation: empty, filled, ranges."""

from __future__ import annotations

import math

from torchlite_backends.kernel_sources.arange import RANGE
from torchlite_backends.kernel_sources.dtype_kinds import CATEGORY

from ..core.array import Array, empty, kind_of
from ..core.copy_fill import fill_with
from ..core.device import Device, round_up_to_groups
from ..core.kernel_markers import mark_device_first


def full(device: Device, shape, value, kind: str) -> Array:
    """Return a new array filled with one value."""
    return fill_with(empty(device, tuple(shape), kind), value)


@mark_device_first
def _empty(device, size, dtype):
    return empty(device, tuple(size), kind_of(dtype.np))


@mark_device_first
def _full(device, size, value, dtype):
    return full(device, size, value, kind_of(dtype.np))


def make_arange(device: Device, start, step, count: int, kind: str) -> Array:
    """Return start, start + step, …, computed in int64, or in the widest floating type of the device."""
    out = empty(device, (count,), kind)
    if count:
        if CATEGORY[kind] in "ib":
            work, code = "long", "q"
        else:
            work, code = ("double", "d") if device.fp64 else ("float", "f")
        kinds = {"T": kind} if work != "double" else {"T": kind, "UNUSED": "f64"}
        run = device.function(RANGE, "range", f"pi{code}{code}", W=work, **kinds)
        run(round_up_to_groups(count, 64), (64,), out, count, start, step)
    return out


@mark_device_first
def _arange(device, start, end, step, dtype):
    kind = kind_of(dtype.np)
    if dtype.category < 2:
        start, end, step = int(start), int(end), int(step)
    return make_arange(device, start, step, max(0, math.ceil((end - start) / step)), kind)


def _zeros_like(input):
    return full(input.device, input.shape, 0, input.kind)


def _ones_like(input):
    return full(input.device, input.shape, 1, input.kind)


def _full_like(input, value):
    return full(input.device, input.shape, value, input.kind)


def _new_zeros(input, shape):
    return full(input.device, shape, 0, input.kind)


def _new_full(input, shape, value):
    return full(input.device, shape, value, input.kind)


def _new_arange(input, start, end, step, dtype):
    return _arange(input.device, start, end, step, dtype)
