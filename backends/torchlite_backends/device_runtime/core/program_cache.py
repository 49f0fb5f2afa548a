"""Disk cache of program binaries: shared by processes, with a checksum against damage."""

from __future__ import annotations

import functools
import os
import warnings
from pathlib import Path

from torchlite._settings import cache_files

DIGEST = 32  # bytes of the digest stored next to a program


def program_cache_folder(runtime: str) -> Path:
    """Return the cache folder of a runtime: `TORCHLITE_CACHE_DIR`, else the user's cache folder."""
    return cache_files.cache_folder() / runtime


def is_enabled() -> bool:
    """True if programs are cached; False with `TORCHLITE_KEEP_PROGRAMS=0`."""
    return os.environ.get("TORCHLITE_KEEP_PROGRAMS", "1") != "0"


def _binary_path(path: Path) -> Path:
    return path.parent / path.name[:2] / f"{path.name}.bin"


def digest_binary(name: str, binary: bytes) -> bytes:
    """Return the digest of a binary and its name."""
    import hashlib  # slow to import for programs that only need the folder

    return hashlib.sha256(name.encode() + b"\n" + binary).digest()


def load_binary(path: Path) -> bytes | None:
    """Return a cached binary; None if it is missing, damaged (drivers crash on that), or writable by another user."""
    if not is_enabled():
        return None
    data = cache_files.read(_binary_path(path))
    return None if data is None else data[DIGEST:] if digest_binary(path.name, data[DIGEST:]) == data[:DIGEST] else None


def store_binary(path: Path, binary: bytes) -> None:
    """Store a binary with its digest. Warns once per process if that is impossible."""
    if not is_enabled():
        return
    try:
        cache_files.write(_binary_path(path), digest_binary(path.name, binary) + binary)
    except OSError as error:
        warn_not_writable(path.parent, error)


def warn_not_writable(where: Path, error: OSError) -> None:
    """Warn once per process that a folder cannot be written."""
    if not isinstance(error, cache_files.NotTrustedError):  # which was reported on reading
        _warn_once(where, type(error).__name__, error.strerror or "")


@functools.cache
def _warn_once(where: Path, kind: str, why: str) -> None:
    """Warn once per process, whatever the number of programs."""
    warnings.warn(
        f"built programs cannot be kept in {where}: {kind}: {why}. Set TORCHLITE_CACHE_DIR to a folder that "
        "can be written.",
        stacklevel=5,
    )
