"""Helpers of `torch._dynamo.utils`: device support, one-time warnings, counters of packages."""

from __future__ import annotations

import collections
import contextlib
import functools
import sys
import warnings
from typing import Any

from . import config

__all__ = ["counters", "disable_cache_limit", "is_compile_supported", "warn_once"]

# Counts that passes of packages keep, by group and name. torchlite's own compiler adds nothing.
counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)


def is_compile_supported(device_type: Any) -> bool:
    """True if functions can be compiled for a device type: all except meta."""
    return str(device_type) != "meta"


def disable_cache_limit() -> contextlib.AbstractContextManager[None]:
    """Context manager in which a function has as many programs as it needs.

    >>> from torchlite._dynamo import config
    >>> with torchlite._dynamo.utils.disable_cache_limit():
    ...     config.recompile_limit > 1_000_000
    True
    >>> config.recompile_limit
    8
    """
    return config.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize)


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Emit a warning once per process."""
    warnings.warn(msg, stacklevel=stacklevel + 1)
