"""Waiting for messages without holding a core.

MPI's libraries wait by asking again and again, so that four ranks on two cores take them from those that compute. Here
a wait asks and gives its core away in between: at once while messages move (short), then with sleeps that grow with
the time already waited, up to a millisecond.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from mpi4py import MPI

_EAGER = 300  # times that a wait asks without a sleep: about 200 µs
_SHORT, _LONG = 50e-6, 1e-3  # seconds of sleep
_yield = getattr(os, "sched_yield", None) or (lambda: time.sleep(0))


class Request:
    """Messages on their way, and the memory that they read and write, which lives as long."""

    def __init__(self, requests: list[MPI.Request], kept: tuple[Any, ...], written: int = 0) -> None:
        self._requests = requests
        self._kept = kept
        self._patience = 5e-3 + written * 2e-9  # seconds for which sleeps stay short: the time that moving may take
        self._lock = threading.Lock()
        self._finished = False
        self._error: BaseException | None = None
        self.source = -1  # of a received message, the rank that sent it

    def done(self) -> bool:
        """Whether all have arrived; what MPI said of an error is raised."""
        if not self._finished:
            if not self._lock.acquire(blocking=False):
                return False  # another thread asks
            try:
                if not self._finished:
                    self._ask()
            finally:
                self._lock.release()
        if self._error is not None:
            raise self._error
        return self._finished

    def _ask(self) -> None:
        statuses = [MPI.Status() for _ in self._requests]
        try:
            self._finished = MPI.Request.Testall(self._requests, statuses)
        except MPI.Exception as error:
            failed = next((s.Get_error() for s in statuses if s.Get_error() != MPI.SUCCESS), error.Get_error_code())
            self._error, self._finished = RuntimeError(f"MPI: {MPI.Get_error_string(failed)}"), True
        if self._finished:
            if statuses:
                self.source = statuses[0].Get_source()
            self._requests, self._kept = [], ()

    def wait(self, limit: float | None = None) -> bool:
        """Wait, `limit` seconds at most: False where they had passed."""
        for _ in range(_EAGER):
            if self.done():
                return True
            _yield()
        start = time.perf_counter()
        while not self.done():
            waited = time.perf_counter() - start
            if limit is not None and waited > limit:
                return False
            time.sleep(_SHORT if waited < self._patience else min(_LONG, waited / 50))
        return True

    def cancel(self) -> None:
        """Give up a message that has not come: its memory is not written any more."""
        with self._lock:
            for request in self._requests:
                request.Cancel()
                request.Wait()
            self._requests, self._kept, self._finished = [], (), True
