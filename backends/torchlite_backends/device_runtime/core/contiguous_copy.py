"""Contiguous copies, tiled if another dimension than the last is innermost in memory."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from torchlite_backends.kernel_sources.rearrange import TRANSPOSE_LOCAL, TRANSPOSE_VECTORS

from .array import Array, empty, row_major_layout
from .broadcasting import collapse_dims
from .pointwise_dispatch import cast

if TYPE_CHECKING:
    from .device import Device

_MIN_SIZE = 4096  # elements below which the general copy is as fast
_KINDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


class _CopyLaunch(NamedTuple):
    """Launch of a tiled copy; without a function the general copy is used."""

    function: Any = None
    global_size: tuple[int, ...] = ()
    local_size: tuple[int, ...] = ()
    numbers: tuple = ()


_GENERAL_COPY = _CopyLaunch()


def clone_row_major(x: Array) -> Array:
    """Return a contiguous copy."""
    out = empty(x.device, x.shape, x.kind)
    return out if not x.contiguous and transpose_into(out, x) else cast(x, x.kind, out)


def as_contiguous(x: Array) -> Array:
    """Return `x` if it is contiguous, else a contiguous copy."""
    return x if x.contiguous else clone_row_major(x)


def transpose_into(target: Array, source: Array) -> bool:
    """Copy `source` into a contiguous `target` of its shape and kind by tiles.

    Return False, with nothing copied, if the last dimension of `source` is innermost in memory.
    """
    if source.size < _MIN_SIZE:
        return False
    plans, key = source.device.plans, ("transpose", source.shape, source.steps, source.itemsize)
    plan = plans.get(key)
    if plan is None:
        plan = plans[key] = _copy_launch(source.device, source.shape, source.steps, source.itemsize)
    if plan.function is None:
        return False
    plan.function(plan.global_size, plan.local_size, source, target, *plan.numbers)
    return True


def _copy_launch(device: Device, shape: tuple[int, ...], all_steps: tuple[int, ...], itemsize: int) -> _CopyLaunch:
    """Return the launch that copies elements with these strides."""
    if itemsize not in _KINDS:
        return _GENERAL_COPY
    sizes, (steps,) = collapse_dims(shape, all_steps)
    last = len(sizes) - 1
    if last < 1 or last > 7 or steps[last] == 1 or 1 not in steps or min(steps) < 1:
        return _GENERAL_COPY
    inner = steps.index(1)
    if min(sizes[inner], sizes[last]) < 8:
        return _GENERAL_COPY
    places = row_major_layout(tuple(sizes))[1]
    others = [d for d in range(last) if d != inner]
    batches = 1
    for d in others:
        batches *= sizes[d]
    how = [len(others)]
    for each in (sizes, places, steps):
        how += [*[each[d] for d in others], *[0] * (6 - len(others))]
    rows, columns, kind = sizes[inner], sizes[last], _KINDS[itemsize]
    numbers = (rows, columns, places[inner], steps[last], struct.pack("19i", *how))
    if device.is_cpu:
        function = device.function(TRANSPOSE_VECTORS, "transpose_vectors", "ppiiiix", (16,), T=kind)
        return _CopyLaunch(function, (-(-rows // 64), -(-columns // 64), batches), (1, 1, 1), numbers)
    if device.max_group >= 256:
        function = device.function(TRANSPOSE_LOCAL, "transpose_local", "ppiiiix", T=kind)
        return _CopyLaunch(function, (-(-columns // 16) * 16, -(-rows // 16) * 16, batches), (16, 16, 1), numbers)
    return _GENERAL_COPY
