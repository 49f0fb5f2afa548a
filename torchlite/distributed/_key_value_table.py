"""Key-value table of stores: commands on values and queues.

A command takes time linear in its own input and output, whatever the table's size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import Any

from ._byte_string_packing import pack_byte_strings, unpack_byte_strings

# The limits of PyTorch's libuv backend.
MAX_KEY = 8 << 10
MAX_VALUE = 8 << 20
MAX_KEYS = 128 << 10
MAX_TOTAL = 1 << 30  # bytes of all names and values
MAX_ANSWER = 256 << 20  # bytes of one answer

MAX_NAMED = 2048  # keys of one command
_QUEUED = 64  # overhead in bytes of a queued value
_DIGITS = 64  # bytes of a number, with spaces and zeros


class LimitExceeded(Exception):
    """A command exceeds a limit; its text is the answer."""


def _parse_number(text: bytes | bytearray) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"a number of {len(text)} bytes")
    return int(text)


def _add_to_number(number: bytes | bytearray | None, amount: bytes) -> bytes:
    """Add to a number (None is 0). LimitExceeded if the sum is too large."""
    total = (0 if number is None else _parse_number(number)) + _parse_number(amount)
    if not -(1 << 63) <= total < 1 << 63:
        raise LimitExceeded(f"{total} does not fit into 64 bits")
    return b"%d" % total


class KeyValueTable:
    """Values and queues by name. Every public method is a command: it takes byte strings and returns a list of them.

    With `limited` a command beyond the limits raises `LimitExceeded` and changes nothing.
    """

    def __init__(self, limited: bool = False) -> None:
        self.values: dict[bytes, bytes | bytearray] = {}  # those that grew are a bytearray until they are read
        self.queues: dict[bytes, deque[bytes]] = {}
        self._limited, self._total = limited, 0
        self._listing: bytes | None = None  # the names as `pack` has them, until one comes or goes

    def _count_bytes(self, key: bytes, new: bool, value: int, change: int) -> None:
        """Account for the bytes of a key and its new value."""
        if new:
            change += len(key)
        if self._limited:
            if len(key) > MAX_KEY:
                raise LimitExceeded(f"a key of {len(key)} bytes: at most {MAX_KEY} are taken")
            if value > MAX_VALUE:
                raise LimitExceeded(f"a value of {value} bytes: at most {MAX_VALUE} are taken")
            if new and len(self.values) + len(self.queues) >= MAX_KEYS:
                raise LimitExceeded(f"the store is full: it has {MAX_KEYS} keys")
            if self._total + change > MAX_TOTAL:
                raise LimitExceeded(f"the store is full: it has {self._total} bytes")
        self._total += change
        if new:
            self._listing = None

    def _flattened_value(self, key: bytes) -> bytes:
        """Return an existing value, flattened to bytes."""
        value = self.values[key]
        if isinstance(value, bytearray):
            value = self.values[key] = bytes(value)
        return value

    def set(self, key: bytes, value: bytes) -> list[bytes]:
        before = self.values.get(key)
        self._count_bytes(key, before is None, len(value), len(value) - len(before or b""))
        self.values[key] = value
        return []

    def get(self, *keys: bytes) -> list[bytes]:
        """Return the values, an empty list if one is missing."""
        size = 0
        for key in keys:
            value = self.values.get(key)
            if value is None:
                return []
            size += len(value) + 8
        if self._limited and size > MAX_ANSWER:
            raise LimitExceeded(f"the values together have over {MAX_ANSWER} bytes")
        return [self._flattened_value(key) for key in keys]

    def add(self, key: bytes, amount: bytes) -> list[bytes]:
        total = _add_to_number(self.values.get(key), amount)
        self.set(key, total)
        return [total]

    def append(self, key: bytes, value: bytes) -> list[bytes]:
        before = self.values.get(key)
        if before is None:
            return self.set(key, value)
        self._count_bytes(key, False, len(before) + len(value), len(value))
        if not isinstance(before, bytearray):
            before = self.values[key] = bytearray(before)
        before += value
        return []

    def compare_set(self, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        now = self.values.get(key)
        if now == expected or (now is None and not expected):
            self.set(key, desired)
            return [desired]
        return [expected if now is None else self._flattened_value(key)]

    def check(self, *keys: bytes) -> list[bytes]:
        return [b"%d" % all(key in self.values or key in self.queues for key in keys)]

    def present(self, *keys: bytes) -> list[bytes]:
        """Return an answer if all keys have values, else none."""
        return [b"1"] if all(key in self.values for key in keys) else []

    def delete(self, key: bytes) -> list[bytes]:
        value = self.values.pop(key, None)
        if value is not None:
            self._listing = None
            self._total -= len(key) + len(value)
        return [b"%d" % (value is not None)]

    def keys(self) -> list[bytes]:
        return list(self.values)

    def _names(self) -> bytes:
        """Return all names, encoded. Takes 30 ms for 100,000."""
        if self._listing is None:
            self._listing = pack_byte_strings(self.values)
        if self._limited and len(self._listing) > MAX_ANSWER:
            raise LimitExceeded(f"the keys together have over {MAX_ANSWER} bytes")
        return self._listing

    def count(self) -> list[bytes]:
        return [b"%d" % len(self.values)]

    def push(self, key: bytes, value: bytes) -> list[bytes]:
        waiting = self.queues.get(key)
        self._count_bytes(key, waiting is None, len(value), len(value) + _QUEUED)
        if waiting is None:
            waiting = self.queues[key] = deque()
        waiting.append(value)
        return []

    def pop(self, key: bytes) -> list[bytes]:
        """Remove and return the oldest value; none if the queue is empty."""
        waiting = self.queues.get(key)
        if waiting is None:
            return []
        value = waiting.popleft()
        self._total -= len(value) + _QUEUED
        if not waiting:
            del self.queues[key]
            self._total -= len(key)
        return [value]

    def _pop_tentatively(self, key: bytes) -> list[bytes]:
        """Like `pop`, but the value counts as the table's until `_took` or `_undo_pop`."""
        found = self.pop(key)
        self._total += sum(len(value) + _QUEUED for value in found)
        return found

    def _took(self, value: bytes) -> None:
        """A popped value has arrived at the client."""
        self._total -= len(value) + _QUEUED

    def _undo_pop(self, key: bytes, value: bytes) -> None:
        """Put a popped value back to the front of its queue."""
        waiting = self.queues.get(key)
        if waiting is None:
            waiting = self.queues[key] = deque()
            self._total += len(key)
        waiting.appendleft(value)

    def length(self, key: bytes) -> list[bytes]:
        return [b"%d" % len(self.queues.get(key, ()))]


class AtomicTable(KeyValueTable):
    """Table without limits whose commands are atomic, even against signal handlers.

    A handler may run commands at any moment of another, raise, or fork: none sees or undoes a partial command. A value
    is bytes, or a pair of a value and its appended part. A queue is a length and two immutable linked lists: the oldest
    values, oldest first, and the others, newest first.
    """

    def _change_entry(
        self, place: dict[bytes, Any], key: bytes, change: Callable[[Any], tuple[list[bytes], Any]]
    ) -> Any:
        """Replace a key's entry by `change(entry)`, with a retry if it changed meanwhile; return the answer of
        `change`.

        None is no entry.
        """
        while True:
            before = place.get(key)
            answer, after = change(before)
            # CPython runs handlers at calls, loops and the begin of functions: none of these is in these lines.
            if (place[key] if key in place else None) is before:  # noqa: SIM401 -- `get` is a call
                if after is not None:
                    place[key] = after
                elif before is not None:
                    del place[key]
                return answer

    def set(self, key: bytes, value: bytes) -> list[bytes]:
        self.values[key] = value
        return []

    def get(self, *keys: bytes) -> list[bytes]:
        found = [self._flatten_entry(key) for key in keys]
        return [] if None in found else found  # type: ignore[return-value]

    def _flatten_entry(self, key: bytes) -> Any:
        """Return a key's value, and replace it by its flat form."""
        value = self.values.get(key)
        if value.__class__ is not tuple:
            return value
        return self._change_entry(self.values, key, lambda before: ((flat := _value_to_bytes(before)), flat))

    def add(self, key: bytes, amount: bytes) -> list[bytes]:
        def change(before: Any) -> tuple[list[bytes], bytes]:
            total = _add_to_number(_value_to_bytes(before), amount)
            return [total], total

        return self._change_entry(self.values, key, change)

    def append(self, key: bytes, value: bytes) -> list[bytes]:
        return self._change_entry(self.values, key, lambda before: ([], value if before is None else (before, value)))

    def compare_set(self, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        def change(before: Any) -> tuple[list[bytes], Any]:
            now = _value_to_bytes(before)
            if now == expected or (now is None and not expected):
                return [desired], desired
            return [expected if now is None else now], before

        return self._change_entry(self.values, key, change)

    def delete(self, key: bytes) -> list[bytes]:
        return [b"%d" % (self.values.pop(key, None) is not None)]

    def push(self, key: bytes, value: bytes) -> list[bytes]:
        def change(before: Any) -> tuple[list[bytes], Any]:
            length, oldest, others = before or (0, None, None)
            return [], (length + 1, oldest, (value, others))

        return self._change_entry(self.queues, key, change)

    def pop(self, key: bytes) -> list[bytes]:
        def change(before: Any) -> tuple[list[bytes], Any]:
            if before is None:
                return [], None
            length, oldest, others = before
            if oldest is None:
                while others is not None:
                    value, others = others
                    oldest = value, oldest
            value, oldest = oldest
            return [value], (length - 1, oldest, others) if length > 1 else None

        return self._change_entry(self.queues, key, change)

    def length(self, key: bytes) -> list[bytes]:
        waiting: Any = self.queues.get(key)
        return [b"%d" % (waiting[0] if waiting else 0)]


def _value_to_bytes(value: Any) -> bytes | None:
    """Return a value of an atomic table as bytes."""
    pieces = []
    while isinstance(value, tuple):
        value, piece = value
        pieces.append(piece)
    return b"".join([value, *reversed(pieces)]) if pieces else value


COMMANDS = {name.encode(): getattr(KeyValueTable, name) for name in vars(KeyValueTable) if not name.startswith("_")}


def serialize_table(table: KeyValueTable) -> bytes:
    """Serialise a table: its values, then its queues, as alternating names and contents."""
    queues = {key: pack_byte_strings(waiting) for key, waiting in table.queues.items()}
    if not table.values and not queues:
        return b""
    return pack_byte_strings(
        [pack_byte_strings(chain.from_iterable(pairs.items())) for pairs in (table.values, queues)]
    )


def parse_table(data: bytes) -> KeyValueTable:
    """Parse a table that `serialize_table` wrote. ValueError for damaged data."""
    table = KeyValueTable()
    if data:
        values, queues = (unpack_byte_strings(pairs) for pairs in unpack_byte_strings(data))
        table.values.update(zip(values[::2], values[1::2], strict=True))
        table.queues.update(
            (key, deque(unpack_byte_strings(part))) for key, part in zip(queues[::2], queues[1::2], strict=True)
        )
        if not all(table.queues.values()):
            raise ValueError("an empty queue")
    return table
