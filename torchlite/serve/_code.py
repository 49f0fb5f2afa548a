"""Code that a model brings along: handlers and factories. It runs with --allow-code alone."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

_NUMBERS = itertools.count()


class CodeNotAllowed(ValueError):
    """A model has code, and the server was started without --allow-code."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is code that would run; start the server with --allow-code if you trust it")


@contextlib.contextmanager
def imports_from(folder: Path) -> Iterator[None]:
    """Modules of a folder can be imported. Two models may have different modules of one name: afterwards they are
    known to their model alone.
    """
    place = str(folder.resolve())
    before = set(sys.modules)
    sys.path.insert(0, place)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(place)
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(place):
                del sys.modules[name]


def load_module(name: str, folder: Path) -> ModuleType:
    """Import a module of a folder, `name.py`, or else an installed one. Call it within `imports_from`."""
    stem = name.removesuffix(".py").rpartition("/")[2]
    path = folder / f"{stem}.py"
    if not path.is_file():
        return importlib.import_module(stem)
    spec = importlib.util.spec_from_file_location(f"_torchlite_served_{next(_NUMBERS)}_{stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module  # for its siblings that import it
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def load_factory(word: str, folder: Path) -> Any:
    """Return what `module:function` makes."""
    name, _, function = word.partition(":")
    if not name or not function:
        raise ValueError(f"factory '{word}': wanted is module:function")
    module = load_module(name, folder)
    if not callable(getattr(module, function, None)):
        raise ValueError(f"factory '{word}': the module has no function '{function}'")
    return getattr(module, function)()
