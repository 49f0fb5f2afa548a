"""Interfaces of save and load planners, and their plans."""

from __future__ import annotations

import abc
import io
import operator
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from typing import Any

import torchlite as torch

from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner",
    "TensorWriteData", "WriteItem", "WriteItemType",
]  # fmt: skip


class WriteItemType(Enum):
    """Kinds of write items: a full tensor, a part of one, or bytes."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """Kinds of read items: elements of a tensor, or bytes."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """Number of bytes, as far as known."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The written part of a tensor of `size`."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: torch.Size


@dataclass(frozen=True)
class WriteItem:
    """An item to write: a part of a tensor, or another value.

    Args:
        index: Its name and offsets.
        type: Its kind.
        bytes_io_data: The size of a value that is not a tensor. Default: ``None``.
        tensor_data: The part of a tensor. Default: ``None``.

    Example:
        >>> from torchlite.distributed.checkpoint.metadata import MetadataIndex
        >>> from torchlite.distributed.checkpoint.planner import WriteItem, WriteItemType
        >>> WriteItem(MetadataIndex("step"), WriteItemType.BYTE_IO).tensor_storage_size() is None
        True
    """

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Return the bytes of a tensor's part, None for a non-tensor."""
        if self.tensor_data is None:
            return None
        return reduce(operator.mul, self.tensor_data.chunk.sizes, self.tensor_data.properties.dtype.itemsize)


@dataclass(frozen=True)
class ReadItem:
    """An item to read: a box of a stored part, and its place in the state dict's value.

    Args:
        type: Its kind.
        dest_index: The name and offsets of the state dict's value.
        dest_offsets: Where the box begins in that value.
        storage_index: The name and offsets of the stored part.
        storage_offsets: Where the box begins in that part.
        lengths: The shape of the box.

    Example:
        >>> from torchlite.distributed.checkpoint.metadata import MetadataIndex
        >>> from torchlite.distributed.checkpoint.planner import LoadItemType, ReadItem
        >>> index, zero = MetadataIndex("weight", [0]), torch.Size([0])
        >>> ReadItem(LoadItemType.TENSOR, index, zero, index, zero, torch.Size([3])).lengths
        torch.Size([3])
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: torch.Size
    storage_index: MetadataIndex
    storage_offsets: torch.Size
    lengths: torch.Size


@dataclass(frozen=True)
class SavePlan:
    """The plan of a rank's writes.

    Args:
        items: The items.
        storage_data: Values of the storage. Default: ``None``.
        planner_data: Values of the planner. Default: ``None``.
        usable: Whether the plan is complete; a cached plan is not. Default: ``True``.

    Example:
        >>> torch.distributed.checkpoint.SavePlan([]).usable
        True
    """

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """The plan of a rank's reads.

    Args:
        items: The items.
        storage_data: Values of the storage. Default: ``None``.
        planner_data: Values of the planner. Default: ``None``.

    Example:
        >>> torch.distributed.checkpoint.LoadPlan([]).items
        []
    """

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Base class of planners of a save.

    Each rank makes a local plan, the coordinator the plans of all, and each rank its final plan.

    Example:
        >>> import torchlite.distributed.checkpoint as dcp
        >>> issubclass(dcp.DefaultSavePlanner, dcp.SavePlanner)
        True
    """

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Starts a save, on all ranks.

        Args:
            state_dict: The state dict.
            storage_meta: Values of the storage. Default: ``None``.
            is_coordinator: Whether this rank is the coordinator. Default: ``False``.
        """

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Return this rank's write items, on all ranks."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Returns the plans of all ranks and the metadata, on the coordinator.

        Args:
            all_plans: The local plans.
        """

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Returns this rank's final plan, on all ranks.

        Args:
            new_plan: The coordinator's plan for this rank.
        """

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> torch.Tensor | io.BytesIO:
        """Returns the data of an item. Several threads call it.

        Args:
            write_item: The item.
        """


class LoadPlanner:
    """Base class of planners of a load, which also receive the data.

    Example:
        >>> import torchlite.distributed.checkpoint as dcp
        >>> issubclass(dcp.DefaultLoadPlanner, dcp.LoadPlanner)
        True
    """

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Starts a load, on all ranks.

        Args:
            state_dict: The state dict to load into.
            metadata: The checkpoint's metadata. Default: ``None``.
            is_coordinator: Whether this rank is the coordinator. Default: ``False``.
        """

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Return this rank's read items, on all ranks."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Returns the plans of all ranks, on the coordinator.

        Args:
            global_plan: The local plans.
        """

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Returns this rank's final plan, on all ranks.

        Args:
            central_plan: The coordinator's plan for this rank.
        """

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Loads the bytes of an item.

        Args:
            read_item: The item.
            value: The bytes.
        """

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Returns a stream for the bytes of an item; optional.

        Args:
            read_item: The item.

        Raises:
            NotImplementedError: The planner does not implement it.
        """
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        """Returns the tensor to read an item into, of the item's shape.

        Args:
            read_item: The item.
        """

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:
        """Finishes the tensor of `resolve_tensor` after it was read.

        Args:
            read_item: The item.
            tensor: The tensor.
        """
