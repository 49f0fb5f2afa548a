"""Built programs on the disk: several processes can share the folder, and what is damaged is built again."""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from pathlib import Path


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


def load(path: Path) -> bytes | None:
    """The binary that was stored under a path; None when there is none or it is damaged (some drivers crash on what
    they did not write).
    """
    if not kept():
        return None
    try:
        data = _place(path).read_bytes()
    except OSError:
        return None
    return data[32:] if hashlib.sha256(data[32:]).digest() == data[:32] else None


def store(path: Path, binary: bytes) -> None:
    """Keep a binary, with its digest before it; written beside its name and moved there, so that other processes see
    all of it or nothing.
    """
    if not kept():
        return
    place = _place(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        partial.write_bytes(hashlib.sha256(binary).digest() + binary)
        os.replace(partial, place)
    except OSError as error:
        warnings.warn(
            f"built programs cannot be kept in {place.parent}: {error}. Set TORCHLITE_CACHE_DIR to a folder that can "
            "be written.",
            stacklevel=2,
        )
