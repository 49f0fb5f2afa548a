"""How a tensor lies over several processes, along one dimension of a mesh of them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """What all ways have: questions about which one it is."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, of dimension `dim` where it is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each process has a summand (or what else `reduce_op` joins)."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part of dimension `dim`.

    >>> import torchlite as torch
    >>> torch.distributed.tensor.Shard(0)
    Shard(dim=0)

    """

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """A part of what an earlier dimension of the mesh had cut already: `split_factor` parts of it."""

    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has the whole tensor."""


@dataclass(frozen=True)
class Partial(Placement):
    """Each process has a tensor of the whole shape; the whole is what `reduce_op` makes of all of them."""

    reduce_op: str = "sum"
