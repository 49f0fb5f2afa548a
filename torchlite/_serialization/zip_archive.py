"""The container of a checkpoint: a zip of stored (uncompressed) records, aligned to 64 bytes, under one top folder.

The layout is PyTorch's: data.pkl, .format_version, .storage_alignment, byteorder, data/0, data/1 …, version,
.data/serialization_id.
"""

from __future__ import annotations

import io
import mmap as mmap_module
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable

import numpy as np

from .resource_budget import Budget

_LOCAL_HEADER = 30
_ZIP64_EXTRA = 20
_CODE = (".py", ".debug_pkl")  # of classes, whose names may differ by case
_END, _END64_LOCATOR, _END64 = 22, 20, 56  # bytes of the records that end an archive
_VERSIONS = 1, 10  # of the format that PyTorch reads
_READ_FAILED = (
    "PytorchStreamReader failed reading {}: {}. If you are seeing this error, there is a high likelihood that your "
    "checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was transferred "
    "incorrectly, or the file was modified after saving."
)


def corrupt_archive_error(what: str, why: str) -> RuntimeError:
    """Return the error for an archive that cannot be read."""
    return RuntimeError(_READ_FAILED.format(what, why))


class ArchiveWriter:
    """Writes records to an open binary file."""

    def __init__(self, stream, top: str, *, checksum: bool = True, alignment: int = 64):
        import hashlib  # which takes longer to import than a small file to read

        self._stream, self.top, self._checksum, self._alignment = stream, top, checksum, alignment
        self._entries: list[tuple[bytes, int, int, int]] = []
        self.names: list[str] = []
        self.ended = False
        self._position = 0
        self._hash = hashlib.sha256()

    def _write(self, data) -> None:
        self._stream.write(data)
        self._position += len(data) if isinstance(data, bytes) else data.nbytes

    def record(self, name: str, data) -> None:
        """Append one record: bytes, or a uint8 array."""
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        check = zlib.crc32(view) if self._checksum else 0
        self._write_local_header(name, view.nbytes, check)
        self._write(view)

    def hole(self, name: str, size: int) -> None:
        """Append a record with uninitialised data, for others to write."""
        self._write_local_header(name, size, 0)
        self._stream.seek(size, os.SEEK_CUR)
        self._position += size

    def _write_local_header(self, name: str, size: int, check: int) -> None:
        path = f"{self.top}/{name}".encode()
        self.names.append(name)
        self._hash.update(f"{name}:{size}:{check};".encode())
        big = size >= 0xFFFFFFFF
        before = self._position + _LOCAL_HEADER + len(path) + (_ZIP64_EXTRA if big else 0) + 4
        extra = struct.pack("<HHQQ", 1, 16, size, size) if big else b""
        extra += b"FB" + struct.pack("<H", -before % self._alignment) + b"Z" * (-before % self._alignment)
        self._entries.append((path, size, check, self._position))
        short = 0xFFFFFFFF if big else size
        self._write(
            struct.pack(
                "<4s5H3L2H", b"PK\3\4", 45 if big else 20, 0x800, 0, 0, 0x21, check, short, short, len(path), len(extra)
            )
            + path
            + extra
        )

    def identity(self) -> str:
        """Return forty digits that identify this archive's records."""
        return f"{int.from_bytes(self._hash.digest()[:16], 'big') % 10**40:040d}"

    def finish(self, version: int = 3) -> None:
        """Write the small records that end an archive, and the central directory."""
        self.ended = True
        self.record("version", b"%d\n" % version)
        self.record(".data/serialization_id", self.identity().encode())
        start = self._position
        for path, size, check, offset in self._entries:
            fields = [v for v in (size, size, offset) if v >= 0xFFFFFFFF]
            extra = struct.pack(f"<HH{len(fields)}Q", 1, 8 * len(fields), *fields) if fields else b""
            short = min(size, 0xFFFFFFFF)
            self._write(
                struct.pack(
                    "<4s6H3L5H2L",
                    b"PK\1\2",
                    45,
                    45 if fields else 20,
                    0x800,
                    0,
                    0,
                    0x21,
                    check,
                    short,
                    short,
                    len(path),
                    len(extra),
                    0,
                    0,
                    0,
                    0,
                    min(offset, 0xFFFFFFFF),
                )
                + path
                + extra
            )
        length, count = self._position - start, len(self._entries)
        if count >= 0xFFFF or start + length >= 0xFFFFFFFF:
            end = self._position
            self._write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, start))
            self._write(struct.pack("<4sLQL", b"PK\6\7", 0, end, 1))
        self._write(
            struct.pack(
                "<4s4H2LH",
                b"PK\5\6",
                0,
                0,
                min(count, 0xFFFF),
                min(count, 0xFFFF),
                min(length, 0xFFFFFFFF),
                min(start, 0xFFFFFFFF),
                0,
            )
        )


class ArchiveReader:
    """Reads records of a checkpoint from a seekable binary file. All data of the file are validated before use. With
    `mapped` ("private" or "shared") arrays are views of a mapping of the file. `budget`: that of the enclosing file.
    `from_position`: the archive is the one that begins at the file's position, if one does; other data may surround it.
    """

    def __init__(self, stream, *, mapped: str = "", budget: Budget | None = None, from_position: bool = False):
        begin, end = stream.tell(), stream.seek(0, os.SEEK_END)
        stream.seek(begin)
        if not from_position or stream.read(4) != b"PK\3\4":
            begin = 0
        stream.seek(begin)
        try:
            self._open(stream, begin, end)
        except RuntimeError:
            found = _find_end(stream, begin, end) if from_position else end
            if found == end:
                raise
            self._open(stream, begin, found)
        self._records: dict[str, zipfile.ZipInfo] = {}
        names = self._zip.infolist()
        self.top = names[0].filename.split("/")[0] + "/" if names else ""
        folded: set[str] = set()
        for info in names:
            if not info.filename.startswith(self.top):
                raise corrupt_archive_error(
                    "zip archive", f"{info.filename[:200]!r} is not in its folder {self.top[:200]!r}"
                )
            name = info.filename[len(self.top) :]
            if name in self._records:  # another reader could use the other one
                raise corrupt_archive_error(f"file {name[:200]}", "there are two records of this name")
            if name.lower() in folded and not name.endswith(_CODE):  # PyTorch's reader ignores case
                raise corrupt_archive_error(f"file {name[:200]}", "there is a record whose name differs by case alone")
            folded.add(name.lower())
            self._records[name] = info
        if "version" not in self._records and ".data/version" not in self._records:
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false. The zip archive was not written by '
                "torch.save."
            )
        self._check_version()
        self._check_places()
        self.budget = Budget(self.length) if budget is None else budget
        self._map = self._map_file(mapped) if mapped else None

    def _open(self, stream, begin: int, end: int) -> None:
        """Read the directory of an archive in a part of a file."""
        self._stream = stream if (begin, end) == (0, stream.seek(0, os.SEEK_END)) else _FilePart(stream, begin, end)
        self.length, self.end = end - begin, end
        self._stream.seek(0)
        try:
            self._zip = zipfile.ZipFile(self._stream)
            self._check_directory()
        except (
            zipfile.BadZipFile, zipfile.LargeZipFile, struct.error, ValueError, OverflowError, NotImplementedError,
            IndexError, UnicodeDecodeError, MemoryError, OSError,
        ):  # fmt: skip
            raise corrupt_archive_error(
                "zip archive", "failed finding central directory. This is an internal miniz error"
            ) from None

    def _check_directory(self) -> None:
        """RuntimeError for a directory at another offset than the archive states, or with more records. Of two archives
        in one file, zipfile reads the last one at shifted offsets, and PyTorch the first one.
        """
        stream, end = self._stream, self.length - _END - len(self._zip.comment)
        stream.seek(max(0, end - _END64_LOCATOR - _END64))
        tail = stream.read(min(end, _END64_LOCATOR + _END64) + _END)
        signature, disk, first, here, count, start = struct.unpack("<4s4H4xL2x", tail[-_END:])
        if signature != b"PK\5\6" or disk or first or here != count:
            start = None
        elif tail[-_END - _END64_LOCATOR :][:4] == b"PK\6\7":  # the record before it has longer numbers
            disk, place, disks = struct.unpack("<4xLQL", tail[-_END - _END64_LOCATOR : -_END])
            signature, here, count, start = struct.unpack("<4s20xQQ8xQ", tail[:_END64])
            if signature != b"PK\6\6" or place != end - _END64_LOCATOR - _END64 or disk or disks > 1 or here != count:
                start = None
        if start != self._zip.start_dir or count != len(self._zip.infolist()):  # type: ignore[attr-defined]
            raise corrupt_archive_error(
                "zip archive", "failed finding central directory where the end of the file says"
            )

    def _check_places(self) -> None:
        """RuntimeError for overlapping records. Their sizes in total are then at most that of the archive."""
        end, before = 0, ""
        for info in sorted(self._records.values(), key=lambda info: info.header_offset):
            if info.header_offset < end:
                raise corrupt_archive_error(f"file {info.filename[:200]}", f"it lies over the record {before[:200]}")
            end = info.header_offset + _LOCAL_HEADER + len(info.filename) + info.compress_size
            before = info.filename

    def _check_version(self) -> None:
        """RuntimeError for an invalid format version, or one that PyTorch does not read."""
        info, start = self._map_header_offsets("version" if self.has("version") else ".data/version")
        self._stream.seek(start)
        text = self._stream.read(min(info.file_size, 20))
        found = re.match(rb"\s*([+-]?\d{1,18})", text)
        if found is None:
            shown = text.decode(errors="replace")
            raise RuntimeError(f"Couldn't parse the version {shown} as Long Long. (in the record version)")
        version = int(found[1])
        if not _VERSIONS[0] <= version <= _VERSIONS[1]:
            which, limit = ("minimum", _VERSIONS[0]) if version < _VERSIONS[0] else ("maximum", _VERSIONS[1])
            raise RuntimeError(
                f"Attempted to read a PyTorch file with version {version}, but the {which} supported version for "
                f"reading is {limit}. (in the record version)"
            )

    def _map_file(self, how: str) -> mmap_module.mmap:
        # Copy on write, as PyTorch: tensors may be changed, the file is not, unless the mapping is shared.
        access = mmap_module.ACCESS_WRITE if how == "shared" else mmap_module.ACCESS_COPY
        mapped = mmap_module.mmap(self._stream.fileno(), 0, access=access)
        if how == "shared":
            self._forget_checksums(mapped)
        return mapped

    def _forget_checksums(self, mapped: mmap_module.mmap) -> None:
        """Clear the checksums of storages in a file with a writable mapping: 0 means none."""
        at: int = self._zip.start_dir  # type: ignore[attr-defined]
        places = []
        for info in self._zip.infolist():
            if info.CRC and info.filename.startswith(f"{self.top}data/"):
                self._data_offset(info, info.filename[len(self.top) :])
                places.append((info, at + 16, info.header_offset + 14))
            at += 46 + sum(struct.unpack_from("<3H", mapped, at + 28))
        for info, central, local in places:  # all of which are right: the file is changed, or not at all
            info.CRC = 0
            struct.pack_into("<L", mapped, central, 0)
            struct.pack_into("<L", mapped, local, 0)

    def names(self) -> list[str]:
        """The names of all records."""
        return list(self._records)

    def has(self, name: str) -> bool:
        return name in self._records

    def _find_record_info(self, name: str) -> zipfile.ZipInfo:
        info = self._records.get(name)
        if info is None:
            raise corrupt_archive_error(f"file {name}", "file not found")
        return info

    def _map_header_offsets(self, name: str) -> tuple[zipfile.ZipInfo, int]:
        info = self._find_record_info(name)
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise corrupt_archive_error(
                f"file {name}", "the record is compressed or encrypted, which torch.save never does"
            )
        return info, self._data_offset(info, name)

    def _data_offset(self, info: zipfile.ZipInfo, name: str) -> int:
        """Return the offset of a record's data. RuntimeError if its header does not match the directory."""
        path = info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437")
        try:
            self._stream.seek(info.header_offset)
            header = self._stream.read(_LOCAL_HEADER + len(path))
            signature, path_length, extra_length = struct.unpack_from("<4s22x2H", header)
        except (struct.error, ValueError, OverflowError, OSError):
            raise corrupt_archive_error(f"file {name}", "its header lies outside of the archive") from None
        start = info.header_offset + _LOCAL_HEADER + path_length + extra_length
        if signature != b"PK\3\4" or start + info.compress_size > self.length:
            raise corrupt_archive_error(f"file {name}", "its data lie outside of the archive")
        if path_length != len(path) or header[_LOCAL_HEADER:] != path:
            raise corrupt_archive_error(f"file {name}", "its header has another name than the directory")
        return start

    def size(self, name: str) -> int:
        """Return the length of a record in bytes, from the directory. The record itself is validated on reading."""
        return self._find_record_info(name).file_size

    def header_offset(self, name: str) -> int:
        """Return the offset of a record's header."""
        return self._map_header_offsets(name)[0].header_offset

    def offset(self, name: str) -> int:
        """Return the offset of a record's data."""
        return self._map_header_offsets(name)[1]

    def bytes(self, name: str) -> bytes:
        """A record, its checksum verified."""
        info, start = self._map_header_offsets(name)
        self.budget.take(info.file_size)
        self._stream.seek(start)
        out = self._stream.read(info.file_size)
        if len(out) != info.file_size:
            raise corrupt_archive_error(f"file {name}", "the archive ends too early")
        self._verify_checksum(info, out)
        return out

    def _verify_checksum(self, info: zipfile.ZipInfo, data) -> None:
        # PyTorch writes a checksum of zero after set_crc32_options(False).
        if info.CRC and zlib.crc32(data) != info.CRC:
            raise corrupt_archive_error(f"file {info.filename[len(self.top) :]}", "its checksum is wrong")

    def array(self, name: str) -> np.ndarray:
        """A record as a writable uint8 array: read and verified, or mapped (then not verified, as this would read all
        of it).
        """
        info, start = self._map_header_offsets(name)
        if self._map is not None:
            return (
                np.frombuffer(self._map, np.uint8, info.file_size, start) if info.file_size else np.empty(0, np.uint8)
            )
        self.budget.take(info.file_size)
        try:
            out = np.empty(info.file_size, np.uint8)
        except MemoryError:
            raise RuntimeError(f"not enough memory for the {info.file_size} bytes of the record {name}") from None
        self._stream.seek(start)
        if _read_into(self._stream, out.data) != info.file_size:
            raise corrupt_archive_error(f"file {name}", "the archive ends too early")
        self._verify_checksum(info, out.data)
        return out

    def byteorder(self) -> str | None:
        """Return "little" or "big" from the archive's record; None if there is none."""
        if not self.has("byteorder"):
            return None
        order = self.bytes("byteorder")
        if order not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {order[:20].decode(errors='replace')} (record byteorder)")
        return order.decode()


class _FilePart(io.RawIOBase):
    """A part of a seekable binary file, as a file."""

    def __init__(self, stream, begin: int, end: int):
        self._file, self._begin, self._length, self._at = stream, begin, end - begin, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._length}[whence]
        if self._at < 0:
            raise ValueError(f"negative seek value {self._at}")
        return self._at

    def readinto(self, buffer) -> int:
        view = memoryview(buffer).cast("B")
        view = view[: max(0, min(view.nbytes, self._length - self._at))]
        self._file.seek(self._begin + self._at)
        done = _read_into(self._file, view)
        self._at += done
        return done


_CHUNK = 1 << 20  # bytes to search at once


def _find_end(stream, begin: int, end: int) -> int:
    """Return where the first archive from `begin` on ends: after the first end record whose directory is where it says,
    counted from `begin`. Return `end` if there is none.
    """
    at = begin
    while at < end:
        stream.seek(at)
        chunk = stream.read(min(_CHUNK + _END, end - at))
        place = chunk.find(b"PK\5\6")
        while 0 <= place < _CHUNK:
            if _is_end_record(stream, begin, at + place, end):
                stream.seek(at + place + _END - 2)
                return at + place + _END + int.from_bytes(stream.read(2), "little")
            place = chunk.find(b"PK\5\6", place + 1)
        at += _CHUNK
    return end


def _is_end_record(stream, begin: int, at: int, end: int) -> bool:
    """True if an end record names a directory that ends before it."""
    stream.seek(at)
    record = stream.read(_END)
    if len(record) < _END:
        return False
    _, size, start, comment = struct.unpack("<4s8xLLH", record)
    if at + _END + comment > end:
        return False
    if start == 0xFFFFFFFF or size == 0xFFFFFFFF:
        if at - _END64_LOCATOR - _END64 < begin:
            return False
        stream.seek(at - _END64_LOCATOR - _END64)
        size, start = struct.unpack("<40xQQ", stream.read(_END64))
        at -= _END64_LOCATOR + _END64
    if begin + start + size != at:
        return False
    stream.seek(begin + start)
    return stream.read(4) == b"PK\1\2"


def _read_into(stream, view: memoryview) -> int:
    """Fill a buffer from a stream; how many bytes came."""
    done = 0
    read_into: Callable | None = getattr(stream, "readinto", None)
    while done < view.nbytes:
        if read_into is not None:
            count = read_into(view[done:])
        else:
            chunk = stream.read(min(view.nbytes - done, 1 << 24))
            count = len(chunk)
            view[done : done + count] = chunk
        if not 0 < count <= view.nbytes - done:
            break
        done += count
    return done


def byteswap(array: np.ndarray, item: int) -> np.ndarray:
    """The bytes with every group of `item` bytes reversed."""
    return array if item == 1 else np.ascontiguousarray(array.reshape(-1, item)[:, ::-1]).reshape(-1)


NATIVE = sys.byteorder
