"""`CheckpointException`: errors by rank."""

from __future__ import annotations

import traceback
from typing import Any

WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]

__all__ = ["CheckpointException"]


def _wrap_exception(exc: BaseException) -> WRAPPED_EXCEPTION:
    """Return an error with its traceback, in a form that can be sent to other ranks."""
    return exc, traceback.extract_tb(exc.__traceback__)


def _is_wrapped_exception(obj: Any) -> bool:
    return (
        isinstance(obj, tuple)
        and len(obj) == 2
        and isinstance(obj[0], BaseException)
        and isinstance(obj[1], traceback.StackSummary)
    )


class CheckpointException(BaseException):
    """Error of a save or load that failed on some ranks; all ranks raise it.

    Args:
        msg: The step that failed.
        failures: The errors by rank, with their tracebacks.

    Example:
        >>> import traceback
        >>> from torchlite.distributed.checkpoint import CheckpointException
        >>> error = CheckpointException("read", {1: (KeyError("weight"), traceback.StackSummary.from_list([]))})
        >>> list(error.failures)
        [1]
    """

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """The errors and their tracebacks, by rank."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks:{self._failures.keys()}\n"]
        for rank, (error, trace) in self._failures.items():
            lines.append(f"Traceback (most recent call last): (RANK {rank})\n")
            lines += traceback.format_list(trace)
            lines += traceback.format_exception_only(type(error), value=error)
        return "".join(lines)
