"""Archives with the interface of `torch._C.PyTorchFileReader` and `torch._C.PyTorchFileWriter`."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np

from .._dispatch import call, table_of
from .._types.devices import device
from .atomic_files import open_regular, replace_file
from .zip_archive import ArchiveReader, ArchiveWriter


def _is_path(name_or_buffer: Any) -> bool:
    return isinstance(name_or_buffer, (str, os.PathLike))


def archive_name(path: str) -> str:
    """Return the top folder of a file's records: the file name, if it is ASCII (PyTorch's zip writer supports no
    other).
    """
    name = os.path.splitext(os.path.basename(path))[0]
    return name if name and name.isascii() else "archive"


class PyTorchFileWriter:
    """Writes the records of an archive to a path, whose file is replaced on completion, or to a binary file."""

    def __init__(self, name_or_buffer: Any, compute_crc32: bool = True, storage_alignment: int = 64):
        self._stack = contextlib.ExitStack()
        if _is_path(name_or_buffer):
            path = os.fspath(name_or_buffer)
            self._archive = archive_name(path)
            stream = self._stack.enter_context(replace_file(path, plain=not path.isascii()))  # as PyTorch's
        else:
            self._archive, stream = "archive", name_or_buffer
        self._writer = ArchiveWriter(stream, self._archive, checksum=compute_crc32, alignment=storage_alignment)

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Append a record: the first `size` bytes of `data` (bytes, text, a storage, or a tensor on the CPU)."""
        if isinstance(data, str):
            data = data.encode()
        elif hasattr(data, "numpy"):
            host = data.numpy() if not hasattr(data, "untyped_storage") else data.untyped_storage().numpy()
            data = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
        if size > memoryview(data).nbytes:
            raise RuntimeError(f"the record {name} should have {size} bytes, but got {memoryview(data).nbytes}")
        self._writer.record(name, memoryview(data)[:size] if size else b"")

    def write_record_metadata(self, name: str, size: int) -> None:
        """Append a record without its data, and reserve the space for it."""
        self._writer.hole(name, size)

    def write_end_of_file(self) -> None:
        """Finish the archive. Nothing can be written afterwards."""
        if not self._writer.ended:
            self._writer.finish()
            self._stack.close()

    def abandon(self, *failure: Any) -> None:
        """Abort: an existing file stays unchanged."""
        self._writer.ended = True
        self._stack.__exit__(*failure)

    def archive_name(self) -> str:
        """The folder that all records are in."""
        return self._archive

    def get_all_written_records(self) -> list[str]:
        """The names of the records so far."""
        return list(self._writer.names)

    def serialization_id(self) -> str:
        """Digits that identify the archive."""
        return self._writer.identity()

    def set_min_version(self, version: int) -> None:
        """Check the minimum version. The archive's version is 3, whose readers support everything written here.
        RuntimeError for a later one.
        """
        if version > 3:
            raise RuntimeError(f"archives are written in version 3, not in {version}")


class PyTorchFileReader:
    """Reads the records of an archive, from a path or a seekable binary file."""

    def __init__(self, name_or_buffer: Any):
        self._opened = open_regular(name_or_buffer) if _is_path(name_or_buffer) else None
        self._reader = ArchiveReader(name_or_buffer if self._opened is None else self._opened)

    def __del__(self) -> None:
        opened = getattr(self, "_opened", None)
        if opened is not None:
            opened.close()

    def has_record(self, name: str) -> bool:
        """True if there is a record of that name."""
        return self._reader.has(name)

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return self._reader.names()

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record. RuntimeError if it is missing or damaged."""
        return self._reader.bytes(name)

    def get_record_size(self, name: str) -> int:
        """The length of a record in bytes."""
        return self._reader.size(name)

    def get_record_offset(self, name: str) -> int:
        """Return the offset of a record's data in the file."""
        return self._reader.offset(name)

    def get_record_header_offset(self, name: str) -> int:
        """Return the offset of a record's header in the file."""
        return self._reader.header_offset(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """Return a tensor of `numel` elements on the bytes of a record; a storage class instead of a dtype
        means bytes.
        """
        from .._types import dtypes

        kind = dtype if isinstance(dtype, dtypes.dtype) else dtypes.uint8
        array = self._reader.array(name)
        if array.size != numel * kind.itemsize:
            raise RuntimeError(f"the record {name} should have {numel * kind.itemsize} bytes, but has {array.size}")
        table = table_of(device("cpu"))
        return call.wrap_array(table, table.from_numpy(array.view(kind.np)), kind)

    def serialization_id(self) -> str:
        """Digits that identify the archive, "" if it has none."""
        name = ".data/serialization_id"
        return self._reader.bytes(name).decode("ascii", "replace") if self._reader.has(name) else ""
