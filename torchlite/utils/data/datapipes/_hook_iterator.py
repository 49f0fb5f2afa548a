"""Iterators of IterDataPipes: a pipe has one valid iterator, and errors name the pipe in which they happened."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any


class _SnapshotState(Enum):
    """Where a pipe stands: at its beginning, restored from a file, or in an iteration."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


def _arguments_text(pipe: Any) -> str:
    """The arguments of a pipe's constructor and the values of the attributes of these names."""
    names = sorted(p for p in inspect.signature(type(pipe)).parameters if p in pipe.__dict__)
    return ", ".join(f"{name}={_short_name(pipe.__dict__[name])}" for name in names)


def _short_name(value: Any) -> str:
    return getattr(value, "__name__", None) or (type(value).__qualname__ if _is_pipe(value) else repr(value))


def _is_pipe(value: Any) -> bool:
    return hasattr(type(value), "register_datapipe_as_function")


class PipeIterator:
    """The iterator of a pipe: invalid once the pipe has made another one."""

    def __init__(self, pipe: Any, function: Callable[[Any], Iterator[Any]]) -> None:
        self._pipe, self._function = pipe, function
        self._iterator: Any = None
        if not inspect.isgeneratorfunction(function):  # a generator begins with its first item
            self._begin()

    def _begin(self) -> None:
        """Reset the pipe, and make its former iterator invalid."""
        pipe = self._pipe
        pipe._valid_iterator_id += 1
        yielded, pipe._number_of_samples_yielded = pipe._number_of_samples_yielded, 0
        self._number = pipe._valid_iterator_id
        restored = pipe._snapshot_state is _SnapshotState.Restored
        pipe._snapshot_state = _SnapshotState.Iterating
        forward = pipe.__dict__.pop("_fast_forward_iterator", None)
        if restored and forward is not None:
            self._iterator, pipe._number_of_samples_yielded = forward, yielded
            forward._number = self._number
            return
        if not restored:
            pipe.reset()
        made: Any = self._function(pipe)
        self._iterator = made if hasattr(made, "__next__") else iter(made)

    def __iter__(self) -> PipeIterator:
        return self

    def __next__(self) -> Any:
        pipe = self._pipe
        if self._iterator is None:
            self._begin()
        check_valid(pipe, self._number)
        try:
            item = next(self._iterator)
        except StopIteration:
            pipe._snapshot_state = _SnapshotState.NotStarted
            raise
        except Exception as error:
            said = "thrown by __iter__ of"
            if error.args and isinstance(error.args[0], str) and said not in error.args[0]:
                place = f"{said} {type(pipe).__name__}({_arguments_text(pipe)})"
                error.args = (f"{error.args[0]}\nThis exception is {place}", *error.args[1:])
            raise
        pipe._number_of_samples_yielded += 1
        return item

    def __getattr__(self, name: str) -> Any:
        if self._iterator is None:
            self._begin()
        return getattr(self._iterator, name)


def check_valid(pipe: Any, number: int) -> None:
    """Raise RuntimeError if the pipe has made another iterator since the one with this number."""
    if pipe._valid_iterator_id != number:
        raise RuntimeError(
            "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: "
            f"{type(pipe).__name__}({_arguments_text(pipe)})\nThis may be caused multiple references to the same "
            "IterDataPipe. We recommend using `.fork()` if that is necessary."
        )


def hook_iterator(function: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Any]:
    """Return an `__iter__` that resets the pipe and makes its former iterator invalid."""

    @functools.wraps(function)
    def wrapped(self: Any) -> Any:
        if self._is_child_datapipe:  # its main pipe counts the iterators of all children
            return function(self)
        return PipeIterator(self, function)

    wrapped._is_hooked = True  # type: ignore[attr-defined]
    return wrapped
