"""Timers: requests, the interfaces of clients, queues and servers, and the block `expires`."""

from __future__ import annotations

import abc
import contextlib
import inspect
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["RequestQueue", "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]

_logger = logging.getLogger(__name__)


class TimerRequest:
    """A request to end a process at a time, or no longer.

    Args:
        worker_id: The process.
        scope_id: The name of the block.
        expiration_time: The time, as of `time.time`; negative to take the request back.

    Example:
        >>> from torchlite.distributed.elastic.timer import TimerRequest
        >>> TimerRequest(1, "step", 2.0) == TimerRequest(1, "step", 2.0)
        True
    """

    __slots__ = ("expiration_time", "scope_id", "worker_id")

    def __init__(self, worker_id: Any, scope_id: str, expiration_time: float) -> None:
        self.worker_id, self.scope_id, self.expiration_time = worker_id, scope_id, expiration_time

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimerRequest):
            return False
        mine = (self.worker_id, self.scope_id, self.expiration_time)
        return mine == (other.worker_id, other.scope_id, other.expiration_time)

    __hash__ = None  # type: ignore[assignment]


class TimerClient(abc.ABC):
    """Interface of a process's side: `acquire` begins a timer, and `release` ends it.

    Example:
        >>> from torchlite.distributed.elastic.timer import TimerClient
        >>> sorted(TimerClient.__abstractmethods__)
        ['acquire', 'release']
    """

    @abc.abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Begins a timer for the process, or moves the one of this name.

        Args:
            scope_id: The name of the block.
            expiration_time: The time, as of `time.time`.
        """

    @abc.abstractmethod
    def release(self, scope_id: str) -> None:
        """Ends a timer.

        Args:
            scope_id: The name of the block.
        """


class RequestQueue(abc.ABC):
    """Interface of the requests that a server reads.

    Example:
        >>> from torchlite.distributed.elastic.timer.api import RequestQueue
        >>> sorted(RequestQueue.__abstractmethods__)
        ['get', 'size']
    """

    @abc.abstractmethod
    def size(self) -> int:
        """Returns how many requests wait."""

    @abc.abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Returns up to ``size`` requests, which it awaits.

        Args:
            size: The greatest number.
            timeout: Seconds to wait.
        """


class TimerServer(abc.ABC):
    """Base of servers, which read requests in a thread and end processes whose time is over.

    Args:
        request_queue: The requests.
        max_interval: The greatest number of seconds between two looks.
        daemon: Whether the thread ends with the process. Default: ``True``.

    Example:
        >>> from torchlite.distributed.elastic.timer import TimerServer
        >>> sorted(TimerServer.__abstractmethods__)
        ['_reap_worker', 'clear_timers', 'get_expired_timers', 'register_timers']
    """

    def __init__(self, request_queue: RequestQueue, max_interval: float, daemon: bool = True) -> None:
        self._request_queue, self._max_interval, self._daemon = request_queue, max_interval, daemon
        self._thread: threading.Thread | None = None
        self._ends = threading.Event()

    @abc.abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Takes requests.

        Args:
            timer_requests: The requests.
        """

    @abc.abstractmethod
    def clear_timers(self, worker_ids: set[Any]) -> None:
        """Drops the timers of processes.

        Args:
            worker_ids: The processes.
        """

    @abc.abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """Returns the timers that end at a time or before, by process.

        Args:
            deadline: The time, as of `time.time`.
        """

    @abc.abstractmethod
    def _reap_worker(self, worker_id: Any) -> bool:
        """End a process; return whether it has ended."""

    def start(self) -> None:
        """Starts the thread."""
        self._ends.clear()
        self._thread = threading.Thread(target=self._watch, daemon=self._daemon, name=type(self).__name__)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread, and waits for its end."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join(self._max_interval + 1)
            self._thread = None

    def _watch(self) -> None:
        while not self._ends.is_set():
            try:
                self._run_watchdog()
            except Exception:  # the server goes on: a request may be damaged
                _logger.exception("Error running watchdog")

    def _run_watchdog(self) -> None:
        """Read the requests that wait, for up to the interval, and end the processes whose time is over."""
        self.register_timers(self._request_queue.get(max(1, self._request_queue.size()), self._max_interval))
        ended = set()
        for worker, timers in self.get_expired_timers(time.time()).items():
            _logger.info("reaping worker %s: expired timers %s", worker, [timer.scope_id for timer in timers])
            if self._ended(worker):
                ended.add(worker)
        self.clear_timers(ended)

    def _ended(self, worker: Any) -> bool:
        try:
            return self._reap_worker(worker)
        except Exception:  # of a subclass: the others are ended all the same
            _logger.exception("Uncaught exception reaping worker %s", worker)
            return True


class _Client:
    of_process: TimerClient | None = None


def configure(timer_client: TimerClient) -> None:
    """Sets the client of this process, which `expires` uses.

    Args:
        timer_client: The client.

    Example:
        >>> import multiprocessing
        >>> from torchlite.distributed.elastic.timer import LocalTimerClient, configure
        >>> configure(LocalTimerClient(multiprocessing.Queue()))
    """
    _Client.of_process = timer_client


@contextlib.contextmanager
def expires(after: float, scope: str | None = None, client: TimerClient | None = None) -> Iterator[None]:
    """Context manager: the process is ended if the block takes longer than some seconds.

    Args:
        after: The seconds.
        scope: The name of the block. Default: the file and line of the caller.
        client: The client. Default: that of `configure`.

    Raises:
        RuntimeError: There is no client.

    Example:
        >>> import multiprocessing
        >>> from torchlite.distributed.elastic.timer import LocalTimerClient, expires
        >>> with expires(60, client=LocalTimerClient(multiprocessing.Queue())):
        ...     print("in time")
        in time
    """
    used = _Client.of_process if client is None else client
    if used is None:
        raise RuntimeError("Configure timer client before using countdown timers.")
    if scope is None:
        caller = inspect.stack()[2]  # behind contextlib
        scope = f"{caller.filename}#{caller.lineno}"
    used.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        used.release(scope)
