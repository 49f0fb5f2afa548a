"""Errors of launched processes: `record` reports them to the launcher by a file, and `ChildFailedError` has them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ..._launch.error_file import ERROR_FILE_VARIABLE, report

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_NOT_AVAILABLE = "<N/A>"
_NO_TRACEBACK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
_WIDEST = 60  # characters of the lines between the parts of an error's text


@dataclass
class ProcessFailure:
    """How a process failed. The message and the time come from its error file, if it wrote one.

    Args:
        local_rank: The process's number on its machine.
        pid: The system's number of the process.
        exitcode: The exit code; negative for a signal.
        error_file: The file that `record` writes.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing.errors import ProcessFailure
        >>> ProcessFailure(0, 1234, -9, "").message
        'Signal 9 (SIGKILL) received by PID 1234'
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.error_file_data, self.message = {"message": "<NONE>"}, ""
        self.timestamp = int(time.time())
        if os.path.isfile(self.error_file):
            with open(self.error_file) as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            about = self.error_file_data if isinstance(self.message, str) else self.message["extraInfo"]
            self.timestamp = int(about.get("timestamp", 0))
        else:
            self.error_file = _NOT_AVAILABLE
        if not self.message:
            self.message = _NO_TRACEBACK
            if self.exitcode < 0:
                self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"

    def signal_name(self) -> str:
        """Returns the name of the signal that ended the process, or ``"<N/A>"``."""
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return _NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        """Returns the time as ``YYYY-MM-DD_HH:MM:SS``."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Error of a launch in which processes failed. The text names each, and the first that failed last.

    Args:
        name: What was launched.
        failures: The `ProcessFailure` of each failed rank.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
        >>> error = ChildFailedError("train.py", {1: ProcessFailure(1, 1234, 3, "")})
        >>> rank, failure = error.get_first_failure()
        >>> rank, failure.exitcode
        (1, 3)
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise AssertionError("a launch that failed has failures")
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def __reduce__(self) -> Any:
        return type(self), (self.name, self.failures)

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Returns the rank that failed first, and its failure."""
        rank = min(self.failures, key=lambda rank: self.failures[rank].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """Returns the text of the error.

        Args:
            boarder_delim: The character of the first and last line.
            section_delim: The character of the lines between.
        """
        title, first = f"{self.name} FAILED", self.get_first_failure()[0]
        texts = {rank: _describe(number, rank, how) for number, (rank, how) in enumerate(self.failures.items())}
        lines = [title, *(line for text in texts.values() for line in text.split("\n"))]
        width = min(max(map(len, lines)), _WIDEST)
        others = [text for rank, text in texts.items() if rank != first] or ["  <NO_OTHER_FAILURES>"]
        border, section = boarder_delim * width, section_delim * width
        parts = [border, title, section, "Failures:", *others, section]
        return "\n".join(["", *parts, "Root Cause (first observed failure):", texts[first], border])


def _describe(number: int, rank: int, failure: ProcessFailure) -> str:
    """Return the lines of a failure in the text of `ChildFailedError`."""
    message = failure.message
    if isinstance(message, dict):
        text = message.get("extraInfo", {}).get("py_callstack", message.get("message", _NOT_AVAILABLE))
        message = text.replace("\n", "\n  ")
    name = failure.signal_name()
    rows = {
        "time": failure.timestamp_isoformat(),
        "host": socket.getfqdn(),
        "rank": f"{rank} (local_rank: {failure.local_rank})",
        "exitcode": f"{failure.exitcode} (pid: {failure.pid}){'' if name == _NOT_AVAILABLE else f' ({name})'}",
        "error_file": failure.error_file,
        "traceback": message,
    }
    return "\n".join([f"[{number}]:", *(f"  {key:<10}: {value}" for key, value in rows.items())])


class ErrorHandler:
    """Writes an exception to the file that the launcher names by the variable TORCHELASTIC_ERROR_FILE.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing.errors import get_error_handler
        >>> type(get_error_handler()).__name__
        'ErrorHandler'
    """

    def initialize(self) -> None:
        """Called before the recorded function; a subclass may prepare here."""

    def record_exception(self, e: BaseException) -> None:
        """Writes the file.

        Args:
            e: The exception.
        """
        report(e)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Copies a process's error file to this process's own, for a launcher that a launcher started.

        Args:
            rootcause_error_file: The file of the failed process.
            error_code: Its exit code, which is written with it. Default: 0, for none.
        """
        with open(rootcause_error_file) as file:
            data = json.load(file)
        if error_code and isinstance(data.get("message"), dict):
            data["message"]["errorCode"] = error_code
        own = os.environ.get(ERROR_FILE_VARIABLE)
        if own:
            with open(own, "w") as file:
                json.dump(data, file)


def get_error_handler() -> ErrorHandler:
    """Returns a handler that writes the launcher's error file.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing.errors import get_error_handler
        >>> get_error_handler().initialize()
    """
    return ErrorHandler()


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """Decorates a program's main function: its error is written to the launcher's error file, and raised.

    The file of a `ChildFailedError` is that of the first process that failed.

    Args:
        fn: The function.
        error_handler: Writes the error, by ``record_exception(error)``, after ``initialize()``. Default: an
            `ErrorHandler`.

    Returns:
        The wrapped function.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing.errors import record
        >>> @record
        ... def main():
        ...     return 0
        >>> main()
        0
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with recorded(error_handler):
            return fn(*args, **kwargs)

    return wrapper


@contextlib.contextmanager
def recorded(error_handler: Any = None) -> Iterator[None]:
    """Do what `record` does, for a block. An exit with code 0 ends the block."""
    handler = get_error_handler() if error_handler is None else error_handler
    handler.initialize()
    try:
        yield
    except SystemExit as end:
        if end.code != 0:
            raise
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        if failure.error_file != _NOT_AVAILABLE:
            handler.dump_error_file(failure.error_file, failure.exitcode)
        raise
    except Exception as error:  # reported and raised on
        handler.record_exception(error)
        raise


__dir__ = make_module_dir(globals(), hidden="recorded")
