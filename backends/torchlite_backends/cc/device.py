"""The CPU as a device of the shared kernel sources: programs of the C++ compiler over NumPy's memory."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from typing import Any

import numpy as np

from torchlite._settings import fork_locks
from torchlite._settings.cached_property import cached_property
from torchlite._settings.thread_count import get_threads
from torchlite_backends.device_runtime.core import device as shared
from torchlite_backends.device_runtime.core.device import NotBuiltError
from torchlite_backends.device_runtime.core.host_memory import HostMemory
from torchlite_backends.kernel_sources import opencl_to_cpp
from torchlite_backends.kernel_sources.preamble import dtype_macros_source
from torchlite_backends.numpy.cache_blocking import can_share_work, parallel_for

from . import program_build, thread_pool

# Minimum bytes of a kernel's arrays for a second thread: waking one costs as much as copying so much.
_MIN_BYTES_PER_THREAD = 1 << 20
# Minimum bytes of a pointwise kernel's result for non-temporal stores: `add` of 48 MiB took 0.55 of the time, of 12 MiB
# 1.6 (two Zen 4 cores, 32 MiB of cache).
_NONTEMPORAL_MIN_BYTES = 1 << 25
# Minimum elements for the sum of two arrays on two spinning threads: 2**17 take 17 us in NumPy.
_MIN_BINARY_SIZE = 3 << 16
_PARTS_PER_THREAD = 16  # for each thread, so that one that is late leaves its share to the others
_empty, _bytes = np.empty, np.dtype(np.uint8)
_pointer = ctypes.c_void_p.from_address
_DATA_OFFSET = object.__basicsize__  # where an ndarray's C struct has the address of its elements


def _data_address(array: np.ndarray) -> int:
    return _pointer(id(array) + _DATA_OFFSET).value or 0


def _data_address_by_interface(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


_probe = np.empty(3)
address = _data_address if _data_address(_probe) == _data_address_by_interface(_probe) else _data_address_by_interface


class HostBuffer:
    """Memory of a NumPy array: the array, kept alive, its address and its size in bytes."""

    __slots__ = ("array", "nbytes", "ptr")

    def __init__(self, array: np.ndarray):
        self.array, self.ptr, self.nbytes = array, address(array), array.nbytes


class Launcher:
    """A kernel of a program that can run any part of its work-groups."""

    __slots__ = ("_run", "_share", "_share_address", "device", "name", "run_address")

    def __init__(self, device: Device, library: ctypes.CDLL, name: str):
        self.device, self.name = device, name
        self._run = library[f"run_{name}"]
        self._run.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_longlong)
        self.run_address = ctypes.cast(self._run, ctypes.c_void_p).value
        self._share = library[f"share_{name}"]
        self._share.argtypes = (*self._run.argtypes, ctypes.c_void_p)
        self._share_address = ctypes.cast(self._share, ctypes.c_void_p).value

    def launch(self, parameters: bytes, sizes: int, count: int, nbytes: int) -> int:
        """Run all `count` work items on arrays of so many bytes; return non-zero if the kernel refused."""
        threads = min(get_threads(), count) if nbytes >= _MIN_BYTES_PER_THREAD and can_share_work() else 1
        if threads < 2:
            return self._run(parameters, sizes, 0, count)
        parts = min(count, _PARTS_PER_THREAD * threads)
        sharing = self.device.sharing
        if sharing is not None:
            return sharing(self._share_address, parameters, sizes, count, parts, threads - 1)
        taken, failed = ctypes.c_int(0), []

        def run_parts() -> None:
            failed.append(self._share(parameters, sizes, count, parts, ctypes.addressof(taken)))

        parallel_for(run_parts, [()] * threads)
        return max(failed)


class Function(Launcher):
    """A kernel of a program; see `torchlite_backends.device_runtime.core.device.Function`."""

    __slots__ = ("_packs", "_waiting", "signature")

    def __init__(self, device: Device, library: ctypes.CDLL, name: str, signature: str):
        super().__init__(device, library, name)
        self.signature = signature
        self._packs: dict[Any, Any] = {}
        self._waiting = device.waiting

    def __repr__(self) -> str:
        return f"<C++ kernel {self.name}({self.signature})>"

    def __call__(self, global_size: tuple, local_size: tuple | None, *arguments) -> None:
        if self._waiting.steps:
            self._waiting.start()
        if self.device.launched is not None:
            self.device.launched.append(((), ()))  # one that is not repeated
        nbytes = 0
        values: list = []
        for code, value in zip(self.signature, arguments, strict=True):
            if code == "p":
                block = value.buffer
                nbytes += block.nbytes
                values += (block.ptr, value.offset)
            else:
                values.append(value)
        self._launch_now(global_size, local_size, self._pack(values)(*values), nbytes)

    def start(self, global_size: tuple, local_size: tuple | None, buffers: list, values: list[bytes]) -> None:
        if self._waiting.steps:
            self._waiting.start()
        nbytes, given = 0, []
        for held in buffers:
            nbytes += held.nbytes
            given.append(held.ptr)
        given += values
        key = len(buffers)
        pack = self._packs.get(key)
        if pack is None:
            pack = self._packs[key] = _make_parameter_packer("Q" * len(buffers) + "x" * len(values), given)
        if self.device.launched is not None:
            count, sizes, _ = _launch_sizes(global_size, local_size, nbytes > _NONTEMPORAL_MIN_BYTES)
            self.device.launched.append(((self, count, sizes, nbytes, pack, values), buffers))
        self._launch_now(global_size, local_size, pack(*given), nbytes)

    def _pack(self, values: list) -> Any:
        """Return the packer for the values of a call's signature; bytes have the same length in every call."""
        found = self._packs.get(())
        if found is None:
            found = self._packs[()] = _make_parameter_packer(self.signature.replace("p", "Qi"), values)
        return found

    def _launch_now(self, global_size: tuple, local_size: tuple | None, parameters: bytes, nbytes: int) -> None:
        count, sizes, _ = _launch_sizes(global_size, local_size, nbytes > _NONTEMPORAL_MIN_BYTES)
        if self.launch(parameters, sizes, count, nbytes):
            raise RuntimeError(f"kernel {self.name} cannot run in work-groups of {local_size} items here")

    def max_group(self) -> int:
        return 1


def _make_parameter_packer(codes: str, values: list) -> Any:
    """Return a function that packs parameters at multiples of 8 bytes; `x` are bytes."""
    layout = ["="]
    for code, value in zip(codes, values, strict=True):
        item = f"{len(value)}s" if value.__class__ is bytes else code
        layout.append(f"{item}{-struct.calcsize('=' + item) % 8}x")
    return struct.Struct("".join(layout)).pack


@functools.lru_cache(8192)
def _launch_sizes(global_size: tuple, local_size: tuple | None, past_caches: bool) -> tuple[int, int, Any]:
    """Return the number of work-groups, the address of the launch sizes for the program, and their owner."""
    whole = (*global_size, 1, 1)[:3]
    if local_size is None:
        local_size = (64,) if len(global_size) == 1 else (1,)
    local = (*local_size, 1, 1)[:3]
    count = 1
    for n, size in zip(whole, local, strict=True):
        count *= -(-n // size)
    kept = (ctypes.c_int * 7)(*whole, *local, past_caches)
    return count, ctypes.addressof(kept), kept


class Device(HostMemory, shared.Device):
    """The CPU device."""

    type, label = "cc", "C++"
    is_cpu, fp64, long_atomics = True, True, True
    max_group, group, matrix_group, width = 1, 1, 1, 16
    units = 4  # of every machine, so that results are the same on all
    local_memory = 1 << 15
    parameter_bytes = 1 << 16
    blocking = True
    # A product and a sum of one op may be contracted (FMA), those of two ops must not: eager gives other bits.
    fence = """
#if defined(__AVX512F__)
#define REGISTER_BYTES 64
#define IN_REGISTER "+v"
#elif defined(__AVX__)
#define REGISTER_BYTES 32
#define IN_REGISTER "+x"
#elif defined(__SSE2__)
#define REGISTER_BYTES 16
#define IN_REGISTER "+x"
#elif defined(__aarch64__)
#define REGISTER_BYTES 16
#define IN_REGISTER "+w"
#endif
template <class Of> INLINE Of fenced_(Of x) {
#ifdef IN_REGISTER
    typedef char Register __attribute__((vector_size(REGISTER_BYTES)));
    if constexpr (sizeof(Of) % REGISTER_BYTES == 0) {
        Register parts[sizeof(Of) / REGISTER_BYTES];
        __builtin_memcpy(parts, &x, sizeof(Of));
        for (Register& part : parts) asm("" : IN_REGISTER(part));
        __builtin_memcpy(&x, parts, sizeof(Of));
        return x;
    }
#endif
    asm("" : "+m"(x));
    return x;
}
#define FENCED(x) fenced_(x)
"""

    def __init__(self, index: int = 0, may_build: bool = True):
        super().__init__(index)
        self.name = "C++"
        self.may_build = may_build
        self.using = fork_locks.reinit_after_fork(threading.RLock())
        self._natives: dict[tuple[str, str], Any] = {}

    # -- kernels --

    def preamble(self, widths: tuple[int, ...], typed: dict[str, str]) -> str:
        return dtype_macros_source(widths, "cuda", **typed)

    def build(self, text: str) -> ctypes.CDLL:
        return program_build.load_program(opencl_to_cpp.to_cpp_program(text), self.may_build)

    def kernel(self, program: ctypes.CDLL, name: str, signature: str) -> Function:
        return Function(self, program, name, signature)

    launched: list[tuple] | None = None  # launches by `Function.start`, while `repeated_launch` notes them
    cached = _NONTEMPORAL_MIN_BYTES
    least_pairs = _MIN_BINARY_SIZE

    def native(self, text: str, name: str) -> Any:
        """Return a kernel of a C++ program (`native_kernel`). NotBuiltError if it is not built and cannot be."""
        found = self._natives.get((text, name))
        if found is None:
            try:
                found = Launcher(self, program_build.load_program(text, self.may_build), name)
            except (NotBuiltError, RuntimeError) as error:
                found = str(error)
            self._natives[text, name] = found
        if found.__class__ is str:
            raise NotBuiltError(found)  # a new one: an error keeps the arrays of all functions that it went through
        return found

    @cached_property
    def sharing(self) -> Any:
        """Return the runner that starts a kernel on several threads; None if not built: Python's threads serve then."""
        try:
            return thread_pool.parallel_runner(self.may_build)
        except (NotBuiltError, RuntimeError):
            return None

    # -- memory --

    @staticmethod
    def allocate(nbytes: int, array: Any = None) -> HostBuffer:  # type: ignore[override]
        return HostBuffer(_empty(nbytes, _bytes) if array is None else _empty(array.shape, array.dtype))

    def buffer_of(self, array: np.ndarray) -> HostBuffer:
        return HostBuffer(array)

    def address(self, buffer: HostBuffer) -> int:
        self.finish()
        return buffer.ptr

    def _buffer_bytes(self, buffer: HostBuffer, start: int, nbytes: int) -> np.ndarray:
        self.finish()
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(buffer.ptr + start))

    def read(self, buffer: HostBuffer, start: int, host: Any) -> None:
        host[...] = self._buffer_bytes(buffer, start, host.nbytes)

    def write(self, buffer: HostBuffer, host: Any, keep: bool = False) -> None:
        self._buffer_bytes(buffer, 0, host.nbytes)[...] = host

    def map(self, buffer: HostBuffer, start: int, nbytes: int, write: bool) -> Any:
        return self._buffer_bytes(buffer, start, nbytes)

    def unmap(self, array: Any) -> None:
        """Do nothing: the mapping is the memory itself."""

    # -- order --

    def done(self) -> None:
        """End a call: no work remains in flight."""

    def finish(self) -> None:
        if self.waiting.steps:
            self.waiting.start()
