"""CUDA driver interface over CuPy, the only module that imports it.

`tests/cuda_simulator/driver.py` has the same methods on the CPU.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import operator
import sys
from typing import Any

import cupy
import numpy as np
from cupy.cuda import function, memory, stream
from cupy_backends.cuda.api import driver, runtime
from cupy_backends.cuda.libs import nvrtc

from torchlite_backends.device_runtime.core import program_cache

from . import cudnn
from .cublas import open_library as open_cublas
from .cusolver import open_library as open_cusolver

_INVALID_CONTEXT = 201
_NOT_READY = 600
# CuPy's names of device properties, by PyTorch's.
_PROPERTIES = {
    "major": "major", "minor": "minor", "total_memory": "totalGlobalMem",
    "multi_processor_count": "multiProcessorCount", "warp_size": "warpSize",
    "max_threads_per_block": "maxThreadsPerBlock", "max_threads_per_multi_processor": "maxThreadsPerMultiProcessor",
    "regs_per_multiprocessor": "regsPerMultiprocessor", "shared_memory_per_block": "sharedMemPerBlock",
    "shared_memory_per_block_optin": "sharedMemPerBlockOptin",
    "shared_memory_per_multiprocessor": "sharedMemPerMultiprocessor", "L2_cache_size": "l2CacheSize",
    "is_integrated": "integrated", "is_multi_gpu_board": "isMultiGpuBoard", "pci_bus_id": "pciBusID",
    "pci_device_id": "pciDeviceID", "pci_domain_id": "pciDomainID",
}  # fmt: skip


def device_count() -> int:
    """Return the number of CUDA devices. RuntimeError with CUDA's message if there is no driver."""
    return runtime.getDeviceCount()


def nvrtc_version() -> tuple[int, int]:
    """Return NVRTC's version. RuntimeError if it is not found."""
    return nvrtc.getVersion()


def compiler_options(capability: int, known: tuple[int, ...]) -> tuple[str, ...]:
    """Return NVRTC's options for a compute capability: machine code, or PTX if NVRTC does not know the capability."""
    target = f"sm_{capability}" if capability in known else f"compute_{max(c for c in known if c <= capability)}"
    return "--std=c++17", f"-arch={target}"


class Driver:
    """Driver of one device. Addresses are integers; a stream is an object with `.ptr`, a block of memory too.

    `allocate(nbytes)` returns a block from the calling thread's allocator, ordered by its stream, or raises one of
    `out_of_memory`. `launch(kernel, grid x, y, z, block x, y, z, 0, stream, parameters, 0)` starts a kernel;
    `parameters` is the address of an array of pointers, one to each parameter. `used_bytes(pool)` returns the bytes of
    referenced blocks of a pool. `stream()` returns the calling thread's stream on this device. They are CuPy's
    functions if there is one device; with several they also make this device current.
    """

    out_of_memory: tuple[type[BaseException], ...] = (memory.OutOfMemoryError,)

    def __init__(self, index: int):
        self.index = index
        self.alone = alone = runtime.getDeviceCount() == 1
        self.allocate = memory.alloc if alone else self._allocate_there
        self.launch = driver.launchKernel if alone else self._launch_there
        self.used_bytes = operator.methodcaller("used_bytes") if alone else self._used_bytes
        self.stream = stream.get_current_stream if alone else functools.partial(stream.get_current_stream, index)
        with self.current():
            runtime.memGetInfo()  # makes the device's context and binds it to this thread
        self.pool = cupy.get_default_memory_pool()
        self._options = self._compiler_options()

    def current(self) -> Any:
        """Return a context manager that makes this the calling thread's device."""
        return cupy.cuda.Device(self.index)

    def properties(self) -> dict[str, Any]:
        """Return the device's properties under PyTorch's names."""
        found = runtime.getDeviceProperties(self.index)
        uuid = found.get("uuid", b"")
        return {
            "name": found["name"].decode(),
            "uuid": uuid.hex() if isinstance(uuid, bytes) else "",
            **{ours: found.get(theirs, 0) for ours, theirs in _PROPERTIES.items()},
        }

    # -- memory --

    def _allocate_there(self, nbytes: int) -> Any:
        with self.current():
            return memory.alloc(nbytes)

    def new_pool(self) -> Any:
        """Return a memory pool separate from CuPy's."""
        return memory.MemoryPool()

    def allocate_from_pool(self, pool: Any) -> Any:
        """Return a context manager in which the calling thread allocates from a pool."""
        return cupy.cuda.using_allocator(pool.malloc)

    def _used_bytes(self, pool: Any) -> int:
        with self.current():
            return pool.used_bytes()

    def held_bytes(self, pool: Any) -> int:
        """Return the bytes that a pool has reserved from the device."""
        with self.current():
            return pool.total_bytes()

    def empty(self, pool: Any) -> None:
        """Release a pool's free blocks to the device."""
        with self.current():
            pool.free_all_blocks()

    def limit(self, pool: Any, nbytes: int) -> None:
        """Limit a pool to so many bytes; 0 removes the limit."""
        with self.current():
            pool.set_limit(nbytes)

    def memory_info(self) -> tuple[int, int]:
        """Return free and total bytes of the device, from its driver."""
        with self.current():
            return runtime.memGetInfo()

    def profile(self, on: bool) -> None:
        """Start or stop NVIDIA's profiler."""
        with self.current():
            (runtime.profilerStart if on else runtime.profilerStop)()

    def can_access(self, peer: int) -> bool:
        """True if the device can access the memory of another one."""
        return bool(runtime.deviceCanAccessPeer(self.index, peer))

    def pinned(self, nbytes: int) -> np.ndarray:
        """Return page-locked host memory."""
        with self.current():
            return np.frombuffer(cupy.cuda.alloc_pinned_memory(nbytes), np.uint8, nbytes)

    # -- arrays of CuPy: `.data.ptr` is an address, strides count bytes --

    def ndarray(self, block: Any, start: int, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...]) -> Any:
        """Return a CuPy array on a block of memory, `start` bytes from its beginning."""
        with self.current():
            return cupy.ndarray(shape, dtype, block + start, strides)

    def from_dlpack(self, exporter: Any) -> Any:
        """Return a CuPy array on the memory of an object with `__dlpack__`; the thread's stream waits for the
        exporter's.
        """
        with self.current():
            return cupy.from_dlpack(exporter)

    def from_interface(self, data: Any) -> Any:
        """Return a CuPy array on the memory of an object with `__cuda_array_interface__`."""
        with self.current():
            return cupy.asarray(data)

    # -- copies, in the order of a stream; host memory is an address --

    def to_device(self, target: int, host: int, nbytes: int, queue: int) -> None:
        runtime.memcpyAsync(target, host, nbytes, runtime.memcpyHostToDevice, queue)

    def to_host(self, host: int, source: int, nbytes: int, queue: int) -> None:
        runtime.memcpyAsync(host, source, nbytes, runtime.memcpyDeviceToHost, queue)

    # -- programs --

    def _compiler_options(self) -> tuple[str, ...]:
        """Return NVRTC's options for this device.

        CuPy's RawModule would add `-ftz=true`, which flushes the subnormal numbers that PyTorch keeps.
        """
        return compiler_options(int(cupy.cuda.Device(self.index).compute_capability), nvrtc.getSupportedArchs())

    def build(self, text: str) -> Any:
        """Load a module, from the disk cache if possible. RuntimeError with the compiler's log."""
        key = "\n".join((repr(nvrtc.getVersion()), *self._options, text))
        path = program_cache.program_cache_folder("cuda") / hashlib.sha256(key.encode()).hexdigest()
        binary = program_cache.load_binary(path)
        if binary is not None:
            with contextlib.suppress(driver.CUDADriverError):
                return self._load_binary(binary)
        binary = self._compile_source(text)
        program_cache.store_binary(path, binary)
        return self._load_binary(binary)

    def _load_binary(self, binary: bytes) -> Any:
        with self.current():
            module = function.Module()
            module.load(binary)
        return module

    def _compile_source(self, text: str) -> bytes:
        program = nvrtc.createProgram(text, "torchlite.cu", (), ())
        try:
            nvrtc.compileProgram(program, self._options)
            return nvrtc.getCUBIN(program) if "=sm_" in self._options[-1] else nvrtc.getPTX(program)
        except nvrtc.NVRTCError as error:
            raise RuntimeError(f"{error}\n{nvrtc.getProgramLog(program)}") from error
        finally:
            nvrtc.destroyProgram(program)

    def function(self, module: Any, name: str) -> Any:
        """Return a kernel of a module; its `.ptr` is the argument of `launch`."""
        with self.current():
            return module.get_function(name)

    def most_threads(self, kernel: Any) -> int:
        """Return the largest block size of a kernel."""
        return driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel.ptr)

    def _launch_there(self, *arguments: int) -> None:
        with self.current():
            driver.launchKernel(*arguments)

    def launch_again(self, error: Exception, *arguments: int) -> None:
        """Bind the device's context to a thread that has not used CUDA before, and launch again; else raise the
        error.
        """
        if getattr(error, "status", 0) != _INVALID_CONTEXT:
            raise error
        with self.current():
            runtime.memGetInfo()
            driver.launchKernel(*arguments)

    # -- libraries --

    def blas(self) -> Any:
        """Return cuBLAS, None if it is not installed. CuPy's module finds and loads the library; its functions are
        called directly.
        """
        try:
            from cupy_backends.cuda.libs import cublas  # noqa: F401
        except ImportError:
            return None
        major = runtime.runtimeGetVersion() // 1000
        return open_cublas(f"cublas64_{major}.dll" if sys.platform == "win32" else f"libcublas.so.{major}")

    def cudnn(self) -> Any:
        """Return the module that wraps cuDNN, None if it is not installed."""
        return cudnn.import_frontend()

    def solver(self) -> Any:
        """Return cuSOLVER, None if it is not installed; loaded like cuBLAS. Its major version is one less than
        CUDA's.
        """
        try:
            from cupy_backends.cuda.libs import cusolver  # noqa: F401
        except ImportError:
            return None
        major = runtime.runtimeGetVersion() // 1000 - 1
        return open_cusolver(f"cusolver64_{major}.dll" if sys.platform == "win32" else f"libcusolver.so.{major}")

    def has_transforms(self) -> bool:
        """True if cuFFT is installed."""
        try:
            from cupy.cuda import cufft  # noqa: F401
        except ImportError:
            return False
        return True

    def run_fft(self, name: str, array: Any, **how: Any) -> Any:
        """Apply one of the functions of `cupy.fft` to a CuPy array."""
        with self.current():
            return getattr(cupy.fft, name)(array, **how)

    # -- streams: CuPy's current one of the calling thread is ours, so that its pool and its libraries keep the order --

    def default_stream(self) -> Any:
        return stream.Stream.null

    def new_stream(self, priority: int) -> Any:
        with self.current():
            return stream.Stream(non_blocking=True, priority=priority)

    def stream_from(self, address: int) -> Any:
        """Return a stream that another library created."""
        if address == 0:
            return stream.Stream.null
        if hasattr(stream.Stream, "from_external"):
            return stream.Stream.from_external(_ForeignStream(address))
        return stream.ExternalStream(address, self.index)

    def use(self, queue: Any) -> None:
        """Make a stream the calling thread's."""
        with self.current():
            queue.use()

    def synchronize(self) -> None:
        """Synchronise the device."""
        with self.current():
            runtime.deviceSynchronize()

    def synchronize_stream(self, queue: int) -> None:
        runtime.streamSynchronize(queue)

    def idle(self, queue: int) -> bool:
        """True if a stream is idle."""
        return _is_done(runtime.streamQuery(queue))

    # -- events --

    def event(self, timing: bool, queue: int) -> Any:
        """Record an event in a stream."""
        with self.current():
            made = stream.Event(disable_timing=not timing)
            runtime.eventRecord(made.ptr, queue)
        return made

    def event_query(self, event: Any) -> bool:
        return _is_done(runtime.eventQuery(event.ptr))

    def wait_event(self, event: Any) -> None:
        runtime.eventSynchronize(event.ptr)

    def stream_wait_event(self, queue: int, event: Any) -> None:
        """Make a stream wait for an event, without blocking the host."""
        runtime.streamWaitEvent(queue, event.ptr)

    def milliseconds(self, earlier: Any, later: Any) -> float:
        return runtime.eventElapsedTime(earlier.ptr, later.ptr)

    # -- graphs --

    def begin_capture(self, queue: Any) -> None:
        """Begin capture of a stream, in CUDA's relaxed mode: the pool may have to allocate during it."""
        with self.current():
            queue.begin_capture(runtime.streamCaptureModeRelaxed)

    def end_capture(self, queue: Any) -> Any:
        """Return the captured graph, instantiated."""
        with self.current():
            return queue.end_capture()

    def launch_graph(self, graph: Any, queue: Any) -> None:
        with self.current():
            graph.launch(queue)


def _is_done(status: int) -> bool:
    """True if the status of a stream or event query means done. RuntimeError for an error of earlier work."""
    if status != _NOT_READY:
        runtime.check_status(status)
    return status == 0


class _ForeignStream:
    """Stream address in the form that CuPy accepts from other libraries."""

    def __init__(self, address: int):
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address
