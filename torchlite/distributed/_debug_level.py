"""Debug level of distributed checks and logs: TORCH_DISTRIBUTED_DEBUG."""

from __future__ import annotations

import enum
import os


class DebugLevel(enum.IntEnum):
    """Levels of the variable TORCH_DISTRIBUTED_DEBUG: OFF, INFO and DETAIL.

    Example:
        >>> [level.name for level in torch.distributed.DebugLevel]
        ['OFF', 'INFO', 'DETAIL']
    """

    OFF, INFO, DETAIL = range(3)


_level: list[DebugLevel] = []  # the level that was set; empty while the environment variable decides


def get_debug_level() -> DebugLevel:
    """Returns the debug level. Groups created with DETAIL compare their collectives between ranks.

    Example:
        >>> torch.distributed.get_debug_level() in torch.distributed.DebugLevel
        True
    """
    if not _level:
        return DebugLevel.__members__.get(os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper(), DebugLevel.OFF)
    return _level[0]


def set_debug_level(level: DebugLevel) -> None:
    """Sets the debug level of groups that are created later.

    Args:
        level: The level.

    Raises:
        TypeError: ``level`` is not a `DebugLevel`.

    Example:
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
    """Sets the debug level from the variable TORCH_DISTRIBUTED_DEBUG; OFF if it is unset.

    Raises:
        ValueError: The value is not OFF, INFO or DETAIL.

    Example:
        >>> import os
        >>> import torchlite.distributed as dist
        >>> before, variable = dist.get_debug_level(), os.environ.get("TORCH_DISTRIBUTED_DEBUG")
        >>> os.environ["TORCH_DISTRIBUTED_DEBUG"] = "INFO"
        >>> dist.set_debug_level_from_env()
        >>> dist.get_debug_level().name
        'INFO'
        >>> dist.set_debug_level(before)
        >>> _ = os.environ.pop("TORCH_DISTRIBUTED_DEBUG")
        >>> os.environ.update({} if variable is None else {"TORCH_DISTRIBUTED_DEBUG": variable})
    """
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    _level[:] = [DebugLevel[word]]
