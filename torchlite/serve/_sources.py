"""Where models are: files, folders of one model with versions, and folders of models."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._errors import UnknownModel
from ._model_config import FILE_NAME, ModelConfig, config_of, read_config
from ._protocol import check_model_name

SUFFIXES = (".onnx", ".pt2", ".pt", ".pth", ".ts", ".safetensors", ".mar")
MANIFEST = "MAR-INF/MANIFEST.json"
_MOST_MANIFEST = 1 << 20  # bytes


@dataclass
class ModelSource:
    """A model's files by version; the path of a version is None where a factory makes all of the model."""

    name: str
    folder: Path
    config: ModelConfig
    versions: dict[str, Path | None] = field(default_factory=dict)

    def chosen_versions(self) -> list[str]:
        """Return the versions that the configuration asks for, the newest last."""
        every = sorted(self.versions, key=version_order)
        wanted = self.config.versions
        if wanted == "all":
            return every
        if wanted == "latest":
            return every[-1:]
        missing = [version for version in wanted if version not in self.versions]
        if missing:
            raise ValueError(f"model '{self.name}' has no version {missing[0]}; it has {', '.join(every)}")
        return sorted(wanted, key=version_order)


def version_order(version: str) -> tuple:
    """Return the key that sorts versions: numbers by their value, `1.10` after `1.9`."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in version.split("."))


def find_sources(word: str, defaults: ModelConfig, tables: dict[str, dict[str, Any]]) -> list[ModelSource]:
    """Return the models of an argument of the command: `PATH` or `NAME=PATH`.

    Args:
        word: A model's file, a folder of one model, or a folder of models.
        defaults: The configuration of models whose `config.toml` does not say it.
        tables: The tables `models.NAME` of the server's file of options.

    Raises:
        ValueError: There is no such file, or no model in it.
    """
    name, equals, rest = word.partition("=")
    path = Path(rest if equals and not Path(word).exists() else word)
    given = name if path == Path(rest) and equals and not Path(word).exists() else None
    if not path.exists():
        raise ValueError(f"{path}: there is no such file or folder")
    if path.is_file():
        return [_of_file(path, given, defaults, tables)]
    if _is_one_model(path):
        return [_of_folder(path, given or path.resolve().name, defaults, tables)]
    if given is not None:
        raise ValueError(f"{path}: a folder of models has no name of its own; leave '{given}=' out")
    return _of_repository(path, defaults, tables)


def _of_repository(path: Path, defaults: ModelConfig, tables: dict[str, dict[str, Any]]) -> list[ModelSource]:
    found = []
    for child in sorted(path.iterdir()):
        if child.name.startswith("."):
            continue
        if child.is_dir() and _is_one_model(child):
            found.append(_of_folder(child, child.name, defaults, tables))
        elif is_model_file(child):
            found.append(_of_file(child, None, defaults, tables))
    return found


def is_model_file(path: Path) -> bool:
    """True for a file whose name ends as a model's."""
    return path.suffix.lower() in SUFFIXES and path.is_file()


def _is_one_model(folder: Path) -> bool:
    """True for a folder with `config.toml`, `model.*`, an archive's manifest, or folders that are versions."""
    if (folder / FILE_NAME).is_file() or (folder / MANIFEST).is_file():
        return True
    return any(
        (child.stem == "model" and is_model_file(child)) or (child.is_dir() and _is_version(child.name))
        for child in folder.iterdir()
    )


def _is_version(name: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)*", name) is not None


def _of_file(path: Path, given: str | None, defaults: ModelConfig, tables: dict[str, Any]) -> ModelSource:
    name, version = path.stem, "1"
    if path.suffix.lower() == ".mar":
        about = read_manifest(path)["model"]
        name, version = about.get("modelName", name), about.get("modelVersion", version)
    name = _checked(given or name)
    return ModelSource(name, path.parent, _with_table(name, defaults, tables), {str(version): path})


def _of_folder(folder: Path, name: str, defaults: ModelConfig, tables: dict[str, Any]) -> ModelSource:
    config = _with_table(name, defaults, tables)
    if (folder / FILE_NAME).is_file():
        config = read_config(folder / FILE_NAME, config)
    made = ModelSource(_checked(name), folder, config)
    if (folder / MANIFEST).is_file():
        made.versions[str(read_manifest(folder)["model"].get("modelVersion", "1"))] = folder
        return made
    for child in folder.iterdir():
        if child.is_dir() and _is_version(child.name):
            made.versions[child.name] = _model_in(child, config)
    if not made.versions:
        made.versions["1"] = _model_in(folder, config)
    return made


def _with_table(name: str, defaults: ModelConfig, tables: dict[str, Any]) -> ModelConfig:
    return config_of(tables[name], defaults, f"models.{name}") if name in tables else defaults


def _model_in(folder: Path, config: ModelConfig) -> Path | None:
    """Return the one model file of a folder. None if there is none and a factory or handler makes the model."""
    if (folder / MANIFEST).is_file():
        return folder
    files = sorted(child for child in folder.iterdir() if is_model_file(child))
    named = [child for child in files if child.stem == "model"]
    found = named or files
    if len(found) == 1:
        return found[0]
    if not found and (config.factory or config.handler):
        return None
    what = f"several models: {', '.join(child.name for child in found)}" if found else "no model file"
    raise ValueError(f"{folder}: it has {what}; wanted is one, or model.* ({', '.join(SUFFIXES)})")


def _checked(name: str) -> str:
    try:
        return check_model_name(name)
    except UnknownModel as error:
        raise ValueError(str(error)) from None


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of an archive of torch-model-archiver, or of a folder that was one."""
    try:
        if path.is_dir():
            raw = (path / MANIFEST).read_bytes()
        else:
            with zipfile.ZipFile(path) as archive:
                if archive.getinfo(MANIFEST).file_size > _MOST_MANIFEST:
                    raise ValueError(f"its {MANIFEST} is over {_MOST_MANIFEST} bytes")
                raw = archive.read(MANIFEST)
        table = json.loads(raw)
        about = table["model"]
        if type(about) is not dict or not all(type(about.get(k, "")) is str for k in ("modelName", "modelVersion")):
            raise ValueError("its 'model' is no object with texts")
    except KeyError:
        raise ValueError(f"{path}: it has no {MANIFEST} with a 'model'") from None
    except (zipfile.BadZipFile, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: no archive of torch-model-archiver: {error}") from None
    return table
