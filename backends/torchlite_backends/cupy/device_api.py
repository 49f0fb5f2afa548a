"""Device interface of `torch.cuda`: properties, streams, events, captured graphs, memory."""

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
    """Properties of a device; memory in bytes."""

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
    """Event in a stream; with `timing` it records its time."""

    def __init__(self, runtime: DeviceAPI, timing: bool, handle: Any = None):
        device = runtime.device
        if device.waiting.steps:
            device.waiting.start()
        self._driver = device.driver
        self.event = self._driver.event(timing, (handle or self._driver.stream()).ptr)

    @property
    def ptr(self) -> int:
        """Return the address of CUDA's event."""
        return self.event.ptr

    def done(self) -> bool:
        """True if all work before it has run."""
        return self._driver.event_query(self.event)

    def wait(self) -> None:
        """Wait for all work before it."""
        self._driver.wait_event(self.event)

    def milliseconds_to(self, later: Event) -> float:
        """Return the time until another event of the same device; both with `timing`, and done."""
        return self._driver.milliseconds(self.event, later.event)


class Graph:
    """Captured graph that can be replayed. Keeps the pool of its memory alive."""

    def __init__(self, runtime: DeviceAPI, graph: Any, pool: Any, noted: bool, draws: Any):
        self._runtime, self._graph, self.pool, self._noted, self._draws = runtime, graph, pool, noted, draws

    def replay(self) -> None:
        """Replay in the calling thread's stream."""
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        device = self._runtime.device
        if device.waiting.steps:
            device.waiting.start()
        self._draws.advance_offsets()
        device.driver.launch_graph(self._graph, device.driver.stream())
        errors = device.state.get("errors")
        if self._noted and errors is not None:  # its kernels may note an index that does not fit
            errors.asked = True

    @property
    def draws(self) -> bool:
        """True if the graph draws random numbers."""
        return bool(self._draws.places)

    def reset(self) -> None:
        """Release the captured graph and its memory."""
        self._graph = self.pool = self._draws = None


class DeviceAPI:
    """Implementation of `torchlite._device.accelerators.Runtime`, with the functions of devices that have streams."""

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
        """Return a stream that does not wait for the default one. Lower numbers have precedence."""
        return self._driver.new_stream(priority)

    def default_stream(self) -> Any:
        """Return CUDA's legacy default stream."""
        return self._driver.default_stream()

    def stream_from(self, ptr: int) -> Any:
        """Return a stream that another library created and keeps alive."""
        return self._driver.stream_from(ptr)

    def current_stream(self) -> Any:
        """Return the calling thread's stream: CuPy's current one."""
        return self._driver.stream()

    def use(self, handle: Any) -> None:
        """Make a stream the calling thread's."""
        self._start_waiting()
        self._driver.use(handle)

    def _start_waiting(self) -> None:
        if self.device.waiting.steps:
            self.device.waiting.start()

    def synchronize_stream(self, handle: Any) -> None:
        """Wait for all work in a stream."""
        self._start_waiting()
        self._driver.synchronize_stream(handle.ptr)
        raise_pending(self.device)

    def is_stream_idle(self, handle: Any) -> bool:
        """True if a stream is idle."""
        self._start_waiting()
        return self._driver.idle(handle.ptr)

    def marker(self, timing: bool, stream: Any = None) -> Event:
        """Record an event in a stream, by default the calling thread's."""
        return Event(self, timing, stream)

    def wait_for(self, marker: Event, stream: Any) -> None:
        """Make later work in a stream wait for an event, without blocking the host."""
        self._start_waiting()
        self._driver.stream_wait_event(stream.ptr, marker.event)

    def record_use(self, raw: Any, handle: Any) -> None:
        """Delay reuse of the array's memory until the work queued in a stream at the array's end has run."""
        self.device.memory.record_stream(raw, handle)

    # -- graphs --

    def is_capturing(self) -> bool:
        """True if launches are captured instead of run."""
        return self.device.capturing

    def new_pool(self) -> Any:
        """Return a memory pool that graphs can share."""
        return self.device.memory.new_pool()

    def begin_capture(self, pool: Any = None, mode: str = "global") -> None:
        """Capture the calling thread's launches in its stream, which must not be the default one.

        Memory comes from `pool`, by default a new one. `mode` is PyTorch's; CUDA's relaxed one is always used, since a
        pool may have to allocate during capture.
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
            self.device.blas.handle()  # created with its workspace before memory comes from the graph's pool
        memory = contextlib.ExitStack()
        self._driver.begin_capture(handle)
        memory.enter_context(self._driver.allocate_from_pool(pool))
        self._capture = handle, pool, memory, awaited
        self.device.capturing, self.device.draws = True, CapturedDraws(self.device)

    def end_capture(self) -> Graph:
        """Return the graph captured since `begin_capture`."""
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
        """Return how many of cuDNN's graphs ran, are cached, and were refused; all 0 without cuDNN."""
        used = self.device.state.get("cudnn")
        return {"runs": 0, "plans": 0, "refused": 0} if used is None else used.statistics()

    # -- memory --

    def memory_stats(self) -> dict[str, int]:
        return self.device.memory.statistics()

    def reset_peak_memory_stats(self) -> None:
        self.device.memory.reset_peak()

    def set_memory_limit(self, nbytes: int) -> None:
        """Limit the pool to so many bytes; 0 removes the limit."""
        self._driver.limit(self._driver.pool, nbytes)

    def empty_cache(self) -> None:
        self.device.memory.empty()

    def profile(self, on: bool) -> None:
        """Start or stop NVIDIA's profiler."""
        self._start_waiting()
        self._driver.profile(on)

    def can_access(self, peer: int) -> bool:
        """True if the device can access the memory of another one."""
        return self._driver.can_access(peer)

    def pinned(self, nbytes: int) -> Any:
        """Return page-locked host memory: an array of bytes that owns it."""
        return self._driver.pinned(nbytes)

    def mem_get_info(self) -> tuple[int, int]:
        return self._driver.memory_info()
