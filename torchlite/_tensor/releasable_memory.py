"""Memory under tensors that can be returned to the system and reused later.

Addresses do not change, so saved tensors of an autograd graph stay valid and see what is written later. Released memory
reads as zero.
"""

from __future__ import annotations

import functools
import mmap
from typing import Any

import numpy as np

from .shared_memory import Mapping


@functools.cache
def _find_madvise() -> Any:
    """The system's `madvise`; None if it has none that releases memory immediately."""
    try:
        import ctypes

        call = ctypes.CDLL(None, use_errno=True).madvise
        number = mmap.MADV_DONTNEED
    except (ImportError, OSError, TypeError, AttributeError):
        return None
    call.argtypes, call.restype = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int], ctypes.c_int
    return lambda address, count: call(address, count, number)


@functools.cache
def _find_malloc_trim() -> Any:
    """The allocator's function that returns its cached memory to the system (glibc); None if there is none."""
    try:
        import ctypes

        call = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, TypeError, AttributeError):
        return None
    call.argtypes, call.restype = [ctypes.c_size_t], ctypes.c_int
    return call


def trim_allocator() -> None:
    """Return the allocator's free memory to the system, gaps between allocations included (glibc; else no effect)."""
    call = _find_malloc_trim()
    if call is not None:
        call(0)


def releasable_zeros(nbytes: int) -> np.ndarray:
    """Zeros that take no memory until something is written to them."""
    return np.asarray(Mapping(-1, nbytes, shared=False))


def release_memory(memory: np.ndarray) -> bool:
    """Return the memory of an array from `releasable_zeros` to the system. Return True if the system accepted it."""
    call = _find_madvise()
    return call is not None and (not memory.nbytes or call(memory.ctypes.data, memory.nbytes) == 0)
