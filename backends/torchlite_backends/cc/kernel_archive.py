"""Archives of compiled programs, of which the distribution `torchlite-nd-kernels` has one for each level.

An archive has a line that names the format, the length and the digest of the header, the header in JSON, a dictionary
for the compression, and the programs: each a compressed shared library, whose digest is in the header. The header has
also what the programs were built from: a digest of torchlite's sources, the flags and the compiler.
"""

from __future__ import annotations

import hashlib
import json
import struct
import threading
import zlib
from collections.abc import Iterable
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
        self._lock = fork_locks.acquire_before_fork(threading.Lock())
        self._file = path.open("rb")  # stays open: an update may replace the file
        try:
            self.facts = self._read_header()
        except (ValueError, KeyError, TypeError, struct.error):
            self._file.close()
            raise DamagedArchiveError(f"{path} is damaged") from None

    def _read_header(self) -> dict[str, Any]:
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError
        length, digest = _LENGTHS.unpack(self._file.read(_LENGTHS.size))
        header = self._file.read(min(length, self.path.stat().st_size))
        if hashlib.sha256(header).digest() != digest:
            raise ValueError
        facts = json.loads(header)
        self._programs: dict[str, list] = facts.pop("programs")
        self._dictionary = self._file.read(facts["dictionary"])
        self._start = self._file.tell()
        if self._file.seek(0, 2) != self._start + facts["bytes"]:
            raise ValueError
        return facts

    def __len__(self) -> int:
        return len(self._programs)

    def keys(self) -> list[str]:
        """Return the keys of all programs."""
        return list(self._programs)

    def read(self, key: str) -> bytes | None:
        """Return a program's library; None if there is none. DamagedArchiveError if its bytes have changed."""
        if key not in self._programs:
            return None
        at, size, digest = self._programs[key]
        with self._lock:
            self._file.seek(self._start + at)
            packed = self._file.read(size)
        try:
            library = zlib.decompressobj(zdict=self._dictionary).decompress(packed)
        except zlib.error:
            library = b""
        if hashlib.sha256(library).hexdigest() != digest:
            raise DamagedArchiveError(f"{self.path} is damaged")
        return library
