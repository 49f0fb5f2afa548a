"""What programs ask of PyTorch's compiler where there is none: functions run as they are written."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["disable", "graph_break", "is_compiling", "reset"]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """Keep the compiler from a function (or class): it is returned as it is. Without `fn` a decorator.

    >>> @torchlite._dynamo.disable
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason, wrapping=wrapping)
    if not callable(fn):
        raise AssertionError(f"expected a function, but got {type(fn).__name__}")
    return fn


def graph_break(msg: str = "") -> None:
    """Where a compiled function would be cut in two: nothing is compiled, so nothing is cut."""


def is_compiling() -> bool:
    """Whether a compiler reads the function that calls this: never."""
    return False


def reset() -> None:
    """Forget what was compiled: nothing is."""
