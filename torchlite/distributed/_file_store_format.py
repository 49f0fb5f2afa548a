"""File format of a FileStore: a header, then the values, with space for their replacement.

The header has the offset of the values. New values are written to free space, and then the header, by one write into an
allocated block. A full disk or a killed process before that leaves the previous values.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import struct
import zlib
from collections.abc import Callable
from typing import Any

_HEADER = struct.Struct("<8sQQQ")  # the format, and where the values begin, their size and checksum
_FORMAT = b"TLSTORE1"
MAX_FILE = 1 << 30  # bytes of the values


class File(io.FileIO):
    """File object that closes without a warning when an interrupt ends its call."""

    owner = 0  # the thread of its call
    turn: object = None  # the command that uses it
    __del__ = io.FileIO.close


class Overtaken(Exception):
    """A signal handler used the file within a command, which must restart."""


class StoreFile:
    """Values of an open and locked file. ValueError for a damaged or foreign file.

    Every method raises `Overtaken`, with nothing changed, if another command used the file meanwhile.
    """

    def __init__(self, file: File) -> None:
        self._file, self._descriptor = file, file.fileno()
        self._turn = file.turn = object()
        self._begin, self._end, self.data = _HEADER.size, _HEADER.size, b""
        header = self._call_system(os.pread, _HEADER.size, 0)
        if not header.strip(b"\0"):  # a new file, or a failed first write
            return
        if len(header) < _HEADER.size:
            raise ValueError("a header that ends early")
        name, begin, size, checksum = _HEADER.unpack(header)
        if name != _FORMAT or begin < _HEADER.size:
            raise ValueError("an unknown header")
        if size > MAX_FILE:
            raise ValueError(f"it has over {MAX_FILE} bytes")
        self._begin, self._end = begin, begin + size
        if self._end > self._call_system(os.fstat).st_size:
            raise ValueError("values that end early")
        self.data = self._call_system(os.pread, size, begin)
        if len(self.data) != size or zlib.crc32(self.data) != checksum:
            raise ValueError("values with another checksum")

    def _call_system(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Run a system call on the file. CPython runs no signal handler between the check and the call."""
        if self._file.turn is not self._turn:
            raise Overtaken
        return call(self._descriptor, *arguments)

    def replace(self, data: bytes) -> None:
        """Replace the values. OSError leaves the previous ones."""
        front = _HEADER.size
        begin = front if front + len(data) <= self._begin else self._end
        try:
            self._write_record(data, begin)
            self._replace_header(_HEADER.pack(_FORMAT, begin, len(data), zlib.crc32(data)))
        except OSError:
            if self._call_system(os.fstat).st_size > self._end:
                self._call_system(os.ftruncate, self._end)
            raise
        with contextlib.suppress(Overtaken):  # the values are written
            self._call_system(os.ftruncate, begin + len(data))

    def _replace_header(self, header: bytes) -> None:
        """Write the header. If a size limit truncates it, the previous one still fits within the limit."""
        before = self._call_system(os.pread, len(header), 0).ljust(len(header), b"\0")
        written = self._call_system(os.pwrite, header, 0)
        if written < len(header):
            self._write_record(before[:written], 0)
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    def _write_record(self, data: bytes, at: int) -> None:
        left = memoryview(data)
        while left:
            written = self._call_system(os.pwrite, left, at)
            left, at = left[written:], at + written
