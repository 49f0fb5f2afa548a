"""`torch.autograd.profiler`: times of ops in a region of the program, and named regions."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ._op_profiler import CURRENT_PROFILERS, OpProfiler
from .profiler_util import EventList, FunctionEvent, MemRecordsAcc

__all__ = [
    "EnforceUnique", "EventList", "FunctionEvent", "KinetoStepTracker", "MemRecordsAcc", "emit_itt", "emit_nvtx",
    "load_nvprof", "parse_nvprof_trace", "profile", "record_function",
]  # fmt: skip


def _needs_end(method: Callable) -> Callable:
    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return method(self, *args, **kwargs)

    return wrapped


class profile:
    """The times of the ops of this thread in a block: of the forward pass by op, of backward by node and op.

    use_device: "cuda" or "opencl", for the time on the device too, by events in its queue. record_shapes: note the
    shapes of inputs. with_flops: estimate the operations of products and convolutions. profile_memory: note the bytes
    of results. with_stack: note the program's lines. RuntimeError if entered again, or if read before its end.

    acc_events: a later trace of the same object adds its events. custom_trace_id_callback: makes the trace's
    identifier. `experimental_config` and `post_processing_timeout_s` have no effect: they are Kineto's.

    >>> import torchlite as torch
    >>> x = torch.ones(8, 8, requires_grad=True)
    >>> with torch.autograd.profiler.profile() as prof:
    ...     (x @ x).sum().backward()
    >>> [event.name for event in prof.function_events][:2]
    ['aten::matmul', 'aten::sum']
    """

    function_events: EventList | None

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True, experimental_config: Any = None,
        acc_events: bool = False, custom_trace_id_callback: Any = None, post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:  # fmt: skip
        if activity_filters is not None:
            raise NotImplementedError("profile(): activity_filters belongs to Kineto, which torchlite does not use")
        if not use_cpu:
            if not use_kineto:
                raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
            raise NotImplementedError("profile(): a device's events are recorded with those of the CPU (use_cpu=True)")
        self.enabled, self.entered = enabled, False
        self.acc_events, self.custom_trace_id_callback, self.trace_id = acc_events, custom_trace_id_callback, ""
        self.use_device = "cuda" if use_cuda and use_device is None else use_device
        self.record_shapes, self.with_flops = record_shapes or with_flops, with_flops
        self.profile_memory, self.with_stack, self.with_modules = profile_memory, with_stack, with_modules
        self.function_events = None
        self._earlier_events: Iterable[FunctionEvent] = ()  # of the traces before, where they add up
        self._metadata: dict[str, Any] = {}

    def _create_trace_id(self) -> str:
        callback = self.custom_trace_id_callback
        return uuid.uuid4().hex.upper() if callback is None else callback()

    def __enter__(self) -> Any:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._start_trace()
        return self

    def _start_trace(self) -> None:
        self.entered, self.trace_id = True, self._create_trace_id()
        flops: Any = None
        if self.with_flops:
            from ._flop_counter import op_flops

            flops = op_flops
        self._recorder = OpProfiler(
            shapes=self.record_shapes, memory=self.profile_memory, stacks=self.with_stack,
            device=self.use_device is not None, flops=flops,
        )  # fmt: skip
        self._recorder.__enter__()

    def __exit__(self, *exc: Any) -> None:
        if self.enabled:
            self._recorder.__exit__(*exc)
            device = self.use_device if self._recorder.device_type is not None else None
            self.function_events = EventList(
                [*self._earlier_events, *self._recorder.events], use_device=device, profile_memory=self.profile_memory,
                with_flops=self.with_flops, metadata=self._metadata,
            )  # fmt: skip

    def __repr__(self) -> str:
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    @_needs_end
    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """`EventList.table` of the events."""
        return self.function_events.table(  # type: ignore[union-attr]
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
        )

    @_needs_end
    def export_chrome_trace(self, path: str, metadata: Any = None, use_python_export: bool = False) -> None:
        """`EventList.export_chrome_trace` of the events. `use_python_export` has no effect: Python always writes the
        file.
        """
        self.function_events._metadata |= metadata or {}  # type: ignore[union-attr]
        self.function_events.export_chrome_trace(path)  # type: ignore[union-attr]

    @_needs_end
    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """`EventList.export_stacks` of the events. RuntimeError without `with_stack`."""
        if not self.with_stack:
            raise RuntimeError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)  # type: ignore[union-attr]

    @_needs_end
    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """`EventList.key_averages` of the events."""
        return self.function_events.key_averages(  # type: ignore[union-attr]
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    @_needs_end
    def total_average(self) -> Any:
        """The average of all events."""
        return self.function_events.total_average()  # type: ignore[union-attr]

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events without that of their parts, in microseconds. RuntimeError before the end."""
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events.self_cpu_time_total


class record_function:
    """A block, or as a decorator a function, that profiles show under a name.

    >>> import torchlite as torch
    >>> with torch.profiler.profile() as prof:
    ...     with torch.profiler.record_function("twice"):
    ...         y = torch.ones(2) * 2
    >>> "twice" in [event.key for event in prof.key_averages()]
    True
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._events: list = []

    def __enter__(self) -> record_function:
        self._events = [(r, r.begin(self.name, is_user_annotation=True)) for r in CURRENT_PROFILERS.recorders]
        return self

    def __exit__(self, *exc: Any) -> None:
        for recorder, event in self._events:
            recorder.end(event)
        self._events = []

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped


class _Unsupported:
    """Profilers that require NVIDIA's or Intel's tools."""

    _why = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> _Unsupported:
        if not self.enabled:
            return self
        raise RuntimeError(self._why)

    def __exit__(self, *exc: Any) -> None:
        return None


class emit_nvtx(_Unsupported):
    """Refuses when it is entered: ops are not marked for NVIDIA's profiler (`torch.cuda.nvtx` marks regions)."""

    _why = "torchlite marks no ops for nvprof; use torch.profiler, or torch.cuda.nvtx for regions of your own"


class emit_itt(_Unsupported):
    """Refuses when it is entered: ops are not marked for VTune."""

    _why = "torchlite marks no ops for VTune; use torch.profiler"


def load_nvprof(path: str) -> Any:
    """Refuses: ops are not marked for nvprof."""
    raise RuntimeError(f"torchlite reads no nvprof traces ({path}); use torch.profiler")


def parse_nvprof_trace(path: str) -> Any:
    """Refuses: ops are not marked for nvprof."""
    return load_nvprof(path)


class EnforceUnique:
    """Raises an error for values that it has seen before."""

    def __init__(self) -> None:
        self.seen: set = set()

    def see(self, *key: Any) -> None:
        """Note a key. RuntimeError for one that was noted."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts the steps of several profilers and optimizers: the greatest count is the program's."""

    _current_step = 0
    _step_dict: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Start to count steps of a requester."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Stop to count steps of a requester. Return True if it was counted."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step of a requester. Return the program's step."""
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The program's step."""
        return cls._current_step


__dir__ = make_module_dir(globals())
