"""The file of a FileStore: damage, full disks, other processes and forks."""

import contextlib
import errno
import fcntl
import os
import signal
import struct
import threading
import time
import warnings
from datetime import timedelta

import pytest

import torchlite.distributed as dist
from torchlite.distributed import _file_store_format, _key_value_table, _stores


def test_files_of_a_file_store(tmp_path):
    path = tmp_path / "values"
    store = dist.FileStore(str(path), 1)
    store.set("a", "1")
    assert path.stat().st_mode & 0o777 == 0o600
    whole = path.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    long = struct.pack("<8sQQQ", whole[:8], 32, (1 << 30) + 1, 0) + bytes(100)
    for damaged in (*flipped, whole[:-1], whole[:12], b"\xff" * 40, struct.pack("<Q", 2**62), b"x", long):
        path.write_bytes(damaged)
        with pytest.raises(dist.DistStoreError, match="is damaged, or no store's"):
            store.get("a")
        assert path.read_bytes() == damaged
    path.write_bytes(whole)
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("link", "pipe", "folder", "absent/values"):
        with pytest.raises(dist.DistStoreError, match="cannot be opened|is not a regular file"):
            dist.FileStore(str(tmp_path / name), 1).set("a", "2")
    os.truncate(path, 2 << 30)  # a hole behind the values, which is never read
    assert store.get("a") == b"1"
    store.set("a", "1!")
    assert path.stat().st_size < 1000 and store.get("a") == b"1!"
    path.write_bytes(whole)
    with open(path) as held:  # as a process that stopped would
        fcntl.flock(held, fcntl.LOCK_EX)
        store.set_timeout(timedelta(seconds=0.1))
        with pytest.raises(dist.DistStoreError, match="wait timeout after 100ms"):
            store.get("a")
        with pytest.raises(dist.DistNetworkError, match="holds the lock"):
            store.set("a", "2")
    assert store.get("a") == b"1"


class Killed(BaseException):
    """Ends a command as the end of its process would."""


class BreakingOs:
    """`os` whose writes fail after so many bytes, as those to a full disk do, or end the process."""

    def __init__(self, left, error):
        self.left, self.error = left, error

    def __getattr__(self, name):
        return getattr(os, name)

    def pwrite(self, descriptor, data, at):
        if self.left <= 0:
            raise self.error
        some = bytes(data)[: self.left]
        self.left -= len(some)
        return os.pwrite(descriptor, some, at)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), Killed()])
@pytest.mark.parametrize("size", [1, 100, 2000])
def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch, error, size):
    """Wherever it fails, and whether the values that it writes are longer or shorter than those that are there."""
    path, done, left = str(tmp_path / "values"), False, 0
    for first in ({}, {"a": b"x" * 500, "b": b"hello"}):
        for left in (0, 1, 31, 32, 33, 100, 500, 700, 3000):
            store = dist.FileStore(path, 1)
            for key, value in first.items():
                store.set(key, value)
            with monkeypatch.context() as patched:
                patched.setattr(_file_store_format, "os", BreakingOs(left, error))
                message = ""
                try:
                    store.set("a", b"y" * size)
                except (Killed, dist.DistStoreError) as caught:
                    message = f"{type(caught).__name__} {caught}"
                done = not message
            assert done or message == "Killed " or message.endswith("cannot be written: No space left on device")
            for other in (store, dist.FileStore(path, 1)):
                assert other.num_keys() == max(len(first), done)
                if first:
                    assert other.get("b") == b"hello" and other.get("a") == (b"y" * size if done else first["a"])
            store.set("a", "again")
            assert dist.FileStore(path, 1).get("a") == b"again"
            os.unlink(path)
        assert done, left


def test_a_file_that_may_not_grow_keeps_its_values(tmp_path):
    """The system refuses the write; the test runs in a subprocess."""
    path = str(tmp_path / "values")
    dist.FileStore(path, 1).set("a", b"x" * 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        try:
            dist.FileStore(path, 1).set("a", b"y" * 5000)
        except dist.DistStoreError as error:
            os._exit(3 if "File too large" in str(error) else 4)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert dist.FileStore(path, 1).get("a") == b"x" * 1000


def test_the_file_size_is_proportional_to_its_values(tmp_path, monkeypatch):
    path = tmp_path / "values"
    store = dist.FileStore(str(path), 1)
    for i in range(60):
        store.set(f"k{i % 3}", bytes(10_000 * (i % 7)))
        assert path.stat().st_size < 4 * 200_000
    store.queue_push("q", "")
    store.queue_push("q", "1")
    monkeypatch.setattr(_stores, "MAX_FILE", 1 << 18)
    with pytest.raises(dist.DistStoreError, match="is full: at most 262144 bytes"):
        store.set("large", bytes(1 << 18))
    assert store.num_keys() == 3 and store.queue_len("q") == 2
    for i in range(3):
        assert store.delete_key(f"k{i}")
    assert store.queue_pop("q") == b"" and store.queue_pop("q") == b"1" and store.num_keys() == 0
    assert path.stat().st_size == 32


def test_a_file_with_many_keys(tmp_path):
    """As many cells as no message of a TCPStore has."""
    path = tmp_path / "values"
    store = dist.FileStore(str(path), 1)
    table = _key_value_table.KeyValueTable()
    for i in range(70_000):
        table.set(b"%d" % i, b"")
    store.set("a", "1")
    with _file_store_format.File(path, "r+b") as file:
        _file_store_format.StoreFile(file).replace(_key_value_table.serialize_table(table))
    store.set("b", "1")
    assert store.num_keys() == 70_001 and store.check([str(i) for i in range(70_000)])
    assert store.multi_get(["b", *map(str, range(5000)), "b"]) == [b"1", *[b""] * 5000, b"1"]


def test_who_waits_for_a_file_that_is_deleted_writes_the_new_one(tmp_path):
    path = str(tmp_path / "values")
    dist.FileStore(path, 2).set("old", "1")
    with open(path) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiter = threading.Thread(target=lambda: dist.FileStore(path, 2).set("waited", "1"))
        waiter.start()
        time.sleep(0.1)
        os.unlink(path)
        dist.FileStore(path, 2).set("new", "1")
    waiter.join(10)
    store = dist.FileStore(path, 2)
    assert store.check(["waited", "new"]) and store.num_keys() == 2


def test_a_fork_within_a_command_does_not_keep_the_lock(tmp_path):
    store = dist.FileStore(str(tmp_path / "values"), 1)
    store.set_timeout(timedelta(seconds=10))
    with store._open_locked("set", time.monotonic() + 10):  # as another thread would
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        store.set("a", "1")
        assert store.get("a") == b"1"
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


class LimitedOs:
    """`os` where files may have so many bytes, as RLIMIT_FSIZE sets it: writes are cut short or fail."""

    def __init__(self, limit):
        self.limit = limit

    def __getattr__(self, name):
        return getattr(os, name)

    def pwrite(self, descriptor, data, at):
        if at >= self.limit:
            raise OSError(errno.EFBIG, "File too large")
        return os.pwrite(descriptor, bytes(data)[: self.limit - at], at)

    def ftruncate(self, descriptor, size):
        if size > max(self.limit, os.fstat(descriptor).st_size):
            raise OSError(errno.EFBIG, "File too large")
        os.ftruncate(descriptor, size)


@pytest.mark.parametrize("first", [{}, {"a": "1"}, {"a": "1", "b": "x" * 50}])
def test_a_header_that_is_cut_short_leaves_the_values(tmp_path, monkeypatch, first):
    for limit in range(70):
        store = dist.FileStore(str(tmp_path / f"values {limit}"), 1)
        for key, value in first.items():
            store.set(key, value)
        with monkeypatch.context() as patched:
            patched.setattr(_file_store_format, "os", LimitedOs(limit))
            for call in (lambda: store.delete_key("a"), lambda: store.set("c", "")):
                with contextlib.suppress(dist.DistStoreError):
                    call()
                    first_now = {key: store.get(key) for key in ("a", "b", "c") if store.check([key])}
                    assert limit >= 32 or not first or first_now == {k: v.encode() for k, v in first.items()}
        for key, value in first.items():
            assert store.get(key) == value.encode() if limit < 32 or key == "b" else True
        store.set("d", "4")
        assert store.get("d") == b"4"


def test_a_child_does_not_keep_the_lock_where_its_parent_is_killed(tmp_path):
    """While another thread of the parent is in a call."""
    path = str(tmp_path / "values")
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parent = os.fork()
        if parent == 0:
            held, store = threading.Event(), dist.FileStore(path, 1)

            def call():
                with store._open_locked("set", time.monotonic() + 10):
                    held.set()
                    time.sleep(60)

            threading.Thread(target=call, daemon=True).start()
            held.wait(10)
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            os.write(write, struct.pack("<i", child))
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(parent, 0)
    (child,) = struct.unpack("<i", os.read(read, 4))
    try:
        store = dist.FileStore(path, 1)
        store.set_timeout(timedelta(seconds=5))
        store.set("a", "1")
        assert store.get("a") == b"1"
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(read)
        os.close(write)
