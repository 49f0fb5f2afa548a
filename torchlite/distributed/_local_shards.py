"""Local shards of a DTensor, as boxes of the global tensor."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import torchlite as torch
from torchlite.distributed.tensor import DTensor
from torchlite.distributed.tensor._utils import local_ranges


class LocalBox(NamedTuple):
    """A box: its offsets in the global tensor, its sizes, and its offsets in the local one."""

    offsets: torch.Size
    sizes: torch.Size
    begins: tuple[int, ...]


def local_boxes(tensor: Any) -> list[LocalBox]:
    """Return this rank's boxes of a DTensor: one, none for an empty shard, several if mesh dimensions stride one
    dimension.
    """
    along = []
    for ranges in local_ranges(tensor.shape, tensor.device_mesh, tensor.placements):
        starts = itertools.accumulate((stop - start for start, stop in ranges), initial=0)
        along.append([(start, stop - start, begin) for (start, stop), begin in zip(ranges, starts, strict=False)])
    found = []
    for box in itertools.product(*along):
        offsets, sizes, begins = ([part[i] for part in box] for i in range(3))
        found.append(LocalBox(torch.Size(offsets), torch.Size(sizes), tuple(begins)))
    return found


def narrow_to_box(tensor: torch.Tensor, offsets: Any, sizes: Any) -> torch.Tensor:
    """View a box of a tensor."""
    for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        if tensor.shape[dim] != size:
            tensor = tensor.narrow(dim, offset, size)
    return tensor


def copy_local_part(tensor: Any, whole: torch.Tensor) -> None:
    """Copy this rank's part of a full tensor into a DTensor's local one."""
    local = tensor.to_local()
    with torch.no_grad():
        for part in local_boxes(tensor):
            narrow_to_box(local, part.begins, part.sizes).copy_(narrow_to_box(whole, part.offsets, part.sizes))


def distribute_like(whole: torch.Tensor, like: Any) -> Any:
    """Return this rank's part of a full tensor, as a DTensor with the placements of `like`."""
    local = like.to_local()
    made = torch.empty(local.shape, dtype=whole.dtype, device=whole.device if local.is_meta else local.device)
    part = DTensor.from_local(
        made, like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
    )
    copy_local_part(part, whole.detach())
    return part
