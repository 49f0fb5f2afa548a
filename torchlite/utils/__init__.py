"""Tools around training: data loading, checkpointing, hooks."""

import importlib
from typing import TYPE_CHECKING

<<<<<<< HEAD
_MODULES = {"data", "checkpoint", "hooks", "model_zoo", "deterministic", "dlpack", "_pytree", "serialization"}
=======
_MODULES = {"data", "checkpoint", "hooks", "deterministic", "dlpack", "_pytree", "_python_dispatch", "serialization"}
>>>>>>> b6561fa (torch.library, torch.overrides and __torch_dispatch__: added ops are one op to interceptors, modes and subclasses see records by the library's names, below autograd)
_HOMES = {"swap_tensors": "_swap"}


if TYPE_CHECKING:
    from . import checkpoint as checkpoint
    from . import data as data
    from . import deterministic as deterministic
    from . import dlpack as dlpack
    from . import hooks as hooks
    from ._swap import swap_tensors as swap_tensors
else:

    def __getattr__(name):
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        if name in _HOMES:
            found = globals()[name] = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
            return found
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
