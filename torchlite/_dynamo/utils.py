"""Helpers of `torch._dynamo.utils`: device support and one-time warnings."""

from __future__ import annotations

import functools
import warnings
from typing import Any

__all__ = ["is_compile_supported", "warn_once"]


def is_compile_supported(device_type: Any) -> bool:
    """True if functions can be compiled for a device type: all except meta."""
    return str(device_type) != "meta"


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Emit a warning once per process."""
    warnings.warn(msg, stacklevel=stacklevel + 1)
