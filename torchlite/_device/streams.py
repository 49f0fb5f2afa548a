"""Streams and events of devices. `torch.Stream` and `torch.Event` support all device types.

A runtime with several streams (CUDA) is a `StreamRuntime` of `torchlite.backends.protocol`, and a stream here wraps its
handle. A runtime without streams (OpenCL) has one in-order queue for each device: all streams are that queue and differ
only by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._types.devices import device as device_type

if TYPE_CHECKING:
    from ..backends.protocol import EventMarker
    from .accelerators import Accelerator

ACCELERATORS: dict[str, Accelerator] = {}  # by device type; accelerators.py fills it
CAPTURES: list[Any] = []  # the graphs that are being recorded, in all threads


def accelerator_of(name: str) -> Accelerator:
    """The Accelerator of a device type. RuntimeError for a type that has none."""
    if name not in ACCELERATORS:
        raise RuntimeError(f"{name} is not a type of accelerator: it has no streams")
    return ACCELERATORS[name]


def first_available_accelerator() -> Accelerator | None:
    """The first Accelerator that has a device that can be used: CUDA before OpenCL. A driver of processors counts only
    if the user asks for it, or if its type is the default device's.
    """
    return next((ACCELERATORS[name] for name in ("cuda", "opencl") if ACCELERATORS[name].is_accelerator()), None)


def accelerator_for(device: Any = None) -> Accelerator:
    """The accelerator functions of a device, by default of the machine's. RuntimeError if there is none."""
    if device is not None and not isinstance(device, int):
        return accelerator_of(device_type(device).type)
    found = first_available_accelerator()
    if found is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return found


class _Generic(type):
    """Lets `torch.Stream(…)` and `torch.Event(…)` make an object of the device type's own class."""

    _make_for_device_type: Callable[..., Any]

    def __call__(cls, *args, **kwargs):
        return super().__call__(*args, **kwargs) if hasattr(cls, "_of") else cls._make_for_device_type(*args, **kwargs)


class Stream(metaclass=_Generic):
    """An order in which a device works: what is started in one stream runs one after the other, several streams may run
    at the same time.

    `torch.Stream(device)` gives the device type's own class. On a device type that has one queue (OpenCL) all streams
    are that queue.

    `device_type` has no effect: the class belongs to one kind of device.
    """

    _of: Accelerator
    _last = 0

    @staticmethod
    def _make_for_device_type(device=None, priority: int = 0, **kwargs):
        return accelerator_for(kwargs.get("device_type") or device).Stream(device, priority, **kwargs)

    def __init__(
        self,
        device=None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: Any = None,
        stream_ptr: int | None = None,
    ):
        index = self._of.index(device if device_index is None else device_index)
        runtime = self._of.runtime(index)
        pointer = stream_id if stream_ptr is None else stream_ptr
        if self._of.has_streams(runtime):
            default = runtime.default_stream()
            handle = (
                runtime.new_stream(priority)
                if pointer is None
                else default
                if pointer == default.ptr
                else runtime.stream_from(pointer)
            )
            self._set_fields(index, priority, handle.ptr, handle)
        else:
            if pointer is None:
                pointer = Stream._last = Stream._last + 1
            self._set_fields(index, priority, pointer, None)

    def _set_fields(self, index: int, priority: int, stream_id: int, handle: Any) -> Any:
        self.device = device_type(self._of.name, index)
        self.priority, self.stream_id, self._handle = priority, stream_id, handle
        return self

    @classmethod
    def _from_handle(cls, index: int, handle: Any, stream_id: int = 0) -> Any:
        """The stream of a runtime's handle."""
        return object.__new__(cls)._set_fields(index, 0, handle.ptr if handle is not None else stream_id, handle)

    @property
    def device_index(self) -> int:
        return self.device.index or 0

    @property
    def device_type(self) -> str:
        return self.device.type

    @property
    def native_handle(self) -> int:
        """The address of the runtime's stream; 0 where streams are names."""
        return 0 if self._handle is None else self._handle.ptr

    @property
    def _runtime(self) -> Any:
        return self._of.runtime(self.device_index)

    def synchronize(self) -> None:
        """Wait for everything that was given to the stream."""
        if self._handle is None:
            self._runtime.synchronize()
        else:
            self._runtime.synchronize_stream(self._handle)

    def query(self) -> bool:
        """True if all work submitted to the stream is complete."""
        return self._runtime.idle() if self._handle is None else self._runtime.is_stream_idle(self._handle)

    def is_capturing(self) -> bool:
        """True if work submitted to the stream is being captured into a graph."""
        if self._handle is None:
            return False
        with self._of.stream(self):
            return self._runtime.is_capturing()

    def record_event(self, event=None):
        """Record an event, by default a new one; returns it."""
        if event is None:
            event = self._of.Event()
        event.record(self)
        return event

    def wait_event(self, event) -> None:
        """Make later work in the stream wait for the event."""
        event.wait(self)

    def wait_stream(self, stream) -> None:
        """Make later work in this stream wait for the work submitted to the other one so far."""
        self.wait_event(stream.record_event())

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and self.device == other.device and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __enter__(self):
        self._entered = [*getattr(self, "_entered", []), self._of.stream(self)]
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *exc) -> None:
        self._entered.pop().__exit__(*exc)

    def __repr__(self) -> str:
        return f"<torch.{self._of.name}.Stream device={self.device} stream_id={self.stream_id}>"


class Event(metaclass=_Generic):
    """A place in a stream's work: record it, then ask or wait for it; `enable_timing=True` for `elapsed_time`.

    `torch.Event(device)` gives the device type's own class.

    `blocking` has no effect: how the host waits changes no result. `external` has no effect: graphs record every event.
    """

    _of: Accelerator

    @staticmethod
    def _make_for_device_type(device=None, **kwargs):
        of = accelerator_for(device)
        made = of.Event(**kwargs)
        made.device = device_type(of.name, of.index(device))
        return made

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ):
        if interprocess:
            raise RuntimeError(f"{self._of.name} events cannot be shared between processes")
        self.enable_timing = enable_timing
        self.device: Any = None
        self._marker: EventMarker | None = None

    def record(self, stream=None) -> None:
        """Record the event in a stream, by default the current one."""
        stream = self._of.current_stream() if stream is None else stream
        self.device = stream.device
        at = () if stream._handle is None else (stream._handle,)
        self._marker = stream._runtime.marker(self.enable_timing, *at)

    def query(self) -> bool:
        """True if all work before the event is complete; True for an event that was not recorded."""
        return self._marker is None or self._marker.done()

    def synchronize(self) -> None:
        """Wait for everything before the event."""
        if self._marker is not None:
            self._marker.wait()

    def wait(self, stream=None) -> None:
        """Make later work in a stream (by default the current one) wait for the event."""
        stream = self._of.current_stream() if stream is None else stream
        if self._marker is None:
            return
        if stream._handle is not None:
            stream._runtime.wait_for(self._marker, stream._handle)
        elif stream.device != self.device:  # of another device: its queue cannot wait, so the caller does
            self.synchronize()

    def elapsed_time(self, end_event) -> float:
        """Milliseconds from this event to a later one."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._marker is None or end_event._marker is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise ValueError("Both events must be completed before calculating elapsed time.")
        return self._marker.milliseconds_to(end_event._marker)

    def __repr__(self) -> str:
        return f"<torch.{self._of.name}.Event {'not recorded' if self._marker is None else 'on ' + str(self.device)}>"


class StreamContext:
    """A chosen stream for the time of a `with` block; nothing changes for None."""

    def __init__(self, stream: Stream | None):
        self.stream = stream
        self._before: list[tuple[int, Stream]] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            of = self.stream._of
            self._before.append((of.current_device(), of.current_stream(self.stream.device)))
            of.set_stream(self.stream)

    def __exit__(self, *exc) -> None:
        if self.stream is not None:
            device, there = self._before.pop()
            self.stream._of.set_stream(there)
            self.stream._of.set_device(device)
