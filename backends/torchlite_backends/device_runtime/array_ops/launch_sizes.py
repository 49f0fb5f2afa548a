"""Work sizes of launches, and kinds for moving elements by size."""

from __future__ import annotations

from ..core.array import Array
from ..core.device import Device, round_up_to_groups

# Kinds for moving elements by size.
_COPY_KINDS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "c128"}


def copy_kind(x: Array) -> str:
    """Return the kind under which elements of the size of `x`'s are copied."""
    return _COPY_KINDS[x.itemsize]


def choose_work_sizes(device: Device, count: int, least: int = 256) -> tuple[int, tuple[int], tuple[int]]:
    """Return elements per work-item, global and local size: one on a GPU, on a CPU enough to keep its units busy."""
    if not device.is_cpu:
        return 1, round_up_to_groups(count, device.group), (device.group,)
    take = max(least, -(-count // (8 * device.units)))
    return take, (-(-count // take),), (1,)


def get_heavy_item_local_size(device: Device) -> tuple[int] | None:
    """Return the local size of heavy work-items: on a CPU one, so that the driver does not vectorise over several."""
    return (1,) if device.is_cpu else None
