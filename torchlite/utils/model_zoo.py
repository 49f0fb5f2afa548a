"""`torch.hub`'s downloads by their older name."""

from __future__ import annotations

import importlib
from typing import Any

from .._types.names import root

__all__ = ["load_url", "tqdm"]  # noqa: F822


def __getattr__(name: str) -> Any:
    if name in __all__:
        hub = importlib.import_module(f"{root()}.hub")

        return hub.load_state_dict_from_url if name == "load_url" else hub.tqdm
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
