"""Copies of arrays: clone, cast, fill, copy into, between devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite._dispatch.memory_layout import infer_dense_strides, is_channels_last
from torchlite._dispatch.shapes import memory_format_strides
from torchlite._types.dtypes import from_np
from torchlite_backends.kernel_sources.dtype_kinds import REAL_KIND

from .array import Array, empty, is_row_major, make_view, row_major_layout
from .contiguous_copy import as_contiguous, clone_row_major, transpose_into
from .host_transfer import from_numpy, to_numpy
from .pointwise_dispatch import cast, fill_number


def _has_hazard(target: Array, source: Array) -> bool:
    """True if writing `target` may change elements of `source` that are read later."""
    if target.buffer is not source.buffer or not source.size:
        return False
    return target.offset != source.offset or target.steps != source.steps or target.shape != source.shape


def copy_into(target: Array, source: Any) -> Array:
    """Write `source` (an array of the device or a number), broadcast and cast, into `target`."""
    if source.__class__ is not Array:
        return fill_with(target, source)
    if source.device is not target.device:
        source = from_numpy(to_numpy(source), target.device)
    if _has_hazard(target, source):
        source = clone_row_major(source)
    while len(source.shape) > len(target.shape) and source.shape[0] == 1:
        source = make_view(source, source.shape[1:], source.steps[1:], source.offset)
    if (
        not source.contiguous
        and target.contiguous
        and source.kind == target.kind
        and source.shape == target.shape
        and transpose_into(target, source)
    ):
        return target
    return cast(source, target.kind, target)


def fill_with(target: Array, value: Any) -> Array:
    """Set all elements of `target` to a Python number or 0-d array."""
    if value.__class__ is Array:
        return copy_into(target, value)
    if isinstance(value, complex) and target.kind not in REAL_KIND:
        raise RuntimeError(
            f"value cannot be converted to type {from_np(target.dtype).scalar_name.lower()} without overflow"
        )
    if isinstance(value, np.generic):
        value = value.item()
    if target.size:
        fill_number(target, value)
    return target


def copy_preserving_order(x: Array) -> Array:
    """Copy, keeping the order of dimensions in memory if there are no gaps."""
    out = empty(x.device, x.shape, x.kind)
    if x.steps != out.steps:
        out.steps = infer_dense_strides(x.shape, x.steps)
        out.contiguous = is_row_major(x.shape, out.steps)
    return copy_into(out, x)


def compute_channels_last_steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides with the second dimension innermost."""
    batch, channels, *space = shape
    _, (outer, *spatial, inner) = row_major_layout((batch, *space, channels))
    return (outer, inner, *spatial)


def empty_channels_last(device, shape: tuple[int, ...], kind: str) -> Array:
    """Return an uninitialised channels-last array."""
    out = empty(device, shape, kind)
    out.steps = compute_channels_last_steps(shape)
    out.contiguous = is_row_major(shape, out.steps)
    return out


def to_channels_last(x: Array, name: str | None = None) -> Array:
    """Return a channels-last copy; the name of a format is checked against the number of dimensions."""
    if name is not None:
        memory_format_strides(x.shape, name)
    return copy_into(empty_channels_last(x.device, x.shape, x.kind), x)


def clone(input, *, memory_format=None):
    name = getattr(memory_format, "name", "preserve_format")
    if name.startswith("channels_last"):
        return to_channels_last(input, name)
    return clone_row_major(input) if name == "contiguous_format" else copy_preserving_order(input)


def contiguous(input, memory_format=None):
    if memory_format is not None and memory_format.name.startswith("channels_last"):
        return input if is_channels_last(input.shape, input.steps) else to_channels_last(input, memory_format.name)
    return as_contiguous(input)


def _copy(input, src):
    return copy_into(empty(input.device, input.shape, input.kind), src)


def _copy_(input, src):
    copy_into(input, src)


def _fill(input, value):
    return fill_with(empty(input.device, input.shape, input.kind), value)


def _fill_(input, value):
    fill_with(input, value)
