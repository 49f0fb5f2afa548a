"""Default storage reader and writer for a checkpoint id that is a folder."""

from __future__ import annotations

import os
from typing import Any

from .filesystem import FileSystemReader, FileSystemWriter
from .storage import StorageReader, StorageWriter


def _storage_setup(given: Any, checkpoint_id: str | os.PathLike[str] | None, kind: Any) -> Any:
    if given is not None:
        given.reset(checkpoint_id)
        return given
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if not kind.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(
            f"Cannot detect which StorageReader or StorageWriter to use. Please specify the storage_reader/"
            f"storage_writer explicitly. (the checkpoint is {str(checkpoint_id)!r})"
        )
    return kind(checkpoint_id)


def writer_for(given: StorageWriter | None, checkpoint_id: str | os.PathLike[str] | None) -> StorageWriter:
    """Return the given writer, or one to the folder."""
    return _storage_setup(given, checkpoint_id, FileSystemWriter)  # type: ignore[no-any-return]


def reader_for(given: StorageReader | None, checkpoint_id: str | os.PathLike[str] | None) -> StorageReader:
    """Return the given reader, or one of the folder."""
    return _storage_setup(given, checkpoint_id, FileSystemReader)  # type: ignore[no-any-return]
