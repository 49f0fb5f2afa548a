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
    """Records the times of the ops that this thread runs in a block: forward ops by name, backward by node and op.

    Args:
        enabled: Whether to record. Default: ``True``.
        use_cuda: Whether to time the CUDA device too, as ``use_device="cuda"`` does. Default: ``False``.
        use_device: ``"cuda"`` or ``"opencl"``: times the device too, by events in its queue. Default: ``None``.
        record_shapes: Whether to record the shapes of inputs. Default: ``False``.
        with_flops: Whether to estimate the floating point operations of products and convolutions; also records shapes.
            Default: ``False``.
        profile_memory: Whether to record the bytes of results. Default: ``False``.
        with_stack: Whether to record the lines of the program that called the ops. Default: ``False``.
        with_modules: Stored, has no other effect. Default: ``False``.
        use_kineto: Accepted; Kineto is not used. Default: ``False``.
        use_cpu: Must be ``True``.
        experimental_config: Has no effect.
        acc_events: Whether a later trace of the same object keeps the events of the earlier ones. Default: ``False``.
        custom_trace_id_callback: Returns the trace's identifier. Default: a random one.
        post_processing_timeout_s: Has no effect.
        activity_filters: Not supported.

    Raises:
        NotImplementedError: ``activity_filters`` is given, or ``use_cpu`` is ``False`` with ``use_kineto``.
        AssertionError: ``use_cpu`` is ``False`` without ``use_kineto``.
        RuntimeError: The object is entered again, or read before the block ends.

    Example:
        >>> x = torch.ones(8, 8, requires_grad=True)
        >>> with torch.autograd.profiler.profile() as prof:
        ...     (x @ x).sum().backward()
        >>> [event.name for event in prof.function_events][:2]
        ['aten::matmul', 'aten::sum']

    See also:
        `torch.profiler.profile`.
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
        """Returns the events as a table of text; see `EventList.table`.

        Args:
            sort_by: As for `EventList.table`.
            row_limit: As for `EventList.table`.
            max_src_column_width: As for `EventList.table`.
            max_name_column_width: As for `EventList.table`.
            max_shapes_column_width: As for `EventList.table`.
            header: As for `EventList.table`.
            top_level_events_only: As for `EventList.table`.
        """
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
        """Writes the events to a file; see `EventList.export_chrome_trace`.

        Args:
            path: The name of the file.
            metadata: A dictionary whose items are added to the file. Default: ``None``.
            use_python_export: Has no effect: Python always writes the file.
        """
        self.function_events._metadata |= metadata or {}  # type: ignore[union-attr]
        self.function_events.export_chrome_trace(path)  # type: ignore[union-attr]

    @_needs_end
    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks of the events to a file; see `EventList.export_stacks`.

        Args:
            path: The name of the file.
            metric: The time to write. Default: ``"self_cpu_time_total"``.

        Raises:
            RuntimeError: The profile has no stacks: ``with_stack`` is ``False``.
        """
        if not self.with_stack:
            raise RuntimeError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)  # type: ignore[union-attr]

    @_needs_end
    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Returns the averages of the events; see `EventList.key_averages`.

        Args:
            group_by_input_shape: Whether events of other input shapes count apart. Default: ``False``.
            group_by_stack_n: The number of innermost stack lines by which events count apart. Default: 0.
            group_by_overload_name: Whether events of other overloads count apart. Default: ``False``.
        """
        return self.function_events.key_averages(  # type: ignore[union-attr]
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    @_needs_end
    def total_average(self) -> Any:
        """Returns the sum of all events, as one `FunctionEventAvg`."""
        return self.function_events.total_average()  # type: ignore[union-attr]

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events without that of their children, in microseconds.

        Raises:
            RuntimeError: The block has not ended.
        """
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events.self_cpu_time_total


class record_function:
    """Names a block, or as a decorator a function, in profiles.

    Args:
        name: The name.
        args: A text that describes the arguments; stored only. Default: ``None``.

    Example:
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
    """Raises RuntimeError when it is entered: ops are not marked for NVIDIA's profiler.

    Args:
        enabled: ``False`` makes the block do nothing. Default: ``True``.
        record_shapes: Has no effect.

    Example:
        >>> with torch.autograd.profiler.emit_nvtx(enabled=False):
        ...     y = torch.ones(2) * 2

    See also:
        `torch.cuda.nvtx`, which marks regions.
    """

    _why = "torchlite marks no ops for nvprof; use torch.profiler, or torch.cuda.nvtx for regions of your own"


class emit_itt(_Unsupported):
    """Raises RuntimeError when it is entered: ops are not marked for Intel's VTune.

    Args:
        enabled: ``False`` makes the block do nothing. Default: ``True``.
        record_shapes: Has no effect.

    Example:
        >>> with torch.autograd.profiler.emit_itt(enabled=False):
        ...     y = torch.ones(2) * 2
    """

    _why = "torchlite marks no ops for VTune; use torch.profiler"


def load_nvprof(path: str) -> Any:
    """Raises RuntimeError: traces of nvprof are not read.

    Args:
        path: The name of the file.

    Example:
        >>> torch.autograd.profiler.load_nvprof("trace.prof")
        Traceback (most recent call last):
        RuntimeError: torchlite reads no nvprof traces (trace.prof); use torch.profiler
    """
    raise RuntimeError(f"torchlite reads no nvprof traces ({path}); use torch.profiler")


def parse_nvprof_trace(path: str) -> Any:
    """Raises RuntimeError: traces of nvprof are not read.

    Args:
        path: The name of the file.

    Example:
        >>> torch.autograd.profiler.parse_nvprof_trace("trace.prof")
        Traceback (most recent call last):
        RuntimeError: torchlite reads no nvprof traces (trace.prof); use torch.profiler
    """
    return load_nvprof(path)


class EnforceUnique:
    """Raises for a key that it saw before.

    Example:
        >>> unique = torch.autograd.profiler.EnforceUnique()
        >>> unique.see("a", 1)
        >>> unique.see("a", 1)
        Traceback (most recent call last):
        RuntimeError: duplicate key: ('a', 1)
    """

    def __init__(self) -> None:
        self.seen: set = set()

    def see(self, *key: Any) -> None:
        """Stores a key.

        Args:
            key: The parts of the key.

        Raises:
            RuntimeError: The key is stored already.
        """
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Counts the steps of profilers and optimizers; the greatest count is the program's step.

    Example:
        >>> from torchlite.autograd.profiler import KinetoStepTracker
        >>> before = KinetoStepTracker.current_step()
        >>> KinetoStepTracker.init_step_count("loop")
        >>> KinetoStepTracker.increment_step("loop") - before
        1
        >>> KinetoStepTracker.erase_step_count("loop")
        True
    """

    _current_step = 0
    _step_dict: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Starts to count the steps of a requester, from the program's step.

        Args:
            requester: Its name.
        """
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Stops counting the steps of a requester.

        Args:
            requester: Its name.

        Returns:
            Whether it was counted.
        """
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Adds a step of a requester.

        Args:
            requester: Its name.

        Returns:
            The program's step.
        """
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """Returns the program's step."""
        return cls._current_step


__dir__ = make_module_dir(globals())
