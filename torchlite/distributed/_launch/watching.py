"""The processes of `rank.py` on the launcher's machine: which of them were killed first, and their end by force.

`mpiexec` says of a killed process no more than a number, and waits for ever for one that was stopped.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from typing import Any

_PAUSE = 100  # milliseconds until processes that were added are looked at


class Watchers:
    """Descriptors of processes, which mean no other process that gets the same number later. Linux has them."""

    def __init__(self) -> None:
        self._ended: list[list[int]] = []  # descriptors in the order of the ends, those that were seen at once together
        self._ranks: dict[int, dict[str, Any]] = {}  # what the processes said, by descriptor
        self._parents: dict[int, int] = {}  # descriptors of what started them, by number
        self._lock, self._closed = threading.Lock(), False
        self._thread: threading.Thread | None = None

    def add(self, told: dict[str, Any]) -> None:
        """Watch the process that said this of itself and its parent."""
        with self._lock, contextlib.suppress(OSError, AttributeError):  # it has ended, or the system cannot
            self._ranks[os.pidfd_open(told["watcher"])] = told
            if told["parent"] not in self._parents:
                self._parents[told["parent"]] = os.pidfd_open(told["parent"])
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        while not self._closed:
            asked, over = select.poll(), {descriptor for together in self._ended for descriptor in together}
            with self._lock:
                for descriptor in self._ranks.keys() - over:
                    asked.register(descriptor, select.POLLIN)
            if ended := asked.poll(_PAUSE):
                self._ended.append([descriptor for descriptor, _ in ended])

    def lost(self, known: set[int]) -> list[dict[str, Any]]:
        """What those said that ended first, of the ranks whose end is not known: `mpiexec` kills the others then."""
        for together in self._ended:
            if unknown := [told for told in map(self._ranks.__getitem__, together) if told["rank"] not in known]:
                return unknown
        return []

    def kill(self) -> None:
        """Kill what has not ended, first what started it. A program ends with its watcher, also where it is stopped."""
        with self._lock:
            for descriptor in (*self._parents.values(), *self._ranks):
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    def close(self) -> None:
        """Watch no longer."""
        self._closed = True
        if self._thread is not None:
            self._thread.join()
        for descriptor in (*self._parents.values(), *self._ranks):
            os.close(descriptor)
        self._ranks, self._parents = {}, {}
