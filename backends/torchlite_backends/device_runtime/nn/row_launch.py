"""How kernels on rows are laid over a device: a work-item a row with wide vectors on CPUs, a work-group a row on GPUs,
an item for neighbouring rows that lie across memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from torchlite._types.dtypes import from_np

from ..core.array import Array
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device
from ..core.pointwise_dispatch import cast

FLOATS = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64"}  # kind: what it is computed in
_MAX_LENGTH_PER_ITEM = 32  # rows of at most so many elements are one item's work on GPUs too
_LANES = 128
_ITEM_WORK = 1 << 14  # elements that a work-item takes at least on CPUs, where there are so many


class RowLaunch(NamedTuple):
    """A launch over rows: macros, vector widths, sizes; `workers` items or groups take `per` rows each (W neighbours as
    one where they lie across memory).
    """

    macros: dict[str, str]
    widths: tuple[int, ...]
    global_size: tuple[int]
    local_size: tuple[int]
    rows: int
    per: int
    workers: int


def lanes_per_row(device: Device, n: int) -> int:
    """The work-items that share a row of `n` elements: a power of two."""
    return 1 if device.is_cpu or n <= _MAX_LENGTH_PER_ITEM else min(_LANES, 1 << device.max_group.bit_length() - 1)


def row_launch(
    device: Device, kind: str, rows: int, n: int, inner: int = 1, workers: int = 0, run: int = 0
) -> RowLaunch:
    """The launch over `rows` rows of `n` elements, `inner` of which lie side by side when `inner` is not 1.

    `workers` is the most that there may be, 0 for as many as pay; `run` is how many of a row's elements lie one after
    the other when it is not all.
    """
    lanes = 1 if inner > 1 else lanes_per_row(device, n)
    width = device.width // 2 if kind == "f64" else device.width
    if not device.is_cpu and (lanes == 1 or run):
        width = 1
    elif run and run < width:
        width = 4
    units = rows if inner == 1 else rows // inner * -(-inner // width)
    per = -(-units // workers) if workers else 1
    if device.is_cpu:
        per = max(per, min(-(-units // (4 * device.units)), max(1, _ITEM_WORK // (n * (1 if inner == 1 else width)))))
    count = -(-units // per)
    local = lanes if lanes > 1 else 1 if device.is_cpu else 64
    global_size = (count * lanes,) if lanes > 1 else (-(-count // local) * local,)
    macros = {"W": str(width), "LANES": str(lanes), "COLUMNS": str(int(inner > 1))}
    return RowLaunch(macros, tuple([w for w in (2, 4, 8, 16) if w <= width]), global_size, (local,), units, per, count)


def rows_along(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """Rows, their length and how many lie side by side, for rows along `dim` of a contiguous array."""
    dim %= len(shape)
    return math.prod(shape[:dim]) * math.prod(shape[dim + 1 :]), shape[dim], math.prod(shape[dim + 1 :])


def raise_not_implemented(x: Array, kernel: str) -> None:
    """PyTorch's error for a dtype that a kernel does not take."""
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{from_np(x.dtype).scalar_name}'")


def common_kind_parameters(kind: str, *given: Array | None) -> tuple[str, list[Array | None]]:
    """Weights and biases as arrays of one kind that is computed in the same type as `kind`, and that kind."""
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
