"""Files, masks and columns that DataPipes share."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import importlib.util
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from typing import Any

__all__ = [
    "StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root", "match_masks",
    "validate_input_col", "validate_pathname_binary_tuple",
]  # fmt: skip


def _check_unpickable_fn(fn: Callable[..., Any]) -> None:
    """Warn of a function that pickle cannot store, where the package dill is absent. TypeError for no function."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    while isinstance(fn, functools.partial):
        fn = fn.func
    is_local = "<locals>" in getattr(fn, "__qualname__", "")
    if (is_local or getattr(fn, "__name__", "") == "<lambda>") and importlib.util.find_spec("dill") is None:
        warnings.warn(
            f"{'Local' if is_local else 'Lambda'} function is not supported by pickle, please use regular python "
            "function or functools.partial instead.",
            stacklevel=4,
        )


def validate_input_col(fn: Callable[..., Any], input_col: int | tuple | list | None) -> None:
    """Checks that a function takes as many arguments as there are columns. Functions without a signature pass.

    Args:
        fn: The function.
        input_col: A column, several, or ``None`` for the whole item.

    Raises:
        ValueError: The function takes fewer arguments, or needs more.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.common import validate_input_col
        >>> validate_input_col(lambda a, b: a + b, [0, 1])
    """
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (ValueError, TypeError):  # functions of C have no signature
        return
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    name = getattr(fn, "__name__", None) or type(fn).__name__
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if keywords:
        raise ValueError(
            f"The function {name} takes {len(keywords)} non-default keyword-only parameters, which is not allowed."
        )
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        if required > count:
            raise ValueError(f"The function {name} takes {required} non-default parameters, but {count} are required.")
        return
    if not required <= count <= len(positional):
        optional = len(positional) - required
        shown = f"{required} non-default parameters and {optional} default" if optional else str(required)
        raise ValueError(f"The function {name} takes {shown} parameters, but {count} are required.")


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Returns whether a file's name fits one of the masks.

    Args:
        name: The name.
        masks: A pattern of the shell such as ``"*.txt"``, or several. An empty one fits all names.

    Example:
        >>> from torchlite.utils.data.datapipes.utils.common import match_masks
        >>> match_masks("a.txt", ["*.csv", "*.txt"])
        True
    """
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def _warn_of_error(error: OSError) -> None:
    warnings.warn(f"{error.filename}: {error.strerror}", stacklevel=3)
    raise error


def get_file_pathnames_from_root(
    root: str, masks: str | list[str], recursive: bool = False, abspath: bool = False, non_deterministic: bool = False
) -> Iterator[str]:
    """Iterates over the paths of the files in a folder; a file's path is the only one of a file.

    Args:
        root: The folder.
        masks: Patterns of the names, or an empty text for all files.
        recursive: Whether folders in it are searched too. Default: ``False``.
        abspath: Whether paths are absolute. Default: ``False``.
        non_deterministic: Whether the order may be the file system's; else it is sorted. Default: ``False``.

    Yields:
        Each path.
    """
    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for folder, folders, files in os.walk(root, onerror=_warn_of_error):
        if not non_deterministic:
            folders.sort()
            files.sort()
        place = os.path.abspath(folder) if abspath else folder
        yield from (os.path.join(place, name) for name in files if match_masks(name, masks))
        if not recursive:
            return


def get_file_binaries_from_pathnames(
    pathnames: Iterable[str], mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """Iterates over files that it opens.

    Args:
        pathnames: The paths.
        mode: The mode of `open`; ``"b"`` and ``"t"`` read.
        encoding: The encoding of text. Default: the system's.

    Yields:
        Each path and its open file, a `StreamWrapper`.

    Raises:
        TypeError: A path is no text.
    """
    for path in pathnames:
        if not isinstance(path, str):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        opened = open(path, f"r{mode}" if mode in ("b", "t") else mode, encoding=encoding)  # noqa: SIM115
        yield path, StreamWrapper(opened)


def validate_pathname_binary_tuple(data: tuple[str, IOBase]) -> None:
    """Checks that an item is a path and an open file.

    Args:
        data: The item.

    Raises:
        TypeError: It is no pair of a text and a file.

    Example:
        >>> import io
        >>> from torchlite.utils.data.datapipes.utils.common import validate_pathname_binary_tuple
        >>> validate_pathname_binary_tuple(("a.txt", io.StringIO("text")))
    """
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(
            "binary stream within the tuple should have IOBase or StreamWrapper as type, but it is type "
            f"{type(data[1])}"
        )


class StreamWrapper:
    """An open file of a pipe, which is closed with its last reader.

    Args:
        file_obj: The file.
        parent_stream: The archive's `StreamWrapper`, which stays open while a file in it is. Default: none.
        name: A name for its text. Default: none.

    Raises:
        RuntimeError: ``parent_stream`` is no `StreamWrapper`.

    Example:
        >>> import io
        >>> from torchlite.utils.data.datapipes.utils.common import StreamWrapper
        >>> stream = StreamWrapper(io.StringIO("text"))
        >>> stream.read()
        'text'
    """

    session_streams: dict[StreamWrapper, int] = {}
    debug_unclosed_streams = False

    def __init__(self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None) -> None:
        if parent_stream is not None and not isinstance(parent_stream, StreamWrapper):
            raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        self.child_counter, self.closed, self.close_on_last_child = 0, False, False
        if parent_stream is not None:
            parent_stream.child_counter += 1
        if StreamWrapper.debug_unclosed_streams:
            StreamWrapper.session_streams[self] = 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Closes the files in a structure of lists, tuples and dictionaries, up to ten levels deep.

        Args:
            v: The structure.
            depth: The level. Default: 0.
        """
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for item in v.values():
                cls.close_streams(item, depth + 1)
        elif isinstance(v, (list, tuple)):
            for item in v:
                cls.close_streams(item, depth + 1)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Closes the file, and the archive that it was the last open file of."""
        StreamWrapper.session_streams.pop(self, None)
        if self.closed:
            return
        if self.parent_stream is not None:
            self.parent_stream.child_counter -= 1
            if not self.parent_stream.child_counter and self.parent_stream.close_on_last_child:
                self.parent_stream.close()
        with contextlib.suppress(AttributeError):  # an object without close
            self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Closes the file once no file in it is open."""
        self.close_on_last_child = True
        if not self.child_counter:
            self.close()

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *dir(type(self)), *dir(self.file_obj)})

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.file_obj, self.parent_stream, self.name = obj, None, None
        self.child_counter, self.closed, self.close_on_last_child = 0, False, False
