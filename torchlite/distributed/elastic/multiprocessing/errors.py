"""Errors of processes that a launcher started, which it is told by a file."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._launch.error_file import report

__all__ = ["ChildFailedError", "record"]


class ChildFailedError(Exception):
    """A process that a launcher started has failed. `torchlite-run` says so itself, and raises none."""


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """Mark a program's main function: its error is written where `torchlite-run` reads it, and raised on."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if error_handler is not None:
            error_handler.initialize()
        try:
            return fn(*args, **kwargs)
        except Exception as error:  # reported and raised on
            if error_handler is None:
                report(error)
            else:
                error_handler.record_exception(error)
            raise

    return wrapper
