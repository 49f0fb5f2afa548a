"""Records the kernel calls of one thread: a program's computation below autograd, promotion and composites.

While a `KernelRecorder` is active, the kernels in a device's tables are wrapped in functions that report calls to it.
No other call has a cost: the tables are restored at exit. Kernel calls of other threads pass through unchanged.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .backend import KernelTable
from .backend_registry import table_of
from .op_record import REGISTRY

# Attributes of a table that are not kernels, or that read only shapes and dtypes.
_QUERIES = frozenset(("is_sole_owner", "dtype_of", "offset_between", "as_array", "in_float32", "backward_in_float32"))
_lock = threading.Lock()
# The recorder of each thread that has one.
RECORDERS: dict[int, KernelRecorder] = {}


def current_recorder() -> KernelRecorder | None:
    """The recorder of this thread that is to see calls now."""
    found = RECORDERS.get(threading.get_ident())
    return None if found is None or found.depth else found


class UnrecordableError(Exception):
    """The thread did something that cannot be replayed."""


class KernelRecorder:
    """Context manager for a thread and a device. `called` receives every outermost kernel call with its result; `read`
    receives the arrays whose elements Python reads. An error that they raise does not reach the program: it becomes
    `failure`, and recording stops.

    host: the processor's table if it is to be observed too, next to that of another device. `computed_on_host`,
    `read_on_host` and `moved_from_host` receive its calls.
    """

    failure: str | None = None

    def __init__(self, table: KernelTable, host: KernelTable | None = None) -> None:
        self.table, self.host = table, host
        self.thread = threading.get_ident()
        self.depth = 0  # of kernels that run, and of what is not to be recorded

    def called(self, name: str, kernel: Any, args: tuple, kwargs: dict, result: Any) -> None:
        """A kernel ran."""

    def read(self, raw: Any, found: Any, caller: Any) -> Any:
        """The elements of an array were read, by the code of a frame: what that gets in the place of `found`."""
        return found

    def computed_on_host(self, name: str, args: tuple, kwargs: dict, result: Any) -> None:
        """A kernel of the processor ran while another device is recorded."""

    def read_on_host(self, raw: Any) -> None:
        """The elements of the processor's array were read while another device is recorded."""

    def moved_from_host(self, raw: Any, result: Any) -> None:
        """An array of the processor was copied to the device that is recorded."""

    def as_one(self, call: Callable, owner: Any, args: tuple, kwargs: dict) -> Any:
        """Run `call(owner, *args, **kwargs)` as one step with side effects."""
        self.fail(f"{owner.__class__.__name__} steps")
        return call(owner, *args, **kwargs)

    def record_constant_array(self, raw: Any) -> None:
        """Record an array that is constant: it does not depend on the elements of other arrays."""

    def fail(self, why: str) -> None:
        """Record why the computation cannot be replayed; only the first reason counts."""
        self.failure = self.failure or why

    def note(self, hook: Callable, *arguments: Any) -> Any:
        """Return the result of a method above; None if recording has failed."""
        if self.failure is None:
            try:
                return hook(*arguments)
            except UnrecordableError as error:
                self.fail(str(error))
        return None

    def __enter__(self) -> Any:
        if not _lock.acquire(blocking=False):
            raise UnrecordableError("another thread records")
        tables = _table_and_large_table(self.table)
        hosts = [] if self.host is None else _table_and_large_table(self.host)
        self._before = [(table, dict(table.__dict__)) for table in (*tables, *hosts)]
        RECORDERS[self.thread] = self
        for table, before in self._before:
            run = _call_on_host if table in hosts else _call_recorded
            recorded: dict[str, Any] = {
                name: functools.partial(run, self, name, kernel)
                for name, kernel in before.items()
                if name not in _QUERIES and callable(kernel) and (name in REGISTRY or name[-1] == "_")
            }
            if table in hosts:
                recorded.update(
                    to_numpy=functools.partial(_read_on_host, self, table.to_numpy),
                    copy_into=functools.partial(run, self, "copy_into", table.copy_into),
                    move_to=functools.partial(_move_from_host, self, table.move_to),
                )
                table.__dict__.update(recorded)
                continue
            recorded.update(
                to_numpy=functools.partial(_read_recorded, self, table.to_numpy),
                copy_into=functools.partial(_call_recorded, self, "copy_into", table.copy_into),
                _move=functools.partial(_fail_on_device_copy, self, table._move),
            )
            if before.get("in_float32") is not None:
                recorded.update(
                    in_float32=functools.partial(_record_in_float32, self, table.in_float32),
                    backward_in_float32=functools.partial(_record_backward_in_float32, self, table.backward_in_float32),
                )
            table.__dict__.update(recorded)
        return self

    def __exit__(self, *error: Any) -> None:
        for table, before in self._before:
            table.__dict__.update(before)
            table.__dict__.pop("move_to", None)
        del RECORDERS[self.thread]
        _lock.release()


def _reset_after_fork() -> None:
    """In a forked child: a recorder of another thread of the parent ends, and its lock is free."""
    here = threading.get_ident()
    for thread, recorder in list(RECORDERS.items()):
        if thread != here:
            recorder.__exit__()
    if not RECORDERS:
        _lock._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def _table_and_large_table(table: KernelTable) -> list[KernelTable]:
    return [table] if table.large is table else [table, table.large]


def _call_recorded(recorder: KernelRecorder, name: str, kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a kernel, and report it to this thread's recorder if it is an outermost call."""
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


def call_recorded(name: str, kernel: Any, *args: Any) -> Any:
    """Call a function and record the call in this thread's recorder, as for kernels, so that a replay calls it."""
    recorder = current_recorder()
    return kernel(*args) if recorder is None else _call_recorded(recorder, name, kernel, *args)


def record_constant(raw: Any) -> Any:
    """Record as constant an array that torchlite computed on the host from shapes and Python numbers alone."""
    recorder = current_recorder() if RECORDERS else None
    if recorder is not None:
        recorder.note(recorder.record_constant_array, raw)
    return raw


def _call_on_host(recorder: KernelRecorder, name: str, kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a kernel of the processor, and report it to this thread's recorder of another device."""
    if recorder.depth or recorder.thread != threading.get_ident():
        return kernel(*args, **kwargs)
    recorder.depth = 1
    try:
        result = kernel(*args, **kwargs)
    finally:
        recorder.depth = 0
    result = _as_arrays(recorder.host, result)
    recorder.note(recorder.computed_on_host, name, args, kwargs, result)
    return result


def _read_on_host(recorder: KernelRecorder, to_numpy: Any, raw: Any) -> Any:
    if not recorder.depth and recorder.thread == threading.get_ident():
        recorder.note(recorder.read_on_host, raw)
    return to_numpy(raw)


def _move_from_host(recorder: KernelRecorder, move_to: Any, target: KernelTable, raw: Any) -> Any:
    if recorder.depth or recorder.thread != threading.get_ident():
        return move_to(target, raw)
    recorder.depth = 1
    try:
        result = move_to(target, raw)
    finally:
        recorder.depth = 0
    if target is recorder.table:
        recorder.note(recorder.moved_from_host, raw, result)
    return result


def _as_arrays(table: Any, result: Any) -> Any:
    """Convert NumPy scalars to arrays. Some scalars are interned, so their identity would be ambiguous."""
    if isinstance(result, np.generic):
        return table.as_array(result)
    if result.__class__ is tuple or result.__class__ is list:
        return result.__class__([_as_arrays(table, item) for item in result])
    return result


def _read_recorded(recorder: KernelRecorder, to_numpy: Any, raw: Any) -> Any:
    found = to_numpy(raw)
    if not recorder.depth and recorder.thread == threading.get_ident():
        told = recorder.note(recorder.read, raw, found, sys._getframe(1).f_code)
        return found if told is None else told
    return found


@functools.lru_cache(1024)
def _wrap_cached(wrap: Any, kernel: Any) -> Any:
    return wrap(kernel)


def _record_in_float32(recorder: KernelRecorder, wrap: Any, kernel: Any) -> Any:
    """A kernel that computes half precision in float32, recorded as one call."""
    if getattr(kernel, "func", None) is _call_recorded:
        return functools.partial(_call_recorded, recorder, kernel.args[1], _wrap_cached(wrap, kernel.args[2]))
    return wrap(kernel)


def _record_backward_in_float32(recorder: Any, run: Any, *arguments: Any) -> Any:
    """A node's backward in float32; the recorder receives its casts."""
    casts = run.__kwdefaults__ or dict(zip(("wide", "narrowed"), run.__defaults__, strict=True))

    def widen(value: Any, half: Any) -> Any:
        if not (value.__class__ is recorder.table.array and value.dtype == half):
            return casts["wide"](value, half)
        return _call_recorded(recorder, "_wide", casts["wide"], value, half)

    def narrow(value: Any, half: Any) -> Any:
        return _call_recorded(recorder, "_narrowed", casts["narrowed"], value, half)

    return run(*arguments, wide=widen, narrowed=narrow)


def record_as_single_step(method: Any) -> Any:
    """Decorator for a method of an external object: a recorder records the call as one step with side effects, and a
    replay calls it.
    """

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if RECORDERS and (recorder := current_recorder()) is not None:
            return recorder.as_one(run, self, args, kwargs)
        return method(self, *args, **kwargs)

    return run


def _fail_on_device_copy(recorder: KernelRecorder, move: Any, raw: Any, to: Any) -> Any:
    if not recorder.depth and recorder.thread == threading.get_ident():
        recorder.fail("a tensor moves between devices")
    return move(raw, to)


__all__ = [
    "RECORDERS",
    "KernelRecorder",
    "UnrecordableError",
    "record_as_single_step",
    "current_recorder",
    "call_recorded",
    "record_constant",
    "table_of",
]
