"""OpenCL CPU device over NumPy's memory, for the CPU engine.

If the driver takes any address of the process (fine-grained system SVM: Intel's), a kernel gets the address of an
array's elements. Otherwise (PoCL) each array gets a buffer on its memory during a call, and the call ends with mapping
them, which makes the writes visible to the host. Nothing is copied in either case.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl._cl import enqueue_nd_range_kernel

from torchlite._settings import fork_locks
from torchlite_backends.array.storage import data_pointer, storage_block
from torchlite_backends.device_runtime.core.device import pack_offset
from torchlite_backends.device_runtime.core.host_memory import HostMemory

from . import device, driver_probe

_BYTE: Any = np.uint8


class HostBuffer:
    """Memory of a NumPy array; `buffer` is its OpenCL buffer if one is needed."""

    __slots__ = ("array", "address", "buffer")

    def __init__(self, array: np.ndarray):
        self.array, self.address = array, data_pointer(array)
        self.buffer: Any = None


class HostFunction(device.OpenCLFunction):
    """Kernel whose array arguments are host memory."""

    __slots__ = ("_handle",)
    device: HostDevice

    def __init__(self, of: HostDevice, kernel: Any, signature: str):
        super().__init__(of, kernel, signature)
        self._handle = kernel.int_ptr

    def __call__(self, global_size: tuple, local_size: tuple | None, *arguments) -> None:
        kernel, at = self.kernel, 0
        for pack, value in zip(self._packers, arguments, strict=True):
            if pack is not None:
                kernel._set_arg_buf(at, pack(value))
            elif value.__class__ is bytes:
                kernel._set_arg_buf(at, value)
            else:
                self.device.set_buffer_argument(self, at, value.buffer)
                at += 1
                kernel._set_arg_buf(at, pack_offset(value.offset))
            at += 1
        enqueue_nd_range_kernel(self.device.queue, kernel, global_size, local_size)

    def start(self, global_size: tuple, local_size: tuple | None, buffers: list, values: list[bytes]) -> None:
        kernel, point, at = self.kernel, self.device.set_buffer_argument, 0
        for buffer in buffers:
            point(self, at, buffer)
            at += 1
        for value in values:
            kernel._set_arg_buf(at, value)
            at += 1
        enqueue_nd_range_kernel(self.device.queue, kernel, global_size, local_size)


class HostDevice(HostMemory, device.Device):
    """A CPU's OpenCL device, or a sub-device with fewer cores.

    The caller of its kernels is inside `using`, and calls `done` before NumPy reads the results.
    """

    chains = False

    def __init__(self, cl_device: Any, units: int, joins: bool = True):
        super().__init__(0, cl_device)
        self._joins = joins  # whether the thread that waits may compute meanwhile: drivers have it do so
        self.units = units  # of the full device: kernels partition by it, so results do not depend on the sub-device
        self.allocate = self._allocate
        self.using = fork_locks.reinit_after_fork(threading.RLock())
        self._blocks: list[HostBuffer] = []  # of the current call: kept alive until its kernels have run
        self._set_address = _load_svm_argument_setter() if has_system_svm(cl_device) else None

    def kernel(self, program: Any, name: str, signature: str) -> HostFunction:
        return HostFunction(self, driver_probe.get_kernel(program, name), signature)

    def _allocate(self, nbytes: int, array: Any = None) -> HostBuffer:
        return self.buffer_of(np.empty(nbytes, np.uint8) if array is None else np.empty(array.shape, array.dtype))

    def buffer_of(self, array: np.ndarray) -> HostBuffer:
        made = HostBuffer(array)
        self._blocks.append(made)
        return made

    def set_buffer_argument(self, function: HostFunction, at: int, memory: HostBuffer) -> None:
        """Set a block of memory as a kernel's argument."""
        if self._set_address is not None:
            self._set_address(function._handle, at, memory.address)
            return
        if memory.buffer is None:
            flags, host = cl.mem_flags, _bytes_of(memory)
            access = flags.READ_WRITE if host.flags.writeable else flags.READ_ONLY
            memory.buffer = cl.Buffer(self.context, flags.USE_HOST_PTR | access, hostbuf=host)
        function.kernel.set_arg(at, memory.buffer)

    def finish(self) -> None:
        for memory in self._blocks:
            if memory.buffer is not None:
                self._to_host(memory)
        self._wait_for_kernels()

    def _wait_for_kernels(self) -> None:
        if self._joins:
            return self.queue.finish()
        over = threading.Lock()
        over.acquire()
        marker = cl.enqueue_marker(self.queue)
        marker.set_callback(cl.command_execution_status.COMPLETE, lambda status: over.release())
        self.queue.flush()
        over.acquire()

    def _to_host(self, memory: HostBuffer) -> None:
        """Enqueue a map that makes kernel writes to a buffer visible to the host when the queue is done."""
        queue, nbytes, byte = self.queue, (memory.buffer.size,), _BYTE
        mapped: Any = cl.enqueue_map_buffer(
            queue, memory.buffer, cl.map_flags.READ, 0, nbytes, byte, is_blocking=False
        )[0]
        mapped.base.release(queue)

    def _return_to_host(self, memory: HostBuffer) -> None:
        if memory.buffer is not None:
            self._to_host(memory)
        self._wait_for_kernels()

    def done(self) -> None:
        """End a call: wait for its kernels, and release its memory."""
        try:
            self.finish()
        finally:
            self._blocks.clear()

    def address(self, buffer: HostBuffer) -> int:
        return buffer.address

    def read(self, buffer: HostBuffer, start: int, host: np.ndarray) -> None:
        self._return_to_host(buffer)
        host[...] = _bytes_of(buffer)[start : start + host.nbytes]

    def write(self, buffer: HostBuffer, host: np.ndarray, keep: bool = False) -> None:
        self._return_to_host(buffer)
        buffer.buffer = None  # a new one sees the host's writes
        _bytes_of(buffer)[: host.nbytes] = host

    def map(self, buffer: HostBuffer, start: int, nbytes: int, write: bool) -> np.ndarray:
        self._return_to_host(buffer)
        buffer.buffer = None
        return _bytes_of(buffer)[start : start + nbytes]

    def unmap(self, array: np.ndarray) -> None:
        """Do nothing: the mapping is the memory itself."""

    @property
    def blocking(self) -> bool:
        return False  # the caller of a kernel checks its error flags


def _bytes_of(memory: HostBuffer) -> np.ndarray:
    held = memory.array
    if not held.nbytes:
        return np.zeros(4, np.uint8)
    return np.ndarray((held.nbytes,), np.uint8, storage_block(held))


def has_system_svm(cl_device: Any) -> bool:
    """True if kernels can use any address of the process."""
    try:
        capabilities = cl_device.svm_capabilities
    except (cl.Error, AttributeError):
        return False
    return bool(capabilities & cl.device_svm_capabilities.FINE_GRAIN_SYSTEM) and _load_svm_argument_setter() is not None


@functools.cache
def _load_svm_argument_setter() -> Any:
    """Return OpenCL's function that sets an SVM argument, at a tenth of PyOpenCL's cost.

    None if the library that PyOpenCL is linked with does not export it.
    """
    try:
        found = ctypes.CDLL(cl._cl.__file__).clSetKernelArgSVMPointer
    except (OSError, AttributeError):
        return None
    found.argtypes = (ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p)
    return found
