"""Members of a world and lines of PMI-1 are data: what is wrong is an error, and a rank is taken once."""

import os
import threading
from datetime import timedelta

import pytest

import torchlite.distributed as dist

store_world = pytest.importorskip("torchlite_backends.mpi.store_world")
pmi_server = pytest.importorskip("torchlite_backends.mpi.pmi_server")


@pytest.fixture(autouse=True)
def _close_sockets(monkeypatch):
    """Close both ends of the servers that a test makes and does not start."""
    made, begin = [], pmi_server.PMIServer.__init__

    def note(server, *args):
        begin(server, *args)
        made.append(server)

    monkeypatch.setattr(pmi_server.PMIServer, "__init__", note)
    yield
    for server in made:
        server._socket.close()
        os.close(int(server.variables["PMI_FD"]))


@pytest.fixture
def store():
    made = dist.HashStore()
    made.set_timeout(timedelta(seconds=5))
    return made


def join_all(store, ranks, sizes, limit=5.0):
    """The results or errors of several threads that call `join_world`, in the order of `ranks`."""
    found = [None] * len(ranks)

    def work(index):
        try:
            found[index] = store_world.join_world(ranks[index], sizes[index], store, limit)
        except Exception as error:
            found[index] = error

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_ranks_of_one_machine_share_memory(store):
    found = join_all(store, [0, 1, 2], [3, 3, 3])
    assert [server.variables["PMI_RANK"] for server in found] == ["0", "1", "2"]
    assert {server.variables["PMI_SIZE"] for server in found} == {"3"}
    assert {server._mapping for server in found} == {"(vector,(0,1,3))"}


def test_a_restarted_rank_cannot_join_a_complete_world(store):
    join_all(store, [0, 1], [2, 2])
    with pytest.raises(RuntimeError, match="is complete, with process .* as rank 1: a process that was restarted"):
        store_world.join_world(1, 2, store, 5.0)


def test_a_rank_that_is_given_twice(store):
    found = join_all(store, [1, 1], [3, 3], limit=1.0)
    words = [str(error) for error in found]
    assert any("has joined as rank 1 after this process did" in text for text in words), words


def test_what_a_run_that_did_not_begin_left_does_not_count(store):
    with pytest.raises(TimeoutError):
        store_world.join_world(1, 2, store, 0.05)
    with pytest.raises(TimeoutError, match=r"1/2 clients joined. These ranks did not: \[1\]"):
        store_world.join_world(0, 2, store, 0.05)
    with pytest.raises(TimeoutError):  # it has seen the earlier rank 0
        store_world.join_world(1, 2, store, 0.05)
    with pytest.raises(TimeoutError, match=r"1/2 clients joined. These ranks did not: \[1\]"):
        store_world.join_world(0, 2, store, 0.05)
    found = join_all(store, [1, 0], [2, 2])
    assert [server.variables["PMI_RANK"] for server in found] == ["1", "0"], found


def test_ranks_of_a_machine_are_counted_without_messages(store):
    server = pmi_server.PMIServer(store, 3, [0, 1, 0, 1, 1], "w")
    assert server.local_rank_and_size == (1, 3)


def test_sizes_that_differ(store):
    found = join_all(store, [0, 1], [2, 3])
    assert all(isinstance(error, RuntimeError) and "was given a world of" in str(error) for error in found), found


def test_missing_ranks_are_named(store):
    with pytest.raises(TimeoutError, match=r"1/3 clients joined. These ranks did not: \[1, 2\]"):
        store_world.join_world(0, 3, store, 0.1)


@pytest.mark.parametrize("data", [b"", b"1 2", b"x" * 5000, b"1 2 " + b"0" * 32 + b" 4 a b\n", "1 2 é".encode()])
def test_members_that_torchlite_did_not_write(store, data):
    store.set("rank/1", data)
    with pytest.raises(ValueError, match="torchlite did not write"):
        store_world.join_world(0, 2, store, 5.0)


@pytest.mark.parametrize("line", [b"cmd=put", b"\n", b"put key\n", b"cmd=put key=\xff\n", b"key=1\n"])
def test_lines_that_are_no_pmi(line):
    with pytest.raises(ValueError):
        pmi_server.parse_line(line)


def test_a_line():
    assert pmi_server.parse_line(b"cmd=put key=a value=b=c\n") == {"cmd": "put", "key": "a", "value": "b=c"}


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ([0], "(vector,(0,1,1))"),
        ([0, 0, 1, 1], "(vector,(0,1,2),(1,1,2))"),
        ([0, 1, 0], "(vector,(0,1,1),(1,1,1),(0,1,1))"),
        ([0, 1] * 500, "(vector,(0,1000,1))"),
    ],
)
def test_the_machines_of_ranks(nodes, text):
    assert pmi_server.node_mapping(nodes) == text


@pytest.mark.parametrize("value", [b"a b", b"a\ncmd=abort", b"x" * 1025])
def test_values_that_no_line_can_carry(store, value):
    server = pmi_server.PMIServer(store, 0, [0], "w")
    store.set("value/k", value)
    with pytest.raises(ValueError, match="that MPI did not write"):
        server._get({"key": "k"})
