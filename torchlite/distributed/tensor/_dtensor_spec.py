"""`DTensorSpec`: mesh, placements, and global shape, strides and dtype of a DTensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torchlite as torch

from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = ["DTensorSpec", "ShardOrderEntry", "TensorMeta"]


class ShardOrderEntry(NamedTuple):
    """Mesh dimensions that shard a tensor dimension, in order."""

    tensor_dim: int
    mesh_dims: tuple[int, ...]


class TensorMeta(NamedTuple):
    """Global shape, strides and dtype."""

    shape: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype


class DTensorSpec:
    """Mesh, a placement for each of its dimensions, and the tensor metadata. Immutable, except for a later
    `tensor_meta`.
    """

    __slots__ = ("_hash", "mesh", "placements", "tensor_meta")
    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    tensor_meta: TensorMeta | None

    def __init__(
        self,
        mesh: DeviceMesh,
        placements: Sequence[Placement],
        tensor_meta: TensorMeta | None = None,
        shard_order: tuple[ShardOrderEntry, ...] | None = None,
        use_strided_shard_as_shard_order: bool | None = None,
    ) -> None:
        self.mesh, self.placements, self.tensor_meta = mesh, tuple(placements), tensor_meta
        self._hash: int | None = None
        if shard_order is not None and tuple(shard_order) != self.shard_order:
            raise NotImplementedError("DTensorSpec: dimensions of the mesh cut a dimension in their own order only")

    @property
    def shape(self) -> torch.Size:
        """Global size. ValueError if unknown."""
        return self._check_tensor_meta().shape

    @property
    def stride(self) -> tuple[int, ...]:
        """Global strides. ValueError if unknown."""
        return self._check_tensor_meta().stride

    @property
    def ndim(self) -> int:
        """Number of tensor dimensions. ValueError if unknown."""
        return len(self._check_tensor_meta().shape)

    def _check_tensor_meta(self) -> TensorMeta:
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    @property
    def device_mesh(self) -> DeviceMesh:
        """Mesh."""
        return self.mesh

    @property
    def num_shards(self) -> int:
        """Number of shards."""
        return math.prod(self.mesh.size(i) for i, p in enumerate(self.placements) if p.is_shard())

    @property
    def num_shards_map(self) -> list[int]:
        """Number of shards of each tensor dimension."""
        counts = [1] * self.ndim
        for i, p in enumerate(self.placements):
            if isinstance(p, Shard):
                counts[p.dim] *= self.mesh.size(i)
        return counts

    @property
    def dim_map(self) -> list[int]:
        """For each tensor dimension the mesh dimension that shards it, or -1."""
        found = [-1] * self.ndim
        for i, p in enumerate(self.placements):
            if isinstance(p, Shard):
                if found[p.dim] >= 0:
                    raise ValueError(
                        f"Found multiple mesh dims sharding the same tensor dim: {p.dim} by {found[p.dim]} and {i}"
                    )
                found[p.dim] = i
        return found

    @property
    def sums(self) -> list[int]:
        """Mesh dimensions with a Partial placement."""
        return [i for i, p in enumerate(self.placements) if p.is_partial()]

    @classmethod
    def from_dim_map(
        cls, mesh: DeviceMesh, dim_map: list[int], sums: list[int], tensor_meta: TensorMeta | None = None
    ) -> DTensorSpec:
        """Return the spec with this `dim_map` and these `sums`."""
        placements: list[Placement] = [Partial() if i in sums else Replicate() for i in range(mesh.ndim)]
        for dim, number in enumerate(dim_map):
            if number < 0:
                continue
            if not placements[number].is_replicate():
                raise RuntimeError(
                    f"DeviceMesh dimension can't be mapped to two dimension of the same tensor: {number}"
                )
            placements[number] = Shard(dim)
        return cls(mesh, placements, tensor_meta)

    @property
    def shard_order(self) -> tuple[ShardOrderEntry, ...]:
        """Mesh dimensions that shard each tensor dimension."""
        cut: dict[int, list[int]] = {}
        for i, p in enumerate(self.placements):
            if isinstance(p, Shard) and not isinstance(p, _StridedShard):
                cut.setdefault(p.dim, []).append(i)
        return tuple(ShardOrderEntry(dim, tuple(cut[dim])) for dim in sorted(cut))

    def is_replicated(self) -> bool:
        """True if each process has the full tensor."""
        return all(p.is_replicate() for p in self.placements)

    def is_sharded(self) -> bool:
        """True if some dimension is sharded."""
        return any(p.is_shard() for p in self.placements)

    def shallow_copy_with_tensor_meta(self, tensor_meta: TensorMeta | None) -> DTensorSpec:
        """Return the spec with another `tensor_meta`."""
        if tensor_meta is None:
            raise AssertionError("shallow copy with no tensor_meta!")
        return DTensorSpec(self.mesh, self.placements, tensor_meta)

    def _comparison_key(self) -> tuple[Any, ...]:
        return self.mesh, self.placements, self.tensor_meta

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DTensorSpec) and self._comparison_key() == other._comparison_key())

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._comparison_key())
        return self._hash

    def __reduce__(self) -> Any:
        return DTensorSpec, self._comparison_key()

    def __repr__(self) -> str:
        cut = "".join(map(str, self.placements))
        if self.tensor_meta is None:
            return f"Spec(({cut}))"
        return f"Spec({_short_dtype_name(self.tensor_meta.dtype)}{list(self.shape)}({cut}))"

    __str__ = __repr__


def _short_dtype_name(dtype: torch.dtype) -> str:
    """Return a short name of a dtype: f32, i64, b8."""
    name = str(dtype).removeprefix("torch.")
    if name == "bfloat16":
        return "bf16"
    if name == "bool":
        return "b8"
    return name[0] + name.lstrip("abcdefghijklmnopqrstuvwxyz")
