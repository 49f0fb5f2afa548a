"""Plans of who writes and reads what, and those who make them."""

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
    """A whole tensor, a part of one, or bytes."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """Elements of a tensor, or bytes."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes there are, as far as it is known."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The part that is written, of a tensor of `size`."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: torch.Size


@dataclass(frozen=True)
class WriteItem:
    """A thing to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of a tensor's part, None for what is no tensor."""
        if self.tensor_data is None:
            return None
        return reduce(operator.mul, self.tensor_data.chunk.sizes, self.tensor_data.properties.dtype.itemsize)


@dataclass(frozen=True)
class ReadItem:
    """A thing to read: a box of `lengths` at `storage_offsets` of a stored part, which goes to `dest_offsets` of what
    there is.
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: torch.Size
    storage_index: MetadataIndex
    storage_offsets: torch.Size
    lengths: torch.Size


@dataclass(frozen=True)
class SavePlan:
    """What a rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Makes the plan of a save: each rank its own, the coordinator out of all the global one, each rank its part."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """A save begins, on all ranks."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this rank has to write, on all ranks."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """The plans of all ranks out of what they sent, and what the checkpoint says of itself: on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """This rank's plan out of the coordinator's, on all ranks."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> torch.Tensor | io.BytesIO:
        """What is to be written for an item. Asked from several threads."""


class LoadPlanner:
    """Makes the plan of a load, as a SavePlanner of a save, and takes what was read."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """A load begins, on all ranks."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this rank wants to read, on all ranks."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans of all ranks, on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """This rank's plan out of the coordinator's, on all ranks."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take the bytes of an item."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """A stream to which an item's bytes are written."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> torch.Tensor:
        """The tensor, of the item's `lengths`, that gets its elements."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: torch.Tensor) -> None:
        """The tensor that `resolve_tensor` gave has its elements now."""
