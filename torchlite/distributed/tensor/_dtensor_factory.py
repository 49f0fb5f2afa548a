"""Factory of DTensors from local tensors, for modules below the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlite as torch

from ..device_mesh import DeviceMesh
from ._dtensor_spec import DTensorSpec, TensorMeta
from .placement_types import Placement, Replicate, Shard, concat_ranges

# Constructor of a DTensor from a local tensor and a spec, set by `_api`.
FACTORY: list[Any] = []
# Function that makes a DTensor wait for its messages at its first use, set by `_arriving_dtensor`.
ARRIVALS: list[Any] = []


def make_dtensor(local: torch.Tensor, spec: DTensorSpec) -> Any:
    """Create a DTensor from a local tensor and a spec with its `tensor_meta`; its history is the local tensor's."""
    return FACTORY[0](local, spec)


def replicate_tensor(tensor: torch.Tensor, mesh: DeviceMesh) -> Any:
    """Return a plain tensor, the same on all processes, as a DTensor."""
    meta = TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)
    return make_dtensor(tensor, DTensorSpec(mesh, (Replicate(),) * mesh.ndim, meta))


def take_local_shard(whole: torch.Tensor, mesh: DeviceMesh, placements: Sequence[Placement]) -> torch.Tensor:
    """Return this process's shard of a tensor that all have."""
    place = mesh.get_coordinate()
    if place is None:
        return whole.new_empty(0)
    for number, placement in enumerate(placements):
        if isinstance(placement, Shard):
            ranges = placement.pieces(whole.shape[placement.dim], mesh.size(number))[place[number]]
            whole = concat_ranges(whole, placement.dim, ranges)
    return whole.clone(memory_format=torch.contiguous_format)
