"""The simulator in the place of CuPy: `backends/torchlite_backends/cupy/cupy_driver.py`'s Driver, and `presence.py`'s
functions, on the CPU.

    register_backend("cuda", CUDABackend(Simulated(seed=1)))

Memory is the host's, between guarded zones, and holds NaN (with odd seeds large numbers) when it is new. Whatever is
started has run when the call returns, so streams and events keep the order by themselves; a capturing stream records
launches and copies and runs none. What a GPU would refuse is refused: other devices' addresses apart, unaligned access,
grids and blocks that are too large, parameters of other sizes than the kernel's.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import re
import threading
import time
import types
import weakref
from collections import defaultdict, deque
from typing import Any

import numpy as np

from tests.cuda_simulator.cublas import FakeBlas
from tests.cuda_simulator.cusolver import FakeSolver

from . import kernel_compiler

CAPACITY = 3 << 30
_PROPERTIES = {
    "name": "CUDA simulator", "uuid": "00", "major": 8, "minor": 0, "total_memory": CAPACITY,
    "multi_processor_count": 4, "warp_size": 32, "max_threads_per_block": 1024, "max_threads_per_multi_processor": 2048,
    "regs_per_multiprocessor": 65536, "shared_memory_per_block": 49152, "shared_memory_per_block_optin": 101376,
    "shared_memory_per_multiprocessor": 102400, "L2_cache_size": 1 << 22, "is_integrated": 0, "is_multi_gpu_board": 0,
    "pci_bus_id": 0, "pci_device_id": 0, "pci_domain_id": 0,
}  # fmt: skip


class OutOfMemory(MemoryError):
    """In the place of CuPy's OutOfMemoryError."""


class Block:
    """A piece of a pool's memory."""

    __slots__ = ("__weakref__", "_pool", "ptr", "size")

    def __init__(self, pool: Pool, ptr: int, size: int):
        self._pool, self.ptr, self.size = pool, ptr, size


class _Gone(weakref.ref):
    """Sentinel for a freed block."""

    __slots__ = ("ptr", "size")


class Pool:
    """Memory in blocks of multiples of 512 bytes.

    With `keeps` what is given back stays, for graphs that write there later; else it is freed and its guarded zones are
    looked at. As with CuPy, no code of Python's runs where a block dies, so that nothing that watches a program sees
    it: blocks that died wait in `_gone` until the pool or the device is used next.
    """

    def __init__(self, driver: Driver, keeps: bool):
        self._driver, self._keeps = driver, keeps
        self._free: dict[int, list[int]] = defaultdict(list)
        self._given: dict[int, _Gone] = {}  # by address
        self._gone: deque[_Gone] = deque()
        self._used = self._held = self.limit = 0

    def malloc(self, nbytes: int) -> Block:
        self.settle()
        size = -(-nbytes // 512) * 512
        if self._free[size]:
            ptr = self._free[size].pop()
        else:
            if self._driver.taken() + size > CAPACITY or self.limit and self._held + size > self.limit:
                raise OutOfMemory(f"Out of memory allocating {nbytes:,} bytes")
            room = size if self._keeps else nbytes  # what stays is given out for any size of its class
            ptr = kernel_compiler.allocate(room, kernel_compiler.unset(self._driver.seed), self._driver.sanitize)
        self._used += size
        self._held = max(self._held, self._used)
        block = Block(self, ptr, size)
        gone = self._given[ptr] = _Gone(block, self._gone.append)
        gone.ptr, gone.size = ptr, size
        return block

    def settle(self) -> None:
        while self._gone:
            try:
                block = self._gone.popleft()
            except IndexError:  # another thread was faster
                return
            del self._given[block.ptr]
            self._used -= block.size
            if self._keeps:
                self._free[block.size].append(block.ptr)
            else:
                kernel_compiler.free(block.ptr, sanitize=self._driver.sanitize)

    def used_bytes(self) -> int:
        self.settle()
        return self._used

    def total_bytes(self) -> int:
        return self._held

    def free_all_blocks(self) -> None:
        self.settle()
        for blocks in self._free.values():
            while blocks:
                kernel_compiler.free(blocks.pop(), sanitize=self._driver.sanitize)
        self._held = self._used

    def __del__(self) -> None:
        self.free_all_blocks()


class Place:
    """An address in memory that `owner` keeps, as CuPy's MemoryPointer."""

    def __init__(self, ptr: int, owner: Any):
        self.ptr, self.owner = ptr, owner


class Ndarray:
    """A CuPy array as far as sharing goes. Its capsule is the array itself."""

    def __init__(self, index: int, data: Place, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...]):
        self.data, self.shape, self.dtype, self.strides = data, shape, dtype, strides
        self.size = int(np.prod(shape))
        self.device = types.SimpleNamespace(id=index)

    def host(self) -> np.ndarray:
        """NumPy's view of it."""
        reach = sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)) + self.dtype.itemsize
        flat = np.frombuffer((ctypes.c_char * reach).from_address(self.data.ptr), np.uint8)
        return np.ndarray(self.shape, self.dtype, flat, strides=self.strides)

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Ndarray:
        return self

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.id

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": self.strides,
            "data": (self.data.ptr, False),
            "version": 3,
        }


class Stream:
    """An order of work: all of it has run already. `recorded` collects what a capture is given."""

    def __init__(self, ptr: int, priority: int = 0):
        self.ptr, self.priority = ptr, priority
        self.recorded: list[Any] | None = None


class Event:
    """A place in a stream, with its time."""

    def __init__(self, timing: bool):
        self.timing, self.time, self.ptr = timing, time.perf_counter(), id(self)


class Kernel:
    """A kernel of a compiled program; `.ptr` is its number."""

    _numbers = itertools.count(1)

    def __init__(self, kernel: kernel_compiler.Kernel):
        self.kernel, self.ptr = kernel, next(self._numbers)


class _Thread(threading.local):
    """A thread's stream and allocator."""

    stream: Stream | None = None
    pool: Pool | None = None


class Driver:
    """One simulated device."""

    out_of_memory = (OutOfMemory,)
    alone = False

    def current(self) -> Any:
        return contextlib.nullcontext()

    def __init__(self, index: int, seed: int = 0, libraries: bool = True, cudnn: Any = None):
        self.index, self.seed, self._libraries, self._cudnn = index, seed, libraries, cudnn
        self.sanitize = hasattr(ctypes.CDLL(None), "__asan_init")
        self.launches = self.transforms = 0
        self._pools: list[Pool] = []
        self.pool = Pool(self, keeps=False)
        self._pools.append(self.pool)
        self._thread = _Thread()
        self._default = Stream(0)
        self._streams = {0: self._default}
        self._numbers = itertools.count(0x1000, 16)
        self._kernels: dict[int, Kernel] = {}

    def properties(self) -> dict[str, Any]:
        return dict(_PROPERTIES)

    # -- memory --

    def taken(self) -> int:
        """Bytes that all pools hold."""
        return sum(pool.total_bytes() for pool in self._pools)

    def allocate(self, nbytes: int) -> Block:
        return (self._thread.pool or self.pool).malloc(nbytes)

    def new_pool(self) -> Pool:
        return Pool(self, keeps=True)

    @contextlib.contextmanager
    def allocate_from_pool(self, pool: Any):
        before, self._thread.pool = self._thread.pool, pool
        try:
            yield
        finally:
            self._thread.pool = before

    def used_bytes(self, pool: Any) -> int:
        return pool.used_bytes()

    def held_bytes(self, pool: Any) -> int:
        return pool.total_bytes()

    def empty(self, pool: Any) -> None:
        pool.free_all_blocks()

    def limit(self, pool: Pool, nbytes: int) -> None:
        pool.limit = nbytes

    def memory_info(self) -> tuple[int, int]:
        return max(CAPACITY - self.taken(), 0), CAPACITY

    def profile(self, on: bool) -> None:
        self.profiled = on

    def can_access(self, peer: int) -> bool:
        return False

    def pinned(self, nbytes: int) -> np.ndarray:
        return np.frombuffer(bytearray(nbytes), np.uint8)

    # -- arrays --

    def ndarray(
        self, block: Any, start: int, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...]
    ) -> Ndarray:
        return Ndarray(self.index, Place(block.ptr + start, block), shape, dtype, strides)

    def from_dlpack(self, exporter: Any) -> Ndarray:
        return exporter.__dlpack__(stream=self.stream().ptr or 1)

    def from_interface(self, data: Any) -> Ndarray:
        found = data.__cuda_array_interface__
        dtype, shape = np.dtype(found["typestr"]), found["shape"]
        strides = found.get("strides") or tuple(
            [dtype.itemsize * int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
        )
        return Ndarray(self.index, Place(found["data"][0], data), shape, dtype, strides)

    # -- copies --

    def to_device(self, target: int, host: int, nbytes: int, queue: int) -> None:
        self.do(queue, lambda: ctypes.memmove(target, host, nbytes))

    def to_host(self, host: int, source: int, nbytes: int, queue: int) -> None:
        self.do(queue, lambda: ctypes.memmove(host, source, nbytes))

    def do(self, queue: int, work: Any) -> None:
        self.pool.settle()
        recorded = self._streams[queue].recorded if queue in self._streams else None
        if recorded is None:
            work()
        else:
            recorded.append(work)

    # -- programs --

    def build(self, text: str) -> kernel_compiler.Program:
        kernels = re.findall(r"^KERNEL\b[^;{}()]*\bvoid\s+(\w+)\s*\(", text, re.M)  # a macro may stand before `void`
        return kernel_compiler.Program(
            text, sanitize=self.sanitize, names=tuple(sorted(set(kernels) - set(kernel_compiler.kernel_names(text))))
        )

    def function(self, module: kernel_compiler.Program, name: str) -> Kernel:
        made = Kernel(module.kernel(name))
        self._kernels[made.ptr] = made
        return made

    def most_threads(self, kernel: Kernel) -> int:
        return kernel.kernel.most_threads

    def launch(
        self,
        kernel: int,
        gx: int,
        gy: int,
        gz: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        queue: int,
        parameters: int,
        extra: int,
    ) -> None:
        self.launches += 1
        run = self._kernels[kernel].kernel
        pointers = (ctypes.c_void_p * len(run.sizes)).from_address(parameters)
        values = [ctypes.string_at(at, size) for at, size in zip(pointers, run.sizes, strict=True)]
        self.do(queue, lambda: run((gx, gy, gz), (bx, by, bz), values, self.seed, shared))

    def launch_again(self, error: Exception, *arguments: int) -> None:
        raise error

    def solver(self) -> Any:
        return FakeSolver(self) if self._libraries else None

    def has_transforms(self) -> bool:
        return self._libraries

    def run_fft(self, name: str, array: Ndarray, **how: Any) -> Ndarray:
        """Compute cuFFT's transforms with NumPy. The strides of results are permuted, as CuPy's are."""
        self.transforms += 1
        result = getattr(np.fft, name)(array.host(), **how)
        narrow = array.dtype in (np.float32, np.complex64)
        result = result.astype(
            {"c": np.complex64, "f": np.float32}[result.dtype.kind] if narrow else result.dtype, copy=False
        )
        turned = np.ascontiguousarray(result.T)
        block = self.allocate(max(turned.nbytes, 1))
        ctypes.memmove(block.ptr, turned.ctypes.data, turned.nbytes)
        return Ndarray(self.index, Place(block.ptr, block), result.shape, result.dtype, turned.T.strides)

    def blas(self) -> Any:
        return FakeBlas(self) if self._libraries else None

    def cudnn(self) -> Any:
        if self._cudnn is not None:
            self._cudnn.driver = self
        return self._cudnn

    # -- streams --

    def stream(self) -> Stream:
        return self._thread.stream or self._default

    def default_stream(self) -> Stream:
        return self._default

    def new_stream(self, priority: int) -> Stream:
        made = Stream(next(self._numbers), priority)
        self._streams[made.ptr] = made
        return made

    def stream_from(self, address: int) -> Stream:
        return self._streams.setdefault(address, Stream(address))

    def use(self, queue: Stream) -> None:
        self._thread.stream = queue

    def synchronize(self) -> None:
        self._refuse_while_capturing(*self._streams)

    def synchronize_stream(self, queue: int) -> None:
        self._refuse_while_capturing(queue)

    def _refuse_while_capturing(self, *queues: int) -> None:
        if any(self._streams[queue].recorded is not None for queue in queues):
            raise RuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")

    def idle(self, queue: int) -> bool:
        return True

    # -- events --

    def event(self, timing: bool, queue: int) -> Event:
        return Event(timing)

    def event_query(self, event: Event) -> bool:
        return True

    def wait_event(self, event: Event) -> None:
        pass

    def stream_wait_event(self, queue: int, event: Event) -> None:
        pass

    def milliseconds(self, earlier: Event, later: Event) -> float:
        if not (earlier.timing and later.timing):
            raise RuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        return (later.time - earlier.time) * 1e3

    # -- graphs --

    def begin_capture(self, queue: Stream) -> None:
        if queue.ptr == 0:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        queue.recorded = []

    def end_capture(self, queue: Stream) -> list[Any]:
        recorded, queue.recorded = queue.recorded, None
        if recorded is None:
            raise RuntimeError("cudaErrorIllegalState: the operation cannot be performed in the present state")
        return recorded

    def launch_graph(self, graph: list[Any], queue: Stream) -> None:
        for work in graph:
            self.do(queue.ptr, work)


class Simulated:
    """In the place of the module `presence`: devices without a GPU."""

    def __init__(self, seed: int = 0, count: int = 1, libraries: bool = True, cudnn: Any = None):
        self.seed, self._count, self._libraries, self._cudnn = seed, count, libraries, cudnn

    def why_not(self) -> str:
        return kernel_compiler.missing()

    def device_count(self) -> int:
        return self._count

    def open_device(self, index: int) -> Driver:
        return Driver(index, self.seed, self._libraries, self._cudnn)

    def cudnn_version(self) -> int | None:
        return None if self._cudnn is None else self._cudnn.backend_version()

    def problems(self) -> list[str]:
        return [kernel_compiler.missing()] if kernel_compiler.missing() else []
