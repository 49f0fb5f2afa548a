"""Questions about PyTorch's compiler."""

from __future__ import annotations

import functools
import warnings
from typing import Any

__all__ = ["is_compile_supported", "warn_once"]


def is_compile_supported(device_type: Any) -> bool:
    """Whether functions can be compiled for a type of device: all but meta."""
    return str(device_type) != "meta"


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn with a text the first time in this process."""
    warnings.warn(msg, stacklevel=stacklevel + 1)
