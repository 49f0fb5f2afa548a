"""Built programs on the disk: several processes can share the folder, and what is damaged is built again."""

from __future__ import annotations

import functools
import os
import warnings
from pathlib import Path

from torchlite._settings import cache_files

DIGEST = 32  # bytes before or behind a program that tell that it is whole


def program_folder(runtime: str) -> Path:
    """Where the programs of a runtime are kept: `TORCHLITE_CACHE_DIR`, else the user's cache folder."""
    return cache_files.cache_folder() / runtime


def is_enabled() -> bool:
    """Whether built programs are kept; not with `TORCHLITE_KEEP_PROGRAMS=0`."""
    return os.environ.get("TORCHLITE_KEEP_PROGRAMS", "1") != "0"


def _place(path: Path) -> Path:
    return path.parent / path.name[:2] / f"{path.name}.bin"


def digest(name: str, binary: bytes) -> bytes:
    """What tells that a binary is whole, and that it is the one of this name."""
    import hashlib  # which is slow to load, for programs that ask for the folder alone

    return hashlib.sha256(name.encode() + b"\n" + binary).digest()


def load(path: Path) -> bytes | None:
    """The binary that was stored under a path; None when there is none, it is damaged (some drivers crash on what they
    did not write), or another user could have written it.
    """
    if not is_enabled():
        return None
    data = cache_files.read(_place(path))
    return None if data is None else data[DIGEST:] if digest(path.name, data[DIGEST:]) == data[:DIGEST] else None


def store(path: Path, binary: bytes) -> None:
    """Keep a binary, with its digest before it. A warning, once in a process, where that is not possible."""
    if not is_enabled():
        return
    try:
        cache_files.write(_place(path), digest(path.name, binary) + binary)
    except OSError as error:
        warn_not_writable(path.parent, error)


def warn_not_writable(where: Path, error: OSError) -> None:
    """Warn, once in a process, that a folder cannot be written."""
    if not isinstance(error, cache_files.NotTrustedError):  # of which reading has told
        _warn(where, type(error).__name__, error.strerror or "")


@functools.cache
def _warn(where: Path, kind: str, why: str) -> None:
    """Once in a process, however many programs there are."""
    warnings.warn(
        f"built programs cannot be kept in {where}: {kind}: {why}. Set TORCHLITE_CACHE_DIR to a folder that "
        "can be written.",
        stacklevel=5,
    )
