"""`record`: reports a launched process's error to the launcher by a file."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ..._launch.error_file import report

__all__ = ["ChildFailedError", "record"]


class ChildFailedError(Exception):
    """Error of a started process in PyTorch; `torchlite-run` reports the failure itself and does not raise it.

    Example:
        >>> from torchlite.distributed.elastic.multiprocessing.errors import ChildFailedError
        >>> issubclass(ChildFailedError, Exception)
        True
    """


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """Decorates a program's main function: its error is written to the error file of `torchlite-run`, and raised.

    Args:
        fn: The function.
        error_handler: Writes the error, by ``record_exception(error)``, after ``initialize()``. Default: the file.

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


__dir__ = make_module_dir(globals())
