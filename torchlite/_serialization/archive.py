"""The container of a checkpoint: a zip of stored (uncompressed) records whose data begin at multiples of 64 bytes, all
under one top folder.

Layout as PyTorch writes it: data.pkl, .format_version, .storage_alignment, byteorder, data/0, data/1 …, version,
.data/serialization_id.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap as mmap_module
import os
import secrets
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator

import numpy as np

ALIGNMENT = 64
_LOCAL_HEADER = 30
_ZIP64_EXTRA = 20
_READ_FAILED = (
    "PytorchStreamReader failed reading {}: {}. If you are seeing this error, there is a high likelihood that your "
    "checkpoint file is corrupted. This can happen if the checkpoint was not saved properly, was transferred "
    "incorrectly, or the file was modified after saving."
)


def corrupt(what: str, why: str) -> RuntimeError:
    """The one error for archives that cannot be read."""
    return RuntimeError(_READ_FAILED.format(what, why))


class Writer:
    """Writes records to an open binary file."""

    def __init__(self, stream, top: str, *, checksum: bool = True):
        self._stream, self._top, self._checksum = stream, top, checksum
        self._entries: list[tuple[bytes, int, int, int]] = []
        self._position = 0
        self._hash = hashlib.sha256()

    def _write(self, data) -> None:
        self._stream.write(data)
        self._position += len(data) if isinstance(data, bytes) else data.nbytes

    def record(self, name: str, data) -> None:
        """Append one record: bytes, or a uint8 array."""
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        size, path = view.nbytes, f"{self._top}/{name}".encode()
        check = zlib.crc32(view) if self._checksum else 0
        self._hash.update(f"{name}:{size}:{check};".encode())
        big = size >= 0xFFFFFFFF
        before = self._position + _LOCAL_HEADER + len(path) + (_ZIP64_EXTRA if big else 0) + 4
        extra = struct.pack("<HHQQ", 1, 16, size, size) if big else b""
        extra += b"FB" + struct.pack("<H", -before % ALIGNMENT) + b"Z" * (-before % ALIGNMENT)
        self._entries.append((path, size, check, self._position))
        short = 0xFFFFFFFF if big else size
        self._write(
            struct.pack(
                "<4s5H3L2H", b"PK\3\4", 45 if big else 20, 0x800, 0, 0, 0x21, check, short, short, len(path), len(extra)
            )
            + path
            + extra
        )
        self._write(view)

    def finish(self) -> None:
        """Write the small records that end an archive, and the central directory."""
        self.record("version", b"3\n")
        digest = int.from_bytes(self._hash.digest()[:16], "big")
        self.record(".data/serialization_id", f"{digest % 10**40:040d}".encode())
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


@contextlib.contextmanager
def replacing(path: str) -> Iterator:
    """A binary file that takes the place of `path` when the block ends well; after a failure the
    old file is as it was.
    """
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    if os.path.isdir(path):
        raise RuntimeError(
            f"[enforce fail at inline_container.cc] . open file failed with strerror: Is a directory: {path}"
        )
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device cannot be replaced
        with open(path, "wb") as stream:
            yield stream
        return
    temporary = os.path.join(folder, f".{os.path.basename(path)[:100]}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with open(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Make the new name durable where the system has a way to."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Reader:
    """Reads records of a checkpoint from a seekable binary file. Everything the file says about itself is checked
    before it is used.
    """

    def __init__(self, stream, *, mapped: bool = False):
        self._stream = stream
        try:
            self._zip = zipfile.ZipFile(stream)
        except (
            zipfile.BadZipFile,
            zipfile.LargeZipFile,
            struct.error,
            ValueError,
            OverflowError,
            NotImplementedError,
            IndexError,
            UnicodeDecodeError,
        ):
            raise corrupt("zip archive", "failed finding central directory") from None
        stream.seek(0, os.SEEK_END)
        self._size = stream.tell()
        self._records: dict[str, zipfile.ZipInfo] = {}
        names = self._zip.infolist()
        top = names[0].filename.split("/")[0] + "/" if names else ""
        for info in names:
            if info.filename.startswith(top):
                self._records.setdefault(info.filename[len(top) :], info)
        if "version" not in self._records and ".data/version" not in self._records:
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false. The zip archive was not written by '
                "torch.save."
            )
        self._map = self._map_file() if mapped else None

    def _map_file(self) -> mmap_module.mmap:
        # Copy on write, as PyTorch: tensors may be changed, the file is not.
        return mmap_module.mmap(self._stream.fileno(), 0, access=mmap_module.ACCESS_COPY)

    def has(self, name: str) -> bool:
        return name in self._records

    def _locate(self, name: str) -> tuple[zipfile.ZipInfo, int]:
        info = self._records.get(name)
        if info is None:
            raise corrupt(f"file {name}", "file not found")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.flag_bits & 1:
            raise corrupt(f"file {name}", "the record is compressed or encrypted, which torch.save never does")
        try:
            self._stream.seek(info.header_offset)
            header = self._stream.read(_LOCAL_HEADER)
            signature, path_length, extra_length = struct.unpack("<4s22x2H", header)
        except (struct.error, ValueError, OverflowError, OSError):
            raise corrupt(f"file {name}", "its header lies outside of the archive") from None
        start = info.header_offset + _LOCAL_HEADER + path_length + extra_length
        if signature != b"PK\3\4" or start + info.file_size > self._size:
            raise corrupt(f"file {name}", "its data lie outside of the archive")
        return info, start

    def size(self, name: str) -> int:
        """The length of a record in bytes."""
        return self._locate(name)[0].file_size

    def bytes(self, name: str) -> bytes:
        """A record, its checksum verified."""
        return self.array(name).tobytes()

    def array(self, name: str) -> np.ndarray:
        """A record as a writable uint8 array: read and verified, or mapped (then not verified, as this would read all
        of it).
        """
        info, start = self._locate(name)
        if self._map is not None:
            return (
                np.frombuffer(self._map, np.uint8, info.file_size, start) if info.file_size else np.empty(0, np.uint8)
            )
        out = np.empty(info.file_size, np.uint8)
        self._stream.seek(start)
        if _read_into(self._stream, out.data) != info.file_size:
            raise corrupt(f"file {name}", "the archive ends too early")
        # A checksum of zero is what PyTorch writes after set_crc32_options(False).
        if info.CRC and zlib.crc32(out.data) != info.CRC:
            raise corrupt(f"file {name}", "its checksum is wrong")
        return out

    def byteorder(self) -> str | None:
        """ "little" or "big" as the archive says; None where it is silent."""
        if not self.has("byteorder"):
            return None
        order = self.bytes("byteorder")
        if order not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {order.decode(errors='replace')}")
        return order.decode()


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
        if not count:
            break
        done += count
    return done


def byteswap(array: np.ndarray, item: int) -> np.ndarray:
    """The bytes with every group of `item` bytes reversed."""
    return array if item == 1 else np.ascontiguousarray(array.reshape(-1, item)[:, ::-1]).reshape(-1)


NATIVE = sys.byteorder
