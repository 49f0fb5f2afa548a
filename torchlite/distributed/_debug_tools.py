"""What helps to find out what processes do."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from ._collectives import barrier
from ._world import get_rank

_calls = 0  # of `breakpoint`


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
