"""Open files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import get_file_binaries_from_pathnames

__all__ = ["FileOpenerIterDataPipe"]


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """Pairs of a path and its open file, a `StreamWrapper` (functional name: ``open_files``).

    Args:
        datapipe: The pipe of the paths.
        mode: How files are opened: ``"b"``, ``"t"``, ``"rb"``, ``"rt"`` or ``"r"``. Default: ``"r"``.
        encoding: The encoding of text. Default: the system's.
        length: The number of files, for ``len``. Default: -1, unknown.

    Raises:
        ValueError: There is no such mode, or files of bytes have an encoding.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import FileOpener, IterableWrapper
        >>> list(FileOpener(IterableWrapper([]), mode="b"))
        []
    """

    def __init__(self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[Any]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length
