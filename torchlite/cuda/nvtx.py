"""Named ranges for NVIDIA's profilers, through the package `nvtx` (`pip install nvtx`). Without it the functions only
count the depth of nested ranges.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from typing import Any

from torchlite._settings.module_dir import make_module_dir

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


@functools.cache
def _load_nvtx() -> Any:
    try:
        import nvtx
    except ImportError:
        return None
    return nvtx


class _Depth(threading.local):
    value = 0


_depth = _Depth()
_numbers = itertools.count(1)
_started: dict[int, Any] = {}


def range_push(msg: str) -> int:
    """Begins a range of this thread, and returns the number of ranges around it.

    Without the package ``nvtx`` the ranges are counted only.

    Args:
        msg: The range's name.

    Example:
        >>> torch.cuda.nvtx.range_push("step"), torch.cuda.nvtx.range_push("forward")
        (0, 1)
        >>> torch.cuda.nvtx.range_pop(), torch.cuda.nvtx.range_pop()
        (1, 0)
    """
    if _load_nvtx() is not None:
        _load_nvtx().push_range(msg)
    _depth.value += 1
    return _depth.value - 1


def range_pop() -> int:
    """Ends this thread's innermost range, and returns the number of ranges around it; -1 if there was none.

    Example:
        >>> torch.cuda.nvtx.range_pop()
        -1
    """
    if _depth.value == 0:
        return -1
    if _load_nvtx() is not None:
        _load_nvtx().pop_range()
    _depth.value -= 1
    return _depth.value


def range_start(msg: str) -> int:
    """Begins a range that any thread may end, and returns its number.

    Args:
        msg: The range's name.

    Example:
        >>> number = torch.cuda.nvtx.range_start("copy")
        >>> torch.cuda.nvtx.range_end(number)
    """
    number = next(_numbers)
    _started[number] = _load_nvtx().start_range(msg) if _load_nvtx() is not None else None
    return number


def range_end(range_id: int) -> None:
    """Ends a range that `range_start` began.

    Args:
        range_id: The range's number.

    Raises:
        KeyError: There is no such range.

    Example:
        >>> torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start("copy"))
    """
    handle = _started.pop(range_id)
    if handle is not None:
        _load_nvtx().end_range(handle)


def mark(msg: str) -> None:
    """Marks a moment in the profile.

    Args:
        msg: Its name.

    Example:
        >>> torch.cuda.nvtx.mark("loaded")
    """
    if _load_nvtx() is not None:
        _load_nvtx().mark(msg)


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any):
    """Names a block, or as a decorator a function, in the profile.

    Args:
        msg: The name, a format string.
        args: Its positional values.
        kwargs: Its keyword values.

    Example:
        >>> with torch.cuda.nvtx.range("step {}", 3):
        ...     y = torch.ones(2) + 1
    """
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__dir__ = make_module_dir(globals())
