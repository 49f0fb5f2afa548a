"""Starting several processes with one function, and hearing of their errors."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any


class ProcessException(Exception):
    """A process failed: its number (`error_index`) and its `error_pid`."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process ended with an exception, whose traceback is in the message."""


class ProcessExitedException(ProcessException):
    """A process ended with an exit code or by a signal (`exit_code`, `signal_name`)."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _run(fn, number, args, errors):
    try:
        fn(number, *args)
    except KeyboardInterrupt:
        sys.exit(1)  # the parent has it, too
    except Exception:
        errors.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that were started together. `join()` waits for one of them to end."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self.errors = processes, errors
        self.sentinels = {process.sentinel: number for number, process in enumerate(processes)}

    def pids(self) -> list[int | None]:
        """The numbers that the system gave the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends, `timeout` seconds at most; True when all have ended well. When one fails the
        others are ended (after `grace_period` seconds) and its error is raised here.
        """
        if not self.sentinels:
            return True
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout):
            number = self.sentinels.pop(sentinel)  # type: ignore[arg-type]
            self.processes[number].join()
            if self.processes[number].exitcode != 0:
                self._end(grace_period)
                self._raise(number)
        return not self.sentinels

    def _end(self, grace_period):
        deadline = time.monotonic() + (grace_period or 0)
        while any(process.is_alive() for process in self.processes) and time.monotonic() < deadline:
            time.sleep(0.01)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()

    def _raise(self, number):
        process, errors = self.processes[number], self.errors[number]
        pid, code = process.pid, process.exitcode
        text = None
        with contextlib.suppress(EOFError, OSError):  # it ended without a word
            text = errors.recv() if errors.poll() else None
        if text is not None:
            raise ProcessRaisedException(
                f"\n\n-- Process {number} terminated with the following error:\n{text}", number, pid
            )
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(
                f"process {number} terminated with signal {name}", number, pid, code, signal_name=name
            )
        raise ProcessExitedException(f"process {number} terminated with exit code {code}", number, pid, code)


SpawnContext = ProcessContext  # its name before other start methods were possible


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes, i from 0. With `join` wait for all of them, and raise
    ProcessRaisedException or ProcessExitedException when one fails; otherwise return their ProcessContext.
    """
    context = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for number in range(nprocs):
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, number, args, theirs), daemon=daemon)  # type: ignore[attr-defined]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads: ours start again in the child
            process.start()
        theirs.close()
        processes.append(process)
        errors.append(mine)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
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
