"""Archives of torch-model-archiver: unpacking, and the model within."""

from __future__ import annotations

import inspect
import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import torchlite as torch
from torchlite._serialization.file_formats import detect_file_format

from . import _code
from ._weights import read_weights

_MOST_BYTES = 64 << 30  # of an archive's files in all
_MOST_FILES = 100_000
_PIECE = 1 << 20


def unpack(path: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder. ValueError for names that lead out of it, links, or too many bytes."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len(entries) > _MOST_FILES or sum(entry.file_size for entry in entries) > _MOST_BYTES:
            raise ValueError(f"{path}: over {_MOST_FILES} files or {_MOST_BYTES} bytes")
        for entry in entries:
            name = PurePosixPath(entry.filename)
            if name.is_absolute() or ".." in name.parts or "\\" in entry.filename or ":" in entry.filename:
                raise ValueError(f"{path}: the name {entry.filename!r} leads out of the archive")
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise ValueError(f"{path}: {entry.filename!r} is a link")
            target = folder.joinpath(*name.parts)
            if entry.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, target.open("xb") as made:
                shutil.copyfileobj(source, made, _PIECE)


def load_serialized(folder: str, about: dict[str, Any], device: str) -> Any:
    """Return the module of an archive's serialized file, or of its model file with a state dict."""
    place = Path(folder)
    serialized = place / about["serializedFile"] if about.get("serializedFile") else None
    if about.get("modelFile"):
        module = _class_in(about["modelFile"], place)()
        if serialized is not None:
            module.load_state_dict(read_weights(serialized))
        return module.to(device).eval()
    if serialized is None:
        raise ValueError(f"{folder}: the manifest names no serializedFile")
    from torchlite._cli.models.model_loader import read

    if detect_file_format(str(serialized)) == "checkpoint":
        raise ValueError(f"{serialized}: a state dict, and the manifest names no modelFile with its class")
    return read(str(serialized), device).module


def _class_in(name: str, folder: Path) -> type:
    """Return the one class of a model's file."""
    module = _code.load_module(name, folder)
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__ and issubclass(value, torch.nn.Module)
    ]
    if len(found) != 1:
        raise ValueError(f"{name}: wanted is one class of a network, and it has {len(found)}")
    return found[0]
