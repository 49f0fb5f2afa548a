"""Traces of a thread's calls to modules, wrapped functions and Tensor methods that are not ops.

These call sites check `TRACES`, which is empty while no thread traces, and then the `trace` of their own thread. No
class, tensor or library is patched, and other threads are not affected. While traces are active, names in the globals
of traced code refer to replacements: `Trace.rebind`.
"""

from __future__ import annotations

import functools
import os
import threading
from types import FunctionType, ModuleType
from typing import Any

from .._settings import fork_locks

# The active traces of all threads. Hot paths test whether there is one (append and remove are atomic).
TRACES: list[Trace] = []
_ABSENT = object()


class _Thread(threading.local):
    trace: Trace | None = None  # the innermost that is open


THREAD = _Thread()


class Trace:
    """Receives the calls of a thread while it is active.

    replaced: maps ids of functions to replacements, for code whose names are rebound.
    """

    calls_modules = False  # whether calls of modules come to `call_module`, and their attributes to `read`
    _before: Trace | None = None  # the one around it in this thread, while entered

    def __init__(self) -> None:
        self.replaced: dict[int, Any] = {}
        self._rebound: list[_Rebound] = []
        self._known: set[tuple[int, str]] = set()
        self._thread = threading.get_ident()

    def __enter__(self) -> Trace:
        self._before, THREAD.trace = THREAD.trace, self
        TRACES.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        outer = THREAD.trace
        while outer is not None and outer is not self:
            outer = outer._before
        while outer is self and THREAD.trace is not self:  # an interrupt prevented inner traces from ending
            THREAD.trace.__exit__()  # type: ignore[union-attr]
        with _lock:
            for one in reversed(self._rebound):
                one.restore(self)
        self._rebound = []
        if self in TRACES:
            TRACES.remove(self)
        if outer is self:
            THREAD.trace = self._before  # the last step: a trace that an interrupt keeps from ending is found by it

    def call_module(self, module: Any, call: Any, args: tuple, kwargs: dict) -> Any:
        """Return the result of a module call. call: the call without the trace."""
        return call(module, *args, **kwargs)

    def read(self, name: str, value: Any) -> Any:
        """Return the value to read for a module's attribute of this name and value."""
        return value

    def handle(self, function: Any, args: tuple, kwargs: dict) -> Any:
        """Return the result of a call to a torchlite function; NotImplemented to run it unchanged."""
        return NotImplemented

    def method(self, name: str, args: tuple, kwargs: dict) -> Any:
        """Like `handle`, for a method or property of Tensor. A trace that does not handle it calls the enclosing
        one.
        """
        return NotImplemented if self._before is None else self._before.method(name, args, kwargs)

    def tensor(self, data: Any, dtype: Any, device: Any) -> Any:
        """The tensor of a number that the trace recorded; None for other numbers."""
        return None

    def rebind(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Rebind a name in the globals of traced code to a function, or to a module with functions, that are `replaced`
        in tracing threads and unchanged in others. The last trace that uses it restores it.
        """
        key = id(names), name
        if key in self._known:
            return
        with _lock:
            known = _rebound.get(key)
            found = _Rebound(names, name, value) if known is None else known
            self._rebound.append(found)  # first: the end of the trace undoes what an interrupt leaves of the rest
            found.owners.append(self)
            if known is None:
                _rebound[key] = found
                names[name] = found.value
        self._known.add(key)


class _Rebound:
    """A name in the globals of code that some traces run."""

    def __init__(self, names: dict[str, Any], name: str, value: Any) -> None:
        self.names, self.name = names, name
        self.owners: list[Trace] = []
        self.before = names.get(name, _ABSENT)
        self.value = module_view(value) if isinstance(value, ModuleType) else _make_stand_in(value)

    def restore(self, owner: Trace) -> None:
        """Restore the name when the last trace has ended; later assignments by the program stay."""
        self.owners = [one for one in self.owners if one is not owner]
        if self.owners:
            return
        key = id(self.names), self.name
        if _rebound.get(key) is self:
            del _rebound[key]
        if self.names.get(self.name) is self.value:
            if self.before is _ABSENT:
                del self.names[self.name]
            else:
                self.names[self.name] = self.before


_lock = fork_locks.acquire_before_fork(threading.RLock())
_rebound: dict[tuple[int, str], _Rebound] = {}  # by the globals and the name, under the lock


def _make_stand_in(function: Any) -> Any:
    """A function that calls its replacement in this thread."""

    @functools.wraps(function)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        trace = THREAD.trace
        found = function if trace is None else trace.replaced.get(id(function), function)
        return found(*args, **kwargs)

    stand_in._original = function  # type: ignore[attr-defined]
    return stand_in


class ModuleView(ModuleType):
    """A module whose functions call their replacements in this thread."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        ModuleType.__setattr__(self, "_original", module)

    def __getattribute__(self, name: str) -> Any:
        module = ModuleType.__getattribute__(self, "_original")
        if name == "_original":
            return module
        value, trace = getattr(module, name), THREAD.trace
        return value if trace is None else trace.replaced.get(id(value), value)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._original, name)

    def __dir__(self) -> list[str]:
        return dir(self._original)

    def __repr__(self) -> str:
        return repr(self._original)


@functools.cache
def module_view(module: ModuleType) -> ModuleView:
    """The view of a module."""
    return ModuleView(module)


def unwrap_traced(value: Any) -> Any:
    """A value of a program's globals as the program wrote it."""
    if isinstance(value, ModuleView):
        return value._original
    if isinstance(value, FunctionType) and value.__code__ is _CODE:
        return vars(value)["_original"]
    return value


_CODE = _make_stand_in(len).__code__


def trace_function(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The result of this thread's trace for a call to a torchlite function; NotImplemented if it does not handle it."""
    trace = THREAD.trace
    return NotImplemented if trace is None else trace.handle(function, args, kwargs)


def trace_method(name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Like `trace_function`, for a method."""
    trace = THREAD.trace
    return NotImplemented if trace is None else trace.method(name, args, kwargs)


def _drop_other_threads_traces() -> None:
    """In a forked child, drop the traces of the parent's other threads."""
    here = threading.get_ident()
    for trace in [trace for trace in TRACES if trace._thread != here]:
        TRACES.remove(trace)
        for one in reversed(trace._rebound):
            one.restore(trace)


os.register_at_fork(after_in_child=_drop_other_threads_traces)
