"""Archives of compiled programs, of which the distribution `torchlite-nd-kernels` has one for each level.

An archive has a line that names the format, the length and the digest of the header, the header in JSON, a dictionary
for the compression, and the programs: each a compressed shared library, whose digest is in the header. The header has
also what the programs were built from: a digest of torchlite's sources, the flags and the compiler.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import threading
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from torchlite._settings import fork_locks

_MAGIC = b"torchlite kernels 1\n"
_LENGTHS = struct.Struct("<Q32s")  # of the header, and its digest
_DICTIONARY_BYTES = 1 << 15  # zlib reads no more


class DamagedArchiveError(ValueError):
    """Raised for a file that is no whole archive."""


def program_key(text: str) -> str:
    """Return a program's name in an archive: a digest of its source."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_archive(path: Path, programs: Iterable[tuple[str, bytes]], facts: dict[str, Any]) -> None:
    """Write an archive of (key, library) pairs. `facts` become the header's other entries."""
    found = dict(sorted(programs))
    libraries = sorted(found.values(), key=len)
    dictionary = b"".join(libraries[len(libraries) // 2 :][:2])[-_DICTIONARY_BYTES:]
    blobs, index, at = [], {}, 0
    for key, library in found.items():
        packer = zlib.compressobj(9, zdict=dictionary)
        blobs.append(packer.compress(library) + packer.flush())
        index[key] = (at, len(blobs[-1]), hashlib.sha256(library).hexdigest())
        at += len(blobs[-1])
    entries = {**facts, "dictionary": len(dictionary), "bytes": at, "programs": index}
    header = json.dumps(entries, separators=(",", ":")).encode()
    start = _MAGIC + _LENGTHS.pack(len(header), hashlib.sha256(header).digest())
    path.write_bytes(start + header + dictionary + b"".join(blobs))


class KernelArchive:
    """An archive that is open for reading. DamagedArchiveError if the file is no whole archive."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = fork_locks.acquire_before_fork(threading.RLock())
        # It stays open, because an update may replace the file.
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
        try:
            self.facts = self._read_header()
        except (ValueError, KeyError, TypeError, struct.error):
            raise DamagedArchiveError(f"{path} is damaged") from None

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def _read_header(self) -> dict[str, Any]:
        start = self._read(0, len(_MAGIC) + _LENGTHS.size)
        if not start.startswith(_MAGIC):
            raise ValueError
        length, digest = _LENGTHS.unpack(start[len(_MAGIC) :])
        size = os.fstat(self._file).st_size
        header = self._read(len(start), min(length, size))
        if hashlib.sha256(header).digest() != digest:
            raise ValueError
        facts = json.loads(header)
        self._programs: dict[str, list] = facts.pop("programs")
        self._dictionary = self._read(len(start) + length, facts["dictionary"])
        self._start = len(start) + length + facts["dictionary"]
        if size != self._start + facts["bytes"]:
            raise ValueError
        return facts

    def _read(self, at: int, size: int) -> bytes:
        if hasattr(os, "pread"):  # forked processes share the position
            return os.pread(self._file, size, at)
        with self._lock:
            os.lseek(self._file, at, os.SEEK_SET)
            return os.read(self._file, size)

    def __len__(self) -> int:
        return len(self._programs)

    def __iter__(self) -> Iterator[str]:
        """Yield the keys of all programs."""
        yield from self._programs

    def read(self, key: str) -> bytes | None:
        """Return a program's library; None if there is none. DamagedArchiveError if its bytes have changed."""
        if key not in self._programs:
            return None
        at, size, digest = self._programs[key]
        try:
            library = zlib.decompressobj(zdict=self._dictionary).decompress(self._read(self._start + at, size))
        except zlib.error:
            library = b""
        if hashlib.sha256(library).hexdigest() != digest:
            raise DamagedArchiveError(f"{self.path} is damaged")
        return library
