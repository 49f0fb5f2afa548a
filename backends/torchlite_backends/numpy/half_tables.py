"""Functions of one array of half precision, read from tables of all 65,536 results.

NumPy converts float16 number by number, and by operations on bits in some twenty passes. To look a result up takes two
passes: one widens the index, one looks up. A table has the results of the kernel that it serves for. It is made when
the function was asked for as many elements as two tables have.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlite._settings import fork_locks

from .cache_blocking import run_blocks

_LEAST, _BLOCK = 4096, 1 << 14  # elements from which tables pay, and of a block that stays in a core's cache
_COUNT = 1 << 16
_TABLES, _KEYS = 32, 1024  # tables of 128 KiB that are kept, and functions that are counted
_HALF = np.dtype("f2")
_NUMBERS = frozenset((int, float, bool, str, type(None)))


class _Tables:
    """The tables by function: the latest used ones, and how many elements others were asked for."""

    def __init__(self) -> None:
        self.found: dict[tuple, np.ndarray] = {}
        self.asked: dict[tuple, int] = {}
        self.lock = fork_locks.acquire_before_fork(threading.RLock())

    def find(self, key: tuple, size: int, make: Callable[[], np.ndarray]) -> np.ndarray | None:
        """Return the table of a function, which `make` returns; None if the function is not worth one yet."""
        with self.lock:
            table = self.found.pop(key, None)
            if table is None:
                asked = self.asked.pop(key, 0) + size
                if asked < 2 * _COUNT:
                    self.asked[key] = asked
                    if len(self.asked) > _KEYS:
                        del self.asked[next(iter(self.asked))]
                    return None
        if table is None:
            table = make()
        with self.lock:
            self.found[key] = table
            if len(self.found) > _TABLES:
                del self.found[next(iter(self.found))]
        return table


_tables = _Tables()


def is_large_half(x: Any) -> bool:
    """Whether this is a contiguous array of half precision for which tables pay."""
    return (
        x.__class__ is np.ndarray
        and x.itemsize == 2
        and x.size >= _LEAST
        and (x.dtype == _HALF or x.dtype.name == "bfloat16")
        and x.flags.c_contiguous
    )


def look_up(
    name: str, kernel: Callable, args: tuple, out: np.ndarray | None = None, named: dict[str, Any] | None = None
) -> np.ndarray | None:
    """Return `kernel(*args, **named)`, an elementwise function of one array of half precision among numbers; None if
    the kernel is to serve. `out` may be that array.
    """
    named = named or {}
    key: list[Any] = [name, *named]
    place = -1
    for i, x in enumerate((*args, *named.values())):
        kind = x.__class__
        if kind in _NUMBERS:
            key += kind, x if x else repr(x)  # -0.0 == 0.0
        elif place < 0 and i < len(args) and is_large_half(x):
            place = i
            key.append(x.dtype)
        elif kind is np.ndarray and not x.ndim:
            key += x.dtype, x.tobytes()
        else:
            return None
    if place < 0:
        return None
    array = args[place]

    def make() -> np.ndarray:
        every = np.arange(_COUNT, dtype=np.uint16).view(array.dtype)
        return kernel(*args[:place], every, *args[place + 1 :], **named)

    table = _tables.find(tuple(key), array.size, make)
    if table is None:
        return None
    made = np.empty(array.shape, table.dtype) if out is None else out
    source, result = array.reshape(-1).view(np.uint16), made.reshape(-1)

    def read(start: int, stop: int) -> None:
        np.take(table, source[start:stop].astype(np.intp), out=result[start:stop], mode="wrap")

    run_blocks(read, array.size, 1, _BLOCK)
    return made


def make_tabulated(name: str, plain: Callable) -> Callable:
    """Return a kernel that reads results from tables where that takes less time; `plain` serves all others."""

    def kernel(*args, **named):
        if args and getattr(args[0], "itemsize", 0) == 2:
            out = look_up(name, plain, args, None, named)
            if out is not None:
                return out
        return plain(*args, **named)

    kernel.__dict__.update(getattr(plain, "__dict__", {}))
    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def make_tabulated_in_place(name: str, function: Callable, plain: Callable) -> Callable:
    """Return the in-place kernel of a function; `plain` serves where no table does."""

    def kernel(target, *others):
        if target.itemsize != 2 or look_up(name, function, (target, *others), target) is None:
            plain(target, *others)

    kernel.__dict__.update(getattr(plain, "__dict__", {}))
    return kernel
