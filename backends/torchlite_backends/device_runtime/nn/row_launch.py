"""Launch sizes of row kernels: a work-item per row with vectors on CPUs, a work-group per row on GPUs.

Rows strided in memory are processed by one work-item for adjacent rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from torchlite._types.dtypes import from_np

from ..core.array import Array
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device
from ..core.pointwise_dispatch import cast

FLOATS = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64"}  # kind: the kind to compute in
_MAX_LENGTH_PER_ITEM = 32  # rows of at most so many elements take one work-item on GPUs too
_LANES = 128
_ITEM_WORK = 1 << 14  # minimum elements per work-item on CPUs
_MOST_ROWS = 512  # of a work-item that adds up rows


class RowLaunch(NamedTuple):
    """Launch over rows: macros, vector widths, sizes. Each of `workers` items or groups takes `per` rows.

    With strided rows, W adjacent ones count as one.
    """

    macros: dict[str, str]
    widths: tuple[int, ...]
    global_size: tuple[int]
    local_size: tuple[int]
    rows: int
    per: int
    workers: int


def choose_lanes_per_row(device: Device, n: int) -> int:
    """Return the work-items per row of `n` elements: a power of two."""
    return 1 if device.is_cpu or n <= _MAX_LENGTH_PER_ITEM else min(_LANES, 1 << device.max_group.bit_length() - 1)


def make_row_launch(
    device: Device, kind: str, rows: int, n: int, inner: int = 1, workers: int = 0, run: int = 0
) -> RowLaunch:
    """Return the launch over `rows` rows of `n` elements, with `inner` adjacent rows.

    `workers` is the maximum, 0 for as many as pay; `run` is the number of contiguous elements of a row if not all.
    """
    lanes = 1 if inner > 1 else choose_lanes_per_row(device, n)
    width = device.width // 2 if kind == "f64" else device.width
    if not device.is_cpu and (lanes == 1 or run):
        width = 1
    elif run and run < width:
        width = 4
    units = rows if inner == 1 else rows // inner * -(-inner // width)
    per = -(-units // workers) if workers else 1
    if device.is_cpu:
        least = _ITEM_WORK // (n * (1 if inner == 1 else width))
        per = max(per, min(-(-units // (4 * device.units)), max(1, min(least, _MOST_ROWS) if workers else least)))
    count = -(-units // per)
    local = lanes if lanes > 1 else 1 if device.is_cpu else 64
    global_size = (count * lanes,) if lanes > 1 else (-(-count // local) * local,)
    wide = "f64" if device.fp64 else FLOATS[kind]
    macros = {"W": str(width), "LANES": str(lanes), "COLUMNS": str(int(inner > 1)), "D": wide}
    return RowLaunch(macros, tuple([w for w in (2, 4, 8, 16) if w <= width]), global_size, (local,), units, per, count)


def split_rows_along(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """Return rows, their length and the adjacent ones, for rows along `dim` of a contiguous array."""
    dim = dim % len(shape)
    return math.prod(shape[:dim]) * math.prod(shape[dim + 1 :]), shape[dim], math.prod(shape[dim + 1 :])


def raise_not_implemented(x: Array, kernel: str) -> None:
    """Raise PyTorch's error for an unsupported dtype."""
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{from_np(x.dtype).scalar_name}'")


def cast_parameters_to_common_kind(kind: str, *given: Array | None) -> tuple[str, list[Array | None]]:
    """Return weights and biases as arrays of one kind with the compute type of `kind`, and that kind."""
    own, wide = "", FLOATS[kind]
    for p in given:
        if p is not None:
            own = p.kind if not own or p.kind == own else wide
    own = own or kind
    if FLOATS.get(own) != wide:
        own = wide
    return own, [
        p if p is None or p.kind == own and p.contiguous else as_contiguous(cast(p, own) if p.kind != own else p)
        for p in given
    ]
