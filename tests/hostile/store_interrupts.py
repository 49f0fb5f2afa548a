"""Handlers of signals that raise within calls of a store: `python -m tests.hostile.store_interrupts KIND SECONDS SEED`.

Interrupts come at random moments. No call may wait until its timeout because of one before it, every answer belongs to
its question, no descriptor stays open, and a value of a queue is missing only where its `queue_pop` was interrupted.

With `calls` after the seed the handlers run commands of their own on the same names, and now and then fork: no command
undoes another, and the child ends its call on connections and files of its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from datetime import timedelta
from typing import Any

import torchlite.distributed as dist
from torchlite._settings import fork_locks as _forks

_LIMIT = 30.0  # seconds of the store's timeout
_SLOW = 15.0  # of a call that only a lost lock or connection delays


class Raised(Exception):
    """The error that the handler raises."""


def _open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def _store(kind: str, path: str) -> Any:
    if kind == "prefix":
        return dist.PrefixStore("p", _store("hash", path))
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


class _Work:
    """Commands on names that handlers use as well, and what they must have come to."""

    def __init__(self, store: Any) -> None:
        self.store, self.done = store, 0
        self.pushed: list[str] = []
        self.popped: list[str] = []

    def run(self, kinds: str) -> None:
        """Some commands: a number, a text, a queue, and names that come and go."""
        self.done += 1
        word = str(self.done)
        if "n" in kinds:
            self.store.add("n", 1)
            self.store.append("text", "x")
        if "q" in kinds:
            self.store.queue_push("q", word)
            self.pushed.append(word)
            with contextlib.suppress(dist.QueueEmptyError):
                self.popped.append(self.store.queue_pop("q", False).decode())
        if "d" in kinds:
            self.store.set("gone", word)
            assert self.store.compare_set(f"own {word}", "", word) == word.encode()
            self.store.delete_key("gone")
            assert self.store.delete_key(f"own {word}")

    def check(self, runs: int) -> None:
        """No command was lost, and none came twice."""
        assert self.store.add("n", 0) == len(self.store.get("text")) == runs, (self.store.add("n", 0), runs)
        while self.store.queue_len("q"):
            self.popped.append(self.store.queue_pop("q").decode())
        assert sorted(self.popped) == sorted(self.pushed)
        assert not self.store.check(["q"]) and not self.store.check(["gone"])


def calls(kind: str, path: str, seconds: float, seed: int) -> int:
    """How many handlers ran commands."""
    draw, work = random.Random(seed), _Work(_store(kind, path))
    within, slowest, going = 0, 0.0, True

    def handle(*_: Any) -> None:
        nonlocal within, slowest
        begin = time.monotonic()
        work.run("nqd")
        within += 1
        slowest = max(slowest, time.monotonic() - begin)
        if going:
            signal.setitimer(signal.ITIMER_REAL, draw.choice((3e-4, 1e-3, 2e-3)) * (0.2 + draw.random()))

    before, end, outer = signal.signal(signal.SIGALRM, handle), time.monotonic() + seconds, 0
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-3)
        while time.monotonic() < end:
            work.run("nqd")
            outer += 1
    finally:
        going = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    work.check(outer + within)
    assert slowest < _SLOW, (slowest, seed)
    return within


def forks(kind: str, path: str, count: int, seed: int) -> int:
    """How many children handlers forked within commands. Each of them goes on with its command."""
    draw, parent, store = random.Random(seed), os.getpid(), _store(kind, path)
    children: list[int] = []
    held: list[bool] = []  # whether each fork had what it waits for

    def handle(*_: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child:
            children.append(child)
            held.append(_forks._imports_held)
            signal.setitimer(signal.ITIMER_REAL, draw.choice((1e-3, 3e-3)) * (0.2 + draw.random()))

    before, rounds = signal.signal(signal.SIGALRM, handle), 0
    store.set("text", "")
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-3)
        while len(children) < count and os.getpid() == parent:
            store.add("n", 1)
            store.append("text", "x")
            rounds += 1
        signal.setitimer(signal.ITIMER_REAL, 0)  # no child begins behind the next line
        if os.getpid() != parent:
            store.set(f"child {os.getpid()}", "1")
            os._exit(0 if store.add("n", 0) > 0 and store.get(f"child {os.getpid()}") == b"1" else 3)
    except BaseException as error:
        if os.getpid() != parent:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(4)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert not any(ended), (ended, seed)
    # Each child that shares the values repeats at most the two commands of its round.
    least, most = rounds, rounds + (0 if kind in ("hash", "prefix") else len(children))
    assert least <= store.add("n", 0) <= most and least <= len(store.get("text")) <= most, (rounds, seed)
    assert all(held), (held, seed)
    return len(children)


if __name__ == "__main__":
    kind, seconds, seed, what = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "values")
        print(kind, (calls if what else interrupts)(kind, name, seconds, seed), "interrupts, seed", seed)
        if what:
            print(kind, forks(kind, name + "-forks", int(20 * seconds), seed), "forks, seed", seed)
