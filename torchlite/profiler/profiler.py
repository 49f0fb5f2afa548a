"""`profile`, a profiler with a schedule of steps."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torchlite as torch
from torchlite.autograd import profiler as _autograd
from torchlite.autograd.profiler import KinetoStepTracker, record_function
from torchlite.autograd.profiler_util import EventList
from torchlite.optim import optimizer as _optimizer

from .._types.devices import private_use_type

PROFILER_STEP_NAME = "ProfilerStep"


class _ActivityType(enum.EnumType):
    """The class of `ProfilerActivity`: its member `PrivateUse1` has the name of the device type in capitals, too."""

    def __getattr__(cls, name: str) -> Any:
        if name != "PRIVATEUSEONE" and name == private_use_type().upper():
            return cls["PrivateUse1"]
        raise AttributeError(name)


class ProfilerActivity(enum.Enum, metaclass=_ActivityType):
    """What a profile records: the CPU, or a type of device.

    Example:
        >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
        True
    """

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5
    OPENCL = 6


class DeviceType(enum.Enum):
    """Types of devices, by PyTorch's numbers.

    Example:
        >>> torch.profiler.DeviceType.CUDA.value
        1
    """

    CPU = 0
    CUDA = 1
    OPENCL = 4
    XPU = 12
    HPU = 15


class ProfilerAction(enum.Enum):
    """What a profile does in a step; a schedule returns it.

    Example:
        >>> [action.name for action in torch.profiler.ProfilerAction]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Returns ``False``: Kineto, PyTorch's tracing library, is not used.

    Example:
        >>> torch.profiler.kineto_available()
        False
    """
    return False


def supported_activities() -> set[ProfilerActivity]:
    """Returns the activities that can be recorded here: the CPU, and the devices that can be used.

    Example:
        >>> torch.profiler.ProfilerActivity.CPU in torch.profiler.supported_activities()
        True
    """
    found = {ProfilerActivity.CPU}
    if torch.cuda.is_available():
        found.add(ProfilerActivity.CUDA)
    if torch.opencl.is_available():
        found.add(ProfilerActivity.OPENCL)
    return found


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Returns a schedule for `profile`: a function from the step number to a `ProfilerAction`.

    A cycle has ``wait`` steps without recording, ``warmup`` steps whose record is dropped, and ``active`` recorded
    steps.

    Args:
        wait: Number of steps without recording.
        warmup: Number of steps whose record is dropped.
        active: Number of recorded steps, at least 1.
        repeat: Number of cycles; 0 for any number. Default: 0.
        skip_first: Number of steps before the first cycle. Default: 0.
        skip_first_wait: Another value than 0 leaves out the first cycle's ``wait``. Default: 0.

    Raises:
        AssertionError: A number is out of range.

    Example:
        >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if not (wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0):
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def plan(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"a step is not negative: {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step / cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return plan


def _record_always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """Returns an ``on_trace_ready`` function that writes each trace to a folder, as TensorBoard's plugin reads it.

    Args:
        dir_name: The folder.
        worker_name: The beginning of the file's name. Default: the host and the process.
        use_gzip: Whether the file is compressed. Default: ``False``.
        use_python_export: Has no effect: Python always writes the file.

    Raises:
        RuntimeError: The folder cannot be created. Raised by the function.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     handler = torch.profiler.tensorboard_trace_handler(folder, "worker0")
        ...     with torch.profiler.profile(on_trace_ready=handler):
        ...         y = torch.ones(2) * 2
        ...     [name.split(".")[0] for name in os.listdir(folder)]
        ['worker0']
    """

    def handler(prof: Any) -> None:
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        file = f"{name}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip
        prof.export_chrome_trace(os.path.join(dir_name, file))

    return handler


class ExecutionTraceObserver:
    """Raises NotImplementedError when it is created: execution traces are not written.

    Example:
        >>> torch.profiler.ExecutionTraceObserver()
        Traceback (most recent call last):
        NotImplementedError: torchlite writes no execution traces; export_chrome_trace has the events of a profile
    """

    def __init__(self) -> None:
        raise NotImplementedError(
            "torchlite writes no execution traces; export_chrome_trace has the events of a profile"
        )


class _Steps:
    """Marks the steps of optimizers in a profile."""

    def __init__(self) -> None:
        self.open: list[record_function] = []

    def __enter__(self) -> None:
        def start_optimizer_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            name = type(optimizer).__name__
            self.open.append(record_function(f"Optimizer.step#{name}.step"))
            self.open[-1].__enter__()

        def end_optimizer_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            if self.open:
                self.open.pop().__exit__()

        self.handles = [
            _optimizer.register_optimizer_step_pre_hook(start_optimizer_step),
            _optimizer.register_optimizer_step_post_hook(end_optimizer_step),
        ]

    def __exit__(self, *exc: Any) -> None:
        for handle in self.handles:
            handle.remove()


class profile:
    """Records the times of the ops that this thread runs, in a block or in the steps that a schedule selects.

    Args:
        activities: What to record. Default: `supported_activities`.
        schedule: A function from the step number to a `ProfilerAction`, as `torch.profiler.schedule` returns. The
            program
            then calls `step` after each step. Default: every step is recorded.
        on_trace_ready: Called with the profile when a trace is complete. Default: none.
        record_shapes: Whether to record the shapes of inputs. Default: ``False``.
        profile_memory: Whether to record the bytes of results. Default: ``False``.
        with_stack: Whether to record the lines of the program that called the ops. Default: ``False``.
        with_flops: Whether to estimate the floating point operations of products and convolutions; also records shapes.
            Default: ``False``.
        with_modules: Stored, has no other effect. Default: ``False``.
        experimental_config: Has no effect.
        execution_trace_observer: Must be ``None``.
        acc_events: Whether a later trace keeps the events of the earlier ones. Default: ``False``.
        use_cuda: Whether to record CUDA devices too, in addition to ``activities``. Default: ``None``.
        custom_trace_id_callback: Returns the identifiers of traces. Default: random ones.
        post_processing_timeout_s: Has no effect.

    Raises:
        NotImplementedError: ``execution_trace_observer`` is given.
        AssertionError: ``activities`` is empty, or the events are read before a trace is complete.

    Example:
        >>> traces, x = [], torch.ones(2)
        >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1)
        >>> with torch.profiler.profile(schedule=plan, on_trace_ready=lambda p: traces.append(p.events())) as prof:
        ...     for _ in range(4):
        ...         y = x * 2
        ...         prof.step()
        >>> [event.name for event in traces[0]]
        ['ProfilerStep#2', 'aten::mul']

    See also:
        `record_function`, `torch.autograd.profiler.profile`.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if execution_trace_observer is not None:
            raise NotImplementedError("profile(): torchlite has no observers of execution traces")
        self.acc_events, self.custom_trace_id_callback = acc_events, custom_trace_id_callback
        self.activities = set(activities) if activities is not None else supported_activities()
        if use_cuda:
            self.activities.add(ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.record_shapes, self.profile_memory = record_shapes or with_flops, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.on_trace_ready = on_trace_ready
        self.record_steps = schedule is not None
        self.schedule = schedule or _record_always
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: _autograd.profile | None = None
        self.step_rec_fn: record_function | None = None
        self._recording = False
        self._metadata: dict[str, Any] = {}

    @property
    def use_device(self) -> str | None:
        """The type of device that is recorded: ``"cuda"``, ``"opencl"`` or ``None``."""
        if ProfilerActivity.CUDA in self.activities:
            return "cuda"
        return "opencl" if ProfilerActivity.OPENCL in self.activities else None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Starts with the first step."""
        self._change_action(None, self.current_action)
        self._name_step()

    def stop(self) -> None:
        """Ends the profile; a trace that is open is complete."""
        self._end_step()
        self._change_action(self.current_action, None)
        KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME)

    def step(self) -> None:
        """Begins the next step."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._change_action(before, self.current_action)
        self._name_step()

    def _name_step(self) -> None:
        if self.record_steps and self._recording:
            self.step_rec_fn = record_function(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _change_action(self, before: ProfilerAction | None, now: ProfilerAction | None) -> None:
        """Move from one step's action to the next; None is before the first or after the last step."""
        records = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if before in records and (before is ProfilerAction.RECORD_AND_SAVE or now not in records):
            if now is ProfilerAction.NONE and before is ProfilerAction.RECORD:
                warnings.warn("Incorrect schedule: RECORD followed by NONE", stacklevel=3)
            self.stop_trace()
            if self.on_trace_ready is not None and (before is ProfilerAction.RECORD_AND_SAVE or now is None):
                self.on_trace_ready(self)
        if now in records and not self._recording:
            self.start_trace()

    def prepare_trace(self) -> None:
        """Does nothing: recording needs no preparation."""

    def start_trace(self) -> None:
        """Starts to record."""
        before = self.profiler.function_events if self.profiler is not None and self.acc_events else None
        self.profiler = _autograd.profile(
            use_device=self.use_device, record_shapes=self.record_shapes, with_flops=self.with_flops,
            profile_memory=self.profile_memory, with_stack=self.with_stack, acc_events=self.acc_events,
            custom_trace_id_callback=self.custom_trace_id_callback,
        )  # fmt: skip
        self.profiler._metadata, self.profiler._earlier_events = self._metadata, before or ()
        self._steps = _Steps()
        self._steps.__enter__()
        self.profiler.__enter__()
        self._recording = True

    def stop_trace(self) -> None:
        """Stops recording.

        Raises:
            RuntimeError: Nothing is recorded.
        """
        if self.profiler is None or not self._recording:
            raise RuntimeError("Profiler must be started before it is stopped")
        self._recording = False
        self.profiler.__exit__(None, None, None)
        self._steps.__exit__()

    def _check_finished(self) -> _autograd.profile:
        if self.profiler is None or self.profiler.function_events is None:
            raise AssertionError("Profiler must be initialized before getting key averages")
        return self.profiler

    def events(self) -> EventList:
        """Returns the events of the last trace, an `EventList`."""
        events = self._check_finished().function_events
        assert events is not None
        return events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Returns one average for all events of a name, as an `EventList`, which has a ``table`` method.

        Args:
            group_by_input_shape: Whether events of other input shapes count apart. Default: ``False``.
            group_by_stack_n: The number of innermost stack lines by which events count apart. Default: 0.
            group_by_overload_name: Whether events of other overloads count apart. Default: ``False``.
        """
        return self._check_finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the events as JSON for chrome://tracing and Perfetto.

        Args:
            path: The name of the file; one that ends in ``.gz`` is compressed.
            use_python_export: Has no effect: Python always writes the file.
        """
        self._check_finished().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes a line for each event, with its stack and its time, for flame graphs.

        Args:
            path: The name of the file.
            metric: The time to write. Default: ``"self_cpu_time_total"``.

        Raises:
            RuntimeError: ``with_stack`` is ``False``.
        """
        self._check_finished().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Raises NotImplementedError: memory is recorded by op, not by time.

        Args:
            path: The name of the file.
            device: The device.
        """
        raise NotImplementedError("torchlite draws no timeline of memory; profile_memory notes bytes by op")

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pauses recording within a trace, or resumes it.

        Args:
            enable: Whether to resume.
            activities: The activities; must contain ``ProfilerActivity.CPU``.

        Raises:
            NotImplementedError: ``activities`` does not contain it.
        """
        if ProfilerActivity.CPU not in set(activities):
            raise NotImplementedError(
                "toggle_collection_dynamic(): a device's work is recorded with the ops of the CPU"
            )
        recorder = getattr(self.profiler, "_recorder", None)
        if recorder is None or not self._recording:
            return
        active = any(r is recorder for r in _autograd.CURRENT_PROFILERS.recorders)
        if enable and not active:
            recorder.__enter__()
        elif not enable and active:
            recorder.__exit__(None, None, None)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a string to trace files.

        Args:
            key: Its name.
            value: The string.
        """
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON value to trace files; other text is added as a string.

        Args:
            key: Its name.
            value: The JSON text.
        """
        with contextlib.suppress(json.JSONDecodeError):
            value = json.loads(value)
        self._metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Does the same as `add_metadata_json`.

        Args:
            key: The name.
            value: The JSON text.
        """
        self.add_metadata_json(key, value)

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Sets the function that returns the identifiers of later traces.

        Args:
            callback: The function.
        """
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """Returns the identifier of the current trace; ``None`` before the first."""
        return None if self.profiler is None else self.profiler.trace_id
