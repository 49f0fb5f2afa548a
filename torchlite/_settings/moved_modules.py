"""Old import paths of documented modules: each imports the module at its new path, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.abc import Loader
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
    "torchlite_kernels": "torchlite_backends.kernel_sources",
    "torchlite_mpi": "torchlite_backends.mpi",
    "torchlite_nccl": "torchlite_backends.nccl",
    "torchlite_numpy": "torchlite_backends.numpy",
    "torchlite_onednn": "torchlite_backends.onednn",
    "torchlite_opencl": "torchlite_backends.opencl",
}


class _MovedLoader(Loader):
    """Load the module at the new path, and leave its `__spec__` as it is."""

    def __init__(self, new_name: str) -> None:
        self.new_name = new_name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.new_name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has replaced it


class MovedModuleFinder:
    """A meta path finder for the paths in `MOVED` and the modules below them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        if package == "torchlite":
            package = f"torchlite.{rest.partition('.')[0]}"
        if package not in MOVED:
            return None
        new_name = MOVED[package] + name.removeprefix(package)
        warnings.warn(f"{name} has moved to {new_name}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, _MovedLoader(new_name))


def install() -> None:
    """Insert the finder into `sys.meta_path`, before the one that would load a module a second time by its folder."""
    sys.meta_path.insert(0, MovedModuleFinder())  # type: ignore[arg-type]
