"""CUDA memory allocator over CuPy's memory pools, with statistics and out-of-memory errors."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any

from torchlite._dispatch.backend import OutOfMemoryError
from torchlite_backends.device_runtime.core.device import format_size

_BLOCK_BYTES = 512  # bytes: sizes of blocks are multiples of it


class GraphPool:
    """Memory pool for allocations during graph capture."""

    def __init__(self, pool: Any):
        self.malloc, self.used_bytes, self.total_bytes, self.free_all_blocks = (
            pool.malloc,
            pool.used_bytes,
            pool.total_bytes,
            pool.free_all_blocks,
        )


class Allocator:
    """Allocator of one device, from CuPy's pool or, during capture, from the graph's pool.

    A block is free when nothing refers to it, and is reused by later work in the stream in which it was allocated.
    """

    def __init__(self, device: Any):
        self._device, self._driver = device, device.driver
        self._give, self._used = device.driver.allocate, device.driver.used_bytes
        self._main = device.driver.pool
        self._graphs: weakref.WeakSet[Any] = weakref.WeakSet()  # pools of graphs
        self._any_graphs = False
        self._held: deque[tuple[Any, Any]] = (
            deque()
        )  # blocks in use by another stream, each with the event that ends the use
        self._lock = threading.Lock()
        self.peak = self.reserved_peak = self.retries = self.failures = 0
        self._most = (
            0  # bytes in use as they were counted last, and all that was allocated since: no fewer than are in use
        )

    def allocate(self, nbytes: int, array: Any = None) -> Any:
        """Allocate a block. OutOfMemoryError with the sizes if that fails after the pool was emptied."""
        if self._held:
            self._release_ready()
        try:
            block = self._give(nbytes or 1)
        except self._driver.out_of_memory:
            block = self._allocate_again(nbytes)
        self._most += nbytes + _BLOCK_BYTES
        if self._most > self.peak:  # otherwise there is no new peak, and CuPy 13 would add up the sizes of all blocks
            self._most = used = self.referenced_bytes()
            if used > self.peak:
                self.peak = used
        return block

    def _allocate_again(self, nbytes: int) -> Any:
        self.retries += 1
        self._device.finish_unless_capturing()
        self.empty()
        try:
            return self._give(nbytes or 1)
        except self._driver.out_of_memory as error:
            self.failures += 1
            raise self._out_of_memory_error(nbytes) from error

    def referenced_bytes(self) -> int:
        """Return the bytes of referenced blocks."""
        used = self._used(self._main)
        return used + sum(map(self._used, self._graphs)) if self._any_graphs else used

    def reserved_bytes(self) -> int:
        """Return the bytes that the pools reserve."""
        return sum(map(self._driver.held_bytes, (self._main, *self._graphs)))

    def empty(self) -> None:
        """Release the pools' free blocks to the device."""
        self.reserved_peak = max(self.reserved_peak, self.reserved_bytes())
        self._release_ready()
        self._driver.empty(self._main)

    def new_pool(self) -> Any:
        """Return a pool for graphs, included in the statistics while it lives."""
        pool = GraphPool(self._driver.new_pool())
        self._graphs.add(pool)
        self._any_graphs = True
        return pool

    def record_stream(self, array: Any, handle: Any) -> None:
        """Delay reuse of an array's memory until the work queued in a stream at the array's end has run."""
        owner = array if array.base is None else array.base
        weakref.finalize(owner, self._keep_block_referenced, array.buffer, handle).atexit = False

    def _keep_block_referenced(self, block: Any, handle: Any) -> None:
        if self._device.capturing:  # an event would become part of the graph, whose pool keeps the memory
            return
        self._held.append((block, self._driver.event(False, handle.ptr)))

    def _release_ready(self) -> None:
        if self._device.capturing:
            return
        with self._lock:
            for _ in range(len(self._held)):
                block, event = self._held.popleft()
                if not self._driver.event_query(event):
                    self._held.append((block, event))

    def _out_of_memory_error(self, nbytes: int) -> OutOfMemoryError:
        free, total = self._driver.memory_info()
        used, reserved = self.referenced_bytes(), self.reserved_bytes()
        return OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {format_size(nbytes)}. GPU {self._device.index} has a total "
            f"capacity of {format_size(total)} of which {format_size(free)} is free. Of the allocated memory "
            f"{format_size(used)} is allocated by torchlite, and {format_size(reserved - used)} is reserved by "
            "torchlite but unallocated."
        )

    def reset_peak(self) -> None:
        """Reset the peak statistics."""
        self.peak, self.reserved_peak = self.referenced_bytes(), self.reserved_bytes()

    def statistics(self) -> dict[str, int]:
        """Return allocated and reserved bytes, current and peak, and the number of failures, under PyTorch's names."""
        used, reserved = self.referenced_bytes(), self.reserved_bytes()
        return {
            "allocated_bytes.all.current": used,
            "allocated_bytes.all.peak": max(self.peak, used),
            "reserved_bytes.all.current": reserved,
            "reserved_bytes.all.peak": max(self.reserved_peak, reserved),
            "inactive_split_bytes.all.current": reserved - used,
            "num_alloc_retries": self.retries,
            "num_ooms": self.failures,
        }
