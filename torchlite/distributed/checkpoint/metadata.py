"""Metadata of a checkpoint: tensors, their parts, and the parts' locations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torchlite as torch

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
    "TensorStorageMetadata",
]  # fmt: skip


@dataclass
class ChunkStorageMetadata:
    """A stored part of a tensor: a box.

    Args:
        offsets: Where it begins in the tensor.
        sizes: Its shape.

    Example:
        >>> from torchlite.distributed.checkpoint import ChunkStorageMetadata
        >>> ChunkStorageMetadata(torch.Size([2, 0]), torch.Size([2, 4])).sizes
        torch.Size([2, 4])
    """

    offsets: torch.Size
    sizes: torch.Size


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats as stored numbers."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


def _memory_formats() -> dict[_MEM_FORMAT_ENCODING, Any]:
    return {
        _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT: torch.contiguous_format,
        _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST: torch.channels_last,
        _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT: torch.preserve_format,
    }


@dataclass
class TensorProperties:
    """Properties of a tensor besides shape and elements."""

    dtype: torch.dtype = field(default_factory=torch.get_default_dtype)
    layout: torch.layout = field(default=torch.strided)
    requires_grad: bool = False
    memory_format: torch.memory_format = field(default=torch.contiguous_format)
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        numbers = {value: key for key, value in _memory_formats().items()}
        if self.memory_format not in numbers:
            raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")
        return self.dtype, self.layout, self.requires_grad, numbers[self.memory_format], self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, number, self.pin_memory = state
        self.memory_format = _memory_formats()[number]

    @staticmethod
    def create_from_tensor(tensor: torch.Tensor) -> TensorProperties:
        """Return the properties of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, tensor.requires_grad, torch.contiguous_format)


@dataclass
class TensorStorageMetadata:
    """A stored tensor.

    Args:
        properties: Its dtype, layout and other properties.
        size: Its shape.
        chunks: Its parts.

    Example:
        >>> from torchlite.distributed.checkpoint import TensorStorageMetadata
        >>> from torchlite.distributed.checkpoint.metadata import TensorProperties
        >>> TensorStorageMetadata(TensorProperties(torch.float32), torch.Size([4]), []).size
        torch.Size([4])
    """

    properties: TensorProperties
    size: torch.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A stored value that is not a tensor.

    Example:
        >>> torch.distributed.checkpoint.BytesStorageMetadata()
        BytesStorageMetadata()
    """


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]


@dataclass
class StorageMeta:
    """Information of a storage about a checkpoint."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """Metadata of a checkpoint.

    Args:
        state_dict_metadata: What is stored under each flat name.
        planner_data: The path in the state dict of each flat name. Default: ``None``.
        storage_data: The place of each part in the storage. Default: ``None``.
        storage_meta: Values of the storage. Default: ``None``.
        version: The format's version. Default: ``None``.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     metadata = dcp.save({"weight": torch.arange(3.0)}, checkpoint_id=folder, no_dist=True)
        >>> metadata.state_dict_metadata["weight"].size
        torch.Size([3])
    """

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """Index of a part: the tensor's name, the part's offsets, and its number as a hint."""

    fqn: str
    offset: torch.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else torch.Size(offset))
