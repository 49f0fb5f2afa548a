"""Debug level of distributed checks and logs: TORCH_DISTRIBUTED_DEBUG."""

from __future__ import annotations

import enum
import os


class DebugLevel(enum.IntEnum):
    """Levels of TORCH_DISTRIBUTED_DEBUG."""

    OFF, INFO, DETAIL = range(3)


_level: list[DebugLevel] = []  # the level that was set; empty while the environment variable decides


def get_debug_level() -> DebugLevel:
    """Return the debug level. Groups created with DETAIL compare collectives between ranks."""
    if not _level:
        return DebugLevel.__members__.get(os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper(), DebugLevel.OFF)
    return _level[0]


def set_debug_level(level: DebugLevel) -> None:
    """Set the debug level.

    >>> import torchlite.distributed as dist
    >>> before = dist.get_debug_level()
    >>> dist.set_debug_level(dist.DebugLevel.INFO)
    >>> dist.get_debug_level().name
    'INFO'
    >>> dist.set_debug_level(before)
    """
    if not isinstance(level, DebugLevel):
        raise TypeError(f"set_debug_level(): argument must be DebugLevel, not {type(level).__name__}")
    _level[:] = [level]


def set_debug_level_from_env() -> None:
    """Set the debug level from TORCH_DISTRIBUTED_DEBUG. ValueError for a value other than OFF, INFO or DETAIL."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    _level[:] = [DebugLevel[word]]
