"""Access to NumPy's BLAS: its thread count, and GEMM and LAPACK routines by address.

OpenBLAS splits each product over its threads, which spin while they wait: on a busy machine that costs ten times the
product. A kernel with several products, or with other work between them, instead runs blocks on our own threads, with
BLAS set to one thread meanwhile.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys
import threading
from _thread import get_ident
from typing import Any

import numpy as np

from torchlite._settings import fork_locks
from torchlite._settings.thread_count import get_threads

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

_BUFFER_BYTES = 1 << 25  # bytes that OpenBLAS maps for each thread when it first computes, and keeps

_NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)


@functools.cache
def _find_thread_controls():
    """Return the functions that set and get the thread count of the wheel's OpenBLAS, and its library; None if
    absent.
    """
    here = os.path.dirname(np.__file__)
    for folder in (os.path.join(os.path.dirname(here), "numpy.libs"), os.path.join(here, ".dylibs")):
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if "openblas" not in name:
                continue
            try:
                library = ctypes.CDLL(os.path.join(folder, name))
            except OSError:
                continue
            for name in _NAMES:
                if hasattr(library, name.format("set")):
                    count = _find_count(library, name)
                    if count is not None:
                        return *count, library
                    return getattr(library, name.format("set")), getattr(library, name.format("get")), library
    return None


def _find_count(library: ctypes.CDLL, name: str) -> tuple | None:
    """Return functions that write and read the variable of the thread count, in half the time of the library's own.

    None if the library exports no such variable. No count above the library's own is written.
    """
    try:
        count = ctypes.c_int.in_dll(library, "blas_cpu_number")
    except ValueError:
        return None
    if count.value != getattr(library, name.format("get"))():
        return None
    return functools.partial(setattr, count, "value"), functools.partial(getattr, count, "value")


@functools.cache
def get_gemm_function(dtype: np.dtype):
    """Return `gemm(transposed_b, m, n, k, a, a_row, b, b_row, beta, c, c_row, transposed_a=False)`.

    It takes addresses and row lengths of row-major matrices and computes c = a @ b + beta * c, which NumPy cannot. None
    if BLAS has no GEMM for the dtype.
    """
    controls = _find_thread_controls()
    names = {"f": "sgemm", "d": "dgemm"}
    if controls is None or dtype.char not in names:
        return None
    function = getattr(controls[2], f"scipy_cblas_{names[dtype.char]}64_", None)
    if function is None:
        return None
    size, real, address = ctypes.c_int64, ctypes.c_float if dtype.char == "f" else ctypes.c_double, ctypes.c_void_p
    function.argtypes = [ctypes.c_int] * 3 + [size] * 3 + [real, address, size, address, size, real, address, size]
    function.restype = None

    def gemm(transposed_b, m, n, k, a, a_row, b, b_row, beta, c, c_row, transposed_a=False):
        first, second = 112 if transposed_a else 111, 112 if transposed_b else 111
        function(101, first, second, m, n, k, 1.0, a, a_row, b, b_row, beta, c, c_row)

    return gemm


@functools.cache
def get_gemm_address(dtype: np.dtype) -> int | None:
    """Return the address of BLAS's GEMM with 64-bit integers, or None."""
    if get_gemm_function(dtype) is None:
        return None
    controls: Any = _find_thread_controls()
    name = {"f": "sgemm", "d": "dgemm"}[dtype.char]
    return ctypes.cast(getattr(controls[2], f"scipy_cblas_{name}64_"), ctypes.c_void_p).value


@functools.cache
def has_avx512_kernels(dtype: np.dtype) -> bool:
    """True if BLAS's kernels for AVX-512 serve. They take long to copy the second matrix where it is transposed, and
    copy none in a product of few multiplications.
    """
    controls = _find_thread_controls()
    name = controls and getattr(controls[2], "scipy_openblas_get_corename64_", None)
    if not name or dtype.char != "f" or get_transposing_copy(dtype) is None:
        return False
    name.restype = ctypes.c_char_p
    return name() == b"SkylakeX"


@functools.cache
def get_transposing_copy(dtype: np.dtype):
    """Return `turn(rows, columns, source, source_row, target, target_row)`, which writes a transpose multiplied by one.

    It takes addresses and row lengths of row-major matrices. None if BLAS has no such function for the dtype.
    """
    controls = _find_thread_controls()
    names = {"f": "somatcopy", "d": "domatcopy"}
    function = controls and dtype.char in names and getattr(controls[2], f"scipy_cblas_{names[dtype.char]}64_", None)
    if not function:
        return None
    size, real, address = ctypes.c_int64, ctypes.c_float if dtype.char == "f" else ctypes.c_double, ctypes.c_void_p
    function.argtypes = [ctypes.c_int, ctypes.c_int, size, size, real, address, size, address, size]
    function.restype = None
    return functools.partial(_transpose_copy, function)


def _transpose_copy(function, rows, columns, source, source_row, target, target_row):
    function(101, 112, rows, columns, 1.0, source, source_row, target, target_row)


@functools.cache
def make_transposing_function(dtype: np.dtype):
    """Return `turn(matrix, out)`, which transposes a row-major matrix into another; it returns True if that was exact.

    None if BLAS has no such function for the dtype. BLAS multiplies by one, which quiets signalling NaNs: a copy must
    not change them, nor other data stored as floating-point bits.
    """
    copy = get_transposing_copy(dtype)
    if copy is None:
        return None
    itemsize = dtype.itemsize

    def transpose(matrix: np.ndarray, out: np.ndarray) -> bool:
        source, target = (a.__array_interface__["data"][0] for a in (matrix, out))
        copy(*matrix.shape, source, matrix.strides[0] // itemsize, target, out.strides[0] // itemsize)
        largest = np.maximum.reduce(out, None)
        return largest == largest  # NaN is the largest of all

    return transpose


@functools.cache
def get_lapack_function(name: str):
    """Return a LAPACK routine with 64-bit integers, called by addresses. None if there is none."""
    controls = _find_thread_controls()
    function = controls and getattr(controls[2], f"scipy_{name}_64_", None)
    if not function:
        return None
    function.restype = None
    return function


def can_limit() -> bool:
    """True if BLAS's thread count can be set."""
    return _find_thread_controls() is not None


class _CheckedFrame(threading.local):
    room = False  # whether this thread has seen that OpenBLAS has its buffers, or can map them
    depth = 0  # how often this thread, or the one that it works for, is within `single_threaded`
    frame: Any = None  # that entered first; None where the other thread's did


_checked_frame = _CheckedFrame()


def _check_address_space() -> None:
    """Raise MemoryError under an address space limit in which OpenBLAS could not map its buffers: it would exit."""
    if resource is not None and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        size = _BUFFER_BYTES * (get_threads() + 1)
        try:
            mmap.mmap(-1, size).close()
        except OSError:
            error = MemoryError("OpenBLAS has no room for its buffers")
            error._total_size = size  # type: ignore[attr-defined]
            raise error from None
    _checked_frame.room = True


class _SingleThreaded:
    """Context manager: BLAS calls use one thread each. Reentrant, usable by several threads and by signal handlers.

    A handler that raises (Ctrl-C) may prevent an exit: Python calls it at the first instruction of `__exit__` too. A
    thread therefore remembers the frame that entered. At its next entry it removes itself if that frame no longer runs.
    """

    def __init__(self) -> None:
        self._lock = fork_locks.acquire_before_fork(threading.RLock())  # BLAS takes locks while it creates threads
        self._entered: set[int] = set()  # by these threads
        self._before = 1  # thread count to restore

    def __enter__(self) -> None:
        controls = _find_thread_controls()
        if controls is None:
            return
        if _checked_frame.depth:  # a thread that waits for this one may have the lock
            if _is_running(_checked_frame.frame):
                _checked_frame.depth += 1
                return
            self._leave(controls)
        if not _checked_frame.room:
            _check_address_space()
        with self._lock:
            if not self._entered:
                threads = controls[1]()
                if threads != 1:
                    self._before = threads
                    controls[0](1)
            self._entered.add(threading.get_ident())
            _checked_frame.frame = sys._getframe(1)
            _checked_frame.depth = 1

    def __exit__(self, *error) -> None:
        controls = _find_thread_controls()
        if controls is None:
            return
        if _checked_frame.depth > 1:
            _checked_frame.depth -= 1
        else:
            self._leave(controls)

    def _leave(self, controls: Any) -> None:
        """Remove this thread, and restore BLAS's thread count after the last one."""
        with self._lock:
            self._entered.discard(threading.get_ident())
            _checked_frame.depth, _checked_frame.frame = 0, None
            if not self._entered and self._before != 1:
                controls[0](self._before)
                self._before = 1

    def dot(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return `a.dot(b)` by one thread, in half the time that entering and leaving take.

        A thread whose exit a signal's handler prevents is removed at the end of its next product.
        """
        controls = _find_thread_controls()
        if controls is None or _checked_frame.depth or not _checked_frame.room:
            with self:
                return a.dot(b)
        entered, lock, me = self._entered, self._lock, get_ident()
        try:
            with lock:
                if not entered and (threads := controls[1]()) != 1:
                    self._before = threads
                    controls[0](1)
                entered.add(me)
            return a.dot(b)
        finally:
            with lock:
                entered.discard(me)
                if not entered and self._before != 1:
                    controls[0](self._before)
                    self._before = 1

    def nesting_depth(self) -> int:
        """Return this thread's nesting depth; for `work_within` in its worker threads."""
        return _checked_frame.depth

    def set_worker_depth(self, depth: int) -> None:
        """Set the depth of a worker thread to that of the thread that waits for it."""
        _checked_frame.depth = depth

    def after_fork(self) -> None:
        """Reset in a forked child: other threads do not exist."""
        self._entered = {threading.get_ident()} if _checked_frame.depth else set()


def _is_running(frame: Any) -> bool:
    """True if a frame is on this thread's stack; True for None, another thread's."""
    here: Any = sys._getframe(1)
    while frame is not None and here is not frame:
        if here is None:
            return False
        here = here.f_back
    return True


single_threaded = _SingleThreaded()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=single_threaded.after_fork)
