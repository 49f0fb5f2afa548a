"""Timers whose requests go through a queue of `multiprocessing`."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import queue
import signal
import time
from typing import Any

from .api import RequestQueue, TimerClient, TimerRequest, TimerServer

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue"]


class LocalTimerClient(TimerClient):
    """Client that puts requests for its process into a queue.

    Args:
        mp_queue: A queue of `multiprocessing`, which the server reads.

    Example:
        >>> import multiprocessing
        >>> from torchlite.distributed.elastic.timer import LocalTimerClient
        >>> requests = multiprocessing.Queue()
        >>> LocalTimerClient(requests).acquire("step", 5.0)
        >>> requests.get().scope_id
        'step'
    """

    def __init__(self, mp_queue: Any) -> None:
        self._queue = mp_queue

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Begins a timer for this process, or moves the one of this name.

        Args:
            scope_id: The name of the block.
            expiration_time: The time, as of `time.time`.
        """
        self._queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id: str) -> None:
        """Ends a timer.

        Args:
            scope_id: The name of the block.
        """
        self._queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """The requests in a queue of `multiprocessing`.

    Args:
        mp_queue: The queue.

    Example:
        >>> import multiprocessing
        >>> from torchlite.distributed.elastic.timer.local_timer import MultiprocessingRequestQueue
        >>> MultiprocessingRequestQueue(multiprocessing.Queue()).get(1, timeout=0.01)
        []
    """

    def __init__(self, mp_queue: mp.Queue) -> None:  # type: ignore[type-arg]
        self._queue = mp_queue

    def size(self) -> int:
        """Returns how many requests wait."""
        return self._queue.qsize()

    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Returns up to ``size`` requests, which it awaits.

        Args:
            size: The greatest number.
            timeout: Seconds to wait.
        """
        requests: list[TimerRequest] = []
        end = time.monotonic() + timeout
        with contextlib.suppress(queue.Empty):
            while len(requests) < size and (left := end - time.monotonic()) > 0:
                requests.append(self._queue.get(timeout=left))
        return requests


class LocalTimerServer(TimerServer):
    """Server of processes on this machine, which end by SIGKILL.

    Args:
        mp_queue: A queue of `multiprocessing`, into which the clients put requests.
        max_interval: The greatest number of seconds between two looks. Default: 60.
        daemon: Whether the thread ends with the process. Default: ``True``.

    Example:
        >>> import multiprocessing
        >>> from torchlite.distributed.elastic.timer import LocalTimerServer
        >>> server = LocalTimerServer(multiprocessing.Queue(), max_interval=0.1)
        >>> server.start(), server.stop()
        (None, None)
    """

    def __init__(self, mp_queue: mp.Queue, max_interval: float = 60, daemon: bool = True) -> None:  # type: ignore[type-arg]
        super().__init__(MultiprocessingRequestQueue(mp_queue), max_interval, daemon)
        self._timers: dict[tuple[int, str], TimerRequest] = {}

    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Takes requests; a later one of the same process and name replaces the first.

        Args:
            timer_requests: The requests.
        """
        for request in timer_requests:
            key = (request.worker_id, request.scope_id)
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def clear_timers(self, worker_ids: set[int]) -> None:
        """Drops the timers of processes.

        Args:
            worker_ids: The processes.
        """
        self._timers = {key: timer for key, timer in self._timers.items() if key[0] not in worker_ids}

    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """Returns the timers that end at a time or before, by process.

        Args:
            deadline: The time, as of `time.time`.
        """
        found: dict[Any, list[TimerRequest]] = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                found.setdefault(request.worker_id, []).append(request)
        return found

    def _reap_worker(self, worker_id: int) -> bool:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(worker_id, signal.SIGKILL)
        return True
