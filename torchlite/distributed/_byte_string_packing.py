"""Encoding of byte strings in messages and files, each with its length first."""

from __future__ import annotations

import struct
from collections.abc import Iterable

size_of = struct.Struct("<Q").pack


_read_size = struct.Struct("<Q").unpack_from


def pack_byte_strings(parts: Iterable[bytes | bytearray]) -> bytes:
    """Encode byte strings, each with its length first."""
    return b"".join([piece for part in parts for piece in (size_of(len(part)), part)])


def unpack_byte_strings(data: bytes, most: int | None = None) -> list[bytes]:
    """Decode the byte strings of a message. ValueError for a wrong length, or for more than `most` strings."""
    parts: list[bytes] = []
    at, end = 0, len(data)
    while at < end:
        if end - at < 8 or len(parts) == most:
            raise ValueError("a damaged message")
        begin = at + 8
        at = begin + _read_size(data, at)[0]
        if at > end:
            raise ValueError("a damaged message")
        parts.append(data[begin:at])
    return parts
