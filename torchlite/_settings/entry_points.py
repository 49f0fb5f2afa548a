"""The entry points that installed packages offer to torchlite.

`importlib.metadata` gives the same, but its import takes longer than all other work before the first result. So the
folders of `sys.path` are read here. Packages that other importers provide (archives, finders of a program's own) are
left to `importlib.metadata`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

_SUFFIXES = (".dist-info", ".egg-info")


class EntryPoint:
    """An object that an installed package offers under a name.

    >>> EntryPoint("tau", "math:tau").load()
    6.283185307179586
    """

    def __init__(self, name: str, value: str):
        self.name, self.value = name, value
        module, _, attributes = value.partition("[")[0].partition(":")
        self.module, self._attributes = module.strip(), attributes.strip()

    def load(self) -> Any:
        """Import the module, and return the object in it."""
        names = filter(None, self._attributes.split("."))
        return functools.reduce(getattr, names, importlib.import_module(self.module))


def entry_points(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group, by name; nothing of theirs is loaded. A package that is found twice counts once."""
    folders = [path or os.curdir for path in sys.path]
    if any(map(_is_provided_otherwise, sys.meta_path)) or any(map(os.path.isfile, folders)):
        import importlib.metadata

        return {
            point.name: EntryPoint(point.name, point.value) for point in importlib.metadata.entry_points(group=group)
        }
    found: dict[str, EntryPoint] = {}
    seen: set[str] = set()
    for folder, name in _list_distributions(folders):
        distribution = re.sub(r"[-_.]+", "_", name.rpartition(".")[0].partition("-")[0]).lower()
        if distribution not in seen:
            seen.add(distribution)
            text = _read(os.path.join(folder, name, "entry_points.txt"))
            if group in text:
                found.update(_parse(text, group))
    return found


def _is_provided_otherwise(finder: Any) -> bool:
    return finder is not importlib.machinery.PathFinder and hasattr(finder, "find_distributions")


def _list_distributions(folders: list[str]) -> Iterator[tuple[str, str]]:
    """The folders of metadata, each as its parent and name."""
    for folder in dict.fromkeys(folders):
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        if folder.lower().endswith(".egg") and "EGG-INFO" in names:
            parent, name = os.path.split(folder)
            yield parent, os.path.join(name, "EGG-INFO")
        for name in names:
            if name.lower().endswith(_SUFFIXES):
                yield folder, name


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _parse(text: str, group: str) -> Iterator[tuple[str, EntryPoint]]:
    """The entry points of one group in the text of a file."""
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line[1:].partition("]")[0].strip() == group
        elif inside and "=" in line and line[0] != "#":
            name, _, value = map(str.strip, line.partition("="))
            yield name, EntryPoint(name, value)
