"""Stores, alone and with several that have the same values."""

import contextlib
import errno
import gc
import os
import random
import signal
import socket
import struct
import threading
import time
import tracemalloc
import warnings
from datetime import timedelta

import pytest

import torchlite.distributed as dist
from torchlite._settings import fork_locks as _forks
from torchlite.distributed import _byte_string_packing, _key_value_table, _tcp_store_protocol

SHORT = timedelta(seconds=0.05)


def hash_stores(folder):
    store = dist.HashStore()
    return store, store


def file_stores(folder):
    return dist.FileStore(str(folder / "values"), 2), dist.FileStore(str(folder / "values"), 2)


def tcp_stores(folder):
    master = dist.TCPStore("localhost", 0, None, True, timedelta(seconds=20))
    return master, dist.TCPStore("localhost", master.port, None, False, timedelta(seconds=20))


def prefix_stores(folder):
    inner = dist.HashStore()
    return dist.PrefixStore("a", inner), dist.PrefixStore("a", inner)


@pytest.fixture(params=[hash_stores, file_stores, tcp_stores, prefix_stores])
def stores(request, tmp_path):
    return request.param(tmp_path)


def test_values_are_seen_by_others(stores):
    one, other = stores
    one.set("a", "1")
    one.set("bytes", b"\x00\xff" * 3)
    assert other.get("a") == b"1" and other.get("bytes") == b"\x00\xff" * 3
    assert other.add("a", 4) == 5 and one.get("a") == b"5" and one.add("new", -2) == -2
    assert one.compare_set("a", "5", "6") == b"6" and other.compare_set("a", "5", "7") == b"6"
    assert one.compare_set("none", "", "x") == b"x" and one.compare_set("nobody", "y", "z") == b"y"
    other.append("a", "!")
    assert one.get("a") == b"6!" and one.check(["a", "new"]) and not one.check(["a", "other"])
    one.multi_set(["k", "l"], ["1", "2"])
    assert other.multi_get(["l", "k"]) == [b"2", b"1"] and other.has_extended_api()
    assert one.num_keys() == 6 and other.delete_key("k") and not one.delete_key("k") and one.num_keys() == 5
    other.queue_push("q", "first")
    other.queue_push("q", "second")
    assert one.queue_len("q") == 2 and one.queue_pop("q") == b"first" and one.queue_pop("q", False) == b"second"
    with pytest.raises(dist.QueueEmptyError):
        one.queue_pop("q", False)


def test_get_waits_for_missing_keys(stores):
    one, other = stores
    got = []
    waiter = threading.Thread(target=lambda: got.append(other.get("late")))
    waiter.start()
    one.set("late", "here")
    waiter.join(10)
    assert got == [b"here"]
    with pytest.raises(dist.DistStoreError, match=r"wait timeout after 50ms, keys: /(a/)?late, /(a/)?never"):
        one.wait(["late", "never"], SHORT)
    one.set_timeout(SHORT)
    assert one.timeout == SHORT
    with pytest.raises(dist.DistStoreError, match="wait timeout after 50ms"):
        one.get("never")


def test_prefixes_keep_names_apart():
    inner = dist.HashStore()
    a, b = dist.PrefixStore("a", inner), dist.PrefixStore("b", dist.PrefixStore("a", inner))
    a.set("x", "1")
    b.set("x", "2")
    assert a.get("x") == b"1" and b.get("x") == b"2" and inner.get("a/b/x") == b"2"
    assert b.underlying_store.underlying_store is inner and b._underlying_non_prefix_store is inner


def test_add_from_many_threads(tmp_path):
    stores = [dist.FileStore(str(tmp_path / "count"), 4) for _ in range(4)]
    threads = [threading.Thread(target=lambda s=s: [s.add("n", 1) for _ in range(20)]) for s in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].add("n", 0) == 80


def test_a_master_that_is_not_there_and_messages_that_no_store_sends():
    with pytest.raises(dist.DistNetworkError, match="timed out after 100ms while trying to connect"):
        dist.TCPStore("localhost", 1, None, False, timedelta(seconds=0.1))
    master = dist.TCPStore("localhost", 0, None, True)
    with pytest.raises(dist.DistNetworkError, match="failed to listen"):
        dist.TCPStore("localhost", master.port, None, True)
    for message in (b"\xff" * 20, b"\x03" + b"\x00" * 7 + b"abc", b"x"):
        assert b"a message that no store sends" in master._idle[-1].ask(message, time.monotonic() + 10)
    master.set("a", "1")
    assert master.get("a") == b"1"
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("localhost", 0, 2, True, timedelta(seconds=0.05))


def test_rendezvous(tmp_path):
    store, rank, size = next(dist.rendezvous(f"file://{tmp_path}/r?rank=0&world_size=1"))
    store.set("a", "b")
    assert (rank, size, store.get("a")) == (0, 1, b"b")
    store, rank, size = next(dist.rendezvous("tcp://localhost:0?rank=0&world_size=1"))
    assert (rank, size) == (0, 1) and store.add("n", 3) == 3
    with pytest.raises(RuntimeError, match="No rendezvous handler for smoke://"):
        next(dist.rendezvous("smoke://x"))


def test_clients_without_the_secret_are_rejected(monkeypatch):
    monkeypatch.setenv("TORCHLITE_STORE_SECRET", "ours")
    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=10))
    master.set("a", "1")
    assert dist.TCPStore("127.0.0.1", master.port, None, False, timedelta(seconds=10)).get("a") == b"1"
    assert master.clone().get("a") == b"1"
    for other in ("theirs", ""):
        monkeypatch.setenv("TORCHLITE_STORE_SECRET", other)
        with pytest.raises(dist.DistNetworkError, match="has another secret than TORCHLITE_STORE_SECRET"):
            dist.TCPStore("127.0.0.1", master.port, None, False, timedelta(seconds=10))
    assert master.get("a") == b"1"


def listening(port):
    """The local addresses of this process's listening sockets on a port."""
    found = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/self/net/{name}") as file:
            for line in list(file)[1:]:
                local, state = line.split()[1], line.split()[3]
                address, _, number = local.partition(":")
                if state == "0A" and int(number, 16) == port:
                    found.add(address)
    return found


@pytest.mark.skipif(not os.path.exists("/proc/self/net/tcp"), reason="reads Linux's table of sockets")
def test_a_master_listens_on_the_given_address():
    everywhere = {"00000000", "0" * 32}
    loopback = {"0100007F", "0" * 24 + "01000000"}
    for host in ("127.0.0.1", "localhost"):
        store = dist.TCPStore(host, 0, None, True, timedelta(seconds=10))
        assert listening(store.port) and listening(store.port) <= loopback
    store = dist.TCPStore("0.0.0.0", 0, None, True, timedelta(seconds=10))
    assert listening(store.port) == {"00000000"} and listening(store.port) <= everywhere
    with pytest.raises(dist.DistNetworkError, match="failed to listen"):
        dist.TCPStore("192.0.2.1", 0, None, True, SHORT)  # an address of no machine
    with pytest.raises(dist.DistNetworkError, match="failed to listen"):
        dist.TCPStore("no.such.host.invalid", 0, None, True, SHORT)


def test_limits_of_keys_values_and_their_number(monkeypatch):
    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=20))
    with pytest.raises(dist.DistStoreError, match="a key of 8193 bytes"):
        master.set("k" * 8193, "1")
    with pytest.raises(dist.DistStoreError, match="a value of 8388609 bytes"):
        master.set("k", bytes((8 << 20) + 1))
    with pytest.raises(dist.DistStoreError, match="at most 33554432 are sent"):
        master.set("k", bytes(33 << 20))
    master.set("k", bytes(8 << 20))
    with pytest.raises(dist.DistStoreError, match="a value of 8388609 bytes"):
        master.append("k", "1")
    master.set("n", str(2**63 - 1))
    with pytest.raises(dist.DistStoreError, match="does not fit into 64 bits"):
        master.add("n", 1)
    monkeypatch.setattr(_key_value_table, "MAX_KEYS", 3)
    master.set("third", "1")
    with pytest.raises(dist.DistStoreError, match="the store is full: it has 3 keys"):
        master.set("fourth", "1")
    assert master.delete_key("third") and master.add("n", -1) == 2**63 - 2
    monkeypatch.setattr(_key_value_table, "MAX_TOTAL", 9 << 20)
    with pytest.raises(dist.DistStoreError, match="the store is full: it has"):
        master.set("fourth", bytes(1 << 20))
    assert master.num_keys() == 2


class Peer:
    """Listens like a master, shakes hands, and answers by `answer`."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.answer = self.listener.getsockname()[1], answer
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        channel, _ = self.listener.accept()
        with channel, self.listener, contextlib.suppress(OSError):
            nonce = bytes(_tcp_store_protocol.NONCE)
            channel.sendall(_tcp_store_protocol.MAGIC + _tcp_store_protocol.OPEN + nonce)
            theirs = channel.recv(_tcp_store_protocol.NONCE + 32, socket.MSG_WAITALL)
            channel.sendall(
                _tcp_store_protocol.compute_proof(b"", b"server", nonce, theirs[: _tcp_store_protocol.NONCE])
            )
            channel.recv(4096)
            self.answer(channel)


def trickle(channel):
    for byte in struct.pack("<I", 1000) + bytes(1000):
        channel.sendall(bytes([byte]))
        time.sleep(0.05)


@pytest.mark.parametrize(
    "answer, words",
    [
        (trickle, "did not answer set within 300ms"),
        (lambda channel: None, "closed the connection"),
        (lambda channel: channel.sendall(struct.pack("<I", 2**32 - 1)), "declares an answer of 4294967295 bytes"),
        (lambda channel: channel.sendall(struct.pack("<IQ", 8, 2**62)), "a damaged message"),
        (lambda channel: channel.sendall(struct.pack("<I", 0)), "an empty answer"),
    ],
)
def test_masters_that_are_slow_leave_or_lie(answer, words):
    peer = Peer(answer)
    store = dist.TCPStore("127.0.0.1", peer.port, None, False, timedelta(seconds=0.3))
    begin = time.monotonic()
    with pytest.raises(dist.DistError, match=words):
        store.set("a", "1")
    assert time.monotonic() - begin < 3
    peer.thread.join(10)


def test_a_master_that_closes_gives_one_error_and_its_port_back():
    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=20))
    port = master.port
    store = dist.TCPStore("127.0.0.1", port, None, False, timedelta(seconds=20))
    got = []

    def wait():
        with pytest.raises(dist.DistNetworkError, match="does not answer") as caught:
            store.get("never")
        got.append(caught.value)

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.05)
    del master
    gc.collect()
    waiter.join(10)
    assert len(got) == 1
    again = dist.TCPStore("127.0.0.1", port, None, True, timedelta(seconds=20))
    store.set("a", "1")  # a new connection
    assert again.get("a") == b"1"


def test_a_forked_client_opens_a_new_connection():
    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            for _ in range(200):
                master.add("n", 1)
            code = 0
        os._exit(code)
    for _ in range(200):
        master.add("n", 1)
    assert os.waitpid(child, 0)[1] == 0 and master.add("n", 0) == 400


def test_a_fork_does_not_keep_the_masters_connections():
    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=20))
    store = dist.TCPStore("127.0.0.1", master.port, None, False, timedelta(seconds=20))
    (reading, writing), port = os.pipe(), master.port
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os.read(reading, 1)
        os._exit(0)
    try:
        del master
        gc.collect()
        with pytest.raises(dist.DistNetworkError, match="does not answer"):
            store.set("a", "1")
        again = dist.TCPStore("127.0.0.1", port, None, True, timedelta(seconds=20))
        assert again.add("n", 1) == 1
    finally:
        os.write(writing, b"x")
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


def test_accept_survives_errors(monkeypatch):
    from torchlite.distributed import _tcp_store_server

    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=20))
    left = [errno.ECONNABORTED, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EINTR, errno.EPERM]

    class Failing:
        def __init__(self, listener):
            self.listener = listener

        def fileno(self):
            return self.listener.fileno()

        def accept(self):
            if left:
                raise OSError(left.pop(), "an error of accept")
            return self.listener.accept()

        def close(self):
            self.listener.close()

    accept = _tcp_store_server.TCPStoreServer._accept
    monkeypatch.setattr(
        _tcp_store_server.TCPStoreServer, "_accept", lambda self, listener: accept(self, Failing(listener))
    )
    assert dist.TCPStore("127.0.0.1", master.port, None, False, timedelta(seconds=20)).add("n", 1) == 1
    assert not left


class Pipelining:
    """A client that sends messages without reading the answers."""

    def __init__(self, port):
        self.channel = _tcp_store_protocol.StoreConnection.connect("127.0.0.1", port, b"", time.monotonic() + 20)
        self.socket = self.channel._socket
        self.socket.settimeout(20)

    def send(self, *messages):
        packed = [_byte_string_packing.pack_byte_strings([part.encode() for part in message]) for message in messages]
        self.socket.sendall(b"".join(struct.pack("<I", len(one)) + one for one in packed))

    def receive(self):
        end = time.monotonic() + 20
        (size,) = struct.unpack("<I", self.channel._read(4, end))
        return _byte_string_packing.unpack_byte_strings(bytes(self.channel._read(size, end)))


@pytest.mark.parametrize("clients", [1, 20])
def test_queued_messages_do_not_block_other_clients(monkeypatch, clients):
    """However many messages others have sent before, a client waits for few of them."""
    done, begun = [], threading.Event()

    def slow(table):
        done.append(table)
        begun.set()
        time.sleep(0.01)
        return [b"0"]

    monkeypatch.setitem(_key_value_table.COMMANDS, b"count", slow)
    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60))
    master.set("a", "0")
    others = [Pipelining(master.port) for _ in range(clients)]
    for other in others:
        other.send(*[("count",)] * (4000 // clients))
    assert begun.wait(20)
    for i in range(5):
        before = len(done)
        master.set("a", str(i))
        assert master.get("a") == str(i).encode()
        assert len(done) - before < 30 + 4 * clients
    new = dist.TCPStore("127.0.0.1", master.port, None, False, timedelta(seconds=60))
    before = len(done)
    assert new.get("a") == b"4" and len(done) - before < 30 + 4 * clients
    for other in others:
        other.socket.close()


def test_all_messages_of_one_write_are_answered_in_order():
    """No more bytes arrive after them, and others ask in between."""
    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60))
    others = [Pipelining(master.port) for _ in range(4)]
    for other in others:
        other.send(*[("add", str(id(other)), "1")] * 3000)
        master.set("a", "1")
    for other in others:
        assert [other.receive() for _ in range(3000)] == [[b"", b"%d" % i] for i in range(1, 3001)]
    other.send(("queue", "x"), ("get", "none"), ("get", "a", "a"), ("add", "a"))
    other.socket.shutdown(socket.SHUT_WR)
    assert other.receive() == [b"a message that no store sends: ValueError(\"no command b'queue'\")"]
    assert other.receive() == [b""] and other.receive() == [b"", b"1", b"1"]


def test_clients_that_read_no_answers_do_not_block_others():
    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60))
    master.set("large", bytes(8 << 20))
    others = [Pipelining(master.port) for _ in range(30)]
    for other in others:
        other.send(*[("get", *["large"] * 16)] * 50)  # 128 MiB each, more than all may hold
    for i in range(20):
        master.set("a", str(i))
        assert master.get("a") == str(i).encode()
    assert dist.TCPStore("127.0.0.1", master.port, None, False, timedelta(seconds=60)).get("a") == b"19"
    for other in others:
        other.socket.close()
    reader = Pipelining(master.port)
    reader.send(("get", "large", "a", "large"), ("get", "a"))
    assert [len(part) for part in reader.receive()] == [0, 8 << 20, 2, 8 << 20] and reader.receive() == [b"", b"19"]


@pytest.mark.parametrize("command", ["append", "push", "length", "check", "compare_set", "add", "delete"])
def test_a_command_costs_nothing_for_the_values_that_it_leaves_alone(command):
    parts = {"append": [b"k", b"y"], "push": [b"k", b"y"], "compare_set": [b"k", b"", b"y"], "add": [b"k", b"1"]}
    table = _key_value_table.KeyValueTable(limited=True)
    table.set(b"k", bytes(7 << 20))
    for _ in range(50):
        table.push(b"k", bytes(1 << 20))
    table.append(b"k", b"x")
    run = _key_value_table.COMMANDS[command.encode()]
    tracemalloc.start()
    try:
        with contextlib.suppress(ValueError):  # `add` to no number
            for _ in range(3):
                run(table, *parts.get(command, [b"k"]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (2 << 20) or (command == "compare_set" and peak < 9 << 20)  # which answers with the value


def test_a_message_names_few_keys_and_a_call_many():
    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=20))
    names = [f"n{i}" for i in range(_key_value_table.MAX_NAMED * 2 + 5)]
    for name in names:
        master.set(name, name)
    assert master.multi_get(names) == [name.encode() for name in names]
    assert master.check(names) and not master.check([*names, "absent"])
    with pytest.raises(dist.DistStoreError, match="wait timeout after 50ms"):
        master.wait([*names, "absent"], SHORT)
    for message in (
        bytes(32 << 20),
        _byte_string_packing.pack_byte_strings([b"check"] + [b""] * (_key_value_table.MAX_NAMED + 1)),
    ):
        assert b"a damaged message" in master._idle[-1].ask(message, time.monotonic() + 20)
    for command in (b"x" * (32 << 20), b"_count", b"values", b"__init__"):
        message = _byte_string_packing.pack_byte_strings([command[: (32 << 20) - 8]])
        assert b"no command" in master._idle[-1].ask(message, time.monotonic() + 20)
    assert b"a number of" in master._idle[-1].ask(
        _byte_string_packing.pack_byte_strings([b"add", b"a", b"1" * 65]), time.monotonic() + 20
    )


def test_the_table_counts_its_bytes():
    """After any commands the total is that of what is there."""
    seed = 5
    draw = random.Random(seed)
    table = _key_value_table.KeyValueTable(limited=True)
    for _ in range(3000):
        key = draw.choice([b"a", b"bb", b"ccc"])
        name = draw.choice(["set", "append", "add", "delete", "push", "pop", "compare_set", "get"])
        value = b"%d" % draw.randrange(10 ** draw.randrange(1, 9))
        parts = {"delete": [], "pop": [], "get": [], "compare_set": [b"", value]}.get(name, [value])
        with contextlib.suppress(_key_value_table.LimitExceeded, ValueError):
            getattr(table, name)(key, *parts)
        values = sum(len(key) + len(value) for key, value in table.values.items())
        queues = sum(len(key) + sum(len(one) + 64 for one in waiting) for key, waiting in table.queues.items())
        assert table._total == values + queues, seed
    again = _key_value_table.parse_table(_key_value_table.serialize_table(table))
    assert again.values == table.values and again.queues == table.queues


def test_waiting_asks_for_no_values():
    """Values of more bytes than an answer may have are there as others are."""
    store = dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=20))
    names = [f"large {i}" for i in range(33)]
    for name in names:
        store.set(name, bytes(8 << 20))
    store.wait(names, timedelta(seconds=10))
    with pytest.raises(dist.DistStoreError, match="the values together have over"):
        store.multi_get(names)
    with pytest.raises(dist.DistStoreError, match="wait timeout after 100ms"):
        store.wait([*names, "absent"], timedelta(seconds=0.1))


class Interrupt(Exception):
    """Raised by a handler of a signal."""


@contextlib.contextmanager
def interrupted(handler, interval):
    """Call a handler again and again. Where it raises, the next signal comes after the next `setitimer`."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, interval, interval)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_handler_may_call_the_store_that_it_interrupts():
    """The handler's call opens another connection."""
    store = dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=20))
    store.set("a", "1")
    within = []
    with interrupted(lambda *_: within.append(store.get("a")), 0.002):
        while len(within) < 50:
            assert store.get("a") == b"1"
    assert set(within) == {b"1"} and store.get("a") == b"1"


@pytest.mark.parametrize("kind", ["tcp", "file", "hash"])
def test_a_handler_that_raises_leaves_the_store_usable(tmp_path, kind):
    """At random moments of all kinds of calls: no later call waits, answers fit their questions, nothing stays open,
    and a value of a queue is gone only where its `queue_pop` had it.
    """
    from tests.hostile.store_interrupts import interrupts

    assert interrupts(kind, str(tmp_path / "values"), seconds=2.0, seed=7) > 20


@pytest.mark.parametrize("kind", ["tcp", "file", "hash", "prefix"])
def test_commands_of_handlers_are_neither_lost_nor_undone(tmp_path, kind):
    """At random moments of all kinds of calls, under the same names."""
    from tests.hostile.store_interrupts import calls

    assert calls(kind, str(tmp_path / "values"), seconds=2.0, seed=7) > 20


@pytest.mark.parametrize("kind", ["tcp", "file", "hash", "prefix"])
def test_a_handler_may_fork_within_a_call(tmp_path, kind):
    """The child goes on with the call, and speaks on no connection and to no descriptor of its parent's."""
    from tests.hostile.store_interrupts import forks

    assert forks(kind, str(tmp_path / "values"), count=40, seed=7) >= 40


def test_a_fork_does_not_wait_for_threads_that_use_a_hash_store():
    store, stop = dist.HashStore(), threading.Event()

    def work():
        while not stop.is_set():
            store.add("a", 1)
            store.queue_push("q", "1")
            store.queue_pop("q")

    threads = [threading.Thread(target=work) for _ in range(8)]
    held, ended = [], []
    try:
        for thread in threads:
            thread.start()
        for _ in range(20):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                child = os.fork()
            if child == 0:
                signal.alarm(20)
                before = store.add("a", 0)
                store.queue_push("own", "1")
                os._exit(0 if store.add("a", 1) == before + 1 and store.queue_pop("own") == b"1" else 3)
            held.append(_forks._imports_held)
            ended.append(os.waitpid(child, 0)[1])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert ended == [0] * 20 and all(held)


def test_append_to_a_hash_store_does_not_copy_the_value():
    store = dist.HashStore()
    for _ in range(100_000):
        store.append("a", "x" * 100)
    assert store.get("a") == b"x" * 10_000_000


def test_a_value_whose_pop_was_not_answered_in_time_stays_in_its_queue(monkeypatch):
    lend = _key_value_table.KeyValueTable._pop_tentatively
    master = dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=20))
    for i in range(3):
        master.queue_push("q", str(i))
    other = dist.TCPStore("127.0.0.1", master.port, None, False, timedelta(seconds=20))
    other.set_timeout(SHORT)
    monkeypatch.setattr(
        _key_value_table.KeyValueTable, "_pop_tentatively", lambda *args: (time.sleep(0.2), lend(*args))[1]
    )
    for block in (True, False):
        with pytest.raises(dist.DistError, match="timeout|did not answer|timed out"):
            other.queue_pop("q", block)
    monkeypatch.undo()
    until = time.monotonic() + 20
    while master.queue_len("q") < 3 and time.monotonic() < until:
        time.sleep(0.01)
    assert [master.queue_pop("q") for _ in range(3)] == [b"0", b"1", b"2"]
    assert master.num_keys() == 1  # the server has read the client's earlier messages
    assert master._server._table._total == len("init/1")


def test_a_popped_value_returns_if_the_client_ends_first():
    master = dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=20))
    table, before = master._server._table, master._server._table._total
    master.queue_push("q", "first")
    master.queue_push("q", "second")
    full, client = table._total, Pipelining(master.port)
    client.send(("pop", "q"))
    assert client.receive() == [b"", b"first"] and master.queue_len("q") == 1 and table._total == full
    client.socket.close()
    until = time.monotonic() + 20
    while master.queue_len("q") < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert table._total == full and master.queue_pop("q") == b"first"
    client = Pipelining(master.port)
    client.send(("pop", "q"), ("count",))  # who goes on has the value
    assert client.receive() == [b"", b"second"] and client.receive() == [b"", b"1"]
    client.socket.close()
    time.sleep(0.1)
    assert master.queue_len("q") == 0 and table._total == before


def test_unread_values_count_against_the_memory_limit(monkeypatch):
    """A connection that has taken a part of a value keeps all of it; several that have the same keep it once."""
    from torchlite.distributed import _tcp_store_server

    monkeypatch.setattr(_tcp_store_server, "_MAX_HELD", 40 << 20)
    master = dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=60))
    server, readers = master._server, []

    def read(key):
        readers.append(Pipelining(master.port))
        readers[-1].socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # the system keeps little of it
        readers[-1].send(("get", key))
        with contextlib.suppress(ConnectionError):
            readers[-1].channel._read(1 << 20, time.monotonic() + 20)

    master.set("same", bytes(8 << 20))
    for _ in range(8):
        read("same")
    assert 8 << 20 <= server._buffered < 9 << 20 and len(server._peers) == 9
    for i in range(20):
        master.set("other", bytes([i]) * (8 << 20))
        read("other")
        pinned = {id(view.obj): len(view.obj) for peer in list(server._peers) for view in list(peer.outside)}
        assert sum(pinned.values()) <= 40 << 20
    master.set("a", "1")
    assert master.get("a") == b"1"
    for reader in readers:
        reader.socket.close()
    until = time.monotonic() + 20
    while (server._buffered or server._pins) and time.monotonic() < until:
        time.sleep(0.01)
    assert not server._buffered and not server._pins


def test_arguments_of_other_types_change_nothing(stores):
    """PyTorch's error, whatever else is right."""
    one, other = stores
    one.set("a", "1")
    one.queue_push("q", "1")
    for call in (
        lambda: one.set("a", 5), lambda: one.set("a", None), lambda: one.set("a", [1]), lambda: one.set(5, "a"),
        lambda: one.set("a", memoryview(b"x")), lambda: one.set("\udc80", "x"), lambda: one.set("a", "\udc80"),
        lambda: one.get(5), lambda: one.add("n", 1.0), lambda: one.add("n", "1"), lambda: one.add("n", 2**63),
        lambda: one.append("a", 2), lambda: one.compare_set("a", "1", 2), lambda: one.compare_set("a", 1, "2"),
        lambda: one.check("a"), lambda: one.check([1]), lambda: one.check(None), lambda: one.wait("a"),
        lambda: one.wait(["a", 1]), lambda: one.wait(["a"], 1), lambda: one.delete_key(1), lambda: one.multi_get("a"),
        lambda: one.multi_set(["a", "b"], ["2", 5]), lambda: one.multi_set("ab", ["2", "3"]),
        lambda: one.queue_push("q", 5), lambda: one.queue_pop("q", "yes"), lambda: one.queue_pop(0),
        lambda: one.queue_len(0), lambda: one.set_timeout(2), lambda: one.set_timeout(None),
        lambda: one.set_timeout(float("nan")), lambda: dist.PrefixStore(5, one), lambda: dist.PrefixStore("a", 5),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call()
    with pytest.raises(ValueError, match="cannot be None"):
        dist.PrefixStore("a", None)
    assert other.get("a") == b"1" and not other.check(["n"]) and not other.check(["b"]) and other.queue_len("q") == 1
    one.set(b"bytes", bytearray(b"x"))
    assert other.get("bytes") == b"x" and one.add("n", True) == 1
    one.wait(("a",), 1.0)
    for limit in (timedelta.max, timedelta.min, 2.5, timedelta(seconds=20)):
        one.wait(["a"], limit)
        one.set_timeout(limit)
        if limit != timedelta.min:
            assert one.get("a") == b"1"


def test_arguments_of_a_tcp_store():
    for args in (("127.0.0.1", "0"), ("127.0.0.1", 70000), ("127.0.0.1", -1), (5, 0), ("127.0.0.1", 0, 1.0)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            dist.TCPStore(*args)
    with pytest.raises(TypeError, match="datetime.timedelta"):
        dist.TCPStore("127.0.0.1", 0, None, True, 5)
    for limit in (timedelta.max, 20.0):
        master = dist.TCPStore("127.0.0.1", 0, None, True, limit)
        master.set("a", "1")
        assert master.get("a") == b"1"


def test_a_name_that_is_looked_up_for_long_meets_the_timeout(monkeypatch):
    look_up, ended = socket.getaddrinfo, threading.Event()

    def slow(host, *args, flags=0, **words):
        if not flags & socket.AI_NUMERICHOST:
            ended.wait(20)
        return look_up(host, *args, flags=flags, **words)

    master = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=20))
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    begin = time.monotonic()
    with pytest.raises(dist.DistNetworkError, match="has timed out after 300ms .*localhost was not looked up in time"):
        dist.TCPStore("localhost", master.port, None, False, timedelta(seconds=0.3))
    assert time.monotonic() - begin < 5
    ended.set()
