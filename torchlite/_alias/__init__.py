"""Import torchlite as `torch`: one module object under both names, and likewise for each submodule.

`as_torch` renames the loaded modules, their classes and functions to PyTorch's names, so that reprs, pickles and
lookups use `torch`. Python's own finder imports later modules `torch.X` from torchlite's folder; `_Finder` returns the
same module for `torchlite.X`.

The folder `path` makes an environment find torchlite under the name `torch`: it contains a package that forwards to it,
and the metadata that installers and `importlib.metadata` read. `python -m torchlite run` puts the folder on the path of
the program and its children; `python -m torchlite as-torch --install` copies its contents.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "path")
DIST_INFO = "torch-2.13.0+torchlite.dist-info"
_HERE, _THERE = "torchlite", "torch"


def as_torch() -> ModuleType:
    """Makes `import torch` mean torchlite in this process, and in processes that `multiprocessing` starts.

    Call it before anything imports `torch`.

        import torchlite
        torchlite.as_torch()
        import torch, einops

    Returns:
        The module torchlite.

    Raises:
        RuntimeError: PyTorch itself is imported already.
    """
    ours = sys.modules.get(_HERE) or importlib.import_module(_HERE)
    present = sys.modules.get(_THERE)
    if present is ours:
        return ours
    if present is not None and not getattr(present, "HANDS_OVER", False):
        raise RuntimeError(
            f"as_torch: PyTorch is imported already ({getattr(present, '__file__', 'torch')}); call "
            "torchlite.as_torch() before the first `import torch`"
        )
    for name, module in list(sys.modules.items()):
        if name == _HERE or name.startswith(_HERE + "."):
            _rename_module_to_torch(module)
            sys.modules[_theirs(name)] = module
    for cls in _iterate_all_classes():
        _rename_contents(cls)
    _rename_functions(importlib.import_module(f"{_THERE}._dispatch.dispatch_state").GLOBALS)
    sys.meta_path.insert(0, _Finder())
    version = importlib.import_module(f"{_THERE}.torch_version").__version__
    ours.__version__ = version  # type: ignore[attr-defined]
    importlib.import_module(f"{_THERE}.version").__version__ = str(version)  # type: ignore[attr-defined]
    if PATH not in sys.path:  # processes that are spawned get the path
        sys.path.insert(1, PATH)
    return ours


def _theirs(name: str) -> str:
    return _THERE + name.removeprefix(_HERE)


def _is_named_here(module: Any) -> bool:
    return isinstance(module, str) and (module == _HERE or module.startswith(_HERE + "."))


def _rename_module_to_torch(module: ModuleType) -> None:
    """Give a module that is loaded its name in PyTorch, and its functions."""
    module.__name__ = _theirs(module.__name__)
    if module.__package__ is not None:
        module.__package__ = _theirs(module.__package__)
    if module.__spec__ is not None:
        module.__spec__.name = _theirs(module.__spec__.name)
        if hasattr(module.__spec__.loader, "name"):
            module.__spec__.loader.name = module.__spec__.name  # type: ignore[union-attr]
    _rename_functions(ModuleType.__getattribute__(module, "__dict__"))


def _rename_functions(names: dict[str, Any]) -> None:
    for value in list(names.values()):
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if isinstance(function, _FUNCTIONS) and _is_named_here(function.__module__):
            function.__module__ = _theirs(function.__module__)


_FUNCTIONS = (FunctionType, functools._lru_cache_wrapper)


def _iterate_all_classes() -> list[type]:
    """Every class that there is."""
    found: dict[type, None] = {}
    pending: list[Any] = [object]
    while pending:
        for cls in type.__subclasses__(pending.pop()):
            if cls not in found:
                found[cls] = None
                pending.append(cls)
    return list(found)


def _rename_contents(cls: type) -> None:
    module = cls.__dict__.get("__module__")
    if _is_named_here(module):
        cls.__module__ = _theirs(module)  # type: ignore[arg-type]
        _rename_functions(dict(cls.__dict__))


class _Finder:
    """Finds `torchlite.X` under the alias: the module that `torch.X` is."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(_HERE + "."):
            return None
        other = _theirs(name)
        if other not in sys.modules and PathFinder.find_spec(other, path) is None:
            return None
        return ModuleSpec(name, _Loader(other))


class _Loader(Loader):
    """Loads a module under its other name, and leaves it as it is."""

    def __init__(self, other: str) -> None:
        self.other = other

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.other)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import has put its own there
