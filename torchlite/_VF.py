"""The functions of `torch` under the name by which PyTorch's own modules reach its C++."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import torchlite as torch

    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(torch, name)
