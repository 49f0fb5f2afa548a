"""Debugging helpers: a breakpoint on one rank, and named profiler ranges of collectives."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from ._collectives import barrier
from ._group_registry import get_rank

_calls = 0  # of `breakpoint`


@contextlib.contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Context manager that groups collectives in a profiler range of this name.

    >>> import torchlite.distributed as dist
    >>> with dist.record_comm("gradients"):
    ...     pass
    """
    from torchlite.profiler import record_function

    with record_function(name):
        yield


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float = 3600) -> None:
    """Stop in the debugger on one rank; the others wait for it, at most `timeout_s` seconds.

    The first `skip` calls are ignored. In the debugger, `up` leads to the caller.
    """
    global _calls
    _calls += 1
    if _calls <= skip:
        return
    if get_rank() == rank:
        print(f"\n!!! ATTENTION !!!\n\nType 'up' to get to the frame that called dist.breakpoint(rank={rank})\n")
        _make_debugger().set_trace(sys._getframe())
    barrier(timeout=timedelta(seconds=timeout_s))


def _make_debugger() -> Any:
    import pdb

    return pdb.Pdb(stdin=sys.stdin, stdout=sys.stdout)
