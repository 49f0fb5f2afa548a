"""Built programs on the disk: several processes can share the folder, and what is damaged is built again."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
import warnings
from pathlib import Path

_ABANDONED = 600  # seconds after which nobody writes a file any more


def folder(runtime: str) -> Path:
    """Where the programs of a runtime are kept: `TORCHLITE_CACHE_DIR`, else the user's cache folder."""
    root = (
        os.environ.get("TORCHLITE_CACHE_DIR")
        or os.environ.get("XDG_CACHE_HOME")
        or os.path.join(os.path.expanduser("~"), ".cache")
    )
    return Path(root) / "torchlite" / runtime


def kept() -> bool:
    """Whether built programs are kept; not with `TORCHLITE_KEEP_PROGRAMS=0`."""
    return os.environ.get("TORCHLITE_KEEP_PROGRAMS", "1") != "0"


def _place(path: Path) -> Path:
    return path.parent / path.name[:2] / f"{path.name}.bin"


def _digest(path: Path, binary: bytes) -> bytes:
    """What tells that a binary is whole, and that it is the one of this name."""
    import hashlib  # which is slow to load, for programs that ask for the folder alone

    return hashlib.sha256(path.name.encode() + b"\n" + binary).digest()


def load(path: Path) -> bytes | None:
    """The binary that was stored under a path; None when there is none or it is damaged (some drivers crash on what
    they did not write).
    """
    if not kept():
        return None
    data = content(_place(path))
    return None if data is None else data[32:] if _digest(path, data[32:]) == data[:32] else None


def content(place: Path) -> bytes | None:
    """What a file of the cache holds; None where it is not there, or no file."""
    try:
        return place.read_bytes() if place.is_file() else None
    except OSError:
        return None


def store(path: Path, binary: bytes) -> None:
    """Keep a binary, with its digest before it. A warning, once in a process, where that is not possible."""
    if not kept():
        return
    try:
        replace(_place(path), _digest(path, binary) + binary)
    except OSError as error:
        _warn(path.parent, type(error).__name__, error.strerror or "")


@functools.cache
def _warn(where: Path, kind: str, why: str) -> None:
    """Once in a process, however many programs there are."""
    warnings.warn(
        f"built programs cannot be kept in {where}: {kind}: {why}. Set TORCHLITE_CACHE_DIR to a folder that "
        "can be written.",
        stacklevel=4,
    )


def replace(place: Path, data: bytes) -> None:
    """Give a file new content: written beside its name and moved there, so that other processes see all of it or
    nothing. What processes left that ended meanwhile is cleared.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
    try:
        partial.write_bytes(data)
        os.replace(partial, place)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    for left in place.parent.glob(f"{place.stem}.*.part"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                left.unlink()
