"""Recorded launches of a function of arrays, replayed by one call with preset kernel arguments.

Inside a `Recorder` context, kernels that its thread launches are recorded and do not run. Memory allocated meanwhile is
planned: a block is reused by the next array once its array is gone. In a `CommandBuffer` every launch has its own
kernel object, and an argument is set again only if its array has another address than in the previous run. Those are
inputs and results; results never share memory with the buffer.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from pyopencl._cl import enqueue_nd_range_kernel

from torchlite._dispatch.backend import owner_of
from torchlite._dispatch.kernel_recorder import UnrecordableError
from torchlite._settings import fork_locks
from torchlite_backends.device_runtime.array_ops.random import CapturedDraws
from torchlite_backends.device_runtime.core.array import Array, empty_like_layout
from torchlite_backends.device_runtime.linalg.autotune import autotuning

_MIN_BYTES = 256  # minimum elements for vectorised single ops, as for fused chains
_recording = fork_locks.reinit_after_fork(threading.RLock())  # one recorder at a time


class KernelProxy:
    """Replaces the kernel of a Function: the recording thread sets arguments here, other threads on the kernel."""

    __slots__ = ("kernel", "recorder", "arguments")

    def __init__(self, kernel: Any, recorder: Recorder) -> None:
        self.kernel, self.recorder = kernel, recorder
        self.arguments: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def set_arg(self, at: int, value: Any) -> None:
        if self.recorder.is_here():
            self.arguments[at] = value
        else:
            self.kernel.set_arg(at, value)

    def _set_arg_buf(self, at: int, value: bytes) -> None:
        if self.recorder.is_here():
            self.arguments[at] = value
        else:
            self.kernel._set_arg_buf(at, value)

    def _set_arg_multi(self, pairs: tuple) -> None:
        for at, value in zip(pairs[::2], pairs[1::2], strict=True):
            self.set_arg(at, value)


class ResultBlock:
    """Block of the recorded buffer's memory, reused by successive arrays."""

    __slots__ = ("buffer", "nbytes")

    def __init__(self, buffer: Any, nbytes: int) -> None:
        self.buffer, self.nbytes = buffer, nbytes


class Launch:
    """Recorded launch of a kernel, with arguments by index."""

    __slots__ = ("kernel", "global_size", "local_size", "arguments")

    def __init__(self, kernel: Any, global_size: tuple, local_size: tuple | None, arguments: dict[int, Any]) -> None:
        self.kernel, self.global_size, self.local_size, self.arguments = kernel, global_size, local_size, arguments


class Recorder:
    """Recording context of a device: the calling thread's launches go to `launches` and do not run.

    Raises Unrecordable for host reads or writes of device memory. One thread records at a time.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self.thread = threading.get_ident()
        self.launches: list[Launch] = []
        self.blocks: list[ResultBlock] = []
        self.draws: Any = None
        self._free: list[ResultBlock] = []
        self._swapped: list[Any] = []

    def is_here(self) -> bool:
        """True in the recording thread."""
        return self.thread == threading.get_ident()

    def __enter__(self) -> Recorder:
        device = self.device
        device.waiting.start()
        if _recording._is_owned():  # type: ignore[attr-defined]  # of a handler that interrupts a recording
            raise UnrecordableError("this thread records")
        _recording.acquire()
        device.waiting.hold(_MIN_BYTES)
        for function in list(device.functions.values()):
            self._intercept_launches(function)
        self._before = device.allocate, device.kernel
        for name, value in (("allocate", self._record_allocation), ("kernel", self._record_kernel)):
            setattr(device, name, value)
        for name in ("read", "write", "map", "finish"):
            setattr(device, name, self._make_refusing_method(name))
        self.draws = device.draws = CapturedDraws(device)
        device.recorder = self
        errors = device.state.get("errors")
        self._asked = errors is not None and errors.asked
        if errors is not None:
            errors.asked = False
        return self

    def __exit__(self, *error: Any) -> None:
        device = self.device
        try:
            if error[0] is None:
                device.waiting.start()
        finally:
            device.waiting.forget()
            self._restore_device()

    def _restore_device(self) -> None:
        device = self.device
        errors = device.state.get("errors")
        self.noted = errors is not None and errors.asked
        if errors is not None:
            errors.asked = self._asked
        device.recorder = device.draws = None
        for name in ("read", "write", "map", "finish", "kernel"):
            delattr(device, name)
        device.allocate = self._before[0]
        for function in self._swapped:
            with function._lock:
                function.kernel, function._enqueue = function.kernel.kernel, enqueue_nd_range_kernel
        device.waiting.release()
        _recording.release()

    def _intercept_launches(self, function: Any) -> None:
        with function._lock:
            function.kernel, function._enqueue = KernelProxy(function.kernel, self), self._enqueue
        self._swapped.append(function)

    def _record_kernel(self, program: Any, name: str, signature: str) -> Any:
        """Return a kernel built during recording."""
        function = self._before[1](program, name, signature)
        self._intercept_launches(function)
        return function

    def _enqueue(self, queue: Any, kernel: KernelProxy, global_size: tuple, local_size: tuple | None) -> None:
        if self.is_here():
            self.launches.append(Launch(kernel.kernel, global_size, local_size, dict(kernel.arguments)))
        else:
            enqueue_nd_range_kernel(queue, kernel.kernel, global_size, local_size)

    def _make_refusing_method(self, name: str) -> Callable:
        method = getattr(type(self.device), name).__get__(self.device)

        def refuse_while_recording(*args: Any, **kwargs: Any) -> Any:
            if self.is_here():
                raise UnrecordableError(f"the host's part in it ({name})")
            return method(*args, **kwargs)

        return refuse_while_recording

    def _record_allocation(self, nbytes: int, array: Any = None) -> Any:
        if not self.is_here():
            return self._before[0](nbytes, array)
        fitting = [block for block in reversed(self._free) if nbytes <= block.nbytes <= 2 * nbytes]
        if fitting:
            block = min(fitting, key=lambda one: one.nbytes)  # of the fitting ones the one freed last
            self._free.remove(block)
        else:
            block = ResultBlock(self._before[0](nbytes), nbytes)
            self.blocks.append(block)
        if array is not None:
            weakref.finalize(array, self._free.append, block).atexit = False
        return block.buffer


class CommandBuffer:
    """Recorded launches from inputs to results. `run(arrays)` returns the results.

    It returns None for arrays of other shapes or strides than the recorded ones.
    """

    def __init__(self, recorder: Recorder, given: tuple, returned: tuple) -> None:
        self.device, self.draws, self.noted = recorder.device, recorder.draws, recorder.noted
        self._lock = threading.Lock()
        self.launches = [(launch.kernel.clone(), launch.global_size, launch.local_size) for launch in recorder.launches]
        uses: dict[int, list[tuple]] = {}  # by buffer: kernels and argument indices
        for (kernel, *_), launch in zip(self.launches, recorder.launches, strict=True):
            for at, value in launch.arguments.items():
                if value.__class__ is bytes:
                    kernel._set_arg_buf(at, value)
                else:
                    kernel.set_arg(at, value)
                    uses.setdefault(id(value), []).append((kernel, at))
        self.layouts = [(x.offset, x.shape, x.steps) for x in given]
        first: dict[int, int] = {}
        self.twins = [(i, first[id(x.buffer)]) for i, x in enumerate(given) if first.setdefault(id(x.buffer), i) != i]
        self.inputs = [(i, uses.get(buffer, ())) for buffer, i in first.items()]
        self.handles = [given[i].buffer.int_ptr for i, _ in self.inputs]
        self.emptied = self.device.memory.emptied
        self._plan_results(recorder, given, returned, uses)
        own = {id(one[0].buffer) for one in self.fresh} | first.keys()
        values = [value for launch in recorder.launches for value in launch.arguments.values()]
        self._kept = {id(value): value for value in values if value.__class__ is not bytes and id(value) not in own}

    def _plan_results(self, recorder: Recorder, given: tuple, returned: tuple, uses: dict) -> None:
        """Plan the results, in `results`: kind, number of a block or input, and a template array.

        The blocks in `fresh` get new memory in every run: the owning array, bytes, kernels, handle.
        """
        places = {id(x): i for i, x in enumerate(given)}
        owners = {id(owner_of(x)): i for i, x in enumerate(given)}
        blocks = {id(block.buffer): block for block in recorder.blocks}
        self.fresh: list[list] = []
        number_of: dict[int, int] = {}
        self.results: list[tuple[str, int, Any]] = []
        for x in returned:
            owner, block = owner_of(x), blocks.get(id(x.buffer))
            if id(x) in places:
                self.results.append(("given", places[id(x)], None))
            elif id(owner) in owners:
                self.results.append(("view of given", owners[id(owner)], empty_like_layout(x)))
            elif block is None:
                self.results.append(("constant", 0, x))
            else:
                if id(block) not in number_of:
                    number_of[id(block)] = len(self.fresh)
                    self.fresh.append([owner, block.nbytes, uses.get(id(block.buffer), ()), x.buffer.int_ptr])
                self.results.append(("own" if x is owner else "view", number_of[id(block)], empty_like_layout(x)))

    def run(self, given: tuple) -> tuple | None:
        """Launch everything and return the results."""
        if [(x.offset, x.shape, x.steps) for x in given] != self.layouts:
            return None
        for i, first in self.twins:
            if given[i].buffer is not given[first].buffer:
                return None
        device = self.device
        with self._lock:
            if device.memory.emptied != self.emptied:  # handles of released memory are invalid
                self.handles = [0] * len(self.handles)
                for one in self.fresh:
                    one[3] = 0
                self.emptied = device.memory.emptied
            handles = self.handles
            for k, (i, uses) in enumerate(self.inputs):
                buffer = given[i].buffer
                handle = buffer.int_ptr
                if handle != handles[k]:
                    handles[k] = handle
                    for kernel, at in uses:
                        kernel.set_arg(at, buffer)
            owners = [self._get_unshared_array(one) for one in self.fresh]
            if self.draws is not None:
                self.draws.advance_offsets()
            self._enqueue_launches(device.queue)
        if self.noted:
            device.state["errors"].asked = True
        return tuple([self._make_result(*one, given, owners) for one in self.results])

    def _enqueue_launches(self, queue: Any) -> None:
        for kernel, global_size, local_size in self.launches:
            enqueue_nd_range_kernel(queue, kernel, global_size, local_size)

    def _get_unshared_array(self, one: list) -> Array:
        """Return an array with unshared memory: the previous run's if nobody else refers to it."""
        if _reference_count(one) == _UNSHARED_COUNT:
            return one[0]
        owner, nbytes, uses, handle = one
        made = empty_like_layout(owner)
        buffer = made.buffer = self.device.allocate(nbytes, made)
        one[0] = made
        if buffer.int_ptr != handle:
            one[3] = buffer.int_ptr
            for kernel, at in uses:
                kernel.set_arg(at, buffer)
        return made

    def _make_result(self, what: str, number: int, x: Any, given: tuple, owners: list) -> Array:
        if what == "own":
            return owners[number]
        if what == "given":
            return given[number]
        if what == "constant":
            return x
        base = owners[number] if what == "view" else owner_of(given[number])
        made = empty_like_layout(x)
        made.base, made.buffer = base, base.buffer
        return made


def _reference_count(one: list) -> int:
    """Return the reference count of the first item of a list."""
    item = one[0]
    return sys.getrefcount(item)


_UNSHARED_COUNT = _reference_count([object()])


def record_function(device: Any, function: Callable, given: tuple, mode: str = "default") -> CommandBuffer:
    """Record the launches of `function(*args)`, a function that returns a tuple of arrays.

    Nothing runs but, with `mode="max-autotune"`, GEMM variants to be measured. Raises Unrecordable if the host takes
    part.
    """
    with autotuning(device) if mode.startswith("max-autotune") else contextlib.nullcontext() as forms:
        for _ in range(2):  # some fusions are built only on the second use
            with Recorder(device) as recorder:
                returned = function(*given)
            if forms is not None:
                forms.measure()
    return CommandBuffer(recorder, given, returned)
