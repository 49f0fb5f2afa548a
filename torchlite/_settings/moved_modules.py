"""Old import paths of documented modules: each imports the module at its new path, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# To be removed with release 0.3.
MOVED = {
    "torchlite._command": "torchlite._cli",
    "torchlite_array": "torchlite_backends.array",
    "torchlite_cc": "torchlite_backends.cc",
    "torchlite_cupy": "torchlite_backends.cupy",
    "torchlite_device": "torchlite_backends.device_runtime",
    "torchlite_engines": "torchlite_backends.cpu_engines",
    "torchlite_mpi": "torchlite_backends.mpi",
    "torchlite_nccl": "torchlite_backends.nccl",
    "torchlite_numpy": "torchlite_backends.numpy",
    "torchlite_onednn": "torchlite_backends.onednn",
    "torchlite_opencl": "torchlite_backends.opencl",
}


class _MovedModule(ModuleType):
    """A module under its old name: attributes are those of the module at the new path."""

    __path__: list[str] = []  # submodules come from the finder, not from a folder, which would load them twice

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(_new_name(self.__name__) or ""), name)

    def __reduce__(self) -> Any:  # as `ImportableModule`, whose import would be one more for everybody
        return importlib.import_module, (self.__name__,)


class _MovedLoader:  # importlib.abc would load some thirty modules
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _MovedModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = importlib.import_module(_new_name(module.__name__) or "").__doc__


def _new_name(name: str) -> str | None:
    """Return the new path of a module, None for one that has not moved."""
    old = next((old for old in MOVED if name == old or name.startswith(old + ".")), None)
    return None if old is None else MOVED[old] + name.removeprefix(old)


class MovedModuleFinder:
    """A meta path finder for the paths in `MOVED` and the modules below them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        new_name = _new_name(name)
        if new_name is None:
            return None
        warnings.warn(f"{name} has moved to {new_name}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, _MovedLoader(), is_package=True)  # type: ignore[arg-type]


def install() -> None:
    """Append the finder to `sys.meta_path`, for names that no other finder resolves."""
    sys.meta_path.append(MovedModuleFinder())  # type: ignore[arg-type]
