"""Loops as one call of a recorded program. A replay calls the body for each step, which has a program of its own.

Without this a program has the kernels of all steps, one after the other: it takes long to record and to optimize, and
it serves for one number of steps.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torchlite import Tensor
from torchlite._device.generators import default_generators
from torchlite._dispatch.backend import owner_of
from torchlite._dispatch.call import wrap_array
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._dispatch.dispatch_state import MODE
from torchlite._dispatch.kernel_recorder import RECORDERS, current_recorder

from .resource_limits import RUN, RunLimits

_ATTEMPTS = 8  # calls of a loop that look for a replay
# By body, the calls of its loop.
_CALLS: weakref.WeakKeyDictionary[Any, list[LoopCall]] = weakref.WeakKeyDictionary()


def run_as_one_call(name: str, run: Callable, body: Any, *args: Any) -> tuple:
    """Return `run(body, *args)`. A recorder of this thread sees one call with that name, if all values are tensors.

    args: tensors, numbers, None, and tuples or lists of these.
    """
    recorder = current_recorder() if RECORDERS and not MODE.grad else None
    if recorder is not None and recorder.host is not None:
        # Counters and limits may be on the processor. A program has all values on its device.
        args = _map_tensors(lambda value: value.to(recorder.table.device), args)
    if recorder is None or not all(_is_plain(value, recorder.table) for value in _leaves(args)):
        return run(body, *args)
    call = _find_call(run, body, recorder.table)
    if RUN.limits is not None:
        call.max_elements = RUN.limits.max_elements
    recorder.depth = 1
    try:
        drawn = _generator_states(args)
        results = run(body, *args)
        if not all(isinstance(value, Tensor) and _is_plain(value, recorder.table) for value in results):
            recorder.fail(f"{name.strip('_')} gives other values than tensors")
            return results
        if drawn != _generator_states(args):
            recorder.fail(f"{name.strip('_')} draws random numbers")
        results = _separate(results, args)
    finally:
        recorder.depth = 0
    recorder.note(recorder.called, name, call, _map_tensors(_raw, args), {}, tuple(map(_raw, results)))
    return results


class LoopCall:
    """A loop over arrays: the kernel of a program's step. max_elements: the limit of the call that was recorded."""

    max_elements: int | None = None

    def __init__(self, run: Callable, body: Any, table: Any) -> None:
        self.run, self.body, self.table = run, weakref.ref(body), table
        self.optimized: Any = None  # the body's function, made for the first replay

    def __call__(self, *arrays: Any) -> tuple:
        args = _map_arrays(self.table, arrays)
        if self.optimized is None:
            self.optimized = CALLBACKS.inference_function(self.body(), _call_body)
            self.optimized.is_part = True
        before = RUN.limits
        if before is None and self.max_elements is not None:
            RUN.limits = RunLimits(self.max_elements, self.max_elements // 2, lambda: list(_tensors(args)))
        try:
            return tuple(map(_raw, _separate(self.run(self.optimized, *args), args)))
        finally:
            RUN.limits = before


def _call_body(body: Any, *args: Any) -> Any:
    return body(*args)


class StepCalls:
    """The calls of a body with `*varying, *reads`, tensors all. `reads` are the same in each call.

    A call whose tensors have the layouts of the last one's is a replay of arrays if the body has one. That takes a
    fifth of the time that the tests of a call of tensors take.
    """

    def __init__(self, body: Any, reads: tuple) -> None:
        self.body, self.reads = body, reads
        self.layouts: list = []
        self.replay: Any = None
        self.attempts = _ATTEMPTS if hasattr(body, "find_array_replay") else 0

    def __call__(self, *varying: Any) -> tuple:
        if self.attempts and all(value.__class__ is Tensor for value in varying):
            arrays = [_raw(value) for value in varying]
            layouts = [(array.shape, array.strides, array.dtype) for array in arrays]
            if self.layouts != layouts:
                self.layouts, self.replay = layouts, None
            elif self.replay is None:
                self.attempts -= 1
                self.replay = self.body.find_array_replay((*varying, *self.reads))
                self.read_arrays = [_raw(value) for value in self.reads]
            if self.replay is not None:
                made = self.replay(*arrays, *self.read_arrays)
                if made is not None:
                    self.body.replays += 1
                    return made
                self.replay = None
        results = self.body(*varying, *self.reads)
        return results if isinstance(results, tuple) else (results,)


def _find_call(run: Callable, body: Any, table: Any) -> LoopCall:
    """Return the call of a body's loop on a device: always the same one, by which recordings are compared."""
    known = _CALLS.setdefault(body, [])
    for call in known:
        if call.run is run and call.table is table:
            return call
    known.append(LoopCall(run, body, table))
    return known[-1]


def _leaves(value: Any) -> Iterator[Any]:
    if value.__class__ in (tuple, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _tensors(value: Any) -> Iterator[Tensor]:
    return (leaf for leaf in _leaves(value) if isinstance(leaf, Tensor))


def _is_plain(value: Any, table: Any) -> bool:
    if isinstance(value, Tensor):
        return _raw(value).__class__ is table.array and not (value.is_conj() or value.is_neg())
    return value is None or value.__class__ in (bool, int, float)


def _raw(value: Any) -> Any:
    return value._tl_array


def _map_tensors(function: Callable, value: Any) -> Any:
    if value.__class__ in (tuple, list):
        return value.__class__([_map_tensors(function, item) for item in value])
    return function(value) if isinstance(value, Tensor) else value


def _map_arrays(table: Any, value: Any) -> Any:
    if value.__class__ in (tuple, list):
        return value.__class__([_map_arrays(table, item) for item in value])
    return wrap_array(table, value) if value.__class__ is table.array else value


def _separate(results: tuple, args: tuple) -> tuple:
    """Return row-major results that share memory with no argument and no other result."""
    owners = {id(owner_of(_raw(value))) for value in _tensors(args)}
    found = []
    for value in results:
        value = value.contiguous()
        if id(owner_of(_raw(value))) in owners:
            value = value.clone()
        owners.add(id(owner_of(_raw(value))))
        found.append(value)
    return tuple(found)


def _generator_states(args: tuple) -> list[bytes]:
    return [generator.get_state().numpy().tobytes() for generator in default_generators(list(_tensors(args)))]
