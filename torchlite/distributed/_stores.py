"""Stores: values that processes leave each other under names.

All do their work on a `_Table`, one command at a time: `HashStore` has it in this process, `FileStore` in a file under
a lock, `TCPStore` in the process that is master. What comes over a connection is byte strings and their lengths.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from ._work import DistNetworkError, DistStoreError, QueueEmptyError

_LIMIT = timedelta(seconds=300)
_QUEUE = b"q"  # before the names of queues; those of values have _VALUE
_VALUE = b"v"


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _pack(parts: list[bytes]) -> bytes:
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def _unpack(data: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        if size > len(data) - at - 8:
            raise ValueError("a damaged message")
        parts.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return parts


class _Table:
    """Values by name, and what can be done to them. Every command takes byte strings and returns a list of them."""

    def __init__(self, entries: dict[bytes, bytes] | None = None) -> None:
        self.entries = {} if entries is None else entries

    def set(self, key: bytes, value: bytes) -> list[bytes]:
        self.entries[_VALUE + key] = value
        return []

    def get(self, *keys: bytes) -> list[bytes]:
        """The values, none where one is missing."""
        found = [self.entries.get(_VALUE + key) for key in keys]
        return [] if None in found else [value for value in found if value is not None]

    def add(self, key: bytes, amount: bytes) -> list[bytes]:
        total = b"%d" % (int(self.entries.get(_VALUE + key, b"0")) + int(amount))
        self.entries[_VALUE + key] = total
        return [total]

    def append(self, key: bytes, value: bytes) -> list[bytes]:
        self.entries[_VALUE + key] = self.entries.get(_VALUE + key, b"") + value
        return []

    def compare_set(self, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        now = self.entries.get(_VALUE + key)
        if now == expected or (now is None and not expected):
            self.entries[_VALUE + key] = now = desired
        return [expected if now is None else now]

    def check(self, *keys: bytes) -> list[bytes]:
        return [b"%d" % all(_VALUE + key in self.entries or _QUEUE + key in self.entries for key in keys)]

    def delete(self, key: bytes) -> list[bytes]:
        return [b"%d" % (self.entries.pop(_VALUE + key, None) is not None)]

    def keys(self) -> list[bytes]:
        return [key[1:] for key in self.entries if key[:1] == _VALUE]

    def push(self, key: bytes, value: bytes) -> list[bytes]:
        self.entries[_QUEUE + key] = self.entries.get(_QUEUE + key, b"") + _pack([value])
        return []

    def pop(self, key: bytes) -> list[bytes]:
        """The oldest value, none where the queue is empty."""
        waiting = _unpack(self.entries.get(_QUEUE + key, b""))
        if not waiting:
            return []
        if len(waiting) == 1:
            del self.entries[_QUEUE + key]
        else:
            self.entries[_QUEUE + key] = _pack(waiting[1:])
        return waiting[:1]

    def length(self, key: bytes) -> list[bytes]:
        return [b"%d" % len(_unpack(self.entries.get(_QUEUE + key, b"")))]


_COMMANDS = {name.encode(): getattr(_Table, name) for name in vars(_Table) if not name.startswith("_")}


class Store:
    """What stores have in common. Names and values are str or bytes, answers are bytes."""

    __module__ = "torch.distributed"
    _timeout = _LIMIT
    _prefix = b""

    def _do(self, command: str, *parts: bytes) -> list[bytes]:
        """Run a command of the table."""
        raise NotImplementedError(f"{type(self).__name__} has no {command}")

    def _key(self, key: Any) -> bytes:
        return self._prefix + _bytes(key)

    def set(self, key: str, value: Any) -> None:
        """Put a value under a name.

        >>> import torchlite.distributed as dist
        >>> store = dist.HashStore()
        >>> store.set("a", "1")
        >>> store.add("a", 2), store.get("a")
        (3, b'3')
        """
        self._do("set", self._key(key), _bytes(value))

    def get(self, key: str) -> bytes:
        """The value under a name, which is waited for. DistStoreError after the store's `timeout`."""
        return self._wait_for([self._key(key)], self.timeout)[0]

    def add(self, key: str, value: int) -> int:
        """Add to the number under a name (0 where there is none): the sum."""
        return int(self._do("add", self._key(key), b"%d" % value)[0])

    def append(self, key: str, value: Any) -> None:
        """Put more behind the value under a name."""
        self._do("append", self._key(key), _bytes(value))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Put a value where the one that is expected stands ("" for none): what stands there then."""
        return self._do("compare_set", self._key(key), _bytes(expected_value), _bytes(desired_value))[0]

    def check(self, keys: list[str]) -> bool:
        """Whether all names have values."""
        return self._do("check", *map(self._key, keys)) == [b"1"]

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all names have values. DistStoreError after a time."""
        self._wait_for([self._key(key) for key in keys], self.timeout if timeout is None else timeout)

    def delete_key(self, key: str) -> bool:
        """Take a name away: whether it was there."""
        return self._do("delete", self._key(key)) == [b"1"]

    def num_keys(self) -> int:
        """How many names have values."""
        return len(self._do("keys"))

    def list_keys(self) -> list[str]:
        """The names that have values."""
        return [key.decode() for key in self._do("keys") if key.startswith(self._prefix)]

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """The values under several names, which are waited for."""
        return self._wait_for([self._key(key) for key in keys], self.timeout) if keys else []

    def multi_set(self, keys: list[str], values: list[Any]) -> None:
        """Put values under several names."""
        if len(keys) != len(values):
            raise ValueError("multi_set: as many values as keys are expected")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key: str, value: Any) -> None:
        """Put a value at the end of a queue."""
        self._do("push", self._key(key), _bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue, which is waited for. QueueEmptyError without `block`."""
        end = time.monotonic() + self.timeout.total_seconds()
        for pause in _pauses():
            found = self._do("pop", self._key(key))
            if found:
                return found[0]
            if not block:
                raise QueueEmptyError(f"queue {key} is empty")
            if time.monotonic() > end:
                raise self._late([self._key(key)], self.timeout)
            time.sleep(pause)
        raise AssertionError("pauses do not end")

    def queue_len(self, key: str) -> int:
        """How many values a queue has."""
        return int(self._do("length", self._key(key))[0])

    def has_extended_api(self) -> bool:
        """Whether there are `append`, `multi_get` and `multi_set`."""
        return True

    @property
    def timeout(self) -> timedelta:
        """How long what is waited for may take."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long what is waited for may take."""
        self._timeout = timeout

    def clone(self) -> Store:
        """Another handle on the same values."""
        return self

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` processes have called it with this name."""
        if self.add(f"{key}/came", 1) == world_size:
            self.set(f"{key}/all", "1")
        self.wait([f"{key}/all"], timeout)

    def _wait_for(self, keys: list[bytes], limit: timedelta) -> list[bytes]:
        end = time.monotonic() + limit.total_seconds()
        for pause in _pauses():
            found = self._do("get", *keys)
            if found or not keys:
                return found
            if time.monotonic() > end:
                raise self._late(keys, limit)
            time.sleep(pause)
        raise AssertionError("pauses do not end")

    def _late(self, keys: list[bytes], limit: timedelta) -> DistStoreError:
        names = ", ".join("/" + key.decode(errors="replace") for key in keys)
        return DistStoreError(f"wait timeout after {round(limit.total_seconds() * 1000)}ms, keys: {names}")


def _pauses() -> Iterator[float]:
    """Sleeps between two questions, which grow to 20 ms."""
    pause = 5e-4
    while True:
        yield pause
        pause = min(pause * 1.5, 0.02)


class HashStore(Store):
    """Values in this process, for its threads."""

    def __init__(self) -> None:
        self._table, self._lock = _Table(), threading.Lock()

    def _do(self, command: str, *parts: bytes) -> list[bytes]:
        with self._lock:
            return _COMMANDS[command.encode()](self._table, *parts)


class FileStore(Store):
    """Values in a file that all processes see, under a lock for the time of a command."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path, self._size = os.fspath(file_name), world_size

    @property
    def path(self) -> str:
        """The file's name."""
        return self._path

    def _do(self, command: str, *parts: bytes) -> list[bytes]:
        import fcntl

        with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # it ends with the file
            before = file.read()
            cells = _unpack(before)
            table = _Table(dict(zip(cells[::2], cells[1::2], strict=True)))
            answer = _COMMANDS[command.encode()](table, *parts)
            after = _pack([cell for pair in table.entries.items() for cell in pair])
            if after != before:
                file.seek(0)
                file.write(after)
                file.truncate()
        return answer


class PrefixStore(Store):
    """Another store's values under names that begin with `prefix/`."""

    def __init__(self, prefix: str, store: Store) -> None:
        self._inner = store
        self._prefix = _bytes(prefix) + b"/"

    @property
    def underlying_store(self) -> Store:
        """The store that has the values."""
        return self._inner

    @property
    def _underlying_non_prefix_store(self) -> Store:
        inner = self._inner
        return inner._underlying_non_prefix_store if isinstance(inner, PrefixStore) else inner

    @property
    def timeout(self) -> timedelta:
        """The inner store's."""
        return self._inner.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the inner store's."""
        self._inner.set_timeout(timeout)

    def _key(self, key: Any) -> bytes:
        return self._inner._key(self._prefix + _bytes(key))

    def _do(self, command: str, *parts: bytes) -> list[bytes]:
        return self._inner._do(command, *parts)


class TCPStore(Store):
    """Values in the process that is master, which others reach at a host and a port (0 picks one: `port`)."""

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _LIMIT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        if not isinstance(timeout, timedelta):
            raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
        if world_size is not None and world_size < 0:
            world_size = None
        self._timeout, self._host, self._lock = timeout, host_name, threading.Lock()
        self._server = _serve(host_name, port, multi_tenant, master_listen_fd) if is_master else None
        self._port = self._server.port if self._server is not None else port
        self._connection = _connected(host_name, self._port, timeout)
        if world_size is not None and wait_for_workers:
            came = self.add("init/", 1)
            if is_master:
                end = time.monotonic() + timeout.total_seconds()
                for pause in _pauses():
                    if came >= world_size:
                        break
                    if time.monotonic() > end:
                        raise DistStoreError(
                            f"Timed out after {round(timeout.total_seconds())} seconds waiting for clients. "
                            f"{came}/{world_size} clients joined."
                        )
                    time.sleep(pause)
                    came = self.add("init/", 0)

    @property
    def host(self) -> str:
        """The master's host."""
        return self._host

    @property
    def port(self) -> int:
        """The master's port."""
        return self._port

    @property
    def libuvBackend(self) -> bool:
        """Whether libuv serves: Python's threads do."""
        return False

    def clone(self) -> Store:
        """Another connection to the same master."""
        return TCPStore(self._host, self._port, None, False, self._timeout)

    def _do(self, command: str, *parts: bytes) -> list[bytes]:
        with self._lock:
            try:
                self._connection.send_bytes(_pack([command.encode(), *parts]))
                answer = _unpack(self._connection.recv_bytes())
            except (OSError, EOFError) as error:
                raise DistNetworkError(f"the store at {self._host}:{self._port} does not answer: {error}") from None
        if answer[0] != b"":
            raise DistStoreError(answer[0].decode(errors="replace"))
        return answer[1:]


class _Server:
    """A table, and a thread for each connection to it. All end with the process."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener, self._table, self._lock = listener, _Table(), threading.Lock()
        self.port = listener.getsockname()[1]
        threading.Thread(target=self._accept, name="torchlite store", daemon=True).start()

    def _accept(self) -> None:
        from multiprocessing.connection import Connection

        while True:
            try:
                channel, _ = self._listener.accept()
            except OSError:
                return  # it was closed
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._answer, args=(Connection(channel.detach()),), daemon=True).start()

    def _answer(self, connection: Any) -> None:
        with contextlib.suppress(OSError, EOFError), connection:
            while True:
                message = connection.recv_bytes()
                try:
                    command, *parts = _unpack(message)
                    run: Callable[..., list[bytes]] = _COMMANDS[command]
                    with self._lock:
                        answer = [b"", *run(self._table, *parts)]
                except (KeyError, TypeError, ValueError, struct.error) as error:
                    answer = [f"a message that no store sends: {error!r}".encode()]
                connection.send_bytes(_pack(answer))

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()


_servers: dict[int, _Server] = {}  # of `multi_tenant`, which several stores of a process share


def _serve(host: str, port: int, shared: bool, descriptor: int | None) -> _Server:
    if shared and port in _servers:
        return _servers[port]
    try:
        if descriptor is not None:
            listener = socket.socket(fileno=descriptor)
        else:
            listener = socket.create_server(("", port))
    except OSError as error:
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}, error: {error}"
        ) from None
    made = _Server(listener)
    if shared:
        _servers[made.port] = made
    return made


def _connected(host: str, port: int, timeout: timedelta) -> Any:
    from multiprocessing.connection import Connection

    end = time.monotonic() + timeout.total_seconds()
    for pause in _pauses():
        try:
            channel = socket.create_connection((host, port), max(0.05, end - time.monotonic()))
        except OSError as error:
            if time.monotonic() > end:
                raise DistNetworkError(
                    f"The client socket has timed out after {round(timeout.total_seconds() * 1000)}ms while trying to "
                    f"connect to ({host}, {port}): {error}"
                ) from None
            time.sleep(pause)
        else:
            channel.settimeout(None)
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Connection(channel.detach())
    raise AssertionError("pauses do not end")
