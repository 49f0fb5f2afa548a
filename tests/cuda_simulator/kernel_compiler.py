"""Compiles CUDA programs with g++ and launches their kernels.

    program = Program(text)                              # compiled, or loaded from the folder where it was kept
    x = allocate(4 * n)                                  # an address; numpy reads and writes it through `view`
    program.launch("scale", (blocks,), (256,), [struct.pack("P", x), struct.pack("i", n)], seed=1)

Every launch has finished when it returns. A thread runs until it waits; `seed` says which of those that can run is
next: with 0 the first, with 1 the last, from 2 on one by ranks that are drawn anew after each barrier, with odd seeds
so that a warp's threads stay together. Odd seeds take the blocks of the grid from the last one on. The seed also says
what shared memory holds before each block, and when asynchronous copies happen (odd: at once, even: at the latest
moment). A kernel whose results depend on the seed lacks a barrier, or reads what was never written.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

_HERE = Path(__file__).parent
_HEADERS = ("launch.h", "shim.h", "checks.h", "vectors.h", "maths.h", "atomics.h", "warps.h", "tensor_cores.h")
_FLAGS = (
    "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics",
    "-fno-strict-aliasing", "-fwrapv", "-fno-math-errno", "-fno-asynchronous-unwind-tables", "-ffp-contract=fast", "-w",
)  # fmt: skip
# Sanitizers detect behaviour that traps on a GPU or differs there from this processor. A large frame must touch the
# guard below its stack.
_PROGRAM = (
    "-O1",
    "-fexpensive-optimizations",
    "-fsanitize=alignment,bounds,shift-exponent",
    "-fstack-clash-protection",
)
_SANITIZE = ("-fsanitize=address", "-fsanitize-sections=cuda_shared", "-g1", "-fno-omit-frame-pointer")
# nvcc contracts products and sums as well; the second gives conversions of half precision as instructions.
_INSTRUCTIONS = {"fma": "-mfma", "f16c": "-mf16c"}
_SHARED = 48 << 10
_LIMITS = {"grid": (2**31 - 1, 65535, 65535), "block": (1024, 1024, 64)}


class SimulatorError(RuntimeError):
    """Error in a program's source or a launch: a compiler's message, or the thread at fault."""


@functools.cache
def compiler() -> str | None:
    """The path of g++, None where there is none."""
    return shutil.which("g++")


def missing() -> str:
    """Why programs cannot run here; empty where they can."""
    return "" if compiler() and sys.platform == "linux" else "the CUDA simulator needs g++ on Linux"


@functools.cache
def _identity() -> str:
    """Return what a compiled program depends on besides its source: the headers, the compiler, and the flags."""
    version = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True).stdout
    texts = [(_HERE / name).read_text() for name in _HEADERS]
    return "\n".join((version, *_FLAGS, *_processor_flags(), *texts))


@functools.cache
def _processor_flags() -> tuple[str, ...]:
    found = (
        re.search(r"^flags\s*:(.*)", Path("/proc/cpuinfo").read_text(), re.M)
        if Path("/proc/cpuinfo").exists()
        else None
    )
    return tuple(flag for name, flag in _INSTRUCTIONS.items() if found and name in found[1].split())


@functools.cache
def default_folder() -> Path:
    """Return the default folder for compiled programs: a folder of this user's among
    the temporary ones.
    """
    folder = Path(tempfile.gettempdir()) / f"torchlite-cuda-simulator-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise SimulatorError(f"{folder} belongs to someone else")
    return folder


def _compiled(folder: Path, source: str, flags: tuple[str, ...]) -> Path:
    """The shared object of a C++ text, compiled unless the folder has it; it gets its name when complete, so that
    processes may share the folder.
    """
    digest = hashlib.sha256("\0".join((_identity(), *flags, source)).encode()).hexdigest()[:40]
    path = folder / digest[:2] / f"{digest}.so"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.so")
    files = ("-I", str(_HERE), "-x", "c++", "-", "-o", str(partial), "-nostdlib", "-lm", "-lgcc", "-lc")
    command = [compiler(), *_FLAGS, *flags, *_processor_flags(), *files]
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": "", "LC_ALL": "C"}
    )
    if done.returncode:
        raise SimulatorError(f"g++ could not compile a CUDA program:\n{done.stderr}")
    os.replace(partial, path)
    return path


# ---- the sanitizer ----


@functools.cache
def _sanitizer_library() -> str:
    return subprocess.run(
        [compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()


def sanitizer_environment() -> dict[str, str]:
    """The environment in which a Python process can load programs compiled with `sanitize=True`."""
    options = "detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=0:exitcode=86"
    options += ":allocator_may_return_null=1:quarantine_size_mb=64"
    return {
        **os.environ,
        "LD_PRELOAD": os.path.realpath(_sanitizer_library()),
        "ASAN_OPTIONS": options,
        "PYTHONMALLOC": "malloc",
    }


def in_sanitized_child(
    module: str, function: str, *arguments: object, timeout: float = 300
) -> subprocess.CompletedProcess:
    """Calls `module.function(*arguments)` in a Python process under the address sanitizer, whose exit status is 86
    after a report.

    The arguments travel as text: their repr must read back.
    """
    code = f"import importlib; importlib.import_module({module!r}).{function}(*{arguments!r})"
    root = str(_HERE.parent.parent)
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env=sanitizer_environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


# ---- the runtime ----


class Runtime:
    """The library that runs launches, one for each way of compiling it."""

    def __init__(self, sanitize: bool, portable: bool):
        if sanitize and not hasattr(ctypes.CDLL(None), "__asan_init"):
            raise SimulatorError(
                "programs compiled with sanitize=True load only in a process that began with sanitizer_environment()"
            )
        flags = ("-O2", *(_SANITIZE if sanitize else ()), *(("-DCUDA_SIMULATOR_UCONTEXT",) if portable else ()))
        # PyDLL: a launch keeps the interpreter's lock, so that there is one at a time.
        library = ctypes.PyDLL(str(_compiled(default_folder(), (_HERE / "runtime.cpp").read_text(), flags)))
        self.launch = library.cuda_simulator_launch
        self.launch.restype = ctypes.c_char_p
        self.launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t]
        self.patience = ctypes.c_int.in_dll(
            library, "cuda_simulator_patience"
        )  # seconds of the processor's time that a launch may take
        self.allocate = library.cuda_simulator_allocate
        self.allocate.restype = ctypes.c_void_p
        self.allocate.argtypes = [ctypes.c_size_t, ctypes.c_int]
        self.free = library.cuda_simulator_free
        self.free.restype = ctypes.c_int64
        self.free.argtypes = [ctypes.c_void_p]


_runtime = functools.cache(Runtime)


def runtime(sanitize: bool = False, portable: bool = False) -> Runtime:
    """The runtime; `portable` for the one that changes between fibers by ucontext, as on processors that the quick way
    does not know.
    """
    return _runtime(sanitize, portable)


# ---- programs ----


class _Entry(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("run", ctypes.c_void_p),
        ("parameters", ctypes.c_int),
        ("sizes", ctypes.POINTER(ctypes.c_int)),
        ("most_threads", ctypes.c_int),
        ("state", ctypes.c_void_p),
        ("shared_begin", ctypes.c_void_p),
        ("shared_end", ctypes.c_void_p),
    ]


class Kernel:
    """A kernel of a program: `kernel(grid, block, params)` starts it and waits."""

    def __init__(self, program: Program, name: str):
        try:
            entry = _Entry.in_dll(program.library, f"cuda_simulator_entry_{name}")
        except ValueError:
            raise SimulatorError(
                f"the program has no kernel {name}; it has {', '.join(program.names) or 'none'}"
            ) from None
        self.name, self.address = name, ctypes.addressof(entry)
        self.sizes = entry.sizes[: entry.parameters]
        self.most_threads = entry.most_threads
        shared = (entry.shared_end or 0) - (entry.shared_begin or 0)
        if (
            len(program.names) == 1 and shared > _SHARED and not program.sanitize
        ):  # several kernels lie one behind the other, and so do guarded zones
            raise SimulatorError(
                f"kernel {name} shares {shared} bytes among the threads of a block, more than {_SHARED}"
            )
        self._launch = program.runtime.launch
        self._program = program  # keeps it loaded
        self._pointers = ctypes.c_char_p * entry.parameters
        self._extents: dict[tuple, ctypes.Array] = {}

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], params, seed: int = 0, shared: int = 0) -> None:
        """Launches with parameters as cuLaunchKernel gets them, each the bytes of a value (bytes,
        or a ctypes object).
        """
        try:
            extents = self._extents[grid, block]
        except (KeyError, TypeError):
            extents = self._extent(tuple(grid), tuple(block))
        try:
            pointers = self._pointers(*params)
            given = [*map(len, params)]
        except (TypeError, IndexError):
            params = [_bytes(value) for value in params]
            given = [*map(len, params)]
            pointers = self._pointers(*params) if len(params) == len(self.sizes) else None
        if given != self.sizes:
            raise SimulatorError(f"kernel {self.name} takes parameters of {self.sizes} bytes, not {given}")
        report = self._launch(self.address, pointers, extents, seed, shared)
        if report is not None:
            raise SimulatorError(report.decode(errors="replace"))

    def _extent(self, grid: tuple[int, ...], block: tuple[int, ...]) -> ctypes.Array:
        both = []
        for name, sizes in (("grid", grid), ("block", block)):
            if not 1 <= len(sizes) <= 3 or any(not 1 <= n <= most for n, most in zip(sizes, _LIMITS[name])):
                raise SimulatorError(
                    f"kernel {self.name}: a {name} of {sizes} cannot be launched (at most {_LIMITS[name]})"
                )
            both += [*sizes, *(1,) * (3 - len(sizes))]
        threads = both[3] * both[4] * both[5]
        if threads > 1024:
            raise SimulatorError(f"kernel {self.name}: a block of {block} has more than 1024 threads")
        if threads > self.most_threads:
            raise SimulatorError(
                f"blocks of {threads} threads, but kernel {self.name} has __launch_bounds__ of {self.most_threads}"
            )
        if len(self._extents) > 4096:
            self._extents.clear()
        found = self._extents[grid, block] = (ctypes.c_uint * 6)(*both)
        return found


def _bytes(value) -> bytes:
    return value if isinstance(value, bytes) else bytes(value)


_DYNAMIC = re.compile(r"extern\s+__shared__\s+((?:__align__\s*\(\d+\)\s*)?)((?:\w+\s+)*\w+)\s+(\w+)\s*\[\s*\]")
_LINKAGE = re.compile(r'extern\s+"C"\s+(?=(?:__\w+__\s*(?:\([^()]*\)\s*)?)*__global__)')
_DEFINES = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.M)
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def kernel_names(text: str) -> dict[str, str]:
    """The names of a text's kernels and their bounds of threads. A macro may stand for `__global__`; kernels that a
    macro writes are not seen.
    """
    text = _COMMENTS.sub(" ", text)
    words = {"__global__", *(name for name, body in _DEFINES.findall(text) if "__global__" in body)}
    plain = _DEFINES.sub("", text)
    # The word, attributes, the type, attributes, then the name.
    given = r"\((?:[^()]|\([^()]*\))*\)"
    attributes = rf"(?:\s+(?:__\w+__\s*(?:{given})?|\w+\s*{given}))*"
    names = {}
    for found in re.finditer(
        rf"\b(?:{'|'.join(words)})(?:\s*{given})?{attributes}\s+void{attributes}\s+(\w+)\s*\(", plain
    ):
        bound = re.search(r"__launch_bounds__\s*\(((?:[^(),]|\([^()]*\))*)", found[0])
        names[found[1]] = bound[1].strip() if bound else "1024"
    return names


class Program:
    """A compiled program. `names` are kernels that a macro defines, whose names do not appear in the source."""

    def __init__(
        self,
        text: str,
        *,
        sanitize: bool = False,
        folder: Path | None = None,
        names: tuple[str, ...] = (),
        portable: bool = False,
    ):
        if missing():
            raise SimulatorError(missing())
        self.runtime, self.sanitize = runtime(sanitize, portable), sanitize
        self.names = {**kernel_names(text), **dict.fromkeys(names, "1024")}
        text = _LINKAGE.sub("", text)
        text = _DYNAMIC.sub(r"\2* const \3 = (\2*)cuda_simulator.dynamic_shared", text)
        entries = "".join(f"CUDA_SIMULATOR_ENTRY({name}, ({bound}))\n" for name, bound in self.names.items())
        source = f'#include "shim.h"\nnamespace {{\n#line 1 "program.cu"\n{text}\n}}\n{entries}'
        path = _compiled(Path(folder or default_folder()), source, (*_PROGRAM, *(_SANITIZE if sanitize else ())))
        self.library = ctypes.PyDLL(str(path))
        self._kernels: dict[str, Kernel] = {}

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name."""
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels[name] = Kernel(self, name)
        return found

    def launch(
        self, name: str, grid: tuple[int, ...], block: tuple[int, ...], params, seed: int = 0, shared: int = 0
    ) -> None:
        """Runs a kernel: `params` as cuLaunchKernel gets them, `shared` the bytes of dynamic shared memory."""
        self.kernel(name)(grid, block, params, seed, shared)


# ---- global memory ----


def allocate(nbytes: int, value: int = 0xFF, sanitize: bool = False) -> int:
    """The address of new memory between guarded zones, a multiple of 256. All its bytes are `value`: 0xFF is NaN in
    every floating-point type.
    """
    address = runtime(sanitize).allocate(nbytes, value)
    if address is None:
        raise MemoryError(f"{nbytes} bytes")
    return address


def unset(seed: int) -> int:
    """The byte that memory holds before it is written: with odd seeds numbers are large, else NaN or -1."""
    return 0x7B if seed & 1 else 0xFF


def free(address: int, sanitize: bool = False) -> None:
    """Gives memory back. SimulatorError when bytes just before or behind it were written (which the address sanitizer
    reports when it happens).
    """
    touched = runtime(sanitize).free(address)
    if touched:
        where = f"{-touched} before it" if touched < 0 else f"{touched} past its end"
        raise SimulatorError(f"the memory at 0x{address:x} was written out of bounds: the first byte found is {where}")


def view(address: int, nbytes: int) -> memoryview:
    """The bytes at an address, for numpy.frombuffer and for copies."""
    return memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")
