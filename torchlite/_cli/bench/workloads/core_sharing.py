"""Workloads for CPU usage: user threads, worker processes, and idle threads.

Each check returns figures by name; ratios are named as such.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from typing import Any

from .context import Context
from .workload_names import file_of

CHECKS = ("one_thread", "idle", "user_threads", "worker_processes")


def run(check: str, c: Context, seconds: float) -> dict[str, float]:
    """Return the figures of a check. NotImplementedError if the system lacks a requirement."""
    found: dict[str, float] = globals()[check](c, seconds)
    return found


def _make_first_step(c: Context, workload: str) -> Callable[[], Any]:
    """Return the call of a workload's first row."""
    from importlib import import_module

    make = getattr(import_module("." + str(file_of(workload, "torch")), __package__), workload)
    return next(make(c))[1]


def _count_calls_until(call: Callable[[], Any], until: float) -> int:
    count = 0
    while time.perf_counter() < until:
        call()
        count += 1
    return count


def one_thread(c: Context, seconds: float) -> dict[str, float]:
    """Return CPU time divided by wall time of training steps with one thread: at most 1 if no other thread works."""
    before = c.T.get_num_threads()
    c.T.set_num_threads(1)
    step = _make_first_step(c, "gpt")
    step()
    start, cpu = time.perf_counter(), time.process_time()
    _count_calls_until(step, start + seconds)
    cores = (time.process_time() - cpu) / (time.perf_counter() - start)
    c.T.set_num_threads(before)
    return {"cores used by one thread": cores}


def idle(c: Context, seconds: float) -> dict[str, float]:
    """Return the share of a core that is used after work, while idle."""
    _count_calls_until(_make_first_step(c, "gpt"), time.perf_counter() + seconds)
    cpu = time.process_time()
    time.sleep(seconds)
    return {"cores used when idle": (time.process_time() - cpu) / seconds}


def user_threads(c: Context, seconds: float) -> dict[str, float]:
    """Return steps of two user threads divided by those of one in the same time: 1 for fair sharing."""
    found = {}
    for workload in ("mlp", "gpt"):
        steps = [_make_first_step(c, workload) for _ in range(2)]
        for step in steps:
            step()
        alone = _count_calls_until(steps[0], time.perf_counter() + seconds)
        counts = [0, 0]
        until = time.perf_counter() + seconds

        def count_steps_in_thread(k: int, until: float = until, counts: list = counts, steps: list = steps) -> None:
            counts[k] = _count_calls_until(steps[k], until)

        threads = [threading.Thread(target=count_steps_in_thread, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found[f"{workload} steps of two threads by one's"] = sum(counts) / max(alone, 1)
    return found


class Items:
    """Data set with expensive items."""

    def __init__(self, T: Any, count: int, side: int):
        self.T, self.count, self.weight = T, count, T.randn(side, side) / side**0.5

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        x = self.T.full(self.weight.shape, float(index) / self.count)
        for _ in range(4):
            x = (x @ self.weight).tanh()
        return x.mean(0)


def worker_processes(c: Context, seconds: float) -> dict[str, float]:
    """Return the speedup of a DataLoader with two worker processes: up to 2 on two cores."""
    if "fork" not in multiprocessing.get_all_start_methods():
        raise NotImplementedError("processes cannot be forked here")
    items = Items(c.T, c.size(400), c.size(256))
    rates = []
    for workers in (0, 2):
        context = {"multiprocessing_context": "fork"} if workers else {}
        loader = c.T.utils.data.DataLoader(items, batch_size=16, num_workers=workers, **context)
        start, count = time.perf_counter(), 0
        while time.perf_counter() < start + seconds:
            count += sum(len(batch) for batch in loader)
        rates.append(count / (time.perf_counter() - start))
    return {"items of two workers by those without": rates[1] / rates[0]}
