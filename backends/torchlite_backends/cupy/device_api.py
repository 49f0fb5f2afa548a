"""A device as `torch.cuda` asks for it: properties, streams, events, captured graphs, memory."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from torchlite_backends.device_runtime.array_ops.random import CapturedDraws
from torchlite_backends.device_runtime.core.device_asserts import raise_pending

from .device import Device

_MODES = ("global", "thread_local", "relaxed")


@dataclasses.dataclass(frozen=True, repr=False)
class DeviceProperties:
    """What a device is and has; memory in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    uuid: str
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    is_integrated: int
    is_multi_gpu_board: int
    pci_bus_id: int
    pci_device_id: int
    pci_domain_id: int

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"uuid={self.uuid}, pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


class Event:
    """A place in a stream; with `timing` its time is kept."""

    def __init__(self, runtime: DeviceAPI, timing: bool, handle: Any = None):
        device = runtime.device
        if device.waiting.steps:
            device.waiting.start()
        self._driver = device.driver
        self.event = self._driver.event(timing, (handle or self._driver.stream()).ptr)

    @property
    def ptr(self) -> int:
        """The address of CUDA's event."""
        return self.event.ptr

    def done(self) -> bool:
        """Whether everything before it has run."""
        return self._driver.event_query(self.event)

    def wait(self) -> None:
        """Wait for everything before it."""
        self._driver.wait_event(self.event)

    def milliseconds_to(self, later: Event) -> float:
        """The time until another marker of the same device; both made with `timing`, and done."""
        return self._driver.milliseconds(self.event, later.event)


class Graph:
    """What was captured, ready to run again and again. Keeps the pool in which its memory lies."""

    def __init__(self, runtime: DeviceAPI, graph: Any, pool: Any, noted: bool, draws: Any):
        self._runtime, self._graph, self.pool, self._noted, self._draws = runtime, graph, pool, noted, draws

    def replay(self) -> None:
        """Run it in the calling thread's stream."""
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        device = self._runtime.device
        if device.waiting.steps:
            device.waiting.start()
        self._draws.renew()
        device.driver.launch_graph(self._graph, device.driver.stream())
        errors = device.state.get("errors")
        if self._noted and errors is not None:  # its kernels may note an index that does not fit
            errors.asked = True

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        return bool(self._draws.places)

    def reset(self) -> None:
        """Give up what was captured, and its memory."""
        self._graph = self.pool = self._draws = None


class DeviceAPI:
    """One device. What is asked for here is `torchlite._device.accelerators.Runtime`, and what a device with streams
    has beyond it.
    """

    def __init__(self, device: Device):
        self.device = device
        self.name = device.name
        self._driver = device.driver
        self._capture: Any = (
            None  # stream, pool, the context that allocates from it, whether an error was awaited before
        )

    def properties(self) -> DeviceProperties:
        return DeviceProperties(**self.device.properties)

    def synchronize(self) -> None:
        self.device.finish()
        raise_pending(self.device)

    def idle(self) -> bool:
        return self.is_stream_idle(self._driver.stream())

    # -- streams --

    def new_stream(self, priority: int = 0) -> Any:
        """A stream that does not wait for the default one. Lower numbers come first."""
        return self._driver.new_stream(priority)

    def default_stream(self) -> Any:
        """CUDA's legacy default stream."""
        return self._driver.default_stream()

    def stream_from(self, ptr: int) -> Any:
        """A stream that another library made; who made it keeps it alive."""
        return self._driver.stream_from(ptr)

    def current_stream(self) -> Any:
        """The calling thread's stream: CuPy's current one."""
        return self._driver.stream()

    def use(self, handle: Any) -> None:
        """Make a stream the calling thread's."""
        self._start_waiting()
        self._driver.use(handle)

    def _start_waiting(self) -> None:
        if self.device.waiting.steps:
            self.device.waiting.start()

    def synchronize_stream(self, handle: Any) -> None:
        """Wait for everything in a stream."""
        self._start_waiting()
        self._driver.synchronize_stream(handle.ptr)
        raise_pending(self.device)

    def is_stream_idle(self, handle: Any) -> bool:
        """Whether everything in a stream has run."""
        self._start_waiting()
        return self._driver.idle(handle.ptr)

    def marker(self, timing: bool, stream: Any = None) -> Event:
        """A place in a stream, the calling thread's when none is given."""
        return Event(self, timing, stream)

    def wait_for(self, marker: Event, stream: Any) -> None:
        """Let what comes later in a stream wait for a marker, and not the host."""
        self._start_waiting()
        self._driver.stream_wait_event(stream.ptr, marker.event)

    def record_use(self, raw: Any, handle: Any) -> None:
        """Do not give the array's memory out again before what is in a stream when it dies has run."""
        self.device.memory.record_stream(raw, handle)

    # -- graphs --

    def is_capturing(self) -> bool:
        """Whether launches are recorded instead of run."""
        return self.device.capturing

    def new_pool(self) -> Any:
        """A memory pool that graphs can share."""
        return self.device.memory.new_pool()

    def begin_capture(self, pool: Any = None, mode: str = "global") -> None:
        """Record what the calling thread launches in its stream, which must not be the default one. Memory comes from
        `pool`, a new one when none is given.

        `mode` is PyTorch's; CUDA's relaxed one is always used, since a pool may have to ask the device for memory
        meanwhile.
        """
        if mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {mode}"
            )
        handle = self._driver.stream()
        if handle.ptr == self.default_stream().ptr:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay "
                "them on the default stream.)"
            )
        if self.device.capturing:
            raise RuntimeError("a graph is being captured on this device already")
        self._start_waiting()
        pool = self.new_pool() if pool is None else pool
        errors = self.device.state.get("errors")
        awaited = errors is not None and errors.asked
        if errors is not None:
            errors.asked = False
        if self.device.blas is not None:
            self.device.blas.handle()  # made and given its workspace while memory is not the graph's
        memory = contextlib.ExitStack()
        self._driver.begin_capture(handle)
        memory.enter_context(self._driver.allocating_from(pool))
        self._capture = handle, pool, memory, awaited
        self.device.capturing, self.device.draws = True, CapturedDraws(self.device)

    def end_capture(self) -> Graph:
        """What was recorded since `begin_capture`."""
        if self._capture is None:
            raise RuntimeError("no graph is being captured on this device")
        handle, pool, memory, awaited = self._capture
        self._start_waiting()
        memory.close()
        draws = self.device.draws
        self._capture, self.device.capturing, self.device.draws = None, False, None
        graph = self._driver.end_capture(handle)
        errors = self.device.state.get("errors")
        noted = errors is not None and errors.asked
        if errors is not None:
            errors.asked = awaited
        return Graph(self, graph, pool, noted, draws)

    def cudnn_statistics(self) -> dict[str, int]:
        """How many of cuDNN's graphs ran, how many are kept, and how many it refused; all 0 where it is not used."""
        used = self.device.state.get("cudnn")
        return {"runs": 0, "plans": 0, "refused": 0} if used is None else used.statistics()

    # -- memory --

    def memory_stats(self) -> dict[str, int]:
        return self.device.memory.statistics()

    def reset_peak_memory_stats(self) -> None:
        self.device.memory.reset_peak()

    def set_memory_limit(self, nbytes: int) -> None:
        """Let the pool hold at most so many bytes, any number for 0."""
        self._driver.limit(self._driver.pool, nbytes)

    def empty_cache(self) -> None:
        self.device.memory.empty()

    def profile(self, on: bool) -> None:
        """Let NVIDIA's profiler look from here on, or no longer."""
        self._start_waiting()
        self._driver.profile(on)

    def can_access(self, peer: int) -> bool:
        """Whether the device can read the memory of another one."""
        return self._driver.can_access(peer)

    def pinned(self, nbytes: int) -> Any:
        """Page-locked host memory, an array of bytes that owns it."""
        return self._driver.pinned(nbytes)

    def mem_get_info(self) -> tuple[int, int]:
        return self._driver.memory_info()
