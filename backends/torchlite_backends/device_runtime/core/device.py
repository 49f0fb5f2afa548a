"""What a runtime offers below the kernels: a device that builds programs, starts them, and holds memory."""

from __future__ import annotations

import struct
import threading
from pathlib import Path
from typing import Any, Protocol

from torchlite._settings import fork_locks
from torchlite_backends.kernel_sources.dtype_kinds import KINDS

from .lazy_fusion import LazyQueue

pack_offset = struct.Struct("i").pack


class NotBuiltError(RuntimeError):
    """A program is not there, and none may be built: it stays so as long as the process lives."""


class Function(Protocol):
    """A built kernel: `function(global_size, local_size, *arguments)` starts it; sizes count work-items.

    Its signature has one letter for each argument: `p` an Array (passed as its buffer and its offset in elements), `x`
    packed bytes, else the struct code of a number.
    """

    name: str
    device: Any

    def __call__(self, global_size: tuple, local_size: tuple | None, *arguments) -> None: ...

    def start(self, global_size: tuple, local_size: tuple | None, buffers: list, values: list[bytes]) -> None:
        """Start a kernel whose parameters are the buffers and then the packed values, without a signature."""
        ...

    def max_group(self) -> int:
        """The largest work-group that this kernel runs in on its device."""
        ...


class BoundedCache(dict):
    """What a kernel family remembers of the shapes it has seen, for as long as there are not too many: then it begins
    anew.
    """

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self.most:
            self.clear()
        super().__setitem__(key, value)


class Device:
    """The state of one device. A runtime's class sets what is declared here and not in `__init__`, and has the methods
    that raise NotImplementedError.

    It calls `waiting.start()` before it starts a kernel and before it reads, writes, waits or marks a place, when there
    are `waiting.steps`.
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
    matrix_group: int  # work-items that factor a matrix together: a power of 2
    width: int  # elements that a work-item takes in contiguous kernels
    vectors = (
        True  # whether the language has operators and functions of vectors: else they are computed element by element
    )
    allocate: Any  # (bytes, the Array that it is for or None) -> a block of memory, freed when nothing refers to it
    chains = True  # whether large pointwise ops wait for what reads them (`waiting`)
    fence = (
        ""  # text that defines FENCED(x), which is x and keeps compilers from making one step of a product and a sum
    )
    capturing = False  # whether what is started is recorded for a graph, and what that draws
    draws: Any = None
    forms: Any = None  # who says in which form products are computed, where that is measured (`linalg.tuning`)

    def __init__(self, index: int):
        self.index = index
        self.functions: dict[tuple, Any] = {}
        self.programs: dict[str, Any] = {}  # by text: a program may hold several kernels
        self.plans = BoundedCache(20000)  # of families whose keys begin with a name or a rule of their own
        self.state: dict[Any, Any] = {}  # what lasts as long as the device: the note of errors, scratch memory
        self.waiting = LazyQueue(self)
        self._kept: dict[str, BoundedCache] = {}
        self._building = fork_locks.reinit_after_fork(threading.RLock())

    def __repr__(self) -> str:
        return f"<{self.type}:{self.index} {self.name}>"

    def kept(self, family: str, most: int = 4096) -> BoundedCache:
        """What a kernel family of that name remembers, at most so many entries."""
        found = self._kept.get(family)
        return self._kept.setdefault(family, BoundedCache(most)) if found is None else found

    # -- kernels --

    def function(self, source: str, name: str, signature: str, widths: Any = (), **kinds: str) -> Any:
        """The kernel `name` of a program text, built once. `kinds` are data types for the macros of
        `torchlite_backends.kernel_sources.preamble.types`, or texts to define.
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
        with self._building:
            found = self.functions.get(key)
            if found is None:
                program = self.programs.get(text)
                if program is None:
                    program = self.programs.setdefault(text, self.build(text))
                found = self.functions.setdefault(key, self.kernel(program, name, signature))
        return found

    def check_kind(self, kind: str) -> None:
        """RuntimeError naming the device for a data type that it lacks."""
        if kind in ("f64", "c128") and not self.fp64:
            raise RuntimeError(
                f"device {self.type}:{self.index} ({self.name}) has no double precision: "
                f"use float32, or device='cpu' for {'float64' if kind == 'f64' else 'complex128'}"
            )

    def preamble(self, widths: tuple[int, ...], typed: dict[str, str]) -> str:
        """What a program begins with: the language's macros and those of its data types."""
        raise NotImplementedError

    def build(self, text: str) -> Any:
        """A built program. RuntimeError with the compiler's log and the numbered text."""
        raise NotImplementedError

    def cache_path(self, text: str) -> Path:
        """Where what belongs to a text is kept on the disk, for this device and driver."""
        raise NotImplementedError

    def kernel(self, program: Any, name: str, signature: str) -> Any:
        """The Function of a kernel in a built program."""
        raise NotImplementedError

    def product(self, kind: str, sizes: Any, added: bool, conj: tuple[bool, bool]) -> Any:
        """How a library of the device computes a matrix product (`linalg.gemm.Sizes`): an object with the `run` of
        `linalg.gemm.Plan`; None where none does.
        """
        return None

    def library_factorise(self, name: str, x: Any, *options: Any) -> Any:
        """What a library of the device makes of matrices: "lu", "cholesky" or "eigh" as the kernels of `linalg` give
        it; None where our own are to run.
        """
        return None

    # -- memory: `buffer` is what `allocate` gave, `start` counts bytes in it, host memory is an array of bytes --

    def address(self, buffer: Any) -> int:
        """A number that differs between buffers by more than their sizes."""
        raise NotImplementedError

    def read(self, buffer: Any, start: int, host: Any) -> None:
        """Fill host memory from a buffer; waits for the device."""
        raise NotImplementedError

    def write(self, buffer: Any, host: Any, keep: bool = False) -> None:
        """Write host memory to a buffer's start, after what was started before. With `keep` nobody changes `host`
        later, so that the caller need not wait.
        """
        raise NotImplementedError

    def map(self, buffer: Any, start: int, nbytes: int, write: bool) -> Any:
        """A buffer's bytes as a NumPy array without a copy; only of devices with `is_cpu`. Waits for the device."""
        raise NotImplementedError

    def unmap(self, array: Any) -> None:
        """Give up what `map` gave."""
        raise NotImplementedError

    # -- order --

    def lane(self) -> int:
        """Which of the device's orders of work the calling thread's launches go to; always 0 where there is one."""
        return 0

    def in_lane(self, lane: int) -> Any:
        """A context in which the calling thread's launches go to another order of work."""
        raise NotImplementedError

    def finish(self) -> None:
        """Wait until everything that was started has run."""
        raise NotImplementedError

    @property
    def blocking(self) -> bool:
        """Whether an op that can fail is waited for, so that the error's traceback names it."""
        raise NotImplementedError


def with_line_numbers(text: str) -> str:
    """A program with the numbers of its lines, as messages show it."""
    return "\n".join(f"{i:4} {line}" for i, line in enumerate(text.splitlines(), 1))


def format_size(nbytes: int) -> str:
    """A number of bytes as messages say it."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} bytes"


def grid(count: int, group: int) -> tuple[int]:
    """The global size that covers `count` work-items in groups of `group`."""
    return (-(-count // group) * group,)
