"""Kernels called by one thread, recorded: what a program computes, below autograd, promotion and composites.

While a `KernelRecorder` is entered the kernels of a device's tables are behind functions that tell it of calls. Nothing
is added to any other call: the tables are put back when it is left. Kernels that other threads call meanwhile go
straight through.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .backend import Table
from .record import REGISTRY
from .registry import table_of

# What is no kernel among a table's attributes, or reads nothing but shapes and dtypes.
_QUERIES = frozenset(("owns", "dtype_of", "offset_between", "as_array", "in_float32", "backward_in_float32"))
_lock = threading.Lock()
# The recorder of each thread that has one.
RECORDERS: dict[int, KernelRecorder] = {}


def recorder_here() -> KernelRecorder | None:
    """The recorder of this thread that is to see calls now."""
    found = RECORDERS.get(threading.get_ident())
    return None if found is None or found.depth else found


class Unrecordable(Exception):
    """What the thread did cannot be replayed."""


class KernelRecorder:
    """Entered for a thread and a device; `called` gets every outermost kernel call with its result, and `read` the
    arrays whose elements Python looks at. What they raise leaves the program alone: it is kept as `failure`, and
    nothing more is recorded.
    """

    failure: str | None = None

    def __init__(self, table: Table) -> None:
        self.table = table
        self.thread = threading.get_ident()
        self.depth = 0  # of kernels that run, and of what is not to be recorded

    def called(self, name: str, kernel: Any, args: tuple, kwargs: dict, result: Any) -> None:
        """A kernel ran."""

    def read(self, raw: Any) -> None:
        """The elements of an array were read."""

    def as_one(self, call: Callable, owner: Any, args: tuple, kwargs: dict) -> Any:
        """Run `call(owner, *args, **kwargs)`, which asked for it, as one step with effects of its own."""
        self.fail(f"{owner.__class__.__name__} steps")
        return call(owner, *args, **kwargs)

    def fail(self, why: str) -> None:
        """Say why what happens cannot be replayed; the first reason counts."""
        self.failure = self.failure or why

    def note(self, hook: Callable, *arguments: Any) -> None:
        """Call a method above, unless recording has failed."""
        if self.failure is None:
            try:
                hook(*arguments)
            except Unrecordable as error:
                self.fail(str(error))

    def __enter__(self) -> Any:
        if not _lock.acquire(blocking=False):
            raise Unrecordable("another thread records")
        self._before = [(table, dict(table.__dict__)) for table in _tables(self.table)]
        RECORDERS[self.thread] = self
        for table, before in self._before:
            table.__dict__.update(
                {
                    name: functools.partial(_seen, self, name, kernel)
                    for name, kernel in before.items()
                    if name not in _QUERIES and callable(kernel) and (name in REGISTRY or name[-1] == "_")
                }
            )
            table.__dict__.update(
                to_numpy=functools.partial(_read, self, before["to_numpy"]),
                copy_into=functools.partial(_seen, self, "copy_into", before["copy_into"]),
                _move=functools.partial(_moved, self, before["_move"]),
            )
        return self

    def __exit__(self, *error: Any) -> None:
        del RECORDERS[self.thread]
        for table, before in self._before:
            table.__dict__.update(before)
        _lock.release()


def _tables(table: Table) -> list[Table]:
    return [table] if table.large is table else [table, table.large]


def _seen(recorder: KernelRecorder, name: str, kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """A kernel's call, told to the recorder where it is the thread's and no part of another."""
    if recorder.depth or recorder.thread != threading.get_ident():
        return kernel(*args, **kwargs)
    recorder.depth = 1
    try:
        result = kernel(*args, **kwargs)
    finally:
        recorder.depth = 0
    result = _as_arrays(recorder.table, result)
    recorder.note(recorder.called, name, kernel, args, kwargs, result)
    return result


def _as_arrays(table: Table, result: Any) -> Any:
    """NumPy's scalars as arrays: some are one object for a whole program, and so could not be told apart."""
    if isinstance(result, np.generic):
        return table.as_array(result)
    if result.__class__ is tuple or result.__class__ is list:
        return result.__class__([_as_arrays(table, item) for item in result])
    return result


def _read(recorder: KernelRecorder, to_numpy: Any, raw: Any) -> Any:
    if not recorder.depth and recorder.thread == threading.get_ident():
        recorder.note(recorder.read, raw)
    return to_numpy(raw)


def _moved(recorder: KernelRecorder, move: Any, raw: Any, to: Any) -> Any:
    if not recorder.depth and recorder.thread == threading.get_ident():
        recorder.fail("a tensor moves between devices")
    return move(raw, to)


__all__ = ["RECORDERS", "KernelRecorder", "Unrecordable", "recorder_here", "table_of"]
