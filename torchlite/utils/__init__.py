"""Tools around training: data loading, checkpointing, hooks."""

import importlib

_MODULES = {"data", "checkpoint", "hooks", "dlpack", "_pytree"}


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'torchlite.utils' has no attribute '{name}'")
