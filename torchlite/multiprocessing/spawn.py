"""Spawn of several processes with one function, with their errors re-raised."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import multiprocessing.connection
import multiprocessing.util
import os
import signal
import sys
import time
import traceback
import uuid
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torchlite._settings.temporary_folders import process_folder, use_for_multiprocessing

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"

log = logging.getLogger(__name__)


class ProcessException(Exception):
    """Base class of the errors of `ProcessContext.join`.

    Args:
        msg: The text.
        error_index: The number of the process.
        error_pid: The system's number of the process.

    Example:
        >>> torch.multiprocessing.ProcessException("failed", 0, 1234).error_index
        0
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """Error of a process that ended with an exception; the text has its traceback.

    Args:
        msg: The text.
        error_index: The number of the process.
        error_pid: The system's number of the process.

    Example:
        >>> torch.multiprocessing.ProcessRaisedException("failed", 0, 1234).error_pid
        1234
    """


class ProcessExitedException(ProcessException):
    """Error of a process that ended with an exit code, or by a signal.

    Args:
        msg: The text.
        error_index: The number of the process.
        error_pid: The system's number of the process.
        exit_code: The exit code; negative for a signal.
        signal_name: The signal's name. Default: ``None``.

    Example:
        >>> torch.multiprocessing.ProcessExitedException("failed", 0, 1234, -9, "SIGKILL").signal_name
        'SIGKILL'
    """

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _die_with_parent(parent: int) -> None:
    """On Linux: send SIGINT when the parent ends, also by SIGKILL; SIGTERM if SIGINT is ignored, as in a shell's
    background.
    """
    if sys.platform == "linux":
        import ctypes

        number = signal.SIGTERM if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else signal.SIGINT
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG
        if parent > 1 and os.getppid() != parent:  # it ended before this
            os.kill(os.getpid(), number)


def _run_process(fn: Callable[..., Any], number: int, args: tuple[Any, ...], error_file: str, parent: int) -> None:
    try:
        _die_with_parent(parent)
        fn(number, *args)
    except KeyboardInterrupt:
        pass  # the parent has it, too, or is gone
    except Exception:  # the user's function may raise anything: the parent raises it
        with (
            contextlib.suppress(FileNotFoundError),  # the folder went with the parent
            open(error_file, "w", encoding="utf-8", errors="backslashreplace") as file,
        ):
            file.write(traceback.format_exc())
        multiprocessing.util._exit_function()  # type: ignore[attr-defined]  # flushes its queues
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # without exit handlers that wait for other processes, which may wait for this one


class ProcessContext:
    """Processes that `start_processes` started.

    Args:
        processes: The processes.
        error_files: For each, the file that its error is written to.

    Example:
        >>> torch.multiprocessing.ProcessContext([], []).join()
        True
    """

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: number for number, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Returns the system's numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until a process ends. If it failed, the others are terminated.

        Args:
            timeout: The limit in seconds. Default: none.
            grace_period: Seconds that the others have to end by themselves. Default: 0.

        Returns:
            Whether all processes have ended without an error.

        Raises:
            ProcessRaisedException: A process ended with an exception.
            ProcessExitedException: A process ended with an exit code other than 0, or by a signal.
        """
        if not self.sentinels:
            return True
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout):
            number = self.sentinels.pop(sentinel)  # type: ignore[arg-type]
            self.processes[number].join()
            if self.processes[number].exitcode != 0:
                self._terminate_all(grace_period)
                self._raise_process_error(number)
        return not self.sentinels

    def _wait_for_all(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))

    def _terminate_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait_for_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning("Terminating process %s via signal SIGTERM", process.pid)
                process.terminate()
        self._wait_for_all(30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning("Process %s does not end on SIGTERM: ending it via SIGKILL", process.pid)
                process.kill()
            process.join()

    def _raise_process_error(self, number: int) -> None:
        process = self.processes[number]
        pid, code = process.pid, process.exitcode
        text = None
        with contextlib.suppress(OSError), open(self.error_files[number], encoding="utf-8") as file:
            text = file.read()
        for name in self.error_files:
            with contextlib.suppress(OSError):
                os.unlink(name)
        if text is not None:
            raise ProcessRaisedException(
                f"\n\n-- Process {number} terminated with the following error:\n{text}", number, pid
            )
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            raise ProcessExitedException(
                f"process {number} terminated with signal {name}", number, pid, code, signal_name=name
            )
        raise ProcessExitedException(f"process {number} terminated with exit code {code}", number, pid, code)


class SpawnContext(ProcessContext):
    """Older name of `ProcessContext`; warns.

    Args:
        processes: The processes.
        error_files: For each, the file that its error is written to.

    Example:
        >>> issubclass(torch.multiprocessing.SpawnContext, torch.multiprocessing.ProcessContext)
        True
    """

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs a function in several processes.

    The processes get SIGINT when this process ends.

    Args:
        fn: Called as ``fn(i, *args)`` in process ``i``.
        args: Its other arguments.
        nprocs: The number of processes. Default: 1.
        join: Whether to wait for all of them. Default: ``True``.
        daemon: Whether they are daemons, which may not start processes. Default: ``False``.
        start_method: ``"spawn"`` (default), ``"fork"`` or ``"forkserver"``. With the last one and the variable
            TORCH_MP_PARALLEL_START=1, the processes start at the same time.

    Returns:
        ``None`` with ``join``, else a `ProcessContext`.

    Raises:
        ProcessRaisedException: A process ended with an exception. Raised here with ``join``.
        ProcessExitedException: A process ended with an exit code other than 0, or by a signal.

    Example:
        >>> import math
        >>> context = torch.multiprocessing.start_processes(math.pow, (2.0,), nprocs=2, join=False, start_method="fork")
        >>> while not context.join():
        ...     pass
    """
    context: Any = multiprocessing.get_context(start_method)
    if start_method == "forkserver":
        use_for_multiprocessing()

    def start(number: int) -> tuple[Any, str]:
        # An error is passed in a file, which exists or not however the process ended: a pipe would need a reader.
        error_file = os.path.join(process_folder(), f"error-{uuid.uuid4().hex}.txt")
        parent = 0 if start_method == "forkserver" else os.getpid()
        process = context.Process(target=_run_process, args=(fn, number, args, error_file, parent), daemon=daemon)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads: ours start again in the child
            process.start()
        return process, error_file

    if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START, "0") == "1":
        with ThreadPoolExecutor(max_workers=max(nprocs, 1)) as pool:
            started = list(pool.map(start, range(nprocs)))
    else:
        started = [start(number) for number in range(nprocs)]
    processes = ProcessContext([process for process, _ in started], [name for _, name in started])
    if not join:
        return processes
    while not processes.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs a function in several new interpreters; `start_processes` with the start method "spawn".

    Args:
        fn: Called as ``fn(i, *args)`` in process ``i``. The new interpreters import it, so it is a function of a
            module.
        args: Its other arguments.
        nprocs: The number of processes. Default: 1.
        join: Whether to wait for all of them. Default: ``True``.
        daemon: Whether they are daemons, which may not start processes. Default: ``False``.
        start_method: Another value than ``"spawn"`` warns and has no effect.

    Returns:
        ``None`` with ``join``, else a `ProcessContext`.

    Raises:
        ProcessRaisedException: A process ended with an exception. Raised here with ``join``.
        ProcessExitedException: A process ended with an exit code other than 0, or by a signal.

    Example:
        >>> import math
        >>> torch.multiprocessing.spawn(math.pow, args=(2.0,), nprocs=1)
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method "
            "use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
