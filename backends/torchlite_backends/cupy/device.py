"""CUDA device: builds and launches kernels, copies memory, and tracks uploads."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from torchlite._types.python_source import evaluate
from torchlite_backends.device_runtime.core import device as shared
from torchlite_backends.device_runtime.core import fork_guard
from torchlite_backends.kernel_sources.preamble import CUDA, dtype_macros_source

from . import cublas
from .allocator import Allocator
from .launch_grid import Grid, compute_grid, with_bounds_guard

_MAX_PENDING_UPLOADS = 32
# NVRTC contracts a product and a sum (FMA), and so does the assembler after it, which sees through an empty `asm`.
# Neither sees through an intrinsic sum with explicit rounding. Adding -0 changes no number.
_FENCE = """
template <class Of> FUNCTION Of fenced_(Of x) { return x; }
FUNCTION float fenced_(float x) { return __fadd_rn(x, -0.0f); }
FUNCTION double fenced_(double x) { return __dadd_rn(x, -0.0); }
template <class Of, int N> FUNCTION Vector<Of, N> fenced_(Vector<Of, N> x) {
    for (int i = 0; i < N; i++) x[i] = fenced_(x[i]);
    return x;
}
#define FENCED(x) fenced_(x)
"""
_CAPTURE_ERROR = "CUDA error: operation not permitted when stream is capturing"


class _ParameterBlock:
    """Memory for a kernel's parameters with a fixed layout: an array of pointers, then the values. `codes` are
    struct's.
    """

    __slots__ = ("address", "memory", "pack")

    def __init__(self, codes: list[str]):
        size, places, layout = 0, [], ["="]
        for code in codes:
            pad = -size % 16
            places.append(size + pad)
            layout.append(f"{pad}x{code}")
            size += pad + struct.calcsize("=" + code)
        head = -(-8 * len(codes) // 16) * 16
        self.memory = ctypes.create_string_buffer(head + size + 16)
        shift = -ctypes.addressof(self.memory) % 16
        self.address = ctypes.addressof(self.memory) + shift
        self.pack = functools.partial(struct.Struct("".join(layout)).pack_into, self.memory, shift + head)
        struct.pack_into(f"{len(codes)}Q", self.memory, shift, *[self.address + head + place for place in places])


@functools.cache
def _make_value_extractor(signature: str) -> Callable[..., tuple]:
    """Return a function from a kernel's arguments to the packed values: of an array its address and offset.

    It is generated source, since it runs before every launch.
    """
    names = [f"a{i}" for i in range(len(signature))]
    values = [
        f"{name}.buffer.ptr, {name}.offset" if code == "p" else name
        for code, name in zip(signature, names, strict=True)
    ]
    return evaluate(f"lambda {', '.join(names)}: ({', '.join(values)},)", {})


class CUDAFunction:
    """CUDA kernel; see `torchlite_backends.device_runtime.core.device.Function`. The first call fixes parameter
    sizes.
    """

    __slots__ = (
        "_grids", "_guarded", "_kernel", "_launch", "_lock", "_parameters", "_pointer", "_stream", "_text", "_values",
        "_waiting", "device", "name", "signature",
    )  # fmt: skip

    def __init__(self, device: Device, module: Any, name: str, signature: str):
        self.device, self.name, self.signature = device, name, signature
        self._text, loaded = module
        self._kernel = device.driver.function(loaded, name)
        self._pointer = self._kernel.ptr
        self._launch, self._stream, self._waiting = device.driver.launch, device.driver.stream, device.waiting
        self._grids = device.grids
        self._values = _make_value_extractor(signature) if signature else None
        self._parameters: Any = None
        self._guarded: Any = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<CUDA kernel {self.name}({self.signature}) on {self.device.name}>"

    def __call__(self, global_size: tuple, local_size: tuple | None, *arguments) -> None:
        if self._waiting.steps:
            self._waiting.start()
        self._launch_now(
            self._grids.get((global_size, local_size)) or self._cached_grid(global_size, local_size),
            self._values(*arguments),
        )

    def start(self, global_size: tuple, local_size: tuple | None, buffers: list, values: list[bytes]) -> None:
        if self._waiting.steps:
            self._waiting.start()
        parameters = self._parameters
        if parameters is None or local_size is None or len(global_size) > 1:
            return self._launch_now(
                self._cached_grid(global_size, local_size), (*[block.ptr for block in buffers], *values)
            )
        group, launch = local_size[0], self._launch  # inlines `_go` for the common launch
        with self._lock:
            parameters.pack(*[block.ptr for block in buffers], *values)
            try:
                launch(
                    self._pointer,
                    global_size[0] // group,
                    1,
                    1,
                    group,
                    1,
                    1,
                    0,
                    self._stream().ptr,
                    parameters.address,
                    0,
                )
            except RuntimeError as error:
                self._retry_launch(error, (global_size[0] // group, 1, 1, group, 1, 1))

    def _cached_grid(self, global_size: tuple, local_size: tuple | None) -> Grid:
        found = self._grids.get((global_size, local_size))
        if found is None:
            found = self._grids[global_size, local_size] = compute_grid(global_size, local_size)
        return found

    def _launch_now(self, grid: Grid, values: tuple) -> None:
        """Start the kernel."""
        sizes, guard = grid
        if guard is not None:
            return self._build_bounds_guarded()._launch_now(Grid(sizes), (*values, guard))
        parameters = self._parameters
        if parameters is None:
            parameters = self._layout_parameters(values)
        with self._lock:
            parameters.pack(*values)
            try:
                self._launch(self._pointer, *sizes, 0, self._stream().ptr, parameters.address, 0)
            except RuntimeError as error:
                self._retry_launch(error, sizes)

    def _retry_launch(self, error: RuntimeError, sizes: tuple) -> None:
        self.device.driver.launch_again(
            error, self._pointer, *sizes, 0, self._stream().ptr, self._parameters.address, 0
        )

    def _layout_parameters(self, values: tuple) -> _ParameterBlock:
        """Return the parameter memory for such values: buffers and then bytes, or the order of the signature."""
        letters = self.signature.replace("p", "Qi") if self.signature else "Q" * len(values)
        letters += "x" * (len(values) - len(letters))  # a guard
        codes = [
            f"{len(value)}s" if value.__class__ is bytes else letter
            for letter, value in zip(letters, values, strict=True)
        ]
        self._parameters = _ParameterBlock(codes)
        return self._parameters

    def _build_bounds_guarded(self) -> CUDAFunction:
        if self._guarded is None:
            text = with_bounds_guard(self._text, self.name)
            self._guarded = CUDAFunction(self.device, self.device.build(text), self.name, self.signature)
        return self._guarded

    def max_group(self) -> int:
        return self.device.driver.most_threads(self._kernel)


class Device(shared.Device):
    """CUDA device on a `Driver` of `cupy_driver`, or on another object with its methods."""

    type, label = "cuda", "CUDA"
    is_cpu, fp64, long_atomics, vectors = False, True, True, False
    group, matrix_group, width = 256, 128, 4
    parameter_bytes = 4096
    fence = _FENCE

    def __init__(self, index: int, driver: Any):
        super().__init__(index)
        fork_guard.refuse_after_fork(Device, "CUDA", ("driver", "memory", "allocate"))
        fork_guard.refuse_after_fork(CUDAFunction, "CUDA", ("_launch",))
        self.driver = driver
        self.properties = driver.properties()
        self.name = self.properties["name"]
        self.max_group = self.properties["max_threads_per_block"]
        self.units = self.properties["multi_processor_count"]
        self.local_memory = self.properties["shared_memory_per_block"]
        self.capturing = False
        self.memory = Allocator(self)
        self.allocate = self.memory.allocate
        self.grids = shared.BoundedCache(4096)
        self._uploads: deque[Any] = deque()  # in flight, each with its source
        self._solver: Any = None  # None before the look-up, False if there is none
        library = driver.blas()
        self.blas = None if library is None else cublas.Cublas(self, library)

    # -- kernels --

    def preamble(self, widths: tuple[int, ...], typed: dict[str, str]) -> str:
        return CUDA + dtype_macros_source(widths, "cuda", **typed)

    def kernel(self, program: Any, name: str, signature: str) -> CUDAFunction:
        return CUDAFunction(self, program, name, signature)

    def build(self, text: str) -> Any:
        """Build a program: its source and the module."""
        try:
            return text, self.driver.build(text)
        except RuntimeError as error:
            raise RuntimeError(
                f"cuda:{self.index} ({self.name}) could not build a kernel: {error}\n{shared.with_line_numbers(text)}"
            ) from error

    def product(self, kind: str, sizes: Any, added: bool, conj: tuple[bool, bool]) -> Any:
        return None if self.blas is None else cublas.plan_cublas_gemm(self.blas, kind, sizes, added, conj)

    def library_factorise(self, name: str, x: Any, *options: Any) -> Any:
        if self._solver is None:
            from .cusolver import Cusolver

            library = self.driver.solver()
            self._solver = Cusolver(self, library) if library is not None else False
        return getattr(self._solver, name)(x, *options) if self._solver and self._solver.should_factor(x) else None

    # -- memory --

    def address(self, buffer: Any) -> int:
        if self.waiting.steps:  # the caller may read the address next
            self.waiting.start()
        return buffer.ptr

    def _flush_and_get_stream(self) -> int:
        """Return the calling thread's stream after launching all deferred work."""
        if self.waiting.steps:
            self.waiting.start()
        if self.capturing:
            raise RuntimeError(_CAPTURE_ERROR)
        return self.driver.stream().ptr

    def read(self, buffer: Any, start: int, host: Any) -> None:
        queue = self._flush_and_get_stream()
        self.driver.to_host(host.__array_interface__["data"][0], buffer.ptr + start, host.nbytes, queue)
        self.driver.synchronize_stream(queue)

    def write(self, buffer: Any, host: Any, keep: bool = False) -> None:
        queue = self._flush_and_get_stream()
        self.driver.to_device(buffer.ptr, host.__array_interface__["data"][0], host.nbytes, queue)
        if keep:
            self._drop_done()
            self._uploads.append((self.driver.event(False, queue), host))
        else:
            self.driver.synchronize_stream(queue)

    def _drop_done(self) -> None:
        """Drop finished uploads, and wait for the oldest if there are many."""
        uploads, driver = self._uploads, self.driver
        while uploads:
            try:
                event, host = uploads.popleft()
            except IndexError:  # another thread was first
                return
            if not driver.event_query(event):
                if len(uploads) < _MAX_PENDING_UPLOADS:
                    uploads.appendleft((event, host))
                    return
                driver.wait_event(event)

    def lane(self) -> int:
        return self.driver.stream().ptr

    @contextlib.contextmanager
    def in_lane(self, lane: int):
        before = self.driver.stream()
        self.driver.use(self.driver.stream_from(lane))
        try:
            yield
        finally:
            self.driver.use(before)

    def finish(self) -> None:
        self._flush_and_get_stream()
        self.driver.synchronize()

    def finish_unless_capturing(self) -> None:
        """Wait for the device, except during graph capture."""
        if not self.capturing:
            self.finish()

    @property
    def blocking(self) -> bool:
        return os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0") and not self.capturing
