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
    """Groups the collectives of a block in a region of the profiler.

    Args:
        name: The region's name.

    Example:
        >>> import torchlite.distributed as dist
        >>> with torch.profiler.profile() as prof:
        ...     with dist.record_comm("gradients"):
        ...         pass
        >>> [event.name for event in prof.events()]
        ['gradients']

    See also:
        `torch.profiler.record_function`.
    """
    from torchlite.profiler import record_function

    with record_function(name):
        yield


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float = 3600) -> None:
    """Stops in the debugger on one rank, while the others wait.

    In the debugger, ``up`` leads to the caller.

    Args:
        rank: The rank that stops. Default: 0.
        skip: The number of calls that return at once, before the first stop. Default: 0.
        timeout_s: The seconds that the others wait. Default: 3600.

    Raises:
        DistBackendError: The time passes on a waiting rank.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.breakpoint(skip=1000)
        >>> dist.destroy_process_group()
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
