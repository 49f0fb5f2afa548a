"""Interface between the kernels and a runtime: a device that builds programs, launches kernels, and manages memory."""

from __future__ import annotations

import struct
import threading
from pathlib import Path
from typing import Any, Protocol

from torchlite._settings import fork_locks
from torchlite._settings.build_time import building
from torchlite_backends.kernel_sources.dtype_kinds import KINDS

from .lazy_fusion import LazyQueue

pack_offset = struct.Struct("i").pack


class NotBuiltError(RuntimeError):
    """A program is not built and must not be: this stays so for the process."""


class Function(Protocol):
    """Built kernel: `function(global_size, local_size, *arguments)` launches it; sizes count work-items.

    Its signature has one letter per argument: `p` an Array (passed as its buffer and its offset in elements), `x`
    packed bytes, else the struct code of a number.
    """

    name: str
    device: Any

    def __call__(self, global_size: tuple, local_size: tuple | None, *arguments) -> None: ...

    def start(self, global_size: tuple, local_size: tuple | None, buffers: list, values: list[bytes]) -> None:
        """Launch a kernel whose parameters are the buffers and then the packed values, without a signature."""
        ...

    def max_group(self) -> int:
        """Return the largest work-group size of this kernel on its device."""
        ...


class BoundedCache(dict):
    """Cache of a kernel family by shapes; it is cleared when full."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self.most:
            self.clear()
        super().__setitem__(key, value)


class Device:
    """Interface and common state of devices.

    A runtime's class sets the attributes that are only declared here, and implements the methods that raise
    NotImplementedError. It calls `waiting.start()` before a launch, read, write, wait or event if there are
    `waiting.steps`.
    """

    type: str  # "opencl", "cuda"
    label: str  # as in messages: "OpenCL"
    name: str
    is_cpu: bool
    fp64: bool
    long_atomics: bool  # on 64-bit integers
    max_group: int  # work-items in a work-group, at most
    units: int  # work-groups that run at one time, about
    local_memory: int  # bytes that a work-group shares, at most
    parameter_bytes: int  # of a kernel's parameters, at most
    group: int  # work-items in the work-groups of most kernels
    matrix_group: int  # work-items that factor a matrix: a power of 2
    width: int  # elements per work-item in contiguous kernels
    vectors = (
        True  # whether the language has operators and functions of vectors: else they are computed element by element
    )
    allocate: Any  # (bytes, its Array or None) -> a block of memory, freed when unreferenced
    chains = True  # whether large pointwise ops are deferred (`lazy_fusion`)
    fence = ""  # text that defines FENCED(x), which is x and prevents contraction (FMA) by the compiler
    capturing = False  # whether launches are captured for a graph, with their random draws
    draws: Any = None
    forms: Any = None  # chooses GEMM configurations while they are measured (`linalg.autotune`)

    def __init__(self, index: int):
        self.index = index
        self.functions: dict[tuple, Any] = {}
        self.programs: dict[str, Any] = {}  # by text: a program may hold several kernels
        self.plans = BoundedCache(20000)  # of families whose keys begin with a name or rule
        self.state: dict[Any, Any] = {}  # objects that live as long as the device: error buffer, scratch memory
        self.waiting = LazyQueue(self)
        self._kept: dict[str, BoundedCache] = {}
        self._building = fork_locks.reinit_after_fork(threading.RLock())

    def __repr__(self) -> str:
        return f"<{self.type}:{self.index} {self.name}>"

    def kept(self, family: str, most: int = 4096) -> BoundedCache:
        """Return the cache of a kernel family, with at most so many entries."""
        found = self._kept.get(family)
        return self._kept.setdefault(family, BoundedCache(most)) if found is None else found

    # -- kernels --

    def function(self, source: str, name: str, signature: str, widths: Any = (), **kinds: str) -> Any:
        """Return the kernel `name` of a source, built once.

        `widths` are kinds for the macros of `torchlite_backends.kernel_sources.preamble`, or definitions.
        """
        key = (source, name, tuple(kinds.items())) if kinds else (source, name)
        found = self.functions.get(key)
        if found is None:
            found = self._function(key, source, name, signature, widths, kinds)
        return found

    def _function(self, key, source, name, signature, widths, kinds) -> Any:
        typed = {k: v for k, v in kinds.items() if v in KINDS}
        for kind in typed.values():
            self.check_kind(kind)
        text = (
            self.preamble(widths, typed)
            + "".join(f"#define {k} {v}\n" for k, v in kinds.items() if v not in KINDS)
            + source
        )
        with self._building, building():
            found = self.functions.get(key)
            if found is None:
                program = self.programs.get(text)
                if program is None:
                    program = self.programs.setdefault(text, self.build(text))
                found = self.functions.setdefault(key, self.kernel(program, name, signature))
        return found

    def check_kind(self, kind: str) -> None:
        """Raise RuntimeError naming the device for a kind that it lacks."""
        if kind in ("f64", "c128") and not self.fp64:
            raise RuntimeError(
                f"device {self.type}:{self.index} ({self.name}) has no double precision: "
                f"use float32, or device='cpu' for {'float64' if kind == 'f64' else 'complex128'}"
            )

    def preamble(self, widths: tuple[int, ...], typed: dict[str, str]) -> str:
        """Return the beginning of a program: macros of the language and of its kinds."""
        raise NotImplementedError

    def build(self, text: str) -> Any:
        """Build a program. RuntimeError with the compiler's log and the numbered source."""
        raise NotImplementedError

    def cache_path(self, text: str) -> Path:
        """Return the disk path of the binary for a source, this device and driver."""
        raise NotImplementedError

    def kernel(self, program: Any, name: str, signature: str) -> Any:
        """Return the Function of a kernel in a built program."""
        raise NotImplementedError

    def product(self, kind: str, sizes: Any, added: bool, conj: tuple[bool, bool]) -> Any:
        """Return a vendor library's matrix product for `linalg.gemm.GemmShape`: an object with the `run` of `GemmPlan`,
        or None.
        """
        return None

    def library_factorise(self, name: str, x: Any, *options: Any) -> Any:
        """Return a vendor library's "lu", "cholesky" or "eigh" in the form of `linalg`'s kernels; None to use ours."""
        return None

    # -- Memory: `buffer` is a block of `allocate`, `start` counts bytes in it, host memory is an array of bytes --

    def address(self, buffer: Any) -> int:
        """Return a number that differs between buffers by more than their sizes."""
        raise NotImplementedError

    def read(self, buffer: Any, start: int, host: Any) -> None:
        """Copy from a buffer to host memory; waits for the device."""
        raise NotImplementedError

    def write(self, buffer: Any, host: Any, keep: bool = False) -> None:
        """Copy host memory to a buffer's start, after earlier work.

        With `keep` the caller guarantees that `host` does not change, so that it need not wait.
        """
        raise NotImplementedError

    def map(self, buffer: Any, start: int, nbytes: int, write: bool) -> Any:
        """Map a buffer's bytes as a NumPy array without a copy; only if `is_cpu`. Waits for the device."""
        raise NotImplementedError

    def unmap(self, array: Any) -> None:
        """Unmap an array of `map`."""
        raise NotImplementedError

    # -- order --

    def lane(self) -> int:
        """Return the calling thread's stream number; 0 if there is only one."""
        return 0

    def in_lane(self, lane: int) -> Any:
        """Return a context manager that selects another stream."""
        raise NotImplementedError

    def finish(self) -> None:
        """Wait until all launched work has run."""
        raise NotImplementedError

    @property
    def blocking(self) -> bool:
        """True if the host waits after each op that can fail, so that the traceback names it."""
        raise NotImplementedError


def with_line_numbers(text: str) -> str:
    """Return a program with line numbers, for error messages."""
    return "\n".join(f"{i:4} {line}" for i, line in enumerate(text.splitlines(), 1))


def format_size(nbytes: int) -> str:
    """Return a number of bytes as in error messages."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} bytes"


def round_up_to_groups(count: int, group: int) -> tuple[int]:
    """Return the global size that covers `count` work-items in groups of `group`."""
    return (-(-count // group) * group,)
