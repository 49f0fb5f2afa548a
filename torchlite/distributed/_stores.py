"""Stores: values that processes leave each other under names.

All do their work on a `Table`, one command at a time: `HashStore` has it in this process, `FileStore` in a file under
a lock, `TCPStore` in the process that is master. What comes over a connection is byte strings and their lengths.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torchlite._settings.forks import hold

from ._store_table import COMMANDS, MAX_KEYS, MAX_NAMED, Refused, Table, dump, load, pack, unpack
from ._work import DistNetworkError, DistStoreError, QueueEmptyError

if TYPE_CHECKING:
    import socket

    from ._store_server import Server
    from ._store_wire import Channel

_LIMIT = timedelta(seconds=300)
_MOMENT = 0.01  # seconds that the last question of a wait has at least


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """What stores have in common. Names and values are str or bytes, answers are bytes."""

    __module__ = "torch.distributed"
    _timeout = _LIMIT
    _prefix = b""
    _most_keys: int | None = None  # that one command may name

    def _do(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        """Run a command of the table, which may take `limit` seconds, or the store's `timeout`. `_Late` after it."""
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
        return self._wait_for("get", [key], self.timeout)[0]

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
        return all(self._do("check", *some) == [b"1"] for some in self._batches([self._key(key) for key in keys]))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all names have values. DistStoreError after a time."""
        self._wait_for("present", keys, self.timeout if timeout is None else timeout)

    def delete_key(self, key: str) -> bool:
        """Take a name away: whether it was there."""
        return self._do("delete", self._key(key)) == [b"1"]

    def num_keys(self) -> int:
        """How many names have values."""
        return int(self._do("count")[0])

    def list_keys(self) -> list[str]:
        """The names that have values."""
        return [key.decode() for key in self._do("keys") if key.startswith(self._prefix)]

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """The values under several names, which are waited for."""
        return self._wait_for("get", keys, self.timeout)

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
        if block:
            return self._ask_until("pop", [self._key(key)], self.timeout)[0]
        found = self._do("pop", self._key(key))
        if not found:
            raise QueueEmptyError(f"queue {key} is empty")
        return found[0]

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

    def _wait_for(self, command: str, keys: list[str], limit: timedelta) -> list[bytes]:
        end, found = time.monotonic() + limit.total_seconds(), []
        for some in self._batches([self._key(key) for key in keys]):
            found += self._ask_until(command, some, limit, end)
        return found

    def _batches(self, keys: list[bytes]) -> Iterator[list[bytes]]:
        """Keys, as many at a time as a command may name."""
        size = self._most_keys or max(len(keys), 1)
        return (keys[at : at + size] for at in range(0, len(keys), size))

    def _ask_until(self, command: str, keys: list[bytes], limit: timedelta, end: float | None = None) -> list[bytes]:
        """Ask until there is an answer. DistStoreError after a time, which is that of all questions together."""
        if end is None:
            end = time.monotonic() + limit.total_seconds()
        for pause in _pauses():
            try:
                found = self._do(command, *keys, limit=max(end - time.monotonic(), _MOMENT))
            except _Late:
                raise self._late(keys, limit) from None
            if found:
                return found
            left = end - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(pause, left))
        raise self._late(keys, limit)

    def _late(self, keys: list[bytes], limit: timedelta) -> DistStoreError:
        names = ", ".join("/" + key.decode(errors="replace") for key in keys)
        return DistStoreError(f"wait timeout after {round(limit.total_seconds() * 1000)}ms, keys: {names}")


class _Late(DistNetworkError):
    """A command took longer than it may."""

    __module__ = "torch.distributed"
    __qualname__ = "DistNetworkError"


def _pauses() -> Iterator[float]:
    """Sleeps between two questions, which grow to 20 ms."""
    pause = 5e-4
    while True:
        yield pause
        pause = min(pause * 1.5, 0.02)


class HashStore(Store):
    """Values in this process, for its threads."""

    def __init__(self) -> None:
        self._table, self._lock = Table(), hold(threading.Lock())

    def _do(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        with self._lock:
            return COMMANDS[command.encode()](self._table, *parts)


class FileStore(Store):
    """Values in a file that all processes see, under a lock for the time of a command."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path, self._size = os.fspath(file_name), world_size

    @property
    def path(self) -> str:
        """The file's name."""
        return self._path

    def _do(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        from ._store_file import MAX_FILE, Contents

        end = time.monotonic() + (self.timeout.total_seconds() if limit is None else limit)
        with self._locked(command, end) as descriptor:
            try:
                contents = Contents(descriptor)
                table = load(contents.data)
            except ValueError as error:
                raise DistStoreError(f"the store's file {self._path} is damaged, or no store's: {error}") from None
            try:
                answer = COMMANDS[command.encode()](table, *parts)
            except (Refused, ValueError) as error:
                raise DistStoreError(str(error)) from None
            after = dump(table)
            if after != contents.data:
                if len(after) > MAX_FILE:
                    raise DistStoreError(f"the store's file {self._path} is full: at most {MAX_FILE} bytes are written")
                try:
                    contents.replace(after)
                except OSError as error:
                    raise DistStoreError(f"the store's file {self._path} cannot be written: {error.strerror}") from None
        return answer

    @contextlib.contextmanager
    def _locked(self, command: str, end: float) -> Iterator[int]:
        """The open file under its lock. One that was deleted meanwhile is opened anew."""
        import fcntl

        while True:
            with open(self._descriptor(), "r+b", buffering=0) as file:
                try:
                    for pause in _pauses():
                        try:
                            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                            break
                        except BlockingIOError:  # a process that stopped may have it for ever
                            if time.monotonic() > end:
                                raise _Late(
                                    f"{command}: another process holds the lock of the store's file {self._path}"
                                ) from None
                            time.sleep(pause)
                    if os.fstat(file.fileno()).st_nlink:
                        yield file.fileno()
                        return
                finally:  # a child that another thread forked meanwhile has the file open too, and with it the lock
                    fcntl.flock(file, fcntl.LOCK_UN)

    def _descriptor(self) -> int:
        """The open file, which must be this user's own: no link, which may lead to a file of somebody else's choice."""
        try:
            made = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        except OSError as error:
            raise DistStoreError(f"the store's file {self._path} cannot be opened: {error.strerror}") from None
        about = os.fstat(made)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            os.close(made)
            raise DistStoreError(f"the store's file {self._path} is not a regular file of this user's")
        return made


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

    @property
    def _most_keys(self) -> int | None:  # type: ignore[override]
        return self._inner._most_keys

    def _key(self, key: Any) -> bytes:
        return self._inner._key(self._prefix + _bytes(key))

    def _do(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        return self._inner._do(command, *parts, limit=limit)


class TCPStore(Store):
    """Values in the process that is master, which others reach at a host and a port (0 picks one: `port`).

    The master listens on the addresses of `host_name` and no other; "0.0.0.0" and "::" stand for all. Where the
    variable TORCHLITE_STORE_SECRET is set, as `torchlite-run` does, master and clients prove to each other that they
    know it. Every call ends within `timeout`.
    """

    _most_keys = MAX_NAMED

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
        *,
        _secret: bytes | None = None,
    ) -> None:
        from ._store_wire import secret_of_environment

        if not isinstance(timeout, timedelta):
            raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        if world_size is not None and world_size < 0:
            world_size = None
        self._secret = secret_of_environment() if _secret is None else _secret
        self._timeout, self._host = timeout, host_name
        self._lock, self._process = threading.RLock(), os.getpid()
        self._server = _serve(host_name, port, multi_tenant, master_listen_fd, self._secret) if is_master else None
        if self._server is not None and not multi_tenant:
            weakref.finalize(self, self._server.close).atexit = False
        self._port = self._server.port if self._server is not None else port
        end = time.monotonic() + timeout.total_seconds()
        self._channel: Channel | None = self._connected(end, patient=True)
        if world_size is not None and wait_for_workers:
            self._wait_for_workers(world_size, is_master, end)

    def _wait_for_workers(self, size: int, is_master: bool, end: float) -> None:
        came = self.add("init/", 1)
        for pause in _pauses():
            if came >= size or not is_master:
                return
            if time.monotonic() > end:
                raise DistStoreError(
                    f"Timed out after {round(self._timeout.total_seconds())} seconds waiting for clients. "
                    f"{came}/{size} clients joined."
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
        """Whether libuv serves: a thread of Python's does."""
        return False

    def clone(self) -> Store:
        """Another connection to the same master."""
        return TCPStore(self._host, self._port, None, False, self._timeout, _secret=self._secret)

    def _connected(self, end: float, patient: bool) -> Channel:
        """A connection; a patient caller tries until it is late."""
        from ._store_wire import SECRET, Channel, WrongSecret

        for pause in _pauses():
            try:
                return Channel.connect(self._host, self._port, self._secret, end)
            except WrongSecret:
                raise DistNetworkError(
                    f"The store at ({self._host}, {self._port}) has another secret than {SECRET} of this process says"
                ) from None
            except OSError as error:
                if time.monotonic() + pause > end:
                    limit = round(self._timeout.total_seconds() * 1000)
                    raise _Late(
                        f"The client socket has timed out after {limit}ms while trying to connect to ({self._host}, "
                        f"{self._port}): {error}"
                    ) from None
                if not patient and isinstance(error, ConnectionRefusedError):
                    raise DistNetworkError(f"the store at {self._host}:{self._port} does not answer: {error}") from None
                time.sleep(pause)
        raise AssertionError("pauses do not end")

    def _do(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        limit = self._timeout.total_seconds() if limit is None else limit
        end = time.monotonic() + limit
        if self._process != os.getpid():  # a fork must not speak on its parent's connection
            self._lock, self._process, self._channel = threading.RLock(), os.getpid(), None
        lock: Any = self._lock
        if lock._is_owned():  # by a call of this thread, which a handler of a signal interrupts
            answer = self._answer(command, parts, limit, end)
        else:
            try:  # an interrupt may come as soon as the lock is held
                if not lock.acquire(timeout=min(max(limit, 0), threading.TIMEOUT_MAX)):
                    raise _Late(self._words(command, limit))
                answer = self._answer(command, parts, limit, end)
            finally:
                if lock._is_owned():
                    lock.release()
        if not answer or answer[0] != b"":
            raise DistStoreError((answer or [b"an empty answer"])[0].decode(errors="replace"))
        return answer[1:]

    def _answer(self, command: str, parts: tuple[bytes, ...], limit: float, end: float) -> list[bytes]:
        """The answer to one message. After an error the next call makes a new connection."""
        channel, self._channel = self._channel or self._connected(end, patient=False), None
        try:
            answer = unpack(channel.ask(pack([command.encode(), *parts]), end), MAX_KEYS + 1)
        except TimeoutError:
            channel.close()
            raise _Late(self._words(command, limit)) from None
        except OSError as error:
            channel.close()
            raise DistNetworkError(f"the store at {self._host}:{self._port} does not answer: {error}") from None
        except ValueError as error:
            channel.close()
            raise DistStoreError(f"{command}: {error}") from None
        except BaseException:  # an interrupt leaves half a message
            channel.close()
            raise
        self._channel = channel
        return answer

    def _words(self, command: str, limit: float) -> str:
        return f"the store at {self._host}:{self._port} did not answer {command} within {round(limit * 1000)}ms"


_servers: dict[int, Server] = {}  # of `multi_tenant`, which several stores of a process share


def _serve(host: str, port: int, shared: bool, descriptor: int | None, secret: bytes) -> Server:
    from ._store_server import Server, listen

    if shared and port in _servers:
        return _servers[port]
    try:
        made = Server(listen(host, port) if descriptor is None else [_given(descriptor)], secret)
    except OSError as error:
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}, host: {host}, "
            f"error: {error}"
        ) from None
    if shared:
        _servers[made.port] = made
    return made


def _given(descriptor: int) -> socket.socket:
    import socket

    return socket.socket(fileno=descriptor)
