"""Utilities for training: data loading, checkpointing, hooks."""

import importlib
from typing import TYPE_CHECKING

from torchlite._settings.module_dir import make_module_dir

_MODULES = {
    "_device", "_python_dispatch", "_pytree", "backend_registration", "benchmark", "checkpoint", "collect_env",
    "cpp_extension", "data", "deterministic", "dlpack", "flop_counter", "hooks", "model_zoo", "module_tracker",
    "serialization", "tensorboard", "weak",
}  # fmt: skip
_MODULE_OF = {"rename_privateuse1_backend": "backend_registration", "swap_tensors": "_swap_tensors"}


if TYPE_CHECKING:
    from . import checkpoint as checkpoint
    from . import data as data
    from . import deterministic as deterministic
    from . import dlpack as dlpack
    from . import hooks as hooks
    from ._swap_tensors import swap_tensors as swap_tensors
    from .backend_registration import rename_privateuse1_backend as rename_privateuse1_backend
else:

    def __getattr__(name):
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        if name in _MODULE_OF:
            found = globals()[name] = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
            return found
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = make_module_dir(globals(), "rename_privateuse1_backend swap_tensors")
