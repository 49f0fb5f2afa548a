"""Functions shared by `torch.cuda`, `torch.opencl` and other device modules. They use the registry and the backend,
never a driver API directly.

A backend's `runtime(index)` gives the device: a `DeviceRuntime` of `torchlite.backends.protocol`, or a `StreamRuntime`
if it has several streams.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from .._dispatch import backend_registry
from .._types.devices import device as device_type
from .._types.package_name import package_name
from . import generators
from .streams import ACCELERATORS, Event, Stream, StreamContext


class _SelectedStream(threading.local):
    """The stream that each thread has chosen on a device."""

    def __init__(self):
        self.streams: dict[int, Stream] = {}


class Accelerator:
    """The functions of a device type's module, as methods. `device` arguments are an index, a name, a torch.device or
    None: the current one.
    """

    def __init__(self, name: str):
        self.name = name
        self._selected = _SelectedStream()
        self._accumulated: dict[
            int, dict[str, int]
        ] = {}  # by device: counts at the last `reset_accumulated_memory_stats`
        ACCELERATORS[name] = accelerator = self
        self.Stream: Any = type(
            "Stream", (Stream,), {"_of": self, "__module__": f"{package_name()}.{name}", "__doc__": Stream.__doc__}
        )
        self.Event: Any = type(
            "Event", (Event,), {"_of": self, "__module__": f"{package_name()}.{name}", "__doc__": Event.__doc__}
        )

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
            """The device of a tensor as the current one for the time of a `with` block; nothing changes for a tensor of
            another device type.
            """

            def __init__(self, obj: Any):
                super().__init__(obj.get_device() if obj.device.type == accelerator.name else -1)

        self.device, self.device_of = device, device_of

    # -- whether there are any --

    def why_not(self) -> str:
        """ "" if a device can be used, else one sentence that names what is missing and what to install."""
        try:
            return backend_registry.backend_of(self.name).why_not()
        except Exception as error:  # a query must not raise, whatever the driver does
            return str(error) or type(error).__name__

    def is_available(self) -> bool:
        """True if a device can be used. Never raises.

        >>> import torchlite as torch
        >>> device = "opencl" if torch.opencl.is_available() else "cpu"
        """
        return self.why_not() == ""

    def device_count(self) -> int:
        """Number of usable devices."""
        return backend_registry.backend_of(self.name).device_count() if self.is_available() else 0

    def is_initialized(self) -> bool:
        """True if a device of this type is in use."""
        return bool(backend_registry.tables_in_use(self.name))

    def init(self) -> None:
        """Initialise the current device; functions that need one do this automatically. RuntimeError that names what is
        missing if there is none.
        """
        backend_registry.table_of(device_type(self.name, self.current_device()))

    def has_streams(self, runtime: Any) -> bool:
        """True if the device has several streams, and not a single queue."""
        return hasattr(runtime, "new_stream")

    def runtime(self, index: int) -> Any:
        """The device's `DeviceRuntime` or `StreamRuntime`. RuntimeError for a device that is absent."""
        where = backend_registry.table_of(device_type(self.name, index))
        return where.backend.runtime(index)

    def index(self, device: Any = None) -> int:
        """The index that a `device` argument means. ValueError for a device of another type."""
        if device is None:
            return self.current_device()
        if isinstance(device, int):
            return device
        if isinstance(device, self.device):
            return device.idx
        where = device_type(device)
        if where.type != self.name:
            raise ValueError(
                f"Expected {'an' if self.name[0] in 'aeiou' else 'a'} {self.name} device, but got: {where}"
            )
        return self.current_device() if where.index is None else where.index

    def _runtime(self, device: Any) -> Any:
        return self.runtime(self.index(device))

    # -- the current device --

    def current_device(self) -> int:
        """The index of the calling thread's current device, the one that a name without an index means."""
        return backend_registry.current_index(self.name)

    def set_device(self, device: Any) -> None:
        """Choose the calling thread's current device; nothing changes for a negative index. RuntimeError for one that
        is not there.
        """
        index = self.index(device)
        if index >= 0:
            backend_registry.table_of(device_type(self.name, index))
            backend_registry.set_current_index(self.name, index)

    def get_device_name(self, device=None) -> str:
        """The device's name."""
        return self._runtime(device).name

    def get_device_properties(self, device=None) -> Any:
        """Properties of the device: name, total_memory, multi_processor_count and more."""
        return self._runtime(device).properties()

    # -- order --

    def synchronize(self, device=None) -> None:
        """Wait until the device has done everything it was given."""
        self._runtime(device).synchronize()

    def default_stream(self, device=None) -> Stream:
        """The stream for work when none is selected."""
        index = self.index(device)
        runtime = self.runtime(index)
        return self.Stream._from_handle(index, runtime.default_stream() if self.has_streams(runtime) else None)

    def current_stream(self, device=None) -> Stream:
        """The stream that receives the calling thread's work."""
        index = self.index(device)
        chosen, runtime = self._selected.streams.get(index), self.runtime(index)
        if self.has_streams(runtime):
            handle = runtime.current_stream()  # another library may have chosen it
            return (
                chosen
                if chosen is not None and chosen._handle.ptr == handle.ptr
                else self.Stream._from_handle(index, handle)
            )
        return chosen or self.default_stream(index)

    def set_stream(self, stream: Stream | None) -> None:
        """Choose the calling thread's stream, and its device."""
        if stream is not None:
            self.set_device(stream.device_index)
            self._selected.streams[stream.device_index] = stream
            if stream._handle is not None:
                self.runtime(stream.device_index).use(stream._handle)

    def stream(self, stream: Stream | None) -> StreamContext:
        """Choose a stream, and its device, for the time of a `with` block."""
        return StreamContext(stream)

    # -- memory --

    def memory_stats(self, device=None) -> OrderedDict[str, int]:
        """The allocator's counts by PyTorch's names, such as "allocated_bytes.all.peak"."""
        if not self.is_initialized():
            return OrderedDict()
        before = self._accumulated.get(self.index(device), {})
        return OrderedDict(
            (name, n - before.get(name, 0)) for name, n in sorted(self._runtime(device).memory_stats().items())
        )

    def memory_allocated(self, device=None) -> int:
        """Bytes that tensors take."""
        return self.memory_stats(device).get("allocated_bytes.all.current", 0)

    def max_memory_allocated(self, device=None) -> int:
        """The most bytes that tensors took at one time, since the start or `reset_peak_memory_stats`."""
        return self.memory_stats(device).get("allocated_bytes.all.peak", 0)

    def memory_reserved(self, device=None) -> int:
        """Bytes that tensors use or that the allocator caches."""
        return self.memory_stats(device).get("reserved_bytes.all.current", 0)

    def max_memory_reserved(self, device=None) -> int:
        """The peak of the bytes that were used or cached."""
        return self.memory_stats(device).get("reserved_bytes.all.peak", 0)

    def reset_peak_memory_stats(self, device=None) -> None:
        """Begin to count the peaks anew."""
        self._runtime(device).reset_peak_memory_stats()

    def reset_accumulated_memory_stats(self, device=None) -> None:
        """Begin to count anew what only grows: allocations, frees, retries, failures."""
        counts = self._runtime(device).memory_stats()
        growing = {
            name: n for name, n in counts.items() if name.startswith("num_") or name.endswith((".allocated", ".freed"))
        }
        self._accumulated[self.index(device)] = growing

    def empty_cache(self) -> None:
        """Release cached memory to the devices in use."""
        for table in backend_registry.tables_in_use(self.name):
            table.backend.runtime(table.device.index or 0).empty_cache()

    def mem_get_info(self, device=None) -> tuple[int, int]:
        """Free and total bytes of the device. On an OpenCL GPU "free" is what this process has not taken: OpenCL does
        not tell more.
        """
        return self._runtime(device).mem_get_info()

    # -- random numbers --

    def _default_generator(self, device=None) -> generators.Generator:
        return generators.default_generator_of(backend_registry.table_of(device_type(self.name, self.index(device))))

    def default_generators(self) -> tuple:
        """The default generators of all devices; none before a device is in use."""
        return tuple(self._default_generator(i) for i in range(self.device_count())) if self.is_initialized() else ()

    def manual_seed(self, seed: int) -> None:
        """Seed the current device's generator; nothing happens without a device."""
        if self.is_available():
            generators.seed_device(device_type(self.name, self.current_device()), int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Seed the generators of all devices; nothing happens without one."""
        for i in range(self.device_count()):
            generators.seed_device(device_type(self.name, i), int(seed))

    def seed(self) -> None:
        """Seed the current device's generator from the operating system."""
        if self.is_available():
            self._default_generator().seed()

    def seed_all(self) -> None:
        """Seed the generators of all devices alike, from the operating system."""
        if self.is_available():
            self.manual_seed_all(self._default_generator().seed())

    def initial_seed(self) -> int:
        """The seed of the current device's generator."""
        return self._default_generator().initial_seed()

    def get_rng_state(self, device=None):
        """The state of a device's generator as a uint8 tensor (on the CPU)."""
        return self._default_generator(device).get_state()

    def get_rng_state_all(self) -> list:
        """The states of all devices' generators."""
        return [self.get_rng_state(i) for i in range(self.device_count())]

    def set_rng_state(self, new_state, device=None) -> None:
        """Set the state of a device's generator; nothing happens without a device."""
        if self.is_available():
            self._default_generator(device).set_state(new_state)

    def set_rng_state_all(self, new_states) -> None:
        """Set the states of all devices' generators."""
        for i, state in enumerate(new_states):
            self.set_rng_state(state, i)


CUDA, OPENCL = Accelerator("cuda"), Accelerator("opencl")
