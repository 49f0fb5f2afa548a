"""Files and archives that `torch.save` and `torch.load` open for the time of a `with` block."""

from __future__ import annotations

import os
from typing import Any

from . import atomic_files, save_load_options
from .pytorch_file import PyTorchFileReader, PyTorchFileWriter


def _is_path(name_or_buffer: Any) -> bool:
    return isinstance(name_or_buffer, (str, os.PathLike))


class _opener:
    """Something opened for the time of a `with` block."""

    def __init__(self, file_like: Any):
        self.file_like = file_like

    def __enter__(self) -> Any:
        return self.file_like

    def __exit__(self, *exc: Any) -> None:
        pass


class _open_file(_opener):
    def __init__(self, name: Any, mode: str):
        super().__init__(open(name, mode) if "w" in mode else atomic_files.open_regular(name, mode))  # noqa: SIM115

    def __exit__(self, *exc: Any) -> None:
        self.file_like.close()


class _open_buffer_reader(_opener):
    def __init__(self, buffer: Any):
        _check_seekable(buffer)
        super().__init__(atomic_files.check_regular(buffer))


class _open_buffer_writer(_opener):
    def __exit__(self, *exc: Any) -> None:
        self.file_like.flush()


def _open_file_like(name_or_buffer: Any, mode: str) -> _opener:
    """Context manager: a path opened, or an open file unchanged."""
    if _is_path(name_or_buffer):
        return _open_file(name_or_buffer, mode)
    if "w" in mode:
        return _open_buffer_writer(name_or_buffer)
    if "r" in mode:
        return _open_buffer_reader(name_or_buffer)
    raise RuntimeError(f"Expected 'r' or 'w' in mode but got {mode}")


class _open_zipfile_reader(_opener):
    def __init__(self, name_or_buffer: Any):
        super().__init__(PyTorchFileReader(name_or_buffer))


class _open_zipfile_writer(_opener):
    """Context manager: a PyTorchFileWriter on a path or binary file, finished at the end of the block. After an error
    in the block the file at a path is unchanged.
    """

    def __init__(self, name_or_buffer: Any):
        self._buffer = None if _is_path(name_or_buffer) else name_or_buffer
        if self._buffer is not None and not callable(getattr(self._buffer, "write", None)):
            message = f"Buffer of {str(type(self._buffer)).strip('<>')} has no callable attribute 'write'"
            raise (TypeError if hasattr(self._buffer, "write") else AttributeError)(message)
        options = save_load_options.save
        super().__init__(PyTorchFileWriter(name_or_buffer, options.compute_crc32, options.storage_alignment))

    def __exit__(self, *exc: Any) -> None:
        if exc and exc[0] is not None:
            self.file_like.abandon(*exc)
            return
        self.file_like.write_end_of_file()
        if self._buffer is not None:
            self._buffer.flush()


def _is_zipfile(f: Any) -> bool:
    """True if a zip archive begins at the file's position, which is unchanged afterwards."""
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    return head == b"PK\3\4"


def _is_torchscript_zip(zip_file: Any) -> bool:
    return "constants.pkl" in zip_file.get_all_records()


def _check_seekable(f: Any) -> bool:
    for name in ("seek", "tell", "read", "readline"):
        if not hasattr(f, name):
            raise AttributeError(
                f"{type(f).__name__!r} object has no attribute '{name}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    try:
        f.seek(f.tell())
    except (OSError, ValueError) as error:  # io.UnsupportedOperation is both
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer "
            "like io.BytesIO and try to load from it instead."
        ) from None
    return True
