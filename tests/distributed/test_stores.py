"""Stores, alone and with several that have the same values."""

import threading
from datetime import timedelta

import pytest

import torchlite.distributed as dist

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


def test_what_is_missing_is_waited_for(stores):
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


def test_many_threads_count_together(tmp_path):
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
    for message in (b"", b"\xff" * 20, b"\x03" + b"\x00" * 7 + b"abc", b"x"):
        master._connection.send_bytes(message)
        assert b"a message that no store sends" in master._connection.recv_bytes()
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
