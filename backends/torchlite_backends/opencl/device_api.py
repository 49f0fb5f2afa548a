"""Device interface of `torch.opencl`: properties, events in its one queue, memory."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pyopencl as cl

from torchlite_backends.device_runtime.core.device_asserts import raise_pending

from .device import Device


@dataclasses.dataclass(frozen=True, repr=False)
class DeviceProperties:
    """Properties of a device; memory in bytes."""

    name: str
    platform: str
    vendor: str
    version: str
    driver_version: str
    type: str
    total_memory: int
    max_allocation: int
    local_memory: int
    multi_processor_count: int
    max_work_group_size: int
    has_fp64: bool
    has_fp16: bool
    extensions: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"_OpenCLDeviceProperties(name='{self.name}', platform='{self.platform}', type='{self.type}', "
            f"version='{self.version}', driver_version='{self.driver_version}', "
            f"total_memory={self.total_memory >> 20}MB, max_allocation={self.max_allocation >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, max_work_group_size={self.max_work_group_size}, "
            f"local_memory={self.local_memory >> 10}KB, has_fp64={self.has_fp64}, has_fp16={self.has_fp16})"
        )


def query_properties(device: Device) -> DeviceProperties:
    """Return the properties of a device from its driver."""
    d = device.cl_device
    kinds = ((cl.device_type.GPU, "gpu"), (cl.device_type.ACCELERATOR, "accelerator"), (cl.device_type.CPU, "cpu"))
    extensions = tuple(sorted(d.extensions.split()))
    return DeviceProperties(
        name=device.name,
        platform=d.platform.name.strip(),
        vendor=d.vendor.strip(),
        version=d.version.strip(),
        driver_version=d.driver_version.strip(),
        type=next((name for kind, name in kinds if d.type & kind), "other"),
        total_memory=d.global_mem_size,
        max_allocation=d.max_mem_alloc_size,
        local_memory=device.local_memory,
        multi_processor_count=device.units,
        max_work_group_size=device.max_group,
        has_fp64=device.fp64,
        has_fp16="cl_khr_fp16" in extensions,
        extensions=extensions,
    )


class Event:
    """Event in a device's queue. With `timing` a second, profiled queue waits for it and records the time."""

    def __init__(self, runtime: DeviceAPI, timing: bool):
        self._event = cl.enqueue_marker(runtime.device.queue)
        runtime.device.queue.flush()
        if timing:
            self._event = cl.enqueue_marker(runtime.timing_queue(), wait_for=[self._event])
            runtime.timing_queue().flush()

    def done(self) -> bool:
        """True if all work before it has run."""
        return self._event.command_execution_status == cl.command_execution_status.COMPLETE

    def wait(self) -> None:
        """Wait for all work before it."""
        self._event.wait()

    def milliseconds_to(self, later: Event) -> float:
        """Return the time until another event of the same device; both with `timing`, and done."""
        return (later._event.profile.end - self._event.profile.end) * 1e-6


class DeviceAPI:
    """Implementation of `torchlite._device.accelerators.Runtime`."""

    def __init__(self, device: Device):
        self.device = device
        self.name = device.name
        self._clock: Any = None

    def timing_queue(self) -> Any:
        """Return the queue of timing events; profiling the working queue would slow every launch."""
        if self._clock is None:
            self._clock = cl.CommandQueue(self.device.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        return self._clock

    def properties(self) -> DeviceProperties:
        return query_properties(self.device)

    def synchronize(self) -> None:
        self.device.finish()
        raise_pending(self.device)

    def idle(self) -> bool:
        marker, start = Event(self, False), time.perf_counter()
        while not marker.done():  # drivers take a moment for a marker in an empty queue
            if time.perf_counter() - start > 0.002:
                return False
            time.sleep(0)
        return True

    def marker(self, timing: bool) -> Event:
        return Event(self, timing)

    def memory_stats(self) -> dict[str, int]:
        return self.device.memory.statistics()

    def reset_peak_memory_stats(self) -> None:
        self.device.memory.reset_peak()

    def empty_cache(self) -> None:
        self.device.memory.empty()

    def mem_get_info(self) -> tuple[int, int]:
        return self.device.memory.free(), self.device.memory.capacity
