"""Timers whose requests go through a named pipe, as lines of JSON."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import select
import signal as signals
import threading
import time
from collections.abc import Callable
from typing import Any

from .api import TimerClient, TimerRequest

__all__ = ["FileTimerClient", "FileTimerRequest", "FileTimerServer"]

_logger = logging.getLogger(__name__)
_LONGEST = select.PIPE_BUF  # bytes that a pipe takes at once or not at all


class FileTimerRequest(TimerRequest):
    """A request to send a signal to a process at a time, or no longer.

    Args:
        worker_pid: The process.
        scope_id: The name of the block.
        expiration_time: The time, as of `time.time`; negative to take the request back.
        signal: The signal. Default: 0, which sends none.

    Example:
        >>> from torchlite.distributed.elastic.timer import FileTimerRequest
        >>> FileTimerRequest(7, "step", 2.5, 9).to_json()
        '{"version": 1, "pid": 7, "scope_id": "step", "expiration_time": 2.5, "signal": 9}'
    """

    __slots__ = ("signal", "version")

    def __init__(self, worker_pid: int, scope_id: str, expiration_time: float, signal: int = 0) -> None:
        super().__init__(worker_pid, scope_id, expiration_time)
        self.version, self.signal = 1, signal

    @property
    def worker_pid(self) -> int:
        """The process."""
        return int(self.worker_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileTimerRequest) and super().__eq__(other) and self.signal == other.signal

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> str:
        """Returns the request as JSON."""
        return json.dumps({
            "version": self.version, "pid": self.worker_pid, "scope_id": self.scope_id,
            "expiration_time": self.expiration_time, "signal": self.signal,
        })  # fmt: skip


class FileTimerClient(TimerClient):
    """Client that writes requests for its process into a named pipe.

    Args:
        file_path: The pipe, which a `FileTimerServer` makes.
        signal: What the server sends when the time is over. Default: SIGKILL.

    Example:
        >>> from torchlite.distributed.elastic.timer import FileTimerClient
        >>> FileTimerClient("/tmp/absent/pipe").acquire("step", 5.0)
        Traceback (most recent call last):
        BrokenPipeError: Could not send the FileTimerRequest because FIFO is not available: /tmp/absent/pipe
    """

    def __init__(self, file_path: str, signal: int = signals.SIGKILL) -> None:
        self._file_path, self.signal = file_path, int(signal)

    def _send(self, request: FileTimerRequest) -> None:
        line = (request.to_json() + "\n").encode()
        if len(line) > _LONGEST:
            raise RuntimeError(f"FileTimerRequest larger than {_LONGEST} bytes is not supported: {line!r}")
        try:
            pipe = os.open(self._file_path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise BrokenPipeError(
                f"Could not send the FileTimerRequest because FIFO is not available: {self._file_path}"
            ) from error
        try:
            os.set_blocking(pipe, True)
            os.write(pipe, line)
        finally:
            os.close(pipe)

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Begins a timer for this process, or moves the one of this name.

        Args:
            scope_id: The name of the block.
            expiration_time: The time, as of `time.time`.

        Raises:
            BrokenPipeError: No server reads the pipe.
        """
        self._send(FileTimerRequest(os.getpid(), scope_id, expiration_time, self.signal))

    def release(self, scope_id: str) -> None:
        """Ends a timer.

        Args:
            scope_id: The name of the block.

        Raises:
            BrokenPipeError: No server reads the pipe.
        """
        self._send(FileTimerRequest(os.getpid(), scope_id, -1, 0))


class FileTimerServer:
    """Server of processes on this machine: it makes a named pipe, and reads it in a thread.

    Args:
        file_path: The pipe.
        run_id: The identity of the run, for `log_event`.
        max_interval: The greatest number of seconds between two looks. Default: 10.
        daemon: Whether the thread ends with the process. Default: ``True``.
        log_event: Called with a name and a request, or ``None``, as things happen. Default: nothing is called.

    Example:
        >>> import os, tempfile
        >>> from torchlite.distributed.elastic.timer import FileTimerClient, FileTimerServer
        >>> path = os.path.join(tempfile.mkdtemp(), "pipe")
        >>> server = FileTimerServer(path, "run", max_interval=0.1)
        >>> server.start()
        >>> client = FileTimerClient(path)
        >>> client.acquire("step", 1e12), client.release("step")
        (None, None)
        >>> server.stop()
        >>> os.path.exists(path)
        False
    """

    def __init__(
        self, file_path: str, run_id: str, max_interval: float = 10, daemon: bool = True,
        log_event: Callable[[str, FileTimerRequest | None], None] | None = None,
    ) -> None:  # fmt: skip
        self._file_path, self._run_id = file_path, run_id
        self._max_interval, self._daemon = max_interval, daemon
        self._log_event = (lambda name, request: None) if log_event is None else log_event
        self._timers: dict[tuple[int, str], FileTimerRequest] = {}
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        self._rest = b""
        self._progress = int(time.time())
        self._remove()
        os.mkfifo(file_path)
        # Open for writing too: so the pipe has no end while no process writes.
        self._pipe = os.open(file_path, os.O_RDWR | os.O_NONBLOCK)

    def start(self) -> None:
        """Starts the thread."""
        self._ends.clear()
        self._thread = threading.Thread(target=self._watch, daemon=self._daemon, name=type(self).__name__)
        self._thread.start()
        self._log_event("watchdog started", None)

    def stop(self) -> None:
        """Stops the thread, waits for its end, and removes the pipe."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join(self._max_interval + 1)
            self._thread = None
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        self._remove()
        self._log_event("watchdog stopped", None)

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._file_path)

    def run_once(self) -> None:
        """Reads the requests that wait, and ends the processes whose time is over, without a thread."""
        self._run_watchdog(0)
        self.stop()

    def _watch(self) -> None:
        while not self._ends.is_set():
            try:
                self._run_watchdog(min(self._max_interval, 1))
            except Exception:  # the server goes on: a request may be damaged
                _logger.exception("Error running watchdog")

    def _run_watchdog(self, seconds: float) -> None:
        self.register_timers(self._read_requests(seconds))
        self._progress = int(time.time())
        ended = set()
        for pid, timers in self.get_expired_timers(time.time()).items():
            for timer in timers:
                self._log_event("timer expired", timer)
            number = max(timer.signal for timer in timers)
            _logger.info("run %s: signal %s to %s, expired timers %s", self._run_id, number, pid,
                         [timer.scope_id for timer in timers])  # fmt: skip
            if number <= 0 or self._reap_worker(pid, number):
                ended.add(pid)
        self.clear_timers(ended)

    def _read_requests(self, seconds: float) -> list[FileTimerRequest]:
        """Read the whole lines that the pipe has, for which it waits some seconds."""
        if not select.select([self._pipe], [], [], seconds)[0]:
            return []
        try:
            data = self._rest + os.read(self._pipe, 16 * _LONGEST)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return []
            raise
        *lines, self._rest = data.split(b"\n")
        return [request for line in lines if (request := _parse(line)) is not None]

    def register_timers(self, timer_requests: list[FileTimerRequest]) -> None:
        """Takes requests; a later one of the same process and name replaces the first.

        Args:
            timer_requests: The requests.
        """
        for request in timer_requests:
            key = (request.worker_pid, request.scope_id)
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def clear_timers(self, worker_pids: set[int]) -> None:
        """Drops the timers of processes.

        Args:
            worker_pids: The processes.
        """
        self._timers = {key: timer for key, timer in self._timers.items() if key[0] not in worker_pids}

    def get_expired_timers(self, deadline: float) -> dict[int, list[FileTimerRequest]]:
        """Returns the timers that end at a time or before, by process.

        Args:
            deadline: The time, as of `time.time`.
        """
        found: dict[int, list[FileTimerRequest]] = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                found.setdefault(request.worker_pid, []).append(request)
        return found

    def _reap_worker(self, worker_pid: int, signal: int) -> bool:
        try:
            os.kill(worker_pid, signal)
        except ProcessLookupError:
            _logger.info("process %s has ended already", worker_pid)
        except OSError:
            _logger.exception("Error terminating process %s", worker_pid)
            return False
        self._log_event("kill worker process", None)
        return True

    def get_last_progress_time(self) -> int:
        """Returns when the server looked last, in seconds as of `time.time`; the present time if it has no timers."""
        return self._progress if self._timers else int(time.time())


def _parse(line: bytes) -> FileTimerRequest | None:
    """Return the request of a line; None if it is none."""
    try:
        values: dict[str, Any] = json.loads(line)
        pid, scope, when, signal = (values[name] for name in ("pid", "scope_id", "expiration_time", "signal"))
        if values["version"] == 1 and int(pid) > 0:
            return FileTimerRequest(int(pid), str(scope), float(when), int(signal))
    except (ValueError, KeyError, TypeError):
        pass
    _logger.warning("not a request of a timer: %r", line)
    return None
