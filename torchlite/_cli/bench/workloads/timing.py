"""Timing of a call: wall time, and CPU time of the thread and of the process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

# Minimum duration of a sample: a shorter call is repeated.
SAMPLE = 2e-3


def measure(call: Callable[[], Any], wait: Callable[[Any], None], seconds: float, least: int = 3) -> dict[str, float]:
    """Return seconds per call: {"wall", "median", "least", "thread", "process", "calls"}.

    After a warm-up, takes samples for `seconds`, at least `least` of them. A short call is repeated in a sample, whose
    mean counts. "wall" is the least sample of short calls, and the median of longer ones. CPU times are means over all
    calls.
    """
    repeat = _warm_up(call, wait, seconds)
    samples: list[float] = []
    begun, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
    while len(samples) < least or time.perf_counter() - begun < seconds:
        start = time.perf_counter()
        for _ in range(repeat - 1):
            call()
        wait(call())
        samples.append((time.perf_counter() - start) / repeat)
    calls = repeat * len(samples)
    return {
        "wall": min(samples) if repeat > 1 else statistics.median(samples),
        "median": statistics.median(samples),
        "least": min(samples),
        "thread": (time.thread_time() - thread) / calls,
        "process": (time.process_time() - process) / calls,
        "calls": calls,
    }


def _warm_up(call: Callable[[], Any], wait: Callable[[Any], None], seconds: float) -> int:
    """Warm up; return the number of calls per sample."""
    begun, count, took = time.perf_counter(), 0, 0.0
    while count < 2 or time.perf_counter() - begun < min(0.1, seconds / 3):
        start = time.perf_counter()
        wait(call())
        took, count = time.perf_counter() - start, count + 1
    return max(1, int(SAMPLE / max(took, 1e-9)))
