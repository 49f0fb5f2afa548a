"""Capture of a function of arrays as a CUDA graph, which replaces later calls."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from torchlite._dispatch.backend import owner_of
from torchlite._dispatch.kernel_recorder import UnrecordableError
from torchlite._settings import fork_locks
from torchlite_backends.device_runtime.core.array import Array, empty_like_layout, storage_bytes, storage_nbytes
from torchlite_backends.device_runtime.core.copy_fill import copy_into

_recording = fork_locks.reinit_after_fork(threading.RLock())
_MIN_BYTES = 256  # minimum elements for which an elementwise op is deferred


class CapturedFunction:
    """Graph of a function. A graph has fixed addresses.

    An input at another address than at capture is copied into the graph's memory from then on, and the graph is
    captured again. Results are copied out of it.
    """

    def __init__(self, runtime: Any, function: Callable, given: tuple) -> None:
        self.runtime, self.function = runtime, function
        self._lock = threading.Lock()
        self._moving: set[int] = set()
        self._warm = False
        self._record_layouts(given)

    def run(self, given: tuple) -> tuple | None:
        """Launch the graph and return its results.

        None for other shapes or strides, for a written input at another address, and during a capture by the program.
        """
        if self.runtime.device.capturing or [(x.shape, x.steps) for x in given] != self._layouts:
            return None
        with self._lock:
            moved = {
                i
                for i, (x, place) in enumerate(zip(given, self._places, strict=True))
                if i not in self._moving and (x.buffer.ptr, x.offset) != place
            }
            if moved:
                if moved & self._written:
                    return None
                self._moving |= moved
                self._record_layouts(given)
            for i in self._moving:
                copy_into(self._given[i], given[i])
            self._graph.replay()
            return self._copy_results(given)

    def _record_layouts(self, given: tuple) -> None:
        self._layouts = [(x.shape, x.steps) for x in given]
        self._places = [(x.buffer.ptr, x.offset) for x in given]
        self._given = tuple([_empty_like_layout(x) if i in self._moving else x for i, x in enumerate(given)])
        self._capture()
        if not self._warm and not self._written and not self._graph.draws:
            # The call has no side effects, so a warm-up run is allowed: it builds the programs of fused ops.
            with self.runtime.device.waiting.joining(_MIN_BYTES):
                for _ in range(2):
                    self.function(*self._given)
            self._warm = True
            self._capture()

    def _capture(self) -> None:
        runtime = self.runtime
        with runtime.device.waiting.joining(_MIN_BYTES if self._warm else runtime.device.waiting.least):
            self._graph, self._returned = _capture_call(runtime, self.function, self._given)
        touched = {id(x.buffer) for x in self.function.touched}  # type: ignore[attr-defined]
        self._written = {i for i, x in enumerate(self._given) if id(x.buffer) in touched}

    def _copy_results(self, given: tuple) -> tuple:
        """Return the results in fresh memory."""
        places = {id(x): i for i, x in enumerate(self._given)}
        owners = {id(owner_of(x)): i for i, x in enumerate(self._given)}
        copies: dict[int, Array] = {}
        results = []
        for x in self._returned:
            if id(x) in places:
                results.append(given[places[id(x)]])
                continue
            owner = owner_of(x)
            if id(owner) in owners:
                i = owners[id(owner)]
                base, shift = owner_of(given[i]), given[i].offset - self._given[i].offset
            else:
                base, shift = copies.get(id(owner)), 0
                if base is None:
                    base = copies[id(owner)] = _copy_owner(owner)
            if x is owner:
                results.append(base)
                continue
            view = empty_like_layout(x)
            view.base, view.buffer, view.offset = base, base.buffer, x.offset + shift
            results.append(view)
        return tuple(results)


def _empty_like_layout(x: Array) -> Array:
    """Return an uninitialised array with the shape and strides of `x`."""
    made = empty_like_layout(x)
    last = x.offset + sum(step * (n - 1) for n, step in zip(x.shape, x.steps, strict=True) if step > 0 and n)
    made.buffer = x.device.allocate((last + 1) * x.itemsize, made)
    return made


def _copy_owner(owner: Array) -> Array:
    """Copy an array that owns its memory, including gaps."""
    made = empty_like_layout(owner)
    made.buffer = owner.device.allocate(owner.offset * owner.itemsize + storage_nbytes(owner), made)
    copy_into(storage_bytes(made), storage_bytes(owner))
    return made


def _capture_call(runtime: Any, function: Callable, given: tuple) -> tuple[Any, tuple]:
    """Capture `function(*args)`; return the graph and the results, whose elements only a replay sets.

    Raises Unrecordable if the function synchronises with the host.
    """
    if _recording._is_owned():  # type: ignore[attr-defined]  # of a handler that interrupts a recording
        raise UnrecordableError("this thread records")
    with _recording:
        return _capture_locked(runtime, function, given)


def _capture_locked(runtime: Any, function: Callable, given: tuple) -> tuple[Any, tuple]:
    before = runtime.current_stream()
    runtime.device.finish()  # the stream that records waits for no other
    runtime.use(runtime.new_stream())
    try:
        runtime.begin_capture()
        try:
            returned = function(*given)
        except RuntimeError as error:
            with contextlib.suppress(RuntimeError):
                runtime.end_capture()
            raise UnrecordableError(str(error)) from error
        return runtime.end_capture(), returned
    finally:
        runtime.use(before)
