"""Formats of model files, told by their content, and the functions that read them."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from .atomic_files import open_regular

KINDS = {
    "pt2": "an exported program (torch.export)",
    "torchscript": "TorchScript (torch.jit)",
    "onnx": "ONNX",
    "checkpoint": "values of torch.save",
}
_LOADERS = {"pt2": "export.load", "torchscript": "jit.load", "onnx": "onnx.load", "checkpoint": "load"}
_Load = TypeVar("_Load", bound=Callable[..., Any])


def detect_file_format(path: str) -> str:
    """Return the format of a file, by its content. ValueError for an unknown one."""
    with open_regular(path) as file:
        head = file.read(4)
        if head == b"PK\x03\x04":
            return _archive_format(path, file)
    if os.path.splitext(path)[1] == ".onnx":
        return "onnx"
    if head[:1] == b"\x80":
        return "checkpoint"
    raise ValueError(f"{path}: neither an archive of PyTorch's nor, by its name, an ONNX model")


def _archive_format(path: str, file: Any) -> str:
    import zipfile

    try:
        names = [name.partition("/")[2] for name in zipfile.ZipFile(file).namelist()]
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: a zip archive that is damaged or was cut short: {error}") from None
    if "archive_format" in names or "serialized_exported_program.json" in names:
        return "pt2"
    if "constants.pkl" in names:
        return "torchscript"
    if "data.pkl" in names:
        return "checkpoint"
    raise ValueError(f"{path}: a zip archive, but none that PyTorch writes")


def names_other_loaders(*own: str) -> Callable[[_Load], _Load]:
    """Return a decorator of a function that reads files of the formats `own`. For a file of another format its error
    names the function that reads it.
    """

    def decorate(load: _Load) -> _Load:
        @functools.wraps(load)
        def load_or_name_loader(*args: Any, **kwargs: Any) -> Any:
            try:
                return load(*args, **kwargs)
            except (RuntimeError, ValueError, pickle.UnpicklingError) as error:
                path: Any = args[0] if args else kwargs.get("f")
                kind = _format_or_none(path)
                if kind is None or kind in own:
                    raise
                text = f"{os.fspath(path)} holds {KINDS[kind]}: read it by torch.{_LOADERS[kind]}"
                raise _same_class(error, text) from error

        return load_or_name_loader  # type: ignore[return-value]

    return decorate


def _format_or_none(path: Any) -> str | None:
    """Return the format of a file; None for an open file, and for a format that is not known."""
    try:
        return detect_file_format(os.fspath(path))
    except (OSError, RuntimeError, TypeError, ValueError):
        return None


def _same_class(error: BaseException, text: str) -> BaseException:
    try:
        return type(error)(text)
    except TypeError:  # the class takes other arguments
        return RuntimeError(text)
