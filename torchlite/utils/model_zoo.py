"""Older names of `torch.hub`'s download functions."""

from __future__ import annotations

import importlib
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._types.package_name import package_name

__all__ = ["load_url", "tqdm"]  # noqa: F822


def __getattr__(name: str) -> Any:
    if name in __all__:
        hub = importlib.import_module(f"{package_name()}.hub")

        return hub.load_state_dict_from_url if name == "load_url" else hub.tqdm
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__dir__ = make_module_dir(globals())
