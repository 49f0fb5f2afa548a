"""Key-value stores of process groups: HashStore, FileStore, TCPStore, PrefixStore.

All run commands of a `KeyValueTable`, one at a time: `HashStore` has it in this process, `FileStore` in a locked file,
`TCPStore` in the master process. Messages consist of byte strings and their lengths.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torchlite._settings.fork_locks import reinit_after_fork

from ._byte_string_packing import pack_byte_strings, unpack_byte_strings
from ._file_store_format import MAX_FILE, File, Overtaken, StoreFile
from ._key_value_table import COMMANDS, MAX_KEYS, MAX_NAMED, AtomicTable, LimitExceeded, parse_table, serialize_table
from ._store_arguments import as_bytes, as_int, as_list, as_timedelta, wrong_type_error
from ._work import DistNetworkError, DistStoreError, QueueEmptyError

if TYPE_CHECKING:
    import socket

    from ._tcp_store_protocol import StoreConnection
    from ._tcp_store_server import TCPStoreServer

_DEFAULT_TIMEOUT = timedelta(seconds=300)
_IDLE = 8  # connections that a TCPStore keeps: one for each thread that calls it at the same time
_MOMENT = 0.01  # seconds that the last question of a wait has at least


class Store:
    """Base class of the key-value stores through which processes find each other.

    Keys and values are ``str`` or ``bytes``; the values that calls return are ``bytes``. `HashStore`, `FileStore`,
    `TCPStore` and `PrefixStore` implement it.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> store.set("a", "1")
        >>> store.add("a", 2), store.get("a")
        (3, b'3')
    """

    __module__ = "torch.distributed"
    _timeout = _DEFAULT_TIMEOUT
    _prefix = b""
    _max_keys: int | None = None  # that one command may name

    def _run_command(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        """Run a command of the table within `limit` seconds, or the store's `timeout`; else raise `_CommandTimeout`."""
        raise NotImplementedError(f"{type(self).__name__} has no {command}")

    def _table_name(self, key: bytes) -> bytes:
        """Return the table's name for a name of this store."""
        return self._prefix + key

    def _table_key(self, call: str, key: Any) -> bytes:
        return self._table_name(as_bytes(call, key))

    def _table_keys(self, call: str, keys: Any) -> list[bytes]:
        return [self._table_name(key) for key in as_list(call, keys)]

    def set(self, key: str, value: Any) -> None:
        """Sets the value of a key.

        Args:
            key: The key.
            value: The value.
        """
        self._run_command("set", self._table_key("set", key), as_bytes("set", value))

    def get(self, key: str) -> bytes:
        """Returns the value of a key, after waiting for it.

        Args:
            key: The key.

        Raises:
            DistStoreError: There is no value within `timeout`.
        """
        return self._wait_for("get", [self._table_key("get", key)], self.timeout)[0]

    def add(self, key: str, value: int) -> int:
        """Adds to the number of a key, 0 if it has no value, and returns the sum.

        Args:
            key: The key.
            value: The integer to add.
        """
        return int(self._run_command("add", self._table_key("add", key), b"%d" % as_int("add", value))[0])

    def append(self, key: str, value: Any) -> None:
        """Appends to the value of a key.

        Args:
            key: The key.
            value: The bytes to append.
        """
        self._run_command("append", self._table_key("append", key), as_bytes("append", value))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Sets a key if it has the expected value, and returns its value afterwards.

        Args:
            key: The key.
            expected_value: The value it must have; ``""`` for none.
            desired_value: The new value.
        """
        expected, desired = (as_bytes("compare_set", value) for value in (expected_value, desired_value))
        return self._run_command("compare_set", self._table_key("compare_set", key), expected, desired)[0]

    def check(self, keys: list[str]) -> bool:
        """Returns whether all keys have values.

        Args:
            keys: The keys.
        """
        return all(
            self._run_command("check", *some) == [b"1"]
            for some in self._split_into_batches(self._table_keys("check", keys))
        )

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys have values.

        Args:
            keys: The keys.
            timeout: The limit. Default: the store's.

        Raises:
            DistStoreError: The time passes.
        """
        limit = self.timeout if timeout is None else as_timedelta("wait", timeout)
        self._wait_for("present", self._table_keys("wait", keys), limit)

    def delete_key(self, key: str) -> bool:
        """Deletes a key, and returns whether it existed.

        Args:
            key: The key.
        """
        return self._run_command("delete", self._table_key("delete_key", key)) == [b"1"]

    def num_keys(self) -> int:
        """Return the number of keys."""
        return int(self._run_command("count")[0])

    def list_keys(self) -> list[str]:
        """Return the keys."""
        return [key.decode() for key in self._run_command("keys") if key.startswith(self._prefix)]

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Returns the values of several keys, after waiting for them.

        Args:
            keys: The keys.

        Raises:
            DistStoreError: The time passes.
        """
        return self._wait_for("get", self._table_keys("multi_get", keys), self.timeout)

    def multi_set(self, keys: list[str], values: list[Any]) -> None:
        """Sets the values of several keys.

        Args:
            keys: The keys.
            values: A value for each.

        Raises:
            ValueError: The two differ in length.
        """
        names, given = self._table_keys("multi_set", keys), as_list("multi_set", values)
        if len(names) != len(given):
            raise ValueError("multi_set: as many values as keys are expected")
        for name, value in zip(names, given, strict=True):
            self._run_command("set", name, value)

    def queue_push(self, key: str, value: Any) -> None:
        """Appends a value to a queue.

        Args:
            key: The queue's name.
            value: The value.
        """
        self._run_command("push", self._table_key("queue_push", key), as_bytes("queue_push", value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Removes the first value of a queue and returns it. After an error the value is still in the queue.

        Args:
            key: The queue's name.
            block: Whether to wait for a value. Default: ``True``.

        Raises:
            QueueEmptyError: The queue is empty and ``block`` is ``False``.
            DistStoreError: The time passes.
        """
        if not isinstance(block, bool):
            raise wrong_type_error("queue_pop", "a bool", block)
        name = self._table_key("queue_pop", key)
        if block:
            return self._ask_until("pop", [name], self.timeout)[0]
        found = self._run_command("pop", name)
        if not found:
            raise QueueEmptyError(f"queue {key} is empty")
        return found[0]

    def queue_len(self, key: str) -> int:
        """Returns the length of a queue.

        Args:
            key: The queue's name.
        """
        return int(self._run_command("length", self._table_key("queue_len", key))[0])

    def has_extended_api(self) -> bool:
        """True if there are `append`, `multi_get` and `multi_set`."""
        return True

    @property
    def timeout(self) -> timedelta:
        """Timeout of waits."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the timeout of waits.

        Args:
            timeout: The timeout.
        """
        self._timeout = as_timedelta("set_timeout", timeout)

    def clone(self) -> Store:
        """Return another handle on the same store."""
        return self

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Waits until a number of processes have called it with the same name.

        Args:
            key: The name.
            world_size: The number.
            timeout: The limit. Default: the store's.

        Raises:
            DistStoreError: The time passes.
        """
        if self.add(f"{key}/came", 1) == world_size:
            self.set(f"{key}/all", "1")
        self.wait([f"{key}/all"], timeout)

    def _wait_for(self, command: str, keys: list[bytes], limit: timedelta) -> list[bytes]:
        end, found = time.monotonic() + limit.total_seconds(), []
        for some in self._split_into_batches(keys):
            found += self._ask_until(command, some, limit, end)
        return found

    def _split_into_batches(self, keys: list[bytes]) -> Iterator[list[bytes]]:
        """Yield keys in batches of a command's maximum."""
        size = self._max_keys or max(len(keys), 1)
        return (keys[at : at + size] for at in range(0, len(keys), size))

    def _ask_until(self, command: str, keys: list[bytes], limit: timedelta, end: float | None = None) -> list[bytes]:
        """Repeat a command until there is an answer. DistStoreError after a timeout for all attempts."""
        if end is None:
            end = time.monotonic() + limit.total_seconds()
        for pause in _backoff_pauses():
            try:
                found = self._run_command(command, *keys, limit=max(end - time.monotonic(), _MOMENT))
            except _CommandTimeout:
                raise self._timeout_error(keys, limit) from None
            if found:
                return found
            left = end - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(pause, left))
        raise self._timeout_error(keys, limit)

    def _timeout_error(self, keys: list[bytes], limit: timedelta) -> DistStoreError:
        names = ", ".join("/" + key.decode(errors="replace") for key in keys)
        return DistStoreError(f"wait timeout after {round(limit.total_seconds() * 1000)}ms, keys: {names}")


class _CommandTimeout(DistNetworkError):
    """A command timed out."""

    __module__ = "torch.distributed"
    __qualname__ = "DistNetworkError"


def _backoff_pauses() -> Iterator[float]:
    """Yield sleeps between attempts, which grow to 20 ms."""
    pause = 5e-4
    while True:
        yield pause
        pause = min(pause * 1.5, 0.02)


def _as_if_before(call: Callable[..., list[bytes]], *arguments: Any) -> list[bytes]:
    """Run a call, again in a child that a signal handler forked within it: the child lacks the call's file."""
    while True:
        process = os.getpid()
        try:
            return call(*arguments)
        except Exception:  # raised again in the process that called
            if os.getpid() == process:
                raise


class HashStore(Store):
    """Store in the memory of this process, which its threads share.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> store.set("a", "1")
        >>> store.get("a")
        b'1'
    """

    def __init__(self) -> None:
        # The lock serialises threads. Signal handlers, and forks in other threads, see a consistent table.
        self._table, self._lock = AtomicTable(), reinit_after_fork(threading.RLock())

    def _run_command(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        try:
            with self._lock:
                return getattr(self._table, command)(*parts)
        except LimitExceeded as error:
            raise DistStoreError(str(error)) from None


class FileStore(Store):
    """Store in a file that all processes open; a lock on the file orders their commands.

    Args:
        file_name: The file's path. It is created if needed.
        world_size: The number of processes. Default: -1, unknown.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = torch.distributed.FileStore(os.path.join(folder, "store"), 1)
        ...     store.set("a", "1")
        ...     store.get("a")
        b'1'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path, self._size = os.fspath(file_name), as_int("FileStore", world_size)

    @property
    def path(self) -> str:
        """Return the file's name."""
        return self._path

    def _run_command(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        end = time.monotonic() + (self.timeout.total_seconds() if limit is None else limit)
        return _as_if_before(self._run_on_file, command, parts, end)

    def _run_on_file(self, command: str, parts: tuple[bytes, ...], end: float) -> list[bytes]:
        """Run a command on the file's values, again if a signal handler used the file meanwhile."""
        while True:
            with contextlib.suppress(Overtaken):
                return self._run_once(command, parts, end)

    def _run_once(self, command: str, parts: tuple[bytes, ...], end: float) -> list[bytes]:
        with self._open_locked(command, end) as file:
            try:
                contents = StoreFile(file)
                table = parse_table(contents.data)
            except ValueError as error:
                raise DistStoreError(f"the store's file {self._path} is damaged, or no store's: {error}") from None
            try:
                answer = COMMANDS[command.encode()](table, *parts)
            except (LimitExceeded, ValueError) as error:
                raise DistStoreError(str(error)) from None
            after = serialize_table(table)
            if after != contents.data:
                if len(after) > MAX_FILE:
                    raise DistStoreError(f"the store's file {self._path} is full: at most {MAX_FILE} bytes are written")
                try:
                    contents.replace(after)
                except OSError as error:
                    raise DistStoreError(f"the store's file {self._path} cannot be written: {error.strerror}") from None
        return answer

    @contextlib.contextmanager
    def _open_locked(self, command: str, end: float) -> Iterator[File]:
        """Return the open file with its lock.

        A deleted file is opened again. A signal handler gets the file of the call that it interrupts, if that has one.
        """
        import fcntl

        def try_lock(file: File) -> bool:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            return False

        while True:
            process = os.getpid()
            with self._open_own_file() as file:
                _files[file.fileno()] = weakref.ref(file)
                if os.getpid() != process:  # a handler forked before the child could know the file: it has its parent's
                    continue
                try:
                    for pause in _backoff_pauses():
                        taken = next(filter(try_lock, (file, *_interrupted(file))), None)
                        if taken is not None:
                            break
                        if time.monotonic() > end:  # a process that stopped may have it for ever
                            raise _CommandTimeout(
                                f"{command}: another process holds the lock of the store's file {self._path}"
                            )
                        time.sleep(pause)
                    assert taken is not None
                    if os.fstat(taken.fileno()).st_nlink:
                        yield taken
                        return
                finally:
                    if not file.closed:  # as it is in a child that a handler of a signal forked
                        fcntl.flock(file, fcntl.LOCK_UN)

    def _open_own_file(self) -> File:
        """Open the file, which must belong to this user: no link, which may lead to any file."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            # No step of Python's lies between the descriptor and the object that closes it: none is left open.
            made = next(map(File, map(os.open, (self._path,), (flags,), (0o600,)), ("r+b",)))
        except OSError as error:
            raise DistStoreError(f"the store's file {self._path} cannot be opened: {error.strerror}") from None
        about = os.fstat(made.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            made.close()
            raise DistStoreError(f"the store's file {self._path} is not a regular file of this user's")
        made.owner = threading.get_ident()
        return made


_files: dict[int, weakref.ref[File]] = {}  # of FileStores' calls, by descriptor; most have ended


def _interrupted(file: File) -> Iterator[File]:
    """Yield the same file as opened by this thread's other calls: a signal handler interrupts them."""
    about = os.fstat(file.fileno())
    for reference in list(_files.values()):
        other = reference()
        if other is None or other is file or other.closed or other.owner != file.owner:
            continue
        if os.path.samestat(os.fstat(other.fileno()), about):
            yield other


def _close_files() -> None:
    """Close a forked child's copies of files of other threads' calls, and with them the parent's locks."""
    for reference in _files.values():
        if (file := reference()) is not None:
            file.turn = None
            file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_files)


class PrefixStore(Store):
    """Another store, with a prefix and "/" before each key.

    Args:
        prefix: The prefix.
        store: The store.

    Raises:
        ValueError: ``store`` is ``None``.
        TypeError: ``store`` is not a store.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.PrefixStore("group", store).set("a", "1")
        >>> store.get("group/a")
        b'1'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        if store is None:
            raise ValueError("store argument cannot be None")
        if not isinstance(store, Store):
            raise wrong_type_error("PrefixStore", "a Store", store)
        self._inner = store
        self._prefix = as_bytes("PrefixStore", prefix) + b"/"

    @property
    def underlying_store(self) -> Store:
        """The store inside."""
        return self._inner

    @property
    def _underlying_non_prefix_store(self) -> Store:
        inner = self._inner
        return inner._underlying_non_prefix_store if isinstance(inner, PrefixStore) else inner

    @property
    def timeout(self) -> timedelta:
        """Timeout of the inner store."""
        return self._inner.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the timeout of the store inside.

        Args:
            timeout: The timeout.
        """
        self._inner.set_timeout(timeout)

    @property
    def _max_keys(self) -> int | None:  # type: ignore[override]
        return self._inner._max_keys

    def _table_name(self, key: bytes) -> bytes:
        return self._inner._table_name(self._prefix + key)

    def _run_command(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        return self._inner._run_command(command, *parts, limit=limit)


class TCPStore(Store):
    """Store in the memory of one process, the master, that others reach over TCP.

    If the variable TORCHLITE_STORE_SECRET is set, as `torchlite-run` does, master and clients prove to each other that
    they know it. Every call ends within ``timeout``.

    Args:
        host_name: The master's host. The master listens on its addresses only; ``"0.0.0.0"`` and ``"::"`` mean all.
        port: The port; 0 lets the master pick a free one, which `port` returns.
        world_size: The number of processes. Default: ``None``, unknown.
        is_master: Whether this process is the master. Default: ``False``.
        timeout: Limit of each call. Default: 5 minutes.
        wait_for_workers: Whether the master waits for ``world_size`` processes. Default: ``True``.
        multi_tenant: Whether stores of this process share a server on the same port. Default: ``False``.
        master_listen_fd: Descriptor of a socket that listens already. Default: ``None``.
        use_libuv: Has no effect: the server is written in Python.

    Raises:
        TypeError: ``timeout`` is not a `timedelta`.
        ValueError: ``world_size`` is 0, or ``port`` is out of range.
        DistNetworkError: The master does not answer, or cannot listen.
        DistStoreError: The workers do not come in time.

    Example:
        >>> from datetime import timedelta
        >>> store = torch.distributed.TCPStore("localhost", 0, 1, is_master=True, timeout=timedelta(seconds=30))
        >>> store.set("a", "1")
        >>> store.get("a")
        b'1'
    """

    _max_keys = MAX_NAMED

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
        *,
        _secret: bytes | None = None,
    ) -> None:
        from ._tcp_store_protocol import read_secret

        if not isinstance(timeout, timedelta | float):
            raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
        timeout, port = as_timedelta("TCPStore", timeout), as_int("TCPStore", port, 0, 65535)
        host_name = as_bytes("TCPStore", host_name).decode()
        world_size = None if world_size is None else as_int("TCPStore", world_size)
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        if world_size is not None and world_size < 0:
            world_size = None
        self._secret = read_secret() if _secret is None else _secret
        self._timeout, self._host = timeout, host_name
        self._idle: deque[StoreConnection] = deque(
            maxlen=_IDLE
        )  # connections in no call; closed where they are dropped
        self._process = os.getpid()
        self._server = (
            _start_server(host_name, port, multi_tenant, master_listen_fd, self._secret) if is_master else None
        )
        if self._server is not None and not multi_tenant:
            weakref.finalize(self, self._server.close).atexit = False
        self._port = self._server.port if self._server is not None else port
        end = time.monotonic() + timeout.total_seconds()
        self._idle.append(self._connect(end, patient=True))
        if world_size is not None and wait_for_workers:
            self._wait_for_workers(world_size, is_master, end)

    def _wait_for_workers(self, size: int, is_master: bool, end: float) -> None:
        came = self.add("init/", 1)
        for pause in _backoff_pauses():
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
        """Return the master's host."""
        return self._host

    @property
    def port(self) -> int:
        """Return the master's port."""
        return self._port

    @property
    def libuvBackend(self) -> bool:
        """False: a Python thread serves, not libuv."""
        return False

    def clone(self) -> Store:
        """Return another connection to the same master."""
        return TCPStore(self._host, self._port, None, False, self._timeout, _secret=self._secret)

    def _connect(self, end: float, patient: bool) -> StoreConnection:
        """Return a connection; a patient caller retries until the deadline."""
        from ._tcp_store_protocol import SECRET, StoreConnection, WrongSecret

        for pause in _backoff_pauses():
            try:
                return StoreConnection.connect(self._host, self._port, self._secret, end)
            except WrongSecret:
                raise DistNetworkError(
                    f"The store at ({self._host}, {self._port}) has another secret than {SECRET} of this process says"
                ) from None
            except OSError as error:
                if time.monotonic() + pause > end:
                    limit = round(self._timeout.total_seconds() * 1000)
                    raise _CommandTimeout(
                        f"The client socket has timed out after {limit}ms while trying to connect to ({self._host}, "
                        f"{self._port}): {error}"
                    ) from None
                if not patient and isinstance(error, ConnectionRefusedError):
                    raise DistNetworkError(f"the store at {self._host}:{self._port} does not answer: {error}") from None
                time.sleep(pause)
        raise AssertionError("pauses do not end")

    def _run_command(self, command: str, *parts: bytes, limit: float | None = None) -> list[bytes]:
        limit = self._timeout.total_seconds() if limit is None else limit
        answer = _as_if_before(self._request, command, parts, limit, time.monotonic() + limit)
        if not answer or answer[0] != b"":
            raise DistStoreError((answer or [b"an empty answer"])[0].decode(errors="replace"))
        return answer[1:]

    def _request(self, command: str, parts: tuple[bytes, ...], limit: float, end: float) -> list[bytes]:
        """Send a message and return the answer.

        A connection belongs to one call at a time, and is closed if the call fails or is interrupted. Other threads,
        and signal handlers, use other connections.
        """
        if self._process != os.getpid():  # a fork must not speak on its parent's connections
            self._idle, self._process = deque(maxlen=_IDLE), os.getpid()
        try:
            channel = self._idle.pop()
        except IndexError:
            channel = self._connect(end, patient=False)
        try:
            answer = unpack_byte_strings(channel.ask(pack_byte_strings([command.encode(), *parts]), end), MAX_KEYS + 1)
            if command == "pop" and len(answer) > 1:
                channel.confirm(end)  # else the value goes back
        except TimeoutError:
            channel.close()
            raise _CommandTimeout(self._timeout_message(command, limit)) from None
        except OSError as error:
            channel.close()
            self._idle.clear()  # the master has probably closed them too
            raise DistNetworkError(f"the store at {self._host}:{self._port} does not answer: {error}") from None
        except ValueError as error:
            channel.close()
            raise DistStoreError(f"{command}: {error}") from None
        except BaseException:  # an interrupt leaves half a message
            channel.close()
            raise
        if not channel.closed:  # as it is in a child that a handler of a signal forked
            self._idle.append(channel)
        return answer

    def _timeout_message(self, command: str, limit: float) -> str:
        return f"the store at {self._host}:{self._port} did not answer {command} within {round(limit * 1000)}ms"


_servers: dict[int, TCPStoreServer] = {}  # of `multi_tenant`, shared by stores of a process


def _start_server(host: str, port: int, shared: bool, descriptor: int | None, secret: bytes) -> TCPStoreServer:
    from ._tcp_store_server import TCPStoreServer, listen_on_host

    if shared and port in _servers:
        return _servers[port]
    try:
        server = TCPStoreServer(
            listen_on_host(host, port) if descriptor is None else [_socket_from_descriptor(descriptor)], secret
        )
    except OSError as error:
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}, host: {host}, "
            f"error: {error}"
        ) from None
    if shared:
        _servers[server.port] = server
    return server


def _socket_from_descriptor(descriptor: int) -> socket.socket:
    import socket

    return socket.socket(fileno=descriptor)
