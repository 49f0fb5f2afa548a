"""Helpers of `torch._dynamo.utils`: device support, one-time warnings, counters of packages."""

from __future__ import annotations

import collections
import functools
import warnings
from typing import Any

__all__ = ["counters", "is_compile_supported", "warn_once"]

# Counts that passes of packages keep, by group and name. torchlite's own compiler adds nothing.
counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)


def is_compile_supported(device_type: Any) -> bool:
    """True if functions can be compiled for a device type: all except meta."""
    return str(device_type) != "meta"


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Emit a warning once per process."""
    warnings.warn(msg, stacklevel=stacklevel + 1)
