"""Handlers of signals that raise within calls of a store: `python -m tests.hostile.store_interrupts KIND SECONDS SEED`.

Interrupts come at random moments. No call may wait until its timeout because of one before it, every answer belongs to
its question, no descriptor stays open, and a value of a queue is missing only where its `queue_pop` was interrupted.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import tempfile
import time
from datetime import timedelta
from typing import Any

import torchlite.distributed as dist

_LIMIT = 30.0  # seconds of the store's timeout
_SLOW = 15.0  # of a call that only a lost lock or connection delays


class Raised(Exception):
    """What the handler raises."""


def _open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def _store(kind: str, path: str) -> Any:
    if kind == "tcp":
        return dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=_LIMIT))
    store = dist.FileStore(path, 1) if kind == "file" else dist.HashStore()
    store.set_timeout(timedelta(seconds=_LIMIT))
    return store


def interrupts(kind: str, path: str, seconds: float, seed: int) -> int:
    """How many calls were interrupted."""
    draw, store, count, armed = random.Random(seed), _store(kind, path), 0, [False]
    added = pushed = 0
    popped: list[int] = []
    unsure = 0  # pushes and pops that were interrupted

    def handle(*_: Any) -> None:
        if armed[0]:
            armed[0] = False
            raise Raised

    def call(function: Any, *args: Any) -> Any:
        """The answer, or None where the call was interrupted."""
        nonlocal count
        signal.setitimer(signal.ITIMER_REAL, draw.choice((2e-5, 1e-4, 3e-4, 1e-3)) * (0.2 + draw.random()))
        begin = time.monotonic()
        try:
            armed[0] = True
            answer = function(*args)
            armed[0] = False
        except Raised:
            count += 1
            answer = None
        assert time.monotonic() - begin < _SLOW, (function, args, seed)
        return answer

    before = signal.signal(signal.SIGALRM, handle)
    store.set("a", "value of a")
    store.set("long", bytes(1 << 20 if kind == "tcp" else 1 << 12))
    files, end = _open_files(), time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            found = call(store.get, "a")
            assert found in (None, b"value of a"), (found, seed)
            found = call(store.get, "long")
            assert found is None or len(found) in (1 << 20, 1 << 12), seed
            assert call(store.add, "n", 1) is None or int(store.get("n")) >= added
            call(store.wait, ["a", "long"])
            assert call(store.check, ["a", "absent"]) in (None, False), seed
            pushed += 1
            if call(store.queue_push, "q", str(pushed)) is None:
                unsure += 1
            if store.queue_len("q"):
                found = call(store.queue_pop, "q")
                if found is None:
                    unsure += 1
                else:
                    popped.append(int(found))
            added = store.add("n", 0)  # calls that nothing interrupts
            assert store.get("a") == b"value of a", seed
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    while store.queue_len("q"):
        popped.append(int(store.queue_pop("q")))
    assert len(set(popped)) == len(popped) >= pushed - unsure, (pushed, len(popped), unsure, seed)
    deadline = time.monotonic() + 10  # the server closes its own ends a moment later
    while _open_files() > files + 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _open_files() <= files + 2, (files, _open_files(), seed)
    return count


if __name__ == "__main__":
    kind, seconds, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder:
        print(kind, interrupts(kind, os.path.join(folder, "values"), seconds, seed), "interrupts, seed", seed)
