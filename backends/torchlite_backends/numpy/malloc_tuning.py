"""Tuning of glibc's malloc thresholds, so that freed array memory is reused.

glibc returns a freed block of a megabyte to the system immediately and faults it in again, page by page, for the next
array: a chain of a few ufuncs then spends most of its time there (five times slower, measured at 512x512). With higher
thresholds freed blocks stay in the process.
"""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
TRIM_BYTES = 512 << 20  # bytes at the top of the heap that stay
MMAP_BYTES = 32 << 20  # larger arrays are mapped and returned one by one, as glibc's own limit has it


def raise_malloc_thresholds() -> bool:
    """Raise glibc's thresholds; return True if that was done (only on Linux with glibc)."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(M_TRIM_THRESHOLD, TRIM_BYTES)) and bool(mallopt(M_MMAP_THRESHOLD, MMAP_BYTES))
