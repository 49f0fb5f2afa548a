"""Tools around training: data loading, checkpointing, hooks."""

import importlib
from typing import TYPE_CHECKING

_MODULES = {"data", "checkpoint", "hooks", "dlpack", "_pytree"}


if TYPE_CHECKING:
    from . import checkpoint as checkpoint
    from . import data as data
    from . import dlpack as dlpack
    from . import hooks as hooks
else:

    def __getattr__(name):
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module 'torchlite.utils' has no attribute '{name}'")
