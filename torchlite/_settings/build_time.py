"""CPU time that a thread spends in compilers of kernels, which limits of a program's time do not count."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _BuildTime(threading.local):
    nanoseconds = 0
    is_running = False


_BUILDS = _BuildTime()


@contextmanager
def building() -> Iterator[None]:
    """Count the CPU time of a block as that of a build. A build inside another one counts once."""
    if _BUILDS.is_running:
        yield
        return
    _BUILDS.is_running, began = True, time.thread_time_ns()
    try:
        yield
    finally:
        _BUILDS.nanoseconds += time.thread_time_ns() - began
        _BUILDS.is_running = False


def thread_time_without_builds() -> int:
    """Return the CPU time of this thread without that of builds, in nanoseconds."""
    return time.thread_time_ns() - _BUILDS.nanoseconds
