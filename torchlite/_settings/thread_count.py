"""Number of threads of CPU work: of torchlite's kernels and of the BLAS that NumPy loaded."""

from __future__ import annotations

import ctypes
import os

_count = 0
# The names under which OpenBLAS builds export the call; MKL and BLIS likewise.
_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
    "MKL_Set_Num_Threads",
    "bli_thread_set_num_threads",
)


def get_threads() -> int:
    """The number of threads, as set or as the machine has cores for this process."""
    if _count:
        return _count
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdigit() and int(asked):
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(n: int) -> None:
    """Set the number for our kernels, and tell the BLAS library when one is found that takes it."""
    global _count
    _count = n
    for setter in _find_blas_thread_setters():
        setter(n)


def _find_blas_thread_setters():
    """The thread setters of BLAS libraries that are loaded in this process (Linux; elsewhere none is found)."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {
                line.split()[-1]
                for line in maps
                if "blas" in line.lower() or "mkl_rt" in line or "blis" in line.lower()
            }
    except OSError:
        return
    for path in paths:
        if ".so" not in path:
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in _SETTERS:
            setter = getattr(library, name, None)
            if setter is not None:
                yield setter
                break
