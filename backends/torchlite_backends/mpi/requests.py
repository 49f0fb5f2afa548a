"""Requests of MPI messages, waited for without occupying a core.

MPI libraries wait by busy polling, so four ranks on two cores take time from those that compute. A wait here polls and
yields its core between polls, for about the transfer time of a message; then it sleeps for intervals that grow with the
time already waited, up to a millisecond.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

EAGER_POLLS = 300  # polls before the clock is read: about 100 µs
_SECONDS_PER_BYTE = 2e-9  # seconds that a byte may take to move
_SPIN_POLLS = 20  # the first of them keep the core, too
_MIN_SLEEP, _MAX_SLEEP = 50e-6, 1e-3  # seconds of sleep
_MANY = 64  # unfinished requests, above which a new one polls all
active_queues: set[Any] = set()  # groups in which collectives wait for the ranks to agree (`collective_fingerprint`)
_open: set[Request] = set()  # unfinished: the program may drop an array that MPI still reads
_yield = getattr(os, "sched_yield", None) or (lambda: time.sleep(0))


class Request:
    """A message or collective in flight; it keeps its arrays alive."""

    gave_up = False  # whether a wait of this process has ended by its limit

    def __init__(self, request: MPI.Request, kept: tuple[Any, ...], written: int = 0) -> None:
        self._test: Callable[[], bool] = request.Test
        self._request = request
        self._kept = kept
        self._written = written
        self._lock = threading.Lock()
        self._finished = False
        self._error: BaseException | None = None
        if len(_open) > _MANY:
            _poll_abandoned()
        _open.add(self)

    def done(self) -> bool:
        """True if complete; raises MPI's errors."""
        return self.wait(0.0, 1)

    def wait(self, limit: float | None = None, eager: int = EAGER_POLLS) -> bool:
        """Wait up to `limit` seconds; return False after a timeout. Polls `eager` times before reading the clock."""
        start = None
        moving = self._written * _SECONDS_PER_BYTE
        while not self._finished:
            if self._lock.acquire(blocking=False):  # otherwise another thread polls
                try:
                    self._poll_completion(eager)
                finally:
                    self._lock.release()
            if self._finished:
                break
            if active_queues:  # the others' data may wait for this rank
                for line in list(active_queues):
                    line.advance()
            now = time.perf_counter()
            start = now if start is None else start
            waited = now - start
            if limit is not None and waited >= limit:
                if limit > 0.0:
                    Request.gave_up = True
                return False
            if waited >= moving:
                eager = 1
                time.sleep(_MIN_SLEEP if waited < moving + 5e-3 else min(_MAX_SLEEP, waited / 50))
        if self._error is not None:
            raise self._error
        return True

    def _poll_completion(self, times: int) -> None:
        try:
            if self._finished or poll_until_complete(self._test, times):
                self._mark_finished()
        except MPI.Exception as error:
            self._error = RuntimeError(f"MPI: {error.Get_error_string()}")
            self._mark_finished()
        except RuntimeError as error:  # ranks disagree
            self._error = error
            self._mark_finished()

    def _mark_finished(self) -> None:
        self._kept, self._finished, self._test = (), True, bool  # its test would keep it alive
        _open.discard(self)

    def cancel(self) -> None:
        """Cancel a message that has not arrived: its memory is not written any more."""
        with self._lock:
            if not self._finished:
                self._request.Cancel()
                self._request.Wait()
                self._mark_finished()


def poll_until_complete(test: Callable[[], bool], times: int = EAGER_POLLS, greedy: int = _SPIN_POLLS) -> bool:
    """True if one of so many polls finds everything complete; the first `greedy` ones do not yield the core."""
    for i in range(times):
        if test():
            return True
        if i > greedy:
            _yield()
    return False


def choose_spin_polls(ranks: int) -> int:
    """Return the number of polls that keep the core: more if each rank has a core, even with all on this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return _SPIN_POLLS if ranks > cores else 4 * _SPIN_POLLS


def _poll_abandoned() -> None:
    """Poll requests that nobody waits for."""
    for request in list(_open):
        if request._lock.acquire(blocking=False):
            try:
                request._poll_completion(1)
            finally:
                request._lock.release()


class ReceiveRequest(Request):
    """Message to this rank; `source` is the sending rank.

    A header with the elements and size precedes each message. RuntimeError if it is not the expected one; the message
    is lost then.
    """

    def __init__(
        self,
        words: MPI.Request,
        begin: Callable[[int], MPI.Request],
        data: MPI.Request | None,
        source: int | None,
        kept: tuple[Any, ...],
        written: int,
        check: Callable[[int], None],
    ) -> None:
        self._status = MPI.Status()
        self._begin, self._data, self._source, self._check = begin, data, source, check
        self._headed = self._moved = False
        super().__init__(words, kept, written)
        self._test = self._test_arrival

    @property
    def source(self) -> int:
        """Return the sender of the received message."""
        return self._status.Get_source() if self._source is None else self._source

    def _test_arrival(self) -> bool:
        if not self._headed:
            if not self._request.Test(self._status):
                return False
            self._headed = True
            if self._data is None:
                self._data = self._begin(self.source)
        if not self._moved:
            assert self._data is not None
            try:
                if not self._data.Test():
                    return False
            except MPI.Exception as error:
                if error.Get_error_class() != MPI.ERR_TRUNCATE:
                    raise
            self._moved = True
            self._check(self.source)
        return True

    def cancel(self) -> None:
        """Cancel a message that has not arrived; if its header has arrived, wait for it."""
        with self._lock:
            if self._finished:
                return
            if not self._headed:
                self._request.Cancel()
                self._request.Wait(self._status)
                self._headed = not self._status.Is_cancelled()
                if not self._headed:
                    if self._data is not None:
                        self._data.Cancel()
                        self._data.Wait()
                    self._mark_finished()
                    return
        self.wait()
