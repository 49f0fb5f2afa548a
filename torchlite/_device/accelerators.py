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
from .._types.devices import get_default_device
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
            """Sets the current device of a block; ``None`` and a negative index change nothing.

            Args:
                device: The device, by index, name or `torch.device`.

            Example:
                >>> with torch.cuda.device(-1):
                ...     torch.cuda.current_device()
                0
            """

            def __init__(self, device: Any):
                self.idx = -1 if device is None else accelerator.index(device)

            def __enter__(self):
                self.prev_idx = accelerator.current_device() if self.idx >= 0 else -1
                accelerator.set_device(self.idx)

            def __exit__(self, *exc):
                accelerator.set_device(self.prev_idx)
                return False

        class device_of(device):
            """Sets the current device of a block to that of a tensor.

            A tensor of another device type changes nothing.

            Args:
                obj: The tensor.

            Example:
                >>> with torch.cuda.device_of(torch.ones(2)):
                ...     torch.cuda.current_device()
                0
            """

            def __init__(self, obj: Any):
                super().__init__(obj.get_device() if obj.device.type == accelerator.name else -1)

        self.device, self.device_of = device, device_of

    # -- whether there are any --

    def why_not(self) -> str:
        """Returns why no device of this type can be used: what is missing and what to install. ``""`` if one can.

        Example:
            >>> torch.cuda.is_available() == (torch.cuda.why_not() == "")
            True
        """
        try:
            return backend_registry.backend_of(self.name).why_not()
        except Exception as error:  # a query must not raise, whatever the driver does
            return str(error) or type(error).__name__

    def is_available(self) -> bool:
        """Returns whether a device of this type can be used. It never raises.

        Example:
            >>> device = "cuda" if torch.cuda.is_available() else "cpu"
        """
        return self.why_not() == ""

    def is_accelerator(self) -> bool:
        """Whether `torch.accelerator` may name this type: a driver whose only devices are the machine's processors
        counts if its backend was asked for, or if it is the default device's.
        """
        if not self.is_available():
            return False
        says = getattr(backend_registry.backend_of(self.name), "is_accelerator", None)
        return says is None or says() or get_default_device().type == self.name

    def device_count(self) -> int:
        """Returns the number of devices of this type that can be used.

        Example:
            >>> torch.cuda.is_available() == (torch.cuda.device_count() > 0)
            True
        """
        return backend_registry.backend_of(self.name).device_count() if self.is_available() else 0

    def is_initialized(self) -> bool:
        """Returns whether a device of this type is in use.

        Example:
            >>> torch.cuda.is_initialized() and not torch.cuda.is_available()
            False
        """
        return bool(backend_registry.tables_in_use(self.name))

    def init(self) -> None:
        """Initializes the current device. Functions that need a device call it.

        Raises:
            RuntimeError: There is no device; the text says what is missing.

        Example:
            >>> if torch.cuda.is_available():
            ...     torch.cuda.init()
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
        """Returns the index of this thread's current device, which a name without an index means.

        Example:
            >>> torch.cuda.current_device()
            0
        """
        return backend_registry.current_index(self.name)

    def set_device(self, device: Any) -> None:
        """Sets this thread's current device.

        Args:
            device: The device, by index, name or `torch.device`. A negative index changes nothing.

        Raises:
            RuntimeError: There is no such device.
            ValueError: It is of another type.

        Example:
            >>> if torch.cuda.is_available():
            ...     torch.cuda.set_device(0)
        """
        index = self.index(device)
        if index >= 0:
            backend_registry.table_of(device_type(self.name, index))
            backend_registry.set_current_index(self.name, index)

    def get_device_name(self, device=None) -> str:
        """Returns a device's name.

        Args:
            device: The device. Default: the current one.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if torch.cuda.is_available():
            ...     name = torch.cuda.get_device_name(0)
        """
        return self._runtime(device).name

    def get_device_properties(self, device=None) -> Any:
        """Returns a device's properties: ``name``, ``total_memory`` in bytes, ``multi_processor_count`` and others.

        Args:
            device: The device. Default: the current one.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if torch.cuda.is_available():
            ...     total = torch.cuda.get_device_properties(0).total_memory
        """
        return self._runtime(device).properties()

    # -- order --

    def synchronize(self, device=None) -> None:
        """Waits until a device has done all work that it was given.

        Args:
            device: The device. Default: the current one.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if torch.cuda.is_available():
            ...     torch.cuda.synchronize()
        """
        self._runtime(device).synchronize()

    def default_stream(self, device=None) -> Stream:
        """Returns the stream of a device that receives work if no other is selected.

        Args:
            device: The device. Default: the current one.

        Example:
            >>> if torch.cuda.is_available():
            ...     stream = torch.cuda.default_stream()
        """
        index = self.index(device)
        runtime = self.runtime(index)
        return self.Stream._from_handle(index, runtime.default_stream() if self.has_streams(runtime) else None)

    def current_stream(self, device=None) -> Stream:
        """Returns the stream of a device that receives this thread's work.

        Args:
            device: The device. Default: the current one.

        Example:
            >>> if torch.cuda.is_available():
            ...     stream = torch.cuda.current_stream()
        """
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
        """Selects this thread's stream, and its device.

        Args:
            stream: The stream; ``None`` changes nothing.

        Example:
            >>> torch.cuda.set_stream(None)
            >>> if torch.cuda.is_available():
            ...     torch.cuda.set_stream(torch.cuda.default_stream())
        """
        if stream is not None:
            self.set_device(stream.device_index)
            self._selected.streams[stream.device_index] = stream
            if stream._handle is not None:
                self.runtime(stream.device_index).use(stream._handle)

    def stream(self, stream: Stream | None) -> StreamContext:
        """Selects a stream, and its device, for a block.

        Args:
            stream: The stream; ``None`` changes nothing.
        """
        return StreamContext(stream)

    # -- memory --

    def memory_stats(self, device=None) -> OrderedDict[str, int]:
        """Returns the allocator's counts by PyTorch's names, such as ``"allocated_bytes.all.peak"``.

        Args:
            device: The device. Default: the current one.

        Returns:
            An ordered dictionary; empty before a device is in use.

        Example:
            >>> torch.cuda.is_initialized() or len(torch.cuda.memory_stats()) == 0
            True
        """
        if not self.is_initialized():
            return OrderedDict()
        before = self._accumulated.get(self.index(device), {})
        return OrderedDict(
            (name, n - before.get(name, 0)) for name, n in sorted(self._runtime(device).memory_stats().items())
        )

    def memory_allocated(self, device=None) -> int:
        """Returns the bytes that tensors use on a device.

        Args:
            device: The device. Default: the current one.

        Example:
            >>> torch.cuda.is_initialized() or torch.cuda.memory_allocated() == 0
            True
        """
        return self.memory_stats(device).get("allocated_bytes.all.current", 0)

    def max_memory_allocated(self, device=None) -> int:
        """Returns the most bytes that tensors used at one time, since the start or `reset_peak_memory_stats`.

        Args:
            device: The device. Default: the current one.

        Example:
            >>> torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
            True
        """
        return self.memory_stats(device).get("allocated_bytes.all.peak", 0)

    def memory_reserved(self, device=None) -> int:
        """Returns the bytes that tensors use or that the allocator keeps.

        Args:
            device: The device. Default: the current one.

        Example:
            >>> torch.cuda.memory_reserved() >= 0
            True
        """
        return self.memory_stats(device).get("reserved_bytes.all.current", 0)

    def max_memory_reserved(self, device=None) -> int:
        """Returns the most bytes that were used or kept at one time.

        Args:
            device: The device. Default: the current one.

        Example:
            >>> torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
            True
        """
        return self.memory_stats(device).get("reserved_bytes.all.peak", 0)

    def reset_peak_memory_stats(self, device=None) -> None:
        """Starts to count the peaks of memory from now.

        Args:
            device: The device. Default: the current one.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if torch.cuda.is_available():
            ...     torch.cuda.reset_peak_memory_stats()
        """
        self._runtime(device).reset_peak_memory_stats()

    def reset_accumulated_memory_stats(self, device=None) -> None:
        """Starts to count from now what only grows: allocations, frees, retries and failures.

        Args:
            device: The device. Default: the current one.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if torch.cuda.is_available():
            ...     torch.cuda.reset_accumulated_memory_stats()
        """
        counts = self._runtime(device).memory_stats()
        growing = {
            name: n for name, n in counts.items() if name.startswith("num_") or name.endswith((".allocated", ".freed"))
        }
        self._accumulated[self.index(device)] = growing

    def empty_cache(self) -> None:
        """Returns the memory that the allocator keeps to the devices in use.

        Example:
            >>> torch.cuda.empty_cache()
        """
        for table in backend_registry.tables_in_use(self.name):
            table.backend.runtime(table.device.index or 0).empty_cache()

    def mem_get_info(self, device=None) -> tuple[int, int]:
        """Returns the free and the total bytes of a device.

        On an OpenCL GPU "free" is what this process does not use: OpenCL does not say more.

        Args:
            device: The device. Default: the current one.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if torch.cuda.is_available():
            ...     free, total = torch.cuda.mem_get_info()
        """
        return self._runtime(device).mem_get_info()

    # -- random numbers --

    def _default_generator(self, device=None) -> generators.Generator:
        return generators.default_generator_of(backend_registry.table_of(device_type(self.name, self.index(device))))

    def default_generators(self) -> tuple:
        """The default generators of all devices; none before a device is in use."""
        return tuple(self._default_generator(i) for i in range(self.device_count())) if self.is_initialized() else ()

    def manual_seed(self, seed: int) -> None:
        """Seeds the generator of the current device; does nothing without a device.

        Args:
            seed: The seed, an integer.

        Example:
            >>> torch.cuda.manual_seed(0)
        """
        if self.is_available():
            generators.seed_device(device_type(self.name, self.current_device()), int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Seeds the generators of all devices; does nothing without one.

        Args:
            seed: The seed, an integer.

        Example:
            >>> torch.cuda.manual_seed_all(0)
        """
        for i in range(self.device_count()):
            generators.seed_device(device_type(self.name, i), int(seed))

    def seed(self) -> None:
        """Seeds the generator of the current device from the operating system; does nothing without a device.

        Example:
            >>> torch.cuda.seed()
        """
        if self.is_available():
            self._default_generator().seed()

    def seed_all(self) -> None:
        """Seeds the generators of all devices with one number from the operating system.

        Example:
            >>> torch.cuda.seed_all()
        """
        if self.is_available():
            self.manual_seed_all(self._default_generator().seed())

    def initial_seed(self) -> int:
        """Returns the seed of the current device's generator.

        Raises:
            RuntimeError: There is no device.

        Example:
            >>> if torch.cuda.is_available():
            ...     torch.cuda.manual_seed(3)
            ...     assert torch.cuda.initial_seed() == 3
        """
        return self._default_generator().initial_seed()

    def get_rng_state(self, device=None):
        """Returns the state of a device's generator, a uint8 tensor on the CPU.

        Args:
            device: The device. Default: the current one.

        Raises:
            RuntimeError: There is no such device.

        Example:
            >>> if torch.cuda.is_available():
            ...     state = torch.cuda.get_rng_state()
        """
        return self._default_generator(device).get_state()

    def get_rng_state_all(self) -> list:
        """Returns the states of the generators of all devices, a list.

        Example:
            >>> len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
            True
        """
        return [self.get_rng_state(i) for i in range(self.device_count())]

    def set_rng_state(self, new_state, device=None) -> None:
        """Sets the state of a device's generator; does nothing without a device.

        Args:
            new_state: The state, as `get_rng_state` returns it.
            device: The device. Default: the current one.

        Example:
            >>> if torch.cuda.is_available():
            ...     torch.cuda.set_rng_state(torch.cuda.get_rng_state())
        """
        if self.is_available():
            self._default_generator(device).set_state(new_state)

    def set_rng_state_all(self, new_states) -> None:
        """Sets the states of the generators of all devices.

        Args:
            new_states: The states, as `get_rng_state_all` returns them.

        Example:
            >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
        """
        for i, state in enumerate(new_states):
            self.set_rng_state(state, i)


CUDA, OPENCL = Accelerator("cuda"), Accelerator("opencl")
