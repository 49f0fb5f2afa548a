"""What `torch.opencl` (and any other module of a device type) is made of: questions to the registry and the backend, never to a runtime.

A backend with devices of its own offers `runtime(index)`, an object with what the `Runtime` protocol lists.
"""
from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Protocol

from . import _random
from ._device import device as device_type
from ._dispatch import registry


class Marker(Protocol):
    """A place in a device's queue."""

    def done(self) -> bool:
        """Whether everything before it has run."""
        ...

    def wait(self) -> None: ...

    def milliseconds_to(self, later: Any) -> float:
        """The time between two markers that were made with `timing`, both done."""
        ...


class Runtime(Protocol):
    """One device, as its backend shows it to the functions below. Memory is counted in bytes."""

    name: str

    def properties(self) -> Any: ...

    def synchronize(self) -> None: ...

    def idle(self) -> bool:
        """Whether everything has run."""
        ...

    def marker(self, timing: bool) -> Marker: ...

    def memory_stats(self) -> dict[str, int]:
        """"allocated_bytes.all.current" and ".peak", "reserved_bytes.all.current" and ".peak", and what else is counted."""
        ...

    def reset_peak_memory_stats(self) -> None: ...

    def empty_cache(self) -> None: ...

    def mem_get_info(self) -> tuple[int, int]:
        """Free and total."""
        ...


class Stream:
    """An order in which a device works. A device of this type has one queue that works in order: all its streams are that queue, and differ by name.

    So nothing that a program asks of several streams goes wrong; nothing runs at the same time because of them either.
    """

    _of: Accelerator
    _last = 0

    def __init__(self, device=None, priority: int = 0, **kwargs):
        self.device = device_type(self._of.name, self._of.index(device))
        self.priority = priority
        stream_id = kwargs.get("stream_id")
        if stream_id is None:
            Stream._last += 1
            stream_id = Stream._last
        self.stream_id: int = stream_id

    @property
    def device_index(self) -> int:
        return self.device.index or 0

    @property
    def device_type(self) -> str:
        return self.device.type

    def synchronize(self) -> None:
        """Wait for everything that was given to the stream."""
        self._of.runtime(self.device_index).synchronize()

    def query(self) -> bool:
        """Whether everything that was given to the stream has run."""
        return self._of.runtime(self.device_index).idle()

    def record_event(self, event=None):
        """Record an event, a new one when none is given; returns it."""
        if event is None:
            event = self._of.Event()
        event.record(self)
        return event

    def wait_event(self, event) -> None:
        """Let what comes later in the stream wait for the event."""
        event.wait(self)

    def wait_stream(self, stream) -> None:
        """Let what comes later in this stream wait for what the other one was given so far."""
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


class Event:
    """A place in a stream's work: record it, then ask or wait for it; `enable_timing=True` for `elapsed_time`."""

    _of: Accelerator

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False):
        if interprocess:
            raise RuntimeError(f"{self._of.name} events cannot be shared between processes")
        self.enable_timing = enable_timing
        self.device: Any = None
        self._marker: Marker | None = None

    def record(self, stream=None) -> None:
        """Record the event in a stream, the current one when none is given."""
        self.device = self._of.current_stream().device if stream is None else stream.device
        self._marker = self._of.runtime(self.device.index or 0).marker(self.enable_timing)

    def query(self) -> bool:
        """Whether everything before the event has run; True for one that was not recorded."""
        return self._marker is None or self._marker.done()

    def synchronize(self) -> None:
        """Wait for everything before the event."""
        if self._marker is not None:
            self._marker.wait()

    def wait(self, stream=None) -> None:
        """Let what comes later in a stream wait for the event."""
        stream = self._of.current_stream() if stream is None else stream
        if stream.device != self.device:  # of another device: its queue cannot wait, so the caller does
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


class _Selected(threading.local):
    """The stream that each thread has chosen on a device."""

    def __init__(self):
        self.streams: dict[int, Stream] = {}


class Accelerator:
    """The functions of a device type's module, as methods. `device` arguments are an index, a name, a torch.device or None: the current one."""

    def __init__(self, name: str):
        self.name = name
        self._selected = _Selected()
        self.Stream: Any = type("Stream", (Stream,), {"_of": self, "__module__": f"torchlite.{name}", "__doc__": Stream.__doc__})
        self.Event: Any = type("Event", (Event,), {"_of": self, "__module__": f"torchlite.{name}", "__doc__": Event.__doc__})
        accelerator = self

        class device:
            """The current device for the time of a `with` block; nothing changes for None and for a negative index."""

            def __init__(self, device: Any):
                self.idx = -1 if device is None else accelerator.index(device)

            def __enter__(self):
                self.prev_idx = accelerator.current_device() if self.idx >= 0 else -1
                accelerator.set_device(self.idx)

            def __exit__(self, *exc):
                accelerator.set_device(self.prev_idx)
                return False

        class device_of(device):
            """The device of a tensor as the current one for the time of a `with` block; nothing changes for a tensor of another device type."""

            def __init__(self, tensor: Any):
                super().__init__(tensor.get_device() if tensor.device.type == accelerator.name else -1)

        self.device, self.device_of = device, device_of

    # -- whether there are any --

    def why_not(self) -> str:
        """"" when a device can be used, else one sentence saying what is missing and what to install."""
        try:
            return registry.backend_of(self.name).why_not()
        except Exception as error:  # whatever a driver does, this is a question
            return str(error) or type(error).__name__

    def is_available(self) -> bool:
        """Whether a device can be used. Never raises and asks no question.

        >>> import torchlite as torch
        >>> device = "opencl" if torch.opencl.is_available() else "cpu"
        """
        return self.why_not() == ""

    def device_count(self) -> int:
        """How many devices can be used; 0 when none."""
        return registry.backend_of(self.name).device_count() if self.is_available() else 0

    def runtime(self, index: int) -> Runtime:
        """The backend's side of a device. RuntimeError when it is not there."""
        where = registry.table_of(device_type(self.name, index))
        return where.backend.runtime(index)

    def index(self, device: Any = None) -> int:
        """The index that a `device` argument means. ValueError for a device of another type."""
        if device is None:
            return self.current_device()
        if isinstance(device, int):
            return device
        where = device_type(device)
        if where.type != self.name:
            raise ValueError(f"Expected {'an' if self.name[0] in 'aeiou' else 'a'} {self.name} device, but got: {where}")
        return self.current_device() if where.index is None else where.index

    def _runtime(self, device: Any) -> Runtime:
        return self.runtime(self.index(device))

    # -- the current device --

    def current_device(self) -> int:
        """The index of the calling thread's current device, the one that a name without an index means."""
        return registry.current_index(self.name)

    def set_device(self, device: Any) -> None:
        """Choose the calling thread's current device; nothing changes for a negative index. RuntimeError for one that is not there."""
        index = self.index(device)
        if index >= 0:
            registry.table_of(device_type(self.name, index))
            registry.set_current_index(self.name, index)

    def get_device_name(self, device=None) -> str:
        """The device's name."""
        return self._runtime(device).name

    def get_device_properties(self, device=None) -> Any:
        """What the device is and has: name, total_memory, multi_processor_count and more."""
        return self._runtime(device).properties()

    # -- order --

    def synchronize(self, device=None) -> None:
        """Wait until the device has done everything it was given."""
        self._runtime(device).synchronize()

    def default_stream(self, device=None) -> Stream:
        """The stream in which work goes when none is chosen."""
        return self.Stream(self.index(device), stream_id=0)

    def current_stream(self, device=None) -> Stream:
        """The stream in which the calling thread's work goes."""
        index = self.index(device)
        return self._selected.streams.get(index) or self.default_stream(index)

    def set_stream(self, stream: Stream | None) -> None:
        """Choose the calling thread's stream, and its device."""
        if stream is not None:
            self.set_device(stream.device_index)
            self._selected.streams[stream.device_index] = stream

    def stream(self, stream: Stream | None) -> StreamContext:
        """Choose a stream, and its device, for the time of a `with` block."""
        return StreamContext(self, stream)

    # -- memory --

    def memory_stats(self, device=None) -> OrderedDict[str, int]:
        """The allocator's counts by PyTorch's names, such as "allocated_bytes.all.peak"."""
        return OrderedDict(sorted(self._runtime(device).memory_stats().items())) if self.is_available() else OrderedDict()

    def memory_allocated(self, device=None) -> int:
        """Bytes that tensors take."""
        return self.memory_stats(device).get("allocated_bytes.all.current", 0)

    def max_memory_allocated(self, device=None) -> int:
        """The most bytes that tensors took at one time, since the start or `reset_peak_memory_stats`."""
        return self.memory_stats(device).get("allocated_bytes.all.peak", 0)

    def memory_reserved(self, device=None) -> int:
        """Bytes that tensors take or that are kept for the next ones."""
        return self.memory_stats(device).get("reserved_bytes.all.current", 0)

    def max_memory_reserved(self, device=None) -> int:
        """The most bytes that were taken or kept at one time."""
        return self.memory_stats(device).get("reserved_bytes.all.peak", 0)

    def reset_peak_memory_stats(self, device=None) -> None:
        """Begin to count the peaks anew."""
        self._runtime(device).reset_peak_memory_stats()

    def empty_cache(self) -> None:
        """Give memory that no tensor takes back to the devices in use."""
        for table in registry.tables(self.name):
            table.backend.runtime(table.device.index or 0).empty_cache()

    def mem_get_info(self, device=None) -> tuple[int, int]:
        """Free and total bytes of the device. On a GPU "free" is what this process has not taken: OpenCL does not tell more."""
        return self._runtime(device).mem_get_info()

    # -- random numbers --

    def _generator(self, device=None) -> _random.Generator:
        return _random.default_of(registry.table_of(device_type(self.name, self.index(device))))

    def manual_seed(self, seed: int) -> None:
        """Seed the current device's generator; nothing happens without a device."""
        if self.is_available():
            self._generator().manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Seed the generators of all devices; nothing happens without one."""
        for i in range(self.device_count()):
            self._generator(i).manual_seed(int(seed))

    def seed(self) -> None:
        """Seed the current device's generator from the operating system."""
        if self.is_available():
            self._generator().seed()

    def seed_all(self) -> None:
        """Seed the generators of all devices alike, from the operating system."""
        if self.is_available():
            self.manual_seed_all(self._generator().seed())

    def initial_seed(self) -> int:
        """The seed of the current device's generator."""
        return self._generator().initial_seed()

    def get_rng_state(self, device=None):
        """The state of a device's generator as a uint8 tensor (on the CPU)."""
        return self._generator(device).get_state()

    def get_rng_state_all(self) -> list:
        """The states of all devices' generators."""
        return [self.get_rng_state(i) for i in range(self.device_count())]

    def set_rng_state(self, new_state, device=None) -> None:
        """Set the state of a device's generator."""
        self._generator(device).set_state(new_state)

    def set_rng_state_all(self, new_states) -> None:
        """Set the states of all devices' generators."""
        for i, state in enumerate(new_states):
            self.set_rng_state(state, i)


class StreamContext:
    """A chosen stream for the time of a `with` block; nothing changes for None."""

    def __init__(self, of: Accelerator, stream: Stream | None):
        self._of, self.stream = of, stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self._device, self._there = self._of.current_device(), self._of.current_stream(self.stream.device)
            self._of.set_stream(self.stream)

    def __exit__(self, *exc) -> None:
        if self.stream is not None:
            self._of.set_stream(self._there)
            self._of.set_device(self._device)
