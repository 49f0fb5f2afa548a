"""Load shared libraries from bytes, so that the loaded code is the verified code.

`dlopen` takes a path, and a file may change between its check and its loading. On Linux the bytes are written to a
sealed memfd, which nobody can change, and loaded from it. Elsewhere, and where the system forbids this, they go to a
private folder that exists as long as the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import itertools
import os
import struct
import sys
import threading
from pathlib import Path

from torchlite._settings import cache_files, fork_locks, temporary_folders

_MFD_EXEC = 0x10  # newer kernels may refuse to load from memory that is not marked so
_HEADERS = {  # ELF class: header behind its first 16 bytes, segment header, positions of offset and size
    1: ("HHIIIIIHHH", "IIIIIIII", 1, 4),
    2: ("HHIQQQIHHH", "IIQQQQQQ", 2, 5),
}
_SEGMENTS = (1, 2)  # PT_LOAD and PT_DYNAMIC

_lock = fork_locks.acquire_before_fork(threading.RLock())
_numbers = itertools.count()
_libraries: dict[bytes, ctypes.CDLL] = {}  # by the digest of their bytes


def is_complete(data: bytes) -> bool:
    """True if a library's segments lie within its bytes: reading a mapped file beyond its end raises SIGBUS.

    Systems other than Linux accept every file that is not empty.
    """
    if not sys.platform.startswith("linux"):
        return bool(data)
    if data[:4] != b"\x7fELF" or len(data) < 16 or data[4] not in _HEADERS or data[5] not in (1, 2):
        return False
    form, segment, offset, size = _HEADERS[data[4]]
    order = "<" if data[5] == 1 else ">"
    try:
        header = struct.unpack_from(order + form, data, 16)
        start, step, count = header[4], header[8], header[9]
        if step != struct.calcsize(order + segment) or not count:
            return False
        found = [struct.unpack_from(order + segment, data, start + i * step) for i in range(count)]
    except (struct.error, OverflowError):
        return False
    return all(s[offset] + s[size] <= len(data) for s in found if s[0] in _SEGMENTS)


def load_library_from_bytes(data: bytes, name: str) -> ctypes.CDLL:
    """Load the library of these bytes, once for the same bytes. OSError if it cannot be loaded."""
    if not is_complete(data):
        raise OSError(f"{name} is no whole library")
    key = hashlib.sha256(data).digest()
    with _lock:
        if key not in _libraries:
            _libraries.setdefault(key, _load_from_memfd(data, name) or _load_from_folder(data, name))
        return _libraries[key]


def _load_from_memfd(data: bytes, name: str) -> ctypes.CDLL | None:
    """Load from a sealed memfd; None if the system has none that can be executed."""
    # Sanitizers read the library's file again for their reports.
    if not sys.platform.startswith("linux") or os.environ.get("TORCHLITE_CC_SANITIZE"):
        return None
    descriptor = _make_sealed_memfd(name)
    if descriptor is None:
        return None
    try:
        with open(descriptor, "wb", buffering=0, closefd=False) as file:
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
        import fcntl

        seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        return ctypes.CDLL(_make_unique_fd_path(descriptor))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _make_sealed_memfd(name: str) -> int | None:
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    for more in (_MFD_EXEC, 0):  # kernels before 6.3 do not know the flag
        with contextlib.suppress(OSError):
            return os.memfd_create(f"torchlite {name}"[:200], flags | more)
    return None


def _make_unique_fd_path(descriptor: int) -> str:
    """Return a fresh path of a descriptor: the loader returns a loaded library for a known path.

    That holds even if the descriptor was closed and its number reused.
    """
    turns = "".join("fd/../" if bit == "1" else "./" for bit in f"{next(_numbers):b}")
    return f"/proc/self/{turns}fd/{descriptor}"


def ensure_private_folder() -> str:
    """Return this process's private folder for code. OSError if there is none or another user could replace it."""
    folder = temporary_folders.process_folder()
    cache_files.check_trusted(folder)
    return folder


def _load_from_folder(data: bytes, name: str) -> ctypes.CDLL:
    path = Path(ensure_private_folder()) / f"{next(_numbers)}-{name}"
    path.write_bytes(data)
    return ctypes.CDLL(str(path))
