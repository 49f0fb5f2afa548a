"""Runs functions in several threads at once, with a short switch interval, so that races show."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

INTERVAL = 1e-6  # seconds after which the interpreter may change to another thread


def in_threads(work: Callable[[int], Any], count: int = 8, timeout: float = 120.0) -> list[Any]:
    """Run `work(k)` in `count` threads that start at the same time; return the results. Raise the first error."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def body(k: int) -> None:
        barrier.wait()
        try:
            results[k] = work(k)
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(INTERVAL)
    try:
        threads = [threading.Thread(target=body, args=(k,), daemon=True) for k in range(count)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + timeout
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        stuck = [thread.name for thread in threads if thread.is_alive()]
    finally:
        sys.setswitchinterval(before)
    if errors:
        raise errors[0]
    assert not stuck, f"threads that wait for each other: {stuck}"
    return results
