"""Processes that run one function or command on this machine: `start_processes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from . import api as api
from . import errors as errors
from .api import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    MultiprocessContext,
    PContext,
    RunProcsResult,
    SignalException,
    Std,
    SubprocessContext,
    check_ranks,
    to_map,
)
from .errors import ChildFailedError as ChildFailedError
from .errors import ProcessFailure

__all__ = [
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "ProcessFailure", "RunProcsResult",
    "SignalException", "Std", "SubprocessContext", "start_processes", "to_map",
]  # fmt: skip


def start_processes(
    name: str,
    entrypoint: Callable[..., Any] | str,
    args: dict[int, tuple[Any, ...]],
    envs: dict[int, dict[str, str]],
    logs_specs: LogsSpecs,
    log_line_prefixes: dict[int, str] | None = None,
    start_method: str = "spawn",
    numa_options: Any = None,
    duplicate_stdout_filters: list[str] | None = None,
    duplicate_stderr_filters: list[str] | None = None,
) -> PContext:
    """Starts a function or a command in processes, numbered by local rank.

    Args:
        name: A name in front of the lines of output that `logs_specs` shows, as ``[name0]:``.
        entrypoint: The function, or the command.
        args: The arguments of each process. A command gets them as text.
        envs: The variables of each process, in addition to this process's.
        logs_specs: Where output and errors go.
        log_line_prefixes: Other prefixes of lines, by local rank.
        start_method: "spawn" (default), "fork" or "forkserver", for functions.
        numa_options: Must be ``None``.
        duplicate_stdout_filters: Lines of shown output that contain one of these go to a file of all processes too.
        duplicate_stderr_filters: The same for errors.

    Returns:
        The processes; ``wait()`` returns what functions returned, or how processes failed.

    Raises:
        RuntimeError: The keys of ``args`` or ``envs`` are not 0 to n - 1.

    Example:
        >>> import math
        >>> from torchlite.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes
        >>> given, nothing = {0: (4.0,), 1: (9.0,)}, {0: {}, 1: {}}
        >>> context = start_processes("t", math.sqrt, given, nothing, DefaultLogsSpecs(), start_method="fork")
        >>> context.wait().return_values
        {0: 2.0, 1: 3.0}
    """
    if numa_options is not None:
        raise NotImplementedError("start_processes: numa_options is not supported")
    check_ranks(args, len(args), "args")
    check_ranks(envs, len(args), "envs")
    options: dict[str, Any] = {
        "log_line_prefixes": log_line_prefixes,
        "duplicate_stdout_filters": duplicate_stdout_filters,
        "duplicate_stderr_filters": duplicate_stderr_filters,
    }
    context: PContext
    if isinstance(entrypoint, str):
        context = SubprocessContext(name, entrypoint, args, envs, logs_specs, **options)
    else:
        context = MultiprocessContext(name, entrypoint, args, envs, start_method, logs_specs, **options)
    try:
        context.start()
    except BaseException:
        context.close()
        raise
    return context


__dir__ = make_module_dir(globals())
