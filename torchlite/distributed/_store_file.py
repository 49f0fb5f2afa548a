"""The file of a FileStore: a header, and behind it the values, with room for what replaces them.

The header says where the values are. New values are written where the present ones are not, and then the header, with
one write into a block that the file has. A full disk or a killed process before that leaves the present values.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib

_HEADER = struct.Struct("<8sQQQ")  # the format, and where the values begin, their size and checksum
_FORMAT = b"TLSTORE1"
MAX_FILE = 1 << 30  # bytes of the values


class Contents:
    """The values of an open and locked file. ValueError where the file is damaged, or no store's."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._begin, self._end, self.data = _HEADER.size, _HEADER.size, b""
        header = os.pread(descriptor, _HEADER.size, 0)
        if not header.strip(b"\0"):  # a new file, or one whose first write failed
            return
        if len(header) < _HEADER.size:
            raise ValueError("a header that ends early")
        name, begin, size, checksum = _HEADER.unpack(header)
        if name != _FORMAT or begin < _HEADER.size:
            raise ValueError("an unknown header")
        if size > MAX_FILE:
            raise ValueError(f"it has over {MAX_FILE} bytes")
        self._begin, self._end = begin, begin + size
        if self._end > os.fstat(descriptor).st_size:
            raise ValueError("values that end early")
        self.data = os.pread(descriptor, size, begin)
        if len(self.data) != size or zlib.crc32(self.data) != checksum:
            raise ValueError("values with another checksum")

    def replace(self, data: bytes) -> None:
        """Write other values. OSError leaves those that are there."""
        front = _HEADER.size
        begin = front if front + len(data) <= self._begin else self._end
        try:
            _write(self._descriptor, data, begin)
            self._replace_header(_HEADER.pack(_FORMAT, begin, len(data), zlib.crc32(data)))
        except OSError:
            if os.fstat(self._descriptor).st_size > self._end:
                os.ftruncate(self._descriptor, self._end)
            raise
        os.ftruncate(self._descriptor, begin + len(data))

    def _replace_header(self, header: bytes) -> None:
        """Write the header. Where a limit cuts it short, what was there fits within the limit again."""
        before = os.pread(self._descriptor, len(header), 0).ljust(len(header), b"\0")
        written = os.pwrite(self._descriptor, header, 0)
        if written < len(header):
            _write(self._descriptor, before[:written], 0)
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def _write(descriptor: int, data: bytes, at: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, at)
        left, at = left[written:], at + written
