"""OpenCL memory allocator: the pool, statistics, and out-of-memory errors."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyopencl as cl
from pyopencl import tools

from torchlite._dispatch.backend import OutOfMemoryError
from torchlite_backends.device_runtime.core.device import format_size

_FAILURES = (cl.MemoryError, cl.LogicError, cl.RuntimeError, MemoryError)
_LARGE_BYTES = 1 << 20


class Allocator:
    """Blocks of a device's memory from a pool.

    Drivers for CPUs promise memory that does not exist, so the device's stated limits are enforced here: `capacity` is
    its total in bytes, `largest` the maximum of one block.
    """

    def __init__(self, device: Any):
        self._device = device
        self.pool = tools.MemoryPool(tools.ImmediateAllocator(device.queue))
        self.capacity: int = device.cl_device.global_mem_size
        self.largest: int = device.cl_device.max_mem_alloc_size
        self.peak = 0
        self.reserved_peak = 0
        self.retries = 0
        self.failures = 0
        self.emptied = 0  # number of times that free blocks were released, after which their handles may be reused

    def allocate(self, nbytes: int, array: Any = None):
        """Allocate a block. OutOfMemoryError with the sizes if that fails after the pool was emptied."""
        pool = self.pool
        if nbytes > self.largest:
            raise self._out_of_memory_error(nbytes)
        try:
            block: Any = pool.allocate(nbytes or 4)
            if nbytes >= _LARGE_BYTES and pool.managed_bytes > self.capacity:
                block = None  # back into the pool, which is then emptied
                block = self._allocate_again(nbytes)
        except _FAILURES:
            block = self._allocate_again(nbytes)
        active = pool.active_bytes
        if active > self.peak:
            self.peak = active
        return block

    def _allocate_again(self, nbytes: int):
        self.retries += 1
        self.empty()
        if self.pool.managed_bytes + nbytes > self.capacity:
            raise self._out_of_memory_error(nbytes)
        try:
            return self.pool.allocate(nbytes or 4)
        except _FAILURES as error:
            raise self._out_of_memory_error(nbytes) from error

    def empty(self) -> None:
        """Release the pool's free blocks to the device."""
        self.reserved_peak = max(self.reserved_peak, self.pool.managed_bytes)
        self._device.queue.finish()
        self.emptied += 1
        self.pool.free_held()

    def _out_of_memory_error(self, nbytes: int) -> OutOfMemoryError:
        self.failures += 1
        where, free = (
            f"opencl:{self._device.index} ({self._device.name})",
            max(self.capacity - self.pool.managed_bytes, 0),
        )
        limit = f" The device gives at most {format_size(self.largest)} in one block." if nbytes > self.largest else ""
        taken, total = format_size(self.pool.active_bytes), format_size(self.capacity)
        return OutOfMemoryError(
            f"OpenCL out of memory. Tried to allocate {format_size(nbytes)}. Device {where} has a total capacity "
            f"of {total} of which {format_size(free)} is free.{limit} {taken} is allocated by tensors, and "
            f"{format_size(self.pool.managed_bytes)} is reserved by torchlite."
        )

    def reset_peak(self) -> None:
        """Reset the peak statistics."""
        self.peak, self.reserved_peak = self.pool.active_bytes, self.pool.managed_bytes

    def statistics(self) -> dict[str, int]:
        """Return allocated and reserved bytes, current and peak, and the number of failures, under PyTorch's names."""
        pool = self.pool
        held = pool.managed_bytes
        return {
            "allocated_bytes.all.current": pool.active_bytes,
            "allocated_bytes.all.peak": max(self.peak, pool.active_bytes),
            "reserved_bytes.all.current": held,
            "reserved_bytes.all.peak": max(self.reserved_peak, held),
            "active.all.current": pool.active_blocks,
            "inactive.all.current": pool.held_blocks,
            "num_alloc_retries": self.retries,
            "num_ooms": self.failures,
        }

    def free(self) -> int:
        """Return the free bytes as far as known: of a CPU the system's, of a GPU those this process has not
        allocated.
        """
        rest = max(self.capacity - self.pool.managed_bytes, 0)
        if self._device.is_cpu:
            with contextlib.suppress(OSError, StopIteration):
                line = next(
                    line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable")
                )
                rest = min(rest, int(line.split()[1]) << 10)
        return rest
