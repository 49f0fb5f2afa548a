"""Placements of a tensor along a mesh dimension: Shard, Replicate, Partial."""

from __future__ import annotations

from typing import Any

import torchlite as torch

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """Base class of the placements `Shard`, `Replicate` and `Partial`, which are equal if their fields are.

    Example:
        >>> from torchlite.distributed.tensor import Placement, Shard
        >>> isinstance(Shard(0), Placement), Shard(0).is_replicate()
        (True, False)
    """

    __slots__ = ()

    def _key(self) -> tuple[Any, ...]:
        return ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"property of '{type(self).__name__}' object has no setter")

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and other._key() == self._key())  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self._key()))

    def __reduce__(self) -> Any:
        return type(self), self._key()

    def is_shard(self, dim: int | None = None) -> bool:
        """Returns whether it is a `Shard`.

        Args:
            dim: The dimension that it must have. Default: any.
        """
        return False

    def is_replicate(self) -> bool:
        """True for Replicate."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Returns whether it is a `Partial`.

        Args:
            reduce_op: The reduction that it must have. Default: any.
        """
        return False


class Shard(Placement):
    """Placement in which each process has a chunk of one dimension.

    The chunks are those of `torch.chunk`: the last ones may be shorter, or empty.

    Args:
        dim: The dimension.

    Example:
        >>> torch.distributed.tensor.Shard(0)
        Shard(dim=0)
    """

    __slots__ = ("dim",)
    dim: int

    def __init__(self, dim: int) -> None:
        object.__setattr__(self, "dim", dim)

    def _key(self) -> tuple[Any, ...]:
        return (self.dim,)

    def is_shard(self, dim: int | None = None) -> bool:
        """Returns ``True``, or whether the dimension is ``dim``.

        Args:
            dim: The dimension. Default: any.
        """
        return dim is None or dim == self.dim

    def at(self, dim: int) -> Shard:
        """Returns the same placement of another dimension.

        Args:
            dim: The dimension.
        """
        return Shard(dim)

    def pieces(self, size: int, count: int) -> list[list[tuple[int, int]]]:
        """Returns the ranges ``(start, stop)`` of a dimension that each process has, in local order.

        Args:
            size: The size of the dimension.
            count: The number of processes.
        """
        return [[part] for part in _chunk_ranges(size, count)]

    def sizes(self, size: int, count: int) -> list[int]:
        """Returns the size of each process's part of a dimension.

        Args:
            size: The size of the dimension.
            count: The number of processes.
        """
        return [sum(stop - start for start, stop in part) for part in self.pieces(size, count)]

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """Returns the size and the offset of a process's chunk.

        Args:
            curr_local_size: The size of the dimension.
            num_chunks: The number of processes.
            rank: The process.
        """
        start, stop = _chunk_ranges(curr_local_size, num_chunks)[rank]
        return stop - start, start

    _local_shard_size_and_offset = local_shard_size_and_offset

    def _split_tensor(
        self, tensor: torch.Tensor, num_chunks: int, *, with_padding: bool = True, contiguous: bool = True
    ) -> tuple[list[torch.Tensor], list[int]]:
        """Return the chunks of all processes, and the padding of each to the longest."""
        if self.dim > tensor.ndim:
            raise AssertionError(f"Sharding dim {self.dim} greater than tensor ndim {tensor.ndim}")
        dim = self.dim % max(tensor.ndim, 1)
        parts = [concat_ranges(tensor, dim, ranges) for ranges in self.pieces(tensor.shape[dim], num_chunks)]
        longest = parts[0].shape[dim]
        pads = [longest - part.shape[dim] for part in parts] if with_padding else []
        if with_padding:
            parts = [pad_dim(part, dim, longest) for part in parts]
        return [part.contiguous() for part in parts] if contiguous else parts, pads

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


class _StridedShard(Shard):
    """Shard of a dimension that a later mesh dimension shards too.

    Dimension `dim` is split in `split_factor` parts first, and a process has its chunk of each. `fully_shard` creates
    these for tensors that tensor parallelism has sharded.
    """

    __slots__ = ("split_factor",)
    split_factor: int

    def __init__(self, dim: int, *, split_factor: int = 1, sf: int | None = None) -> None:
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "split_factor", split_factor if sf is None else sf)

    def _key(self) -> tuple[Any, ...]:
        return (self.dim, self.split_factor)

    def __reduce__(self) -> Any:
        return _make_strided_shard, self._key()

    def at(self, dim: int) -> Shard:
        """Return the same placement of another dimension."""
        return _StridedShard(dim, split_factor=self.split_factor)

    def is_shard(self, dim: int | None = None) -> bool:
        """True for a Shard, of dimension `dim` if given."""
        return dim is None or dim == self.dim

    def pieces(self, size: int, count: int) -> list[list[tuple[int, int]]]:
        """Return for each of `count` processes its ranges of a dimension of `size`."""
        made: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for start, stop in _chunk_ranges(size, self.split_factor):
            for mine, (first, last) in zip(made, _chunk_ranges(stop - start, count), strict=True):
                mine.append((start + first, start + last))
        return made

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


def _make_strided_shard(dim: int, split_factor: int) -> _StridedShard:
    return _StridedShard(dim, split_factor=split_factor)


class Replicate(Placement):
    """Placement in which each process has the full tensor.

    Example:
        >>> torch.distributed.tensor.Replicate().is_replicate()
        True
    """

    __slots__ = ()

    def is_replicate(self) -> bool:
        """True for Replicate."""
        return True

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """Placement in which each process has a tensor of the full shape.

    The reduction of these tensors over the processes is the value.

    Args:
        reduce_op: The reduction: ``"sum"`` (default), ``"avg"``, ``"product"``, ``"max"`` or ``"min"``.

    Example:
        >>> torch.distributed.tensor.Partial("max").is_partial("max")
        True
    """

    __slots__ = ("reduce_op",)
    reduce_op: str
    ALL_REDUCE_OPS = frozenset({"sum", "avg", "min", "max", "product", "band", "bor", "bxor"})
    LINEAR_REDUCE_OPS = frozenset({"sum", "avg"})

    def __init__(self, reduce_op: str = "sum") -> None:
        object.__setattr__(self, "reduce_op", reduce_op)

    def _key(self) -> tuple[Any, ...]:
        return (self.reduce_op,)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Returns ``True``, or whether the reduction is ``reduce_op``.

        Args:
            reduce_op: The reduction. Default: any.
        """
        return reduce_op is None or reduce_op == self.reduce_op

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


class _MaskPartial(Partial):
    """Partial sum of looked-up rows: a process without a row has zeros there."""

    __slots__ = ("offset_dim", "offset_shape")
    offset_shape: Any
    offset_dim: int

    def __init__(
        self, reduce_op: str | None = None, mask_buffer: Any = None, offset_shape: Any = None, offset_dim: int = 0
    ) -> None:
        super().__init__("sum" if reduce_op is None else reduce_op)
        object.__setattr__(self, "offset_shape", offset_shape)
        object.__setattr__(self, "offset_dim", offset_dim)

    def _key(self) -> tuple[Any, ...]:
        shape = None if self.offset_shape is None else tuple(self.offset_shape)
        return (self.reduce_op, None, shape, self.offset_dim)

    def __repr__(self) -> str:
        return (
            f"_MaskPartial(reduce_op={self.reduce_op}, offset_shape={self.offset_shape}, offset_dim={self.offset_dim})"
        )

    def __str__(self) -> str:
        return f"MaskP({self.reduce_op}, {self.offset_shape}, {self.offset_dim})"


def _chunk_ranges(size: int, count: int) -> list[tuple[int, int]]:
    """Return (start, stop) of each of `count` chunks, equally long but for the last ones."""
    step = -(-size // count)
    return [(min(i * step, size), min((i + 1) * step, size)) for i in range(count)]


def concat_ranges(tensor: torch.Tensor, dim: int, ranges: list[tuple[int, int]]) -> torch.Tensor:
    """Concatenate ranges of a dimension: a view for a single range."""
    parts = [tensor.narrow(dim, start, stop - start) for start, stop in ranges]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)


def pad_dim(tensor: torch.Tensor, dim: int, size: int) -> torch.Tensor:
    """Pad a dimension to `size` with zeros."""
    missing = size - tensor.shape[dim]
    if not missing:
        return tensor
    return torch.cat([tensor, tensor.new_zeros([*tensor.shape[:dim], missing, *tensor.shape[dim + 1 :]])], dim)
