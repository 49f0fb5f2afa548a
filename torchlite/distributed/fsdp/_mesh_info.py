"""`MeshInfo`: shard and replicate dimensions of a mesh for FSDP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchlite.distributed.device_mesh import DeviceMesh
from torchlite.distributed.tensor import Placement, Replicate, Shard


@dataclass
class MeshInfo:
    """A 1-d mesh (shard), or a 2-d one (replicate, shard)."""

    mesh: DeviceMesh

    def __post_init__(self) -> None:
        if self.mesh.ndim not in (1, 2):
            raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {self.mesh}")
        groups = self.mesh.get_all_groups()
        self.group = groups[-1]  # of the shards
        self.copies = groups[0] if self.mesh.ndim == 2 else None
        self.size, self.rank = self.group.size(), self.group.rank()

    @property
    def total(self) -> int:
        """Number of ranks over which gradients are averaged."""
        return self.size * (1 if self.copies is None else self.copies.size())

    def placements(self, shard: Placement) -> tuple[Placement, ...]:
        """Return a parameter's placements on the mesh."""
        return (shard,) if self.copies is None else (Replicate(), shard)


def chunk_range(size: int, parts: int, number: int) -> tuple[int, int]:
    """Return start and end of a rank's chunk of a dimension, as `torch.chunk` splits it."""
    step = -(-size // parts)
    return min(step * number, size), min(step * (number + 1), size)


def check_shard_placement(found: Any) -> Shard:
    """Return the placement that `shard_placement_fn` returned, `Shard(0)` for None."""
    placement = Shard(0) if found is None else found
    if not isinstance(placement, Shard):
        raise AssertionError(f"Expected Shard placement from shard_placement_fn, got {placement}")
    return placement
