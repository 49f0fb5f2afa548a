"""Times ops: an interceptor for the forward pass, and a backward mode for nodes."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from typing import Any

from .._dispatch import call
from .._dispatch.autograd_graph import Node
from .._dispatch.interceptors import InPlaceCall, Interceptor, ReenabledInterceptor
from .._dispatch.op_record import REGISTRY
from .._tensor import Tensor
from .._types.devices import is_backend_module
from .profiler_util import FunctionEvent


class _Current(threading.local):
    """The active profilers of each thread."""

    recorders: tuple[OpProfiler, ...] = ()


CURRENT_PROFILERS = _Current()
_ids = itertools.count(1)


class OpProfiler(Interceptor):
    """While entered, notes each op of this thread, of backward passes too, with its times."""

    intercepts_library = True

    def __init__(
        self,
        *,
        shapes: bool = False,
        memory: bool = False,
        stacks: bool = False,
        device: bool = False,
        flops: Any = None,
    ) -> None:
        self.shapes, self.memory, self.stacks, self.device, self.flops = shapes, memory, stacks, device, flops
        self.events: list[FunctionEvent] = []
        self.open: list[FunctionEvent] = []
        self.pending: list[tuple] = []  # events of devices, read when all has run
        self.thread = threading.get_ident()
        self.device_type: str | None = None

    @property
    def backward(self) -> Any:  # type: ignore[override]
        """The mode in which the engine runs nodes while this profiler is active."""
        from .engine import RawMode

        return _make_timed_mode(RawMode, self)

    def __enter__(self) -> OpProfiler:
        CURRENT_PROFILERS.recorders = (*CURRENT_PROFILERS.recorders, self)
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        CURRENT_PROFILERS.recorders = tuple(r for r in CURRENT_PROFILERS.recorders if r is not self)
        for event, name, index, first, last in self.pending:
            last.synchronize()
            event.append_kernel(name, index, first.elapsed_time(last) * 1e3)
        self.pending = []

    def begin(self, name: str, **what: Any) -> FunctionEvent:
        """A new event inside the innermost open one."""
        event = FunctionEvent(next(_ids), name, self.thread, 0.0, **what)
        if self.open:
            event.cpu_parent = self.open[-1]
            self.open[-1].cpu_children.append(event)
        if self.stacks:
            event.stack = _python_stack()
        self.events.append(event)
        self.open.append(event)
        event.time_range.start = time.perf_counter_ns() / 1e3
        return event

    def end(self, event: FunctionEvent) -> None:
        """End an event and all unfinished events inside it."""
        event.time_range.end = time.perf_counter_ns() / 1e3
        while self.open:
            if self.open.pop() is event:
                break

    def intercept(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        if op.name.startswith("profiler::"):  # they begin and end regions
            return function(*args, **kwargs)
        name = _event_name(op, function)
        if self.open and self.open[-1].name == name:  # the op that a function of its name is written in
            return function(*args, **kwargs)
        event = self.begin(
            name,
            input_shapes=_argument_shapes((*args, *(v for v in kwargs.values() if v is not None)))
            if self.shapes
            else None,
        )
        markers = self._record_device_event(args) if self.device else None
        try:
            if getattr(op, "function", None) is function and op.is_implicit:
                with ReenabledInterceptor(self):
                    result = call.without_interceptors(op, function, args, kwargs)
            else:
                result = function(*args, **kwargs)
        finally:
            self.end(event)
        node = result._tl_node if isinstance(result, Tensor) else None
        if isinstance(node, Node):
            event.sequence_nr, event.fwd_thread = node._seq, 0
        if markers is not None:
            self._mark_end(event, markers)
        if self.memory:
            self.count_memory(event, result)
        if self.flops is not None and event.flops is None:
            event.flops = self.flops(op, args, kwargs, result)
        return result

    def _record_device_event(self, args: Any) -> Any:
        """An event of the device before an op's work; None on the CPU."""
        where = next((a.device for a in args if isinstance(a, Tensor)), None)
        if where is None or where.type in ("cpu", "meta"):
            return None
        from .._device.accelerators import Event

        first = Event(device=where, enable_timing=True)  # type: ignore[call-arg]
        first.record()
        self.device_type = where.type
        return where, first

    def _mark_end(self, event: FunctionEvent, markers: tuple) -> None:
        from .._device.accelerators import Event

        where, first = markers
        last = Event(device=where, enable_timing=True)  # type: ignore[call-arg]
        last.record()
        event.use_device = where.type
        self.pending.append((event, event.name, where.index or 0, first, last))

    def count_memory(self, event: FunctionEvent, result: Any) -> None:
        """Add the memory of a result to its event and to those around it."""
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if (
                not isinstance(tensor, Tensor)
                or event.cpu_children
                and any(child.cpu_memory_usage or child.device_memory_usage for child in event.cpu_children)
            ):
                continue
            raw = tensor._tl_array
            if getattr(raw, "base", None) is not None or event.name.endswith("_"):
                continue
            kind = "cpu_memory_usage" if tensor._tl_kernels.device.type == "cpu" else "device_memory_usage"
            around: FunctionEvent | None = event
            while around is not None:
                setattr(around, kind, getattr(around, kind) + raw.nbytes)
                around = around.cpu_parent


def _event_name(op: Any, function: Any) -> str:
    if "::" in op.name:
        return op.name
    written = "_" if function.__class__ is InPlaceCall else ""
    return "aten::" + _LIBRARY.get(op.name + written, op.function_name + written)


# Records that PyTorch's profiles name otherwise.
_LIBRARY = {
    "_slice_index": "slice", "_index": "index", "_setitem_": "index_put_", "_layer_norm": "native_layer_norm",
    "_max_dim": "max", "_min_dim": "min", "_sdpa": "_scaled_dot_product_flash_attention_for_cpu",
    "_max_pool": "max_pool2d_with_indices",
}  # fmt: skip


def _argument_shapes(values: Any) -> list:
    """The shapes of an op's tensor arguments; [] for others."""
    return [
        list(v.shape) if isinstance(v, Tensor)
        else [list(i.shape) for i in v if isinstance(i, Tensor)] if isinstance(v, (list, tuple))
        else []
        for v in values
    ]  # fmt: skip


_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _python_stack() -> list[str]:
    """The program's lines that led here, the innermost first, as PyTorch writes them."""
    found = []
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        of_backend = is_backend_module(str(frame.f_globals.get("__name__")))
        if not of_backend and not code.co_filename.startswith((_PACKAGE_FOLDER, "<torchlite")):
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return found


class _Timed:
    """A kernel table whose ops are events: formulas of the backward pass call it."""

    def __init__(self, table: Any, recorder: OpProfiler) -> None:
        self._tl_kernels, self._recorder = table, recorder

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tl_kernels, name)
        if name not in REGISTRY:
            return found
        recorder, shown = self._recorder, f"aten::{REGISTRY[name].function_name.rstrip('_')}"

        def call_timed(*args: Any, **kwargs: Any) -> Any:
            event = recorder.begin(shown)
            if recorder.shapes:
                event.input_shapes = [list(a.shape) if hasattr(a, "shape") else [] for a in args]
            try:
                return found(*args, **kwargs)
            finally:
                recorder.end(event)

        self.__dict__[name] = call_timed
        return call_timed


def _make_timed_mode(base: Any, recorder: OpProfiler) -> Any:
    """The engine's raw mode with an event for each node, and for the ops of its formulas."""
    tables: dict[int, _Timed] = {}

    class TimedMode(base):
        @staticmethod
        def run(node: Any, g: Any) -> Any:
            table = node._tl_kernels
            timed = tables.get(id(table))
            if timed is None:
                timed = tables[id(table)] = _Timed(table, recorder)
            name = node.name()
            outer = recorder.begin(f"autograd::engine::evaluate_function: {name}", sequence_nr=node._seq)
            inner = recorder.begin(name, sequence_nr=node._seq)
            outer.fwd_thread = inner.fwd_thread = recorder.thread
            node._tl_kernels = timed
            try:
                return base.run(node, g)
            finally:
                node._tl_kernels = table
                recorder.end(inner)
                recorder.end(outer)

    return TimedMode
