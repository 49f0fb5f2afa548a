"""Questions about PyTorch's compiler."""

from __future__ import annotations

from typing import Any

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: Any) -> bool:
    """Whether functions can be compiled for a type of device: all but meta."""
    return str(device_type) != "meta"
