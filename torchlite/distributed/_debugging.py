"""What helps to find out what processes do."""

from __future__ import annotations

import contextlib
import enum
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from ._collectives import barrier
from ._world import get_rank

_calls = 0  # of `breakpoint`


class DebugLevel(enum.IntEnum):
    """What TORCH_DISTRIBUTED_DEBUG says."""

    OFF, INFO, DETAIL = range(3)


_level: list[DebugLevel] = []  # that was set; empty while the environment says


def get_debug_level() -> DebugLevel:
    """What TORCH_DISTRIBUTED_DEBUG says, or was set since. Groups that are made with DETAIL compare collectives."""
    if not _level:
        return DebugLevel.__members__.get(os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper(), DebugLevel.OFF)
    return _level[0]


def set_debug_level(level: DebugLevel) -> None:
    """What `get_debug_level` answers from now on.

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
    """Take what TORCH_DISTRIBUTED_DEBUG says now. ValueError for another word than OFF, INFO or DETAIL."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    _level[:] = [DebugLevel[word]]


@contextlib.contextmanager
def record_comm(name: str) -> Iterator[None]:
    """A context whose collectives the profiler shows within a range of this name.

    >>> import torchlite.distributed as dist
    >>> with dist.record_comm("gradients"):
    ...     pass
    """
    from torchlite.profiler import record_function

    with record_function(name):
        yield


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float = 3600) -> None:
    """Stop in the debugger on one rank; the others wait for it, `timeout_s` seconds at most. The first `skip` calls go
    on. In the debugger, `up` leads to the program.
    """
    global _calls
    _calls += 1
    if _calls <= skip:
        return
    if get_rank() == rank:
        print(f"\n!!! ATTENTION !!!\n\nType 'up' to get to the frame that called dist.breakpoint(rank={rank})\n")
        _debugger().set_trace(sys._getframe())
    barrier(timeout=timedelta(seconds=timeout_s))


def _debugger() -> Any:
    import pdb

    return pdb.Pdb(stdin=sys.stdin, stdout=sys.stdout)
