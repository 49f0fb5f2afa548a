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
    """A process failed: its number (`error_index`) and its `error_pid`."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process ended with an exception; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process ended with an exit code or by a signal (`exit_code`, `signal_name`)."""

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
    """A group of spawned processes. `join()` waits for one of them to end."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: number for number, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers that the system gave the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends, `timeout` seconds at most; True if all have ended without an error. If one fails,
        the others are terminated (after `grace_period` seconds) and its error is raised here: ProcessRaisedException or
        ProcessExitedException.
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
    """ProcessContext by the name that it had before other start methods were possible. Warns."""

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
    """Run `fn(i, *args)` in `nprocs` processes, i from 0. With `join` wait for all of them, and raise
    ProcessRaisedException or ProcessExitedException when one fails; otherwise return their ProcessContext. They get
    SIGINT when this process ends. With the start method "forkserver" and TORCH_MP_PARALLEL_START=1 in the environment
    they are started side by side.
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
    """`start_processes` with new interpreters; another `start_method` is ignored with a warning."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method "
            "use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
