"""The values of a store, the commands that change them, and the form in which byte strings travel."""

from __future__ import annotations

import struct

QUEUE = b"q"  # before the names of queues; those of values have VALUE
VALUE = b"v"

# The limits of PyTorch's libuv backend.
MAX_KEY = 8 << 10
MAX_VALUE = 8 << 20
MAX_KEYS = 128 << 10
MAX_TOTAL = 1 << 30  # bytes of all names and values
MAX_ANSWER = 256 << 20  # bytes of one answer


class Refused(Exception):
    """A command that goes beyond a limit; its text is the answer."""


def pack(parts: list[bytes]) -> bytes:
    """Byte strings, each after its length."""
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def unpack(data: bytes) -> list[bytes]:
    """The byte strings of a message. ValueError where a length does not fit, or where there are too many."""
    parts: list[bytes] = []
    at = 0
    while at < len(data):
        if len(data) - at < 8 or len(parts) > MAX_KEYS:
            raise ValueError("a damaged message")
        (size,) = struct.unpack_from("<Q", data, at)
        if size > len(data) - at - 8:
            raise ValueError("a damaged message")
        parts.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return parts


class Table:
    """Values by name, and what can be done to them. Every command takes byte strings and returns a list of them.

    With `limited` a command that goes beyond the limits raises `Refused` and changes nothing.
    """

    def __init__(self, entries: dict[bytes, bytes] | None = None, limited: bool = False) -> None:
        self.entries = {} if entries is None else entries
        self._limited, self._total = limited, 0

    def _put(self, name: bytes, value: bytes) -> None:
        if self._limited:
            before = self.entries.get(name)
            total = self._total + len(value) - (len(before) if before is not None else -len(name))
            if len(name) - 1 > MAX_KEY:
                raise Refused(f"a key of {len(name) - 1} bytes: at most {MAX_KEY} are taken")
            if len(value) > MAX_VALUE:
                raise Refused(f"a value of {len(value)} bytes: at most {MAX_VALUE} are taken")
            if before is None and len(self.entries) >= MAX_KEYS:
                raise Refused(f"the store is full: it has {MAX_KEYS} keys")
            if total > MAX_TOTAL:
                raise Refused(f"the store is full: it has {self._total} bytes")
            self._total = total
        self.entries[name] = value

    def _take(self, name: bytes) -> bytes | None:
        value = self.entries.pop(name, None)
        if value is not None:
            self._total -= len(name) + len(value)
        return value

    def set(self, key: bytes, value: bytes) -> list[bytes]:
        self._put(VALUE + key, value)
        return []

    def get(self, *keys: bytes) -> list[bytes]:
        """The values, none where one is missing."""
        found, size = [], 0
        for key in keys:
            value = self.entries.get(VALUE + key)
            if value is None:
                return []
            found.append(value)
            size += len(value) + 8
            if self._limited and size > MAX_ANSWER:
                raise Refused(f"the values together have over {MAX_ANSWER} bytes")
        return found

    def add(self, key: bytes, amount: bytes) -> list[bytes]:
        total = int(self.entries.get(VALUE + key, b"0")) + int(amount)
        if not -(1 << 63) <= total < 1 << 63:
            raise Refused(f"{total} does not fit into 64 bits")
        self._put(VALUE + key, b"%d" % total)
        return [b"%d" % total]

    def append(self, key: bytes, value: bytes) -> list[bytes]:
        self._put(VALUE + key, self.entries.get(VALUE + key, b"") + value)
        return []

    def compare_set(self, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        now = self.entries.get(VALUE + key)
        if now == expected or (now is None and not expected):
            self._put(VALUE + key, desired)
            now = desired
        return [expected if now is None else now]

    def check(self, *keys: bytes) -> list[bytes]:
        return [b"%d" % all(VALUE + key in self.entries or QUEUE + key in self.entries for key in keys)]

    def delete(self, key: bytes) -> list[bytes]:
        return [b"%d" % (self._take(VALUE + key) is not None)]

    def keys(self) -> list[bytes]:
        found = [key[1:] for key in self.entries if key[:1] == VALUE]
        if self._limited and sum(map(len, found)) > MAX_ANSWER:
            raise Refused(f"the keys together have over {MAX_ANSWER} bytes")
        return found

    def count(self) -> list[bytes]:
        return [b"%d" % sum(key[:1] == VALUE for key in self.entries)]

    def push(self, key: bytes, value: bytes) -> list[bytes]:
        self._put(QUEUE + key, self.entries.get(QUEUE + key, b"") + pack([value]))
        return []

    def pop(self, key: bytes) -> list[bytes]:
        """The oldest value, none where the queue is empty."""
        waiting = self.entries.get(QUEUE + key, b"")
        if not waiting:
            return []
        end = 8 + struct.unpack_from("<Q", waiting)[0]
        if len(waiting) == end:
            self._take(QUEUE + key)
        else:
            self._put(QUEUE + key, waiting[end:])
        return [waiting[8:end]]

    def length(self, key: bytes) -> list[bytes]:
        return [b"%d" % len(unpack(self.entries.get(QUEUE + key, b"")))]


COMMANDS = {name.encode(): getattr(Table, name) for name in vars(Table) if not name.startswith("_")}
