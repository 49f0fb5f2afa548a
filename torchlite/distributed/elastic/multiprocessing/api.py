"""Processes that run one function or command, with their output, return values and failures."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torchlite._settings import fork_locks
from torchlite._settings.module_dir import make_module_dir
from torchlite._settings.temporary_folders import process_folder, use_for_multiprocessing
from torchlite.multiprocessing.spawn import _die_with_parent

from ..._launch.rank_wrapper import FOREIGN_VARIABLES
from ._logs import DefaultLogsSpecs, LogsDest, LogsSpecs, Std, Tail, to_map
from .errors import ProcessFailure, record

__all__ = [
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "RunProcsResult", "SignalException",
    "Std", "SubprocessContext", "to_map",
]  # fmt: skip

_starting = fork_locks.reinit_after_fork(
    threading.RLock()
)  # while this process's variables are those of a process that starts


class SignalException(Exception):
    """Error of a launch that a signal ended.

    Args:
        msg: The text.
        sigval: The signal.

    Example:
        >>> import signal
        >>> from torchlite.distributed.elastic.multiprocessing import SignalException
        >>> SignalException("ended", signal.SIGTERM).sigval.name
        'SIGTERM'
    """

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


@dataclass
class RunProcsResult:
    """Results or errors of processes, and the files of their output, by local rank.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing import RunProcsResult
        >>> RunProcsResult({0: 3}).is_failed()
        False
    """

    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Returns whether a process failed."""
        return bool(self.failures)


def check_ranks(given: dict[int, Any], count: int, what: str) -> None:
    """RuntimeError unless the keys are 0 to `count - 1`."""
    if set(given) != set(range(count)):
        raise RuntimeError(f"{what}, local rank mapping mismatch, expected: {set(range(count))}, actual: {set(given)}")


def _has_a_word(words: list[str], line: str) -> bool:
    return any(word in line for word in words)


class PContext(ABC):
    """Processes of one machine, which `start_processes` starts.

    Args:
        name: A name in front of the lines of output, as ``[name0]:``.
        entrypoint: The function, or the command.
        args: The arguments of each process, by local rank.
        envs: The variables of each process.
        logs_specs: Where output goes.
        log_line_prefixes: Other prefixes of lines, by local rank.
        duplicate_stdout_filters: Lines of output that contain one of these go to a file of all processes too.
        duplicate_stderr_filters: The same for errors.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes
        >>> context = start_processes("t", "true", {0: ()}, {0: {}}, DefaultLogsSpecs())
        >>> context.wait().return_values
        {0: None}
    """

    def __init__(
        self,
        name: str,
        entrypoint: Callable[..., Any] | str,
        args: dict[int, tuple[Any, ...]],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        files = logs_specs.reify(envs)
        self.name, self.entrypoint, self.args, self.envs, self.nprocs = name, entrypoint, args, envs, len(args)
        check_ranks(files.stdouts, self.nprocs, "stdouts")
        check_ranks(files.stderrs, self.nprocs, "stderrs")
        self.stdouts, self.stderrs, self.error_files = files.stdouts, files.stderrs, files.error_files
        prefixes = log_line_prefixes or {rank: f"[{name}{rank}]:" for rank in range(self.nprocs)}
        self._tails, self._filtered = list[Tail](), list[Any]()
        for shown, target, words, path in (
            (files.tee_stdouts, sys.stdout, duplicate_stdout_filters, files.filtered_stdout),
            (files.tee_stderrs, sys.stderr, duplicate_stderr_filters, files.filtered_stderr),
        ):
            self._tails.append(Tail(shown, target, prefixes))
            if words:
                self._filtered.append(open(path, "w", errors="replace"))  # noqa: SIM115
                wanted = functools.partial(_has_a_word, words)
                self._tails.append(Tail(shown, self._filtered[-1], prefixes, wanted))

    def start(self) -> None:
        """Starts the processes."""
        for rank in range(self.nprocs):
            self._start(rank)

    @abstractmethod
    def _start(self, rank: int) -> None:
        """Start a process."""

    @abstractmethod
    def pids(self) -> dict[int, int]:
        """Returns the system's numbers of the started processes, by local rank."""

    @abstractmethod
    def exit_codes(self) -> dict[int, int | None]:
        """Returns the exit codes of the started processes; ``None`` for those that run."""

    @abstractmethod
    def return_values(self) -> dict[int, Any]:
        """Returns what functions returned, after all have ended."""

    def failures(self) -> dict[int, ProcessFailure]:
        """Returns how processes failed so far, by local rank."""
        pids = self.pids()
        return {
            rank: ProcessFailure(rank, pids[rank], code, self.error_files[rank])
            for rank, code in self.exit_codes().items()
            if code
        }

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """Waits until all processes have ended, or one has failed. Then it ends the others.

        Args:
            timeout: The limit in seconds. 0 looks once; a negative number (default) is no limit.
            period: Seconds between two looks. Default: 1.

        Returns:
            The result; ``None`` if processes run on after the limit.
        """
        limit = time.monotonic() + timeout
        while True:
            failures, codes = self.failures(), self.exit_codes()
            if failures:
                self.close()
                return RunProcsResult({}, failures, self.stdouts, self.stderrs)
            if all(code == 0 for code in codes.values()):
                self.close()
                return RunProcsResult(self.return_values(), {}, self.stdouts, self.stderrs)
            if timeout >= 0 and time.monotonic() >= limit:
                return None
            time.sleep(min(period, max(limit - time.monotonic(), 0)) if timeout >= 0 else period)

    def send(self, number: int) -> None:
        """Sends a signal to the processes that run.

        Args:
            number: The signal.
        """
        for rank, code in self.exit_codes().items():
            if code is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pids()[rank], number)

    def close(
        self, death_sig: signal.Signals | None = None, timeout: float = 30, beat: Callable[[], None] | None = None
    ) -> None:
        """Ends the processes that run: by a signal, and after some time by SIGKILL.

        Args:
            death_sig: The signal. Default: SIGTERM.
            timeout: Seconds until SIGKILL. Default: 30.
            beat: Called while this waits.
        """
        self.send(death_sig or signal.SIGTERM)
        limit = time.monotonic() + timeout
        while None in self.exit_codes().values():
            if time.monotonic() > limit:
                self.send(signal.SIGKILL)
            if beat is not None:
                beat()
            time.sleep(0.05)
        for tail in self._tails:
            tail.stop()
        for file in self._filtered:
            file.close()


@contextlib.contextmanager
def _variables(more: dict[str, str]) -> Iterator[None]:
    """Give this process the variables of one that it starts: a new interpreter reads some before it runs a function."""
    with _starting:
        before = dict(os.environ)
        try:
            for name in before:
                if name.startswith(FOREIGN_VARIABLES):
                    del os.environ[name]
            os.environ.update(more)
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _run_function(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    env: dict[str, str],
    streams: tuple[str, str],
    result: str,
    parent: int,
) -> None:
    """Run the function of a process of `MultiprocessContext`."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # a forked process has its launcher's handlers
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _die_with_parent(parent)
    os.environ.update(env)
    for descriptor, path in enumerate(streams, 1):
        if path:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(file, descriptor)
            os.close(file)
            # A forked process may have a notebook's stream here.
            setattr(sys, ("stdout", "stderr")[descriptor - 1], open(descriptor, "w", buffering=1, closefd=False))  # noqa: SIM115

    def run() -> None:
        data = pickle.dumps(fn(*args))
        with open(result, "wb") as file:
            file.write(data)

    try:
        record(run)()
    except Exception:  # the function may raise anything: the launcher reports it
        traceback.print_exc()
        multiprocessing.util._exit_function()  # type: ignore[attr-defined]  # flushes its queues
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # without exit handlers that wait for other processes, which may wait for this one


class MultiprocessContext(PContext):
    """Processes that run a function.

    Args:
        name: A name in front of the lines of output.
        entrypoint: The function. With "spawn" it is one that a new interpreter can import.
        args: The arguments of each process, by local rank.
        envs: The variables of each process.
        start_method: "spawn", "fork" or "forkserver".
        logs_specs: Where output goes.
        log_line_prefixes: Other prefixes of lines, by local rank.
        duplicate_stdout_filters: Lines of output that contain one of these go to a file of all processes too.
        duplicate_stderr_filters: The same for errors.

    Example:
        >>> import math
        >>> from torchlite.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes
        >>> context = start_processes("t", math.sqrt, {0: (4.0,)}, {0: {}}, DefaultLogsSpecs(), start_method="fork")
        >>> context.wait().return_values
        {0: 2.0}
    """

    def __init__(
        self,
        name: str,
        entrypoint: Callable[..., Any],
        args: dict[int, tuple[Any, ...]],
        envs: dict[int, dict[str, str]],
        start_method: str,
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        filters = duplicate_stdout_filters, duplicate_stderr_filters
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes, *filters)
        self.start_method, self._processes = start_method, dict[int, Any]()
        self._folder = tempfile.mkdtemp(prefix="results_", dir=process_folder())
        if start_method == "forkserver":
            use_for_multiprocessing()

    def _result_file(self, rank: int) -> str:
        return os.path.join(self._folder, str(rank))

    def _start(self, rank: int) -> None:
        context: Any = multiprocessing.get_context(self.start_method)
        parent = 0 if self.start_method == "forkserver" else os.getpid()
        streams = self.stdouts[rank], self.stderrs[rank]
        words = (self.entrypoint, self.args[rank], self.envs[rank], streams, self._result_file(rank), parent)
        process = context.Process(target=_run_function, args=words, daemon=False)
        with _variables(self.envs[rank]), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads: ours start again in the child
            process.start()
        self._processes[rank] = process

    def pids(self) -> dict[int, int]:
        """Returns the system's numbers of the started processes, by local rank."""
        return {rank: int(process.pid) for rank, process in self._processes.items()}

    def exit_codes(self) -> dict[int, int | None]:
        """Returns the exit codes of the started processes; ``None`` for those that run."""
        return {rank: process.exitcode for rank, process in self._processes.items()}

    def return_values(self) -> dict[int, Any]:
        """Returns what the functions returned; ``None`` for those that called ``sys.exit(0)``."""
        found = dict[int, Any]()
        for rank in self._processes:
            found[rank] = None
            with contextlib.suppress(FileNotFoundError), open(self._result_file(rank), "rb") as file:
                found[rank] = pickle.load(file)
        return found


class SubprocessContext(PContext):
    """Processes that run a command with arguments. The other parameters are those of `PContext`.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes
        >>> context = start_processes("t", "sh", {0: ("-c", "exit 3")}, {0: {}}, DefaultLogsSpecs())
        >>> context.wait().failures[0].exitcode
        3
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._processes = dict[int, subprocess.Popen[bytes]]()

    def _start(self, rank: int) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_VARIABLES)}
        with contextlib.ExitStack() as opened:
            paths = self.stdouts[rank], self.stderrs[rank]
            streams = [opened.enter_context(open(path, "ab")) if path else None for path in paths]
            parent = os.getpid()
            self._processes[rank] = subprocess.Popen(
                [str(self.entrypoint), *map(str, self.args[rank])],
                env={**own, **self.envs[rank]},
                stdout=streams[0],
                stderr=streams[1],
                preexec_fn=lambda: _die_with_parent(parent),  # noqa: PLW1509 -- it calls one function of libc
            )

    def pids(self) -> dict[int, int]:
        """Returns the system's numbers of the started processes, by local rank."""
        return {rank: process.pid for rank, process in self._processes.items()}

    def exit_codes(self) -> dict[int, int | None]:
        """Returns the exit codes of the started processes; ``None`` for those that run."""
        return {rank: process.poll() for rank, process in self._processes.items()}

    def return_values(self) -> dict[int, Any]:
        """Returns ``None`` for each: commands return nothing."""
        return dict.fromkeys(self._processes)


__dir__ = make_module_dir(globals())
