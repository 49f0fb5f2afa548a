"""Plan items of a state dict, and intersections of stored parts with local shards."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.distributed._local_shards import local_boxes, narrow_to_box
from torchlite.distributed.tensor import DTensor

from .metadata import BytesStorageMetadata, ChunkStorageMetadata, MetadataIndex, TensorProperties, TensorStorageMetadata
from .planner import LoadItemType, ReadItem, SavePlan, TensorWriteData, WriteItem, WriteItemType

__all__ = ["create_read_items_for_chunk_list"]


def is_on_other_ranks(value: Any) -> bool:
    """True if a tensor's mesh excludes this process."""
    return isinstance(value, DTensor) and value.device_mesh.get_coordinate() is None


def _create_chunk_from_tensor(tensor: torch.Tensor) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(torch.Size([0] * tensor.ndim), torch.Size(tensor.shape))


def narrow_to_index(tensor: Any, index: MetadataIndex) -> torch.Tensor:
    """View the box of a DTensor at an index. ValueError if it is not on this rank."""
    for part in local_boxes(tensor):
        if index.offset is None or tuple(part.offsets) == tuple(index.offset):
            return narrow_to_box(tensor.to_local(), part.begins, part.sizes)
    raise ValueError(f"Could not find shard at '{index.offset}' for FQN: '{index.fqn}'")


def _create_chunk_list(tensor: torch.Tensor) -> list[ChunkStorageMetadata]:
    """Return this rank's parts of a tensor."""
    if isinstance(tensor, DTensor):
        return [ChunkStorageMetadata(part.offsets, part.sizes) for part in local_boxes(tensor)]
    if hasattr(tensor, "__create_chunk_list__"):
        return tensor.__create_chunk_list__()  # type: ignore[no-any-return]
    if isinstance(tensor, torch.Tensor):
        return [_create_chunk_from_tensor(tensor)]
    raise ValueError(f"Unsupported Type, expecting one of [Tensor, DTensor, ShardedTensor] ,but got {type(tensor)}")


def _create_write_item_for_tensor(fqn: str, tensor: torch.Tensor) -> WriteItem:
    chunk = _create_chunk_from_tensor(tensor)
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(tensor), torch.Size(tensor.shape))
    return WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.TENSOR, tensor_data=data)


def _create_write_items_for_dtensor(fqn: str, tensor: Any) -> list[WriteItem]:
    properties, size = TensorProperties.create_from_tensor(tensor.to_local()), torch.Size(tensor.shape)
    return [
        WriteItem(
            MetadataIndex(fqn, part.offsets),
            WriteItemType.SHARD,
            tensor_data=TensorWriteData(ChunkStorageMetadata(part.offsets, part.sizes), properties, size),
        )
        for part in local_boxes(tensor)
    ]


def _create_write_item_for_bytesio(fqn: str, bytes: Any) -> WriteItem:
    return WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)


def _create_write_items(fqn: str, object: Any) -> list[WriteItem]:
    if isinstance(object, DTensor):
        return _create_write_items_for_dtensor(fqn, object)
    if hasattr(object, "__create_write_items__"):
        return object.__create_write_items__(fqn, object)  # type: ignore[no-any-return]
    if isinstance(object, torch.Tensor):
        return [_create_write_item_for_tensor(fqn, object)]
    return [_create_write_item_for_bytesio(fqn, object)]


def _create_default_metadata_only_plan(state_dict: dict[str, Any]) -> SavePlan:
    """Return the items of everything, on one rank."""
    return SavePlan([item for fqn, value in state_dict.items() for item in _create_write_items(fqn, value)])


def _intersect_boxes(
    stored: ChunkStorageMetadata, wanted: ChunkStorageMetadata
) -> tuple[list[int], list[int], list[int]]:
    """Return the intersection of two boxes: its offsets in the stored and the wanted one, and its sizes."""
    begins = [max(a, b) for a, b in zip(stored.offsets, wanted.offsets, strict=True)]
    ends = [
        min(a + n, b + m) for a, n, b, m in zip(stored.offsets, stored.sizes, wanted.offsets, wanted.sizes, strict=True)
    ]
    within = lambda box: [begin - offset for begin, offset in zip(begins, box.offsets, strict=True)]
    return within(stored), within(wanted), [end - begin for begin, end in zip(begins, ends, strict=True)]


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """Return read items that fill local parts from a tensor's stored parts, for any sharding of either."""
    items = []
    for place, chunk in enumerate(local_chunks):
        for number, stored in enumerate(checkpoint_md.chunks):
            source, target, lengths = _intersect_boxes(stored, chunk)
            if any(length <= 0 for length in lengths):
                continue
            items.append(
                ReadItem(
                    LoadItemType.TENSOR,
                    MetadataIndex(fqn, chunk.offsets, place),
                    torch.Size(target),
                    MetadataIndex(fqn, stored.offsets, number),
                    torch.Size(source),
                    torch.Size(lengths),
                )
            )
    return items


def _create_read_items(fqn: str, md: Any, obj: Any) -> list[ReadItem]:
    if isinstance(md, BytesStorageMetadata):
        index, none = MetadataIndex(fqn), torch.Size((0,))
        return [ReadItem(LoadItemType.BYTE_IO, index, none, index, none, none)]
    try:
        chunks = _create_chunk_list(obj)
    except ValueError as error:
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found {type(md)}"
        ) from error
    return create_read_items_for_chunk_list(fqn, md, chunks)


def _device_of_groups() -> Any:
    """Return the device of process groups' tensors."""
    return dist.distributed_c10d._get_pg_default_device() if dist.is_initialized() else torch.device("cpu")


def _init_state_dict(state_dict: dict[str, Any]) -> None:
    """Allocate the tensors of a state dict on device "meta"."""

    def with_memory(value: Any) -> Any:
        if isinstance(value, DTensor):
            local = value.to_local()
            if local.device.type != "meta":
                return value
            made = torch.empty_like(local, device=_device_of_groups())
            return DTensor.from_local(
                made, value.device_mesh, value.placements, run_check=False, shape=value.shape, stride=value.stride()
            )
        if isinstance(value, torch.Tensor) and value.device.type == "meta":
            return torch.empty_like(value, device=_device_of_groups())
        return value

    _replace_tensors(state_dict, with_memory)


def _replace_tensors(place: Any, change: Callable[[Any], Any]) -> None:
    """Replace tensors in dicts and lists by `change(tensor)`."""
    pairs: Any = place.items() if isinstance(place, dict) else enumerate(place)
    for key, value in list(pairs):
        if isinstance(value, dict | list):
            _replace_tensors(value, change)
        elif isinstance(value, torch.Tensor):
            changed = change(value)
            if changed is not value:
                place[key] = changed


def as_bytes(value: Any) -> io.BytesIO:
    """Return an object as written by `torch.save`."""
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream
