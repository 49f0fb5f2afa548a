"""Checkpoint storage in safetensors files, compatible with Hugging Face's libraries."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torchlite as torch
from torchlite._types.layouts import are_valid_sizes
from torchlite.distributed._local_shards import narrow_to_box
from torchlite.futures import Future

from . import _metadata_file, _safetensors
from .filesystem import FileSystem, FileSystemReader, FileSystemWriter, SerializationFormat, _sync_file
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_INDEX = "model.safetensors.index.json"
_OFFSETS = "DCP_SHARDING_INFO"


@dataclass
class _HFStorageInfo:
    """Location of a part: a tensor of a file."""

    relative_path: str
    shape: torch.Size
    dtype: torch.dtype
    place: _safetensors.TensorEntry


def _file_name(number: int, count: int, shard: int | None = None) -> str:
    start = "" if shard is None else f"shard-{shard:05d}-"
    return f"{start}model-{number:05d}-of-{count:05d}{_safetensors.SUFFIX}"


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes the tensors of a state dict to a folder as safetensors files.

    Args:
        path: The folder.
        fqn_to_index_mapping: The number of the file, from 1, of each name. Default: one file.
        thread_count: Has no effect.
        save_distributed: Whether all ranks write their shards; otherwise one process writes. Default: ``False``.
        enable_consolidation: Whether the ranks' files, which go to the folder "sharded", are merged to files of full
            tensors. Default: ``False``.
        thread_count_consolidation: Has no effect.

    Raises:
        TypeError: A value is not a tensor. Raised by the save.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = dcp.HuggingFaceStorageWriter(folder)
        ...     _ = dcp.save({"weight": torch.arange(3.0)}, storage_writer=writer, no_dist=True)
        ...     state = {"weight": torch.zeros(3)}
        ...     dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(folder), no_dist=True)
        >>> state["weight"]
        tensor([0., 1., 2.])
    """

    def __init__(
        self,
        path: str,
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        self._whole_path = pathlib.Path(path)
        super().__init__(str(self._whole_path / "sharded") if enable_consolidation else path, thread_count=thread_count)
        self.serialization_format = SerializationFormat.SAFETENSORS
        self.fqn_to_index_mapping, self.save_distributed = fqn_to_index_mapping, save_distributed
        self.enable_consolidation, self.thread_count_consolidation = enable_consolidation, thread_count_consolidation

    @property
    def metadata_path(self) -> str:
        """Return the name of the index, which maps tensors to files."""
        return _INDEX

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.fs.mkdir(self.path)
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        shards = [number + 1 if self.save_distributed else None for number in range(len(plans))]
        return [replace(plan, storage_data=shard) for plan, shard in zip(plans, shards, strict=True)]

    def _tensors_by_file(self, names: Any) -> dict[int, list[Any]]:
        """Return names by the number of their file."""
        found: dict[int, list[Any]] = {}
        for name in names:
            found.setdefault((self.fqn_to_index_mapping or {}).get(name, 1), []).append(name)
        return found

    @property
    def _file_count(self) -> int:
        return max((self.fqn_to_index_mapping or {}).values(), default=1)

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        results: list[WriteResult] = []
        by_name: dict[str, list[WriteItem]] = {}
        for item in plan.items:
            if item.type == WriteItemType.BYTE_IO:
                raise TypeError(f"{item.index.fqn!r} is no tensor: safetensors hold nothing else")
            by_name.setdefault(item.index.fqn, []).append(item)
        if any(len(items) > 1 for items in by_name.values()):
            raise NotImplementedError("safetensors: a rank has several parts of one tensor")
        for number, names in self._tensors_by_file(by_name).items():
            name = _file_name(number, self._file_count, plan.storage_data)
            results += self._write_file(name, [by_name[each][0] for each in names], planner)
        future: Future[list[WriteResult]] = Future()
        future.set_result(results)
        return future

    def _write_file(self, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        tensors = {item.index.fqn: planner.resolve_data(item).detach().cpu() for item in items}  # type: ignore[union-attr]
        offsets = {item.index.fqn: {"saved_offsets": list(item.tensor_data.chunk.offsets)} for item in items}  # type: ignore[union-attr]
        words = {"format": "pt", "DCP_VERSION": "1.0", _OFFSETS: json.dumps(offsets)}
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            places = _safetensors.write_safetensors(stream, tensors, words)
            _sync_file(stream)
        return [
            WriteResult(
                item.index, place.end - place.begin, _HFStorageInfo(name, torch.Size(place.shape), place.dtype, place)
            )
            for item in items
            for place in (places[item.index.fqn],)
        ]

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        if self.enable_consolidation:
            self._consolidate_files()
        elif not self.save_distributed:
            written = [result for each in results for result in each]
            self._write_index(
                {result.index.fqn: result.storage_data.relative_path for result in written},
                sum(result.size_in_bytes for result in written),
            )

    def _consolidate_files(self) -> None:
        reader = HuggingFaceStorageReader(str(self.path))
        metadata, files, total = reader.read_metadata(), {}, 0
        for number, names in self._tensors_by_file(metadata.state_dict_metadata).items():
            tensors = {name: reader.whole(name, metadata) for name in names}
            files.update(dict.fromkeys(names, _file_name(number, self._file_count)))
            total += sum(tensor.nbytes for tensor in tensors.values())
            with self.fs.create_stream(self._whole_path / _file_name(number, self._file_count), "wb") as stream:
                _safetensors.write_safetensors(stream, tensors)
                _sync_file(stream)
        self._write_index(files, total)

    def _write_index(self, files: dict[str, str], total: int) -> None:
        text = json.dumps({"metadata": {"total_size": total}, "weight_map": files}, indent=2)
        with self.fs.create_stream(self._whole_path / _INDEX, "wb") as stream:
            stream.write(text.encode())


def _shard_offsets(offsets: Any, key: str, rank: int, name: str) -> tuple[int, ...]:
    """Return the offsets of a part in its tensor, from a file's metadata."""
    about = offsets.get(key, {}) if type(offsets) is dict else None
    found = about.get("saved_offsets", [0] * rank) if type(about) is dict else None
    if type(found) is not list or len(found) != rank or not are_valid_sizes(found):
        raise ValueError(f"{name} says of {key!r} that it begins at {str(found)[:100]}")
    return tuple(found)


class HuggingFaceStorageReader(FileSystemReader):
    """Reads the safetensors files of a folder: a model's, or those that ranks wrote.

    Args:
        path: The folder.
        thread_count: Has no effect.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = dcp.HuggingFaceStorageWriter(folder)
        ...     _ = dcp.save({"weight": torch.arange(3.0)}, storage_writer=writer, no_dist=True)
        ...     metadata = dcp.HuggingFaceStorageReader(folder).read_metadata()
        >>> list(metadata.state_dict_metadata)
        ['weight']
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def _iterate_parts(self) -> Iterator[tuple[str, tuple[int, ...], _HFStorageInfo]]:
        """Yield each part: the name of its tensor, its offsets, and its location."""
        assert isinstance(self.fs, FileSystem)
        for path in sorted(map(str, self.fs.ls(os.fspath(self.path)))):
            if not path.endswith(_safetensors.SUFFIX):
                continue
            name = os.path.basename(path)
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                places, words = _safetensors.read_header(stream, name)
            try:
                offsets = json.loads(words.get(_OFFSETS) or "{}")
            except RecursionError as error:
                raise ValueError(f"{name} says where its parts begin in lists that are too deep") from error
            for key, place in places.items():
                yield (
                    key,
                    _shard_offsets(offsets, key, len(place.shape), name),
                    _HFStorageInfo(name, torch.Size(place.shape), place.dtype, place),
                )

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns the metadata, from the headers of the files.

        Args:
            args: Ignored.
            kwargs: Ignored.

        Raises:
            ValueError: A file is damaged, or a part is missing.
        """
        tensors: dict[str, Any] = {}
        places: dict[MetadataIndex, Any] = {}
        for name, begins, info in self._iterate_parts():
            ends = torch.Size(begin + size for begin, size in zip(begins, info.shape, strict=True))
            known = tensors.setdefault(name, TensorStorageMetadata(TensorProperties(info.dtype), ends, []))
            if known.properties.dtype is not info.dtype or len(known.size) != len(ends):
                raise ValueError(f"the parts of {name!r} do not fit together")
            known.size = torch.Size(map(max, known.size, ends))
            known.chunks.append(ChunkStorageMetadata(torch.Size(begins), info.shape))
            places[MetadataIndex(name, begins)] = info
        metadata = Metadata(tensors, storage_data=places, storage_meta=StorageMeta(load_id=self.load_id))
        if wrong := _metadata_file.find_gaps(metadata):
            raise ValueError(f"the files of {self.path} are not whole: {wrong[0]}")
        return metadata

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            files.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in files.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                for item in items:
                    tensor = _safetensors.read_tensor(stream, self.storage_data[item.storage_index].place)
                    self._load_item(item, tensor, planner)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def whole(self, name: str, metadata: Metadata) -> torch.Tensor:
        """Returns a tensor, assembled from all of its parts.

        Args:
            name: The tensor's name.
            metadata: The checkpoint's metadata.
        """
        about = metadata.state_dict_metadata[name]
        assert isinstance(about, TensorStorageMetadata)
        made = torch.empty(about.size, dtype=about.properties.dtype)
        for chunk in about.chunks:
            info = (metadata.storage_data or {})[MetadataIndex(name, chunk.offsets)]
            with self.fs.create_stream(self.fs.concat_path(self.path, info.relative_path), "rb") as stream:
                narrow_to_box(made, chunk.offsets, chunk.sizes).copy_(_safetensors.read_tensor(stream, info.place))
        return made
