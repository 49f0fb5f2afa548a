"""Binding of oneDNN's shared library: search, C functions of API version 3, errors.

Whatever threading the library was built for, one call computes on the calling thread only. Work is partitioned by shape
over the CPU kernels' threads (`torchlite_backends.numpy.cache_blocking`). Nothing spins, results do not depend on the
number of threads, and forked children compute as their parents do.
"""

from __future__ import annotations

import ctypes
import functools
import os
import site
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from torchlite._settings import fork_locks

_MAJOR = 3
_NAMES = {"win32": ("dnnl.dll",), "darwin": ("libdnnl.3.dylib",)}.get(sys.platform, ("libdnnl.so.3",))
_FOLDER = "bin" if sys.platform == "win32" else "lib"
# Runtimes for threads that a library can be built for, by the bits in its version.
_SEQUENTIAL, _OPENMP, _THREADPOOL = 1, 2, 8
_RUNTIMES = {4: "TBB", 256: "OpenCL", 512: "SYCL"}
_STATUS = {
    1: "out of memory", 2: "invalid arguments", 3: "not implemented", 4: "no further implementation",
    5: "an error while it ran", 6: "not required",
}  # fmt: skip
INSTALL = "pip install 'torchlite-nd[onednn]' (Linux on x86-64), or oneDNN 3 from conda or the system"


class OneDNNError(RuntimeError):
    """A oneDNN function failed."""

    def __init__(self, name: str, status: int):
        super().__init__(f"oneDNN: {name}: {_STATUS.get(status, f'status {status}')}")
        self.status = status


class _Version(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    ]


class Argument(ctypes.Structure):
    """Operand of a primitive: its index and its memory."""

    _fields_ = [("which", ctypes.c_int), ("memory", ctypes.c_void_p)]


_int, _size, _handle, _out = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
_dims = ctypes.POINTER(ctypes.c_int64)
_SIGNATURES: dict[str, tuple] = {
    "engine_create": (_out, _int, _size),
    "stream_create": (_out, _handle, ctypes.c_uint),
    "memory_desc_create_with_strides": (_out, _int, _dims, _int, _dims),
    "memory_desc_create_with_tag": (_out, _int, _dims, _int, _int),
    "memory_desc_destroy": (_handle,),
    "memory_create": (_out, _handle, _handle, _handle),
    "memory_set_data_handle": (_handle, _handle),
    "memory_destroy": (_handle,),
    "primitive_attr_create": (_out,),
    "primitive_attr_set_scratchpad_mode": (_handle, _int),
    "convolution_forward_primitive_desc_create": (
        _out, _handle, _int, _int, _handle, _handle, _handle, _handle, _dims, _dims, _dims, _dims, _handle,
    ),
    "convolution_backward_data_primitive_desc_create": (
        _out, _handle, _int, _handle, _handle, _handle, _dims, _dims, _dims, _dims, _handle, _handle,
    ),
    "convolution_backward_weights_primitive_desc_create": (
        _out, _handle, _int, _handle, _handle, _handle, _handle, _dims, _dims, _dims, _dims, _handle, _handle,
    ),
    "reorder_primitive_desc_create": (_out, _handle, _handle, _handle, _handle, _handle),
    "primitive_desc_query": (_handle, _int, _int, ctypes.c_void_p),
    "primitive_desc_destroy": (_handle,),
    "primitive_create": (_out, _handle),
    "primitive_execute": (_handle, _handle, _int, ctypes.POINTER(Argument)),
    "primitive_destroy": (_handle,),
    "set_primitive_cache_capacity": (_int,),
    "set_verbose": (_int,),
}  # fmt: skip


class LibraryStatus(NamedTuple):
    """The loaded library, or why there is none."""

    library: Library | None
    why_not: str


class Library:
    """Functions of a loaded oneDNN, its engine and its stream."""

    def __init__(self, dll: Any, path: str, version: _Version):
        self.path, self.version = path, f"{version.major}.{version.minor}.{version.patch}"
        self._functions: dict[str, Any] = {}
        for name, arguments in _SIGNATURES.items():
            function = getattr(dll, f"dnnl_{name}")
            function.argtypes, function.restype = arguments, _int
            self._functions[name] = function
        # Functions that return immediately keep the GIL: releasing it and waiting for it costs more.
        quick = ctypes.PyDLL(path)
        self.execute, self.set_handle = self._functions["primitive_execute"], quick.dnnl_memory_set_data_handle
        self.set_handle.argtypes, self.set_handle.restype = _SIGNATURES["memory_set_data_handle"], _int
        equal, size = dll.dnnl_memory_desc_equal, dll.dnnl_memory_desc_get_size
        equal.argtypes, equal.restype = (_handle, _handle), _int
        size.argtypes, size.restype = (_handle,), _size
        self.same_description, self.description_bytes = equal, size
        self._get_threads, self._set_threads = _get_openmp_controls(quick, version.cpu_runtime)
        # We cache primitives; the library's own cache has a lock, which a forked child could inherit locked.
        self.call("set_primitive_cache_capacity", 0)
        # It registers generated code under another lock: forks wait until no thread is in there.
        self._generation = fork_locks.acquire_before_fork(threading.RLock())
        self.engine = self.make("engine_create", 1, 0)
        self.stream = self.make("stream_create", self.engine, 1)
        self.attributes = self.make("primitive_attr_create")
        self.call("primitive_attr_set_scratchpad_mode", self.attributes, 1)  # scratch memory comes from us

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function by its name. OneDNNError if it fails."""
        status = self._functions[name](*arguments)
        if status:
            raise OneDNNError(name, status)

    def make(self, name: str, *arguments: Any) -> int:
        """Call a function and return its first, output argument."""
        made = ctypes.c_void_p()
        self.call(name, ctypes.byref(made), *arguments)
        return made.value or 0

    def make_primitive(self, description: int) -> int:
        """Return a new primitive, whose code oneDNN may generate."""
        with self._generation:
            return self.make("primitive_create", description)

    def run_single_threaded(self, body: Callable[..., Any], *arguments: Any) -> Any:
        """Run body(*arguments) on this thread only, then restore the OpenMP setting."""
        before = self._get_threads()
        if before == 1:
            return body(*arguments)
        self._set_threads(1)
        try:
            return body(*arguments)
        finally:
            self._set_threads(before)


def _get_openmp_controls(dll: Any, runtime: int) -> tuple[Any, Any]:
    """Return functions that get and set the thread count of this thread's OpenMP calls.

    They are looked up in the library and its dependencies, to find the OpenMP runtime that it loaded and no other.
    """
    if runtime == _SEQUENTIAL:
        return (lambda: 1), (lambda n: None)
    if runtime == _OPENMP:
        get, put = dll.omp_get_max_threads, dll.omp_set_num_threads
        get.argtypes, get.restype, put.argtypes, put.restype = (), _int, (_int,), None
        return get, put
    inner, put = dll.dnnl_threadpool_interop_get_max_concurrency, dll.dnnl_threadpool_interop_set_max_concurrency
    inner.argtypes, put.argtypes = (ctypes.POINTER(_int),), (_int,)

    def get_concurrency() -> int:
        found = _int()
        inner(ctypes.byref(found))
        return found.value

    return get_concurrency, put


def _list_candidate_paths() -> list[str]:
    """Return possible paths of the library: those of wheels and conda, then the system loader's."""
    prefixes = [sys.prefix, os.environ.get("CONDA_PREFIX", ""), sys.base_prefix, site.getuserbase()]
    folders = dict.fromkeys(os.path.join(prefix, _FOLDER) for prefix in prefixes if prefix)
    paths = [os.path.join(folder, name) for folder in folders for name in _NAMES]
    return [path for path in paths if os.path.exists(path)] + list(_NAMES)


def _load_library(path: str) -> Library:
    """Load the library of a file. OSError with the reason if it cannot be loaded or used."""
    dll = ctypes.CDLL(path)
    if not hasattr(dll, "dnnl_version"):
        raise OSError(f"{path} is not oneDNN")
    dll.dnnl_version.argtypes, dll.dnnl_version.restype = (), ctypes.POINTER(_Version)
    version = dll.dnnl_version().contents
    if version.major != _MAJOR:
        raise OSError(f"{path} is oneDNN {version.major}.{version.minor}; version {_MAJOR} is needed")
    if version.cpu_runtime not in (_SEQUENTIAL, _OPENMP, _THREADPOOL):
        raise OSError(
            f"{path} is built for {_RUNTIMES.get(version.cpu_runtime, 'another runtime')}, whose threads cannot be "
            "limited to the calling one; a build for OpenMP is needed"
        )
    try:
        return Library(dll, path, version)
    except (AttributeError, OneDNNError) as error:
        raise OSError(f"{path}: {error}") from None


@functools.cache
def find_library() -> LibraryStatus:
    """Return this process's library, found once. `TORCHLITE_ONEDNN` names its file, or "0" disables it."""
    asked = os.environ.get("TORCHLITE_ONEDNN", "")
    if asked == "0":
        return LibraryStatus(None, "switched off by TORCHLITE_ONEDNN=0")
    reasons = []
    for path in [asked] if asked else _list_candidate_paths():
        try:
            return LibraryStatus(_load_library(path), "")
        except OSError as error:
            if os.path.sep in path:
                reasons.append(str(error))
    return LibraryStatus(None, "; ".join([*reasons, f"not found: {INSTALL}"] if not asked else reasons))
