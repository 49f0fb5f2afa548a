"""The paths of the files in folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import get_file_pathnames_from_root
from .utils import IterableWrapperIterDataPipe

__all__ = ["FileListerIterDataPipe"]


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The paths of the files in folders (functional name: ``list_files``).

    Args:
        root: The folder, several, or a pipe of them. Default: the current one.
        masks: Patterns of the names. Default: all files.
        recursive: Whether folders in it are searched too. Default: ``False``.
        abspath: Whether paths are absolute. Default: ``False``.
        non_deterministic: Whether the order may be the file system's; else it is sorted. Default: ``False``.
        length: The number of files, for ``len``. Default: -1, unknown.

    Example:
        >>> from torchlite.utils.data.datapipes.iter import FileLister
        >>> list(FileLister(".", masks="no file has this name"))
        []
    """

    def __init__(
        self,
        root: str | Sequence[str] | IterDataPipe = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        self.datapipe: Any = root
        if not isinstance(root, IterDataPipe):
            self.datapipe = IterableWrapperIterDataPipe([root] if isinstance(root, str) else root)
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for folder in self.datapipe:
            yield from get_file_pathnames_from_root(
                folder, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length
