"""Checkpoint storage in a folder: one or a few files per rank, and `.metadata`, which makes the checkpoint valid."""

from __future__ import annotations

import abc
import contextlib
import functools
import io
import os
import pathlib
import pickle
import re
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from typing import IO, Any

import torchlite as torch
from torchlite._serialization.atomic_files import open_regular
from torchlite._serialization.pickle_costs import short_repr
from torchlite.distributed._local_shards import narrow_to_box
from torchlite.futures import Future

from . import _metadata_file
from .metadata import Metadata, MetadataIndex, StorageMeta, TensorStorageMetadata
from .planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from .staging import BlockingAsyncStager
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter", "SerializationFormat"]

DEFAULT_SUFFIX = ".distcp"
_METADATA = ".metadata"


@dataclass
class _StorageInfo:
    """Location of a part: a byte range of a file."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None


@dataclass
class _StoragePrefix:
    """Prefix of a rank's file names."""

    prefix: str


class SerializationFormat(Enum):
    """Format of parts: `torch.save` or safetensors."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


_OWN = {
    ("torch.distributed.checkpoint.filesystem", kind.__name__): kind
    for kind in (_StorageInfo, _StoragePrefix, SerializationFormat)
}


class FileSystemBase(abc.ABC):
    """File operations of checkpoint storages."""

    @contextlib.contextmanager
    @abc.abstractmethod
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        """Open a file."""

    @abc.abstractmethod
    def concat_path(self, path: str | os.PathLike[str], suffix: str) -> str | os.PathLike[str]:
        """Join a path."""

    @abc.abstractmethod
    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        """Rename a file, replacing the target."""

    @abc.abstractmethod
    def init_path(self, path: str | os.PathLike[str]) -> str | os.PathLike[str]:
        """Convert a path to this file system's type."""

    @abc.abstractmethod
    def mkdir(self, path: str | os.PathLike[str]) -> None:
        """Create a folder if missing."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """True if a checkpoint can have that id."""

    @abc.abstractmethod
    def exists(self, path: str | os.PathLike[str]) -> bool:
        """True if a file or folder exists."""

    @abc.abstractmethod
    def rm_file(self, path: str | os.PathLike[str]) -> None:
        """Remove a file."""


class FileSystem(FileSystemBase):
    """File operations on the local file system."""

    @contextlib.contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Iterator[Any]:
        with open_regular(path) if mode == "rb" else open(path, mode) as stream:
            yield stream

    def concat_path(self, path: str | os.PathLike[str], suffix: str) -> str | os.PathLike[str]:
        return pathlib.Path(path) / suffix

    def init_path(self, path: str | os.PathLike[str]) -> str | os.PathLike[str]:
        return pathlib.Path(path)

    def rename(self, path: str | os.PathLike[str], new_path: str | os.PathLike[str]) -> None:
        os.replace(path, new_path)

    def mkdir(self, path: str | os.PathLike[str]) -> None:
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        if "://" in str(checkpoint_id):
            return False
        return any(parent.exists() and os.access(parent, os.W_OK) for parent in pathlib.Path(checkpoint_id).parents)

    def exists(self, path: str | os.PathLike[str]) -> bool:
        return pathlib.Path(path).exists()

    def rm_file(self, path: str | os.PathLike[str]) -> None:
        pathlib.Path(path).unlink()

    def ls(self, path: str | os.PathLike[str]) -> list[str]:
        """List a folder."""
        return [str(entry) for entry in pathlib.Path(path).iterdir()]


def _split_by_size_and_type(bins: int, items: list[WriteItem]) -> list[list[WriteItem]]:
    """Partition items into files of about equal size."""
    if bins == 1:
        return [items]
    parts: list[list[WriteItem]] = [[] for _ in range(bins)]
    sizes = [0] * bins
    tensors = sorted(items, key=lambda item: item.tensor_storage_size() or 0, reverse=True)
    for item in tensors:
        smallest = sizes.index(min(sizes))
        parts[smallest].append(item)
        sizes[smallest] += item.tensor_storage_size() or 1
    return parts


def _copy_to_host(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in host memory with its own storage: storages are written completely."""
    tensor = tensor.detach().cpu()
    return tensor if tensor.untyped_storage().nbytes() == tensor.nbytes else tensor.clone()


def _sync_file(stream: Any) -> None:
    stream.flush()
    try:
        os.fsync(stream.fileno())
    except (AttributeError, io.UnsupportedOperation):
        os.sync()


class _FolderStorage:
    """Base of readers and writers of a checkpoint's folder."""

    fs: FileSystemBase
    path: str | os.PathLike[str]

    def _get_metadata_path(self, rank: int | None = None) -> str | os.PathLike[str]:
        return self.fs.concat_path(self.path, _METADATA if rank is None else f"__{rank}{_METADATA}")

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """Return the folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)


class _FileSystemWriter(_FolderStorage, StorageWriter):
    """Writes to a folder. An existing checkpoint is replaced when the new one is complete."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        overwrite: bool = True,
        _extensions: Sequence[Any] | None = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if _extensions:
            raise NotImplementedError("FileSystemWriter: torchlite changes no streams on their way to a file")
        if serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedError("FileSystemWriter: torchlite writes parts as torch.save does alone")
        self.fs: FileSystemBase = FileSystem()
        self.single_file_per_rank, self.sync_files = single_file_per_rank, sync_files
        self.thread_count, self.per_thread_copy_ahead, self.overwrite = thread_count, per_thread_copy_ahead, overwrite
        self.serialization_format: SerializationFormat = serialization_format
        self.rank: int | None = None
        self.use_collectives = True
        self.reset(path)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = str(uuid.uuid4())
        self._replaced: set[str] = set()

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def _metadata_exists(self) -> bool:
        return self.fs.exists(self._get_metadata_path(None if self.use_collectives else self.rank))

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.fs.mkdir(self.path)
        if self._metadata_exists():
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
            import warnings

            warnings.warn(
                f"Detected an existing checkpoint in {self.path}, overwriting since {self.overwrite=}. Past version "
                "2.5 of PyTorch, `overwrite` will default to False. Set this variable to True to maintain this "
                "functionality or False to raise when an existing checkpoint is found.",
                stacklevel=2,
            )
        if self.rank is not None and not self.use_collectives:
            plan = replace(
                plan, storage_data=self._alternate_file_prefix(self.rank, self._files_of_existing_checkpoint())
            )
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        last = self._files_of_existing_checkpoint()
        return [replace(plan, storage_data=self._alternate_file_prefix(rank, last)) for rank, plan in enumerate(plans)]

    def _files_of_existing_checkpoint(self) -> set[str]:
        """Return the files of the existing checkpoint, which stays valid until the new one is complete."""
        if not self._metadata_exists():
            return set()
        path = self._get_metadata_path(None if self.use_collectives else self.rank)
        with self.fs.create_stream(path, "rb") as stream:
            data = stream.read()
        try:
            places = _metadata_file.parse_metadata(data, _OWN).storage_data or {}
        except pickle.UnpicklingError:
            return set()  # nothing readable is lost
        self._replaced = {place.relative_path for place in places.values() if _is_file_range(place) and _is_part(place)}
        return self._replaced

    @staticmethod
    def _alternate_file_prefix(rank: int, last: set[str]) -> _StoragePrefix:
        """Return one of two alternating prefixes of file names."""
        first = f"__{rank}_"
        taken = any(name.startswith("__") and name.count("_") == 3 for name in last)
        return _StoragePrefix(f"{first}b_" if taken else first)

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        prefix: _StoragePrefix = plan.storage_data
        if self.single_file_per_rank:
            parts = _split_by_size_and_type(self.thread_count, plan.items)
        else:
            parts = [[item] for item in plan.items]
        names = [f"{prefix.prefix}{number}{DEFAULT_SUFFIX}" for number in range(len(parts))]
        write = functools.partial(self._write_file, planner)
        if self.thread_count > 1:
            with ThreadPoolExecutor(self.thread_count) as pool:
                written = list(pool.map(write, names, parts))
        else:
            written = list(map(write, names, parts))
        future: Future[list[WriteResult]] = Future()
        future.set_result([result for results in written for result in results])
        return future

    def _write_file(self, planner: SavePlanner, name: str, items: list[WriteItem]) -> list[WriteResult]:
        """Write one file: bytes first, then tensors."""
        results = []
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            for item in sorted(items, key=lambda item: item.type != WriteItemType.BYTE_IO):
                begin, data = stream.tell(), planner.resolve_data(item)
                if isinstance(data, io.BytesIO):
                    stream.write(data.getbuffer())
                else:
                    torch.save(_copy_to_host(data), stream)
                length = stream.tell() - begin
                results.append(WriteResult(item.index, length, _StorageInfo(name, begin, length)))
            if self.sync_files:
                _sync_file(stream)
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        places = {result.index: result.storage_data for written in results for result in written}
        metadata = replace(metadata, version=metadata.version, storage_data=places, storage_meta=self.storage_meta())
        rank = None if self.use_collectives else self.rank
        temporary = self.fs.concat_path(self.path, f"{'' if rank is None else f'__{rank}'}{_METADATA}.tmp")
        with self.fs.create_stream(temporary, "wb") as stream:
            stream.write(_metadata_file.serialize_metadata(metadata))
            if self.sync_files:
                _sync_file(stream)
        self.fs.rename(temporary, self._get_metadata_path(rank))
        for name in self._replaced - {place.relative_path for place in places.values()}:
            with contextlib.suppress(OSError):
                self.fs.rm_file(self.fs.concat_path(self.path, name))

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)


class FileSystemWriter(_FileSystemWriter, BlockingAsyncStager):
    """Writes a checkpoint to a folder, and copies state dicts for `async_save`.

    Args:
        path: The folder.
        single_file_per_rank: Whether a rank writes ``thread_count`` files; otherwise one for each tensor. Default:
            ``True``.
        sync_files: Whether the files are flushed to the disk. Default: ``True``.
        thread_count: Number of threads that write. Default: 1.
        per_thread_copy_ahead: Has no effect.
        cache_staged_state_dict: Whether the copies for `async_save` keep their memory. Default: ``False``.
        overwrite: Whether a checkpoint in the folder is replaced, once the new one is complete. Default: ``True``.
        serialization_format: The format of the tensors. Default: that of `torch.save`.

    Raises:
        RuntimeError: There is a checkpoint and ``overwrite`` is ``False``. Raised by the save.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> state = {"weight": torch.zeros(2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     writer = dcp.FileSystemWriter(folder, thread_count=2)
        ...     _ = dcp.save({"weight": torch.ones(2)}, storage_writer=writer, no_dist=True)
        ...     dcp.load(state, storage_reader=dcp.FileSystemReader(folder), no_dist=True)
        >>> state["weight"]
        tensor([1., 1.])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Sequence[Any] | None = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        _FileSystemWriter.__init__(
            self, path, single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead, overwrite, _extensions,
            serialization_format,
        )  # fmt: skip
        BlockingAsyncStager.__init__(self, cache_staged_state_dict=cache_staged_state_dict)


def _is_file_range(place: Any) -> bool:
    """True if a location is in a file of the folder itself."""
    held = vars(place) if type(place) is _StorageInfo else {}
    path = held.get("relative_path")
    return (
        type(path) is str
        and path not in ("", ".", "..")
        and not set("/\\\0") & set(path)
        and type(held.get("offset")) is int is type(held.get("length"))
        and held["offset"] >= 0 <= held["length"]
    )


def _is_part(place: _StorageInfo) -> bool:
    """True if a location's file has a name that a writer gives: other files of the folder are not the checkpoint's."""
    return re.fullmatch(rf"__\d+_(b_)?\d+{re.escape(DEFAULT_SUFFIX)}", place.relative_path) is not None


def _check_overlapping_parts(places: dict[MetadataIndex, _StorageInfo]) -> list[str]:
    """Return messages for parts whose bytes overlap, by which a checkpoint could be larger than its files."""
    found, before, end = [], "", 0
    for index, place in sorted(places.items(), key=lambda item: (item[1].relative_path, item[1].offset)):
        if place.relative_path == before and place.offset < end:
            found.append(f"{short_repr(index.fqn)} lies in bytes of another part")
        before, end = place.relative_path, place.offset + place.length
    return found


class _Slice(io.RawIOBase):
    """Byte range of a file, as a file object."""

    def __init__(self, stream: IO[bytes], offset: int, length: int) -> None:
        self._stream, self._offset, self._length, self._at = stream, offset, length, 0

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._at = max(0, offset + (0, self._at, self._length)[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._length - self._at))
        self._stream.seek(self._offset + self._at)
        data = self._stream.read(count)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)


class FileSystemReader(_FolderStorage, StorageReader):
    """Reads a checkpoint from a folder. Only PyTorch's classes are read: no code of a checkpoint runs.

    Args:
        path: The folder.

    Example:
        >>> import tempfile
        >>> import torchlite.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"weight": torch.ones(2)}, checkpoint_id=folder, no_dist=True)
        ...     metadata = dcp.FileSystemReader(folder).read_metadata()
        >>> metadata.state_dict_metadata["weight"].size
        torch.Size([2])
    """

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        super().__init__()
        self.fs: FileSystemBase = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data: dict[MetadataIndex, Any] = {}
        self._dtypes: dict[str, torch.dtype] = {}  # of tensors, by the metadata
        self.load_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns the checkpoint's metadata.

        Args:
            args: Ignored.
            kwargs: ``rank``, for the metadata of one rank.

        Raises:
            pickle.UnpicklingError: The file is damaged, or contains other classes.
        """
        with self.fs.create_stream(self._get_metadata_path(kwargs.get("rank")), "rb") as stream:
            metadata = _metadata_file.parse_metadata(stream.read(), _OWN)
        places = metadata.storage_data or {}
        wrong = [
            f"{short_repr(index.fqn)} lies in no file of the folder"
            for index, place in places.items()
            if not _is_file_range(place)
        ]
        wrong = wrong or _check_overlapping_parts(places)
        if kwargs.get("rank") is None:
            wrong += _metadata_file.find_gaps(metadata)
        if wrong:
            raise pickle.UnpicklingError(f"the metadata of the checkpoint are damaged: {wrong[0]}")
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.storage_data = metadata.storage_data or {}
        self._dtypes = {
            name: described.properties.dtype
            for name, described in metadata.state_dict_metadata.items()
            if isinstance(described, TensorStorageMetadata)
        }
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            if item.storage_index not in self.storage_data:
                raise ValueError(f"the checkpoint does not say where {item.storage_index} lies")
            files.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in files.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                self._read_file(stream, items, planner)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _read_file(self, stream: IO[bytes], items: list[ReadItem], planner: LoadPlanner) -> None:
        """Read the items of one file, in its order; a part of several items is read once."""
        place = lambda item: self.storage_data[item.storage_index]
        last, tensor, end = None, None, stream.seek(0, os.SEEK_END)
        for item in sorted(items, key=lambda item: place(item).offset):
            if place(item).offset + place(item).length > end:
                raise ValueError(f"{short_repr(item.storage_index.fqn)} of the checkpoint reaches beyond its file")
            if item.type == LoadItemType.BYTE_IO:
                planner.load_bytes(item, io.BytesIO(self._slice_file(stream, place(item)).read()))
                continue
            if item.storage_index != last:
                tensor = None  # freed before the next one is allocated
                tensor = torch.load(self._slice_file(stream, place(item)), map_location="cpu", weights_only=True)
                last = item.storage_index
            self._load_item(item, tensor, planner)

    def _load_item(self, item: ReadItem, tensor: Any, planner: LoadPlanner) -> None:
        if not isinstance(tensor, torch.Tensor) or len(item.lengths) != tensor.ndim:
            raise ValueError(
                f"{short_repr(item.storage_index.fqn)} of the checkpoint is no tensor of {len(item.lengths)} dimensions"
            )
        if tensor.numel() * tensor.itemsize > tensor.untyped_storage().nbytes():
            raise ValueError(
                f"{short_repr(item.storage_index.fqn)} of the checkpoint has elements that are not in its file"
            )
        dtype = self._dtypes.get(item.storage_index.fqn, tensor.dtype)
        if tensor.dtype is not dtype:
            raise ValueError(
                f"{short_repr(item.storage_index.fqn)} of the checkpoint has a part of {tensor.dtype}, "
                f"and the metadata say {dtype}"
            )
        part = narrow_to_box(tensor, item.storage_offsets, item.lengths)
        target = planner.resolve_tensor(item).detach()
        if target.size() != part.size():
            raise AssertionError(f"req {item.storage_index} mismatch sizes {target.size()} vs {part.size()}")
        target.copy_(part)
        planner.commit_tensor(item, target)

    def _slice_file(self, file: IO[bytes], sinfo: _StorageInfo) -> IO[bytes]:
        if sinfo.__dict__.get("transform_descriptors"):
            raise NotImplementedError(
                f"the checkpoint's streams were changed ({', '.join(map(str, sinfo.transform_descriptors or ()))}): "
                "torchlite reads them as they are alone"
            )
        return io.BufferedReader(_Slice(file, sinfo.offset, sinfo.length))  # type: ignore[return-value]
