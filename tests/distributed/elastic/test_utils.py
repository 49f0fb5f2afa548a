"""Helpers of agents: variables, ports, stores, and samplers."""

import logging
import subprocess
import sys
import threading

import pytest

import torchlite.distributed as dist
from torchlite.distributed.elastic import utils
from torchlite.distributed.elastic.utils import data, process_state, store
from torchlite.distributed.elastic.utils.distributed import create_c10d_store, get_free_port


def test_variables_and_arguments(monkeypatch):
    monkeypatch.setenv("SOME_VARIABLE", "3")
    assert utils.get_env_variable_or_raise("SOME_VARIABLE") == "3"
    with pytest.raises(ValueError, match="Environment variable ABSENT_VARIABLE expected, but not set"):
        utils.get_env_variable_or_raise("ABSENT_VARIABLE")
    assert utils.macros.substitute(["a", 5, "x${local_rank}", "${other}"], "2") == ["a", 5, "x2", "${other}"]


def on_ranks(size, call):
    """The results, or errors, of a call in a thread for each rank."""
    found = {}

    def run(rank):
        try:
            found[rank] = call(rank)
        except Exception as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return [found[rank] for rank in range(size)]


def test_values_of_all_ranks():
    common = dist.HashStore()
    found = on_ranks(3, lambda rank: store.synchronize(common, b"%d" % rank, rank, 3, "key", 30))
    assert found == [[b"0", b"1", b"2"]] * 3
    assert common.timeout.total_seconds() == 300


def test_barriers():
    common = dist.HashStore()
    assert on_ranks(3, lambda rank: store.barrier(common, 3, "first", 30, rank)) == [None] * 3
    with pytest.raises(dist.DistStoreError, match=r"missing_ranks=\['node1', 'node3'\]"):
        common.set("second/came2", "")  # rank 2 has come
        store.barrier(common, 4, "second", 0.05, 0, lambda rank: f"node{rank}", trace_timeout=0.05)
    with pytest.raises(dist.DistStoreError) as found:
        store.barrier(common, 2, "third", 0.05)
    assert "missing_ranks" not in str(found.value)


def test_stores_and_ports():
    port = get_free_port()
    server = create_c10d_store(True, "localhost", port, world_size=2, wait_for_workers=False)
    client = create_c10d_store(False, "localhost", port, world_size=2, wait_for_workers=False)
    client.set("x", "1")
    assert server.get("x") == b"1"
    with pytest.raises(ValueError, match="server_port must be specified"):
        create_c10d_store(True, "localhost", world_size=2)
    with pytest.raises(RuntimeError):
        create_c10d_store(True, "localhost", port)


def test_loggers(monkeypatch):
    monkeypatch.setenv("LOGLEVEL", "DEBUG")
    assert utils.logging.get_logger().name == __name__
    assert utils.logging.get_logger("some.name").level == logging.DEBUG


@pytest.mark.parametrize("ranks, start", [(1, 0), (2, 3), (3, 8), (4, 9)])
def test_a_sampler_goes_on_in_an_epoch(ranks, start):
    samplers = [data.ElasticDistributedSampler(list(range(10)), ranks, rank, start) for rank in range(ranks)]
    for epoch in range(2):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        drawn = [list(sampler) for sampler in samplers]
        assert [len(part) for part in drawn] == [len(sampler) for sampler in samplers]
        assert {item for part in drawn for item in part} == set(range(start, 10))
    with pytest.raises(ValueError, match="Start index 10 should be less than dataset size 10"):
        data.ElasticDistributedSampler(list(range(10)), 2, 0, 10)


def test_epochs_after_one_another():
    seen = []

    def of_epoch(epoch):
        seen.append(epoch)
        return iter([] if epoch == 2 else [epoch, -epoch])

    assert list(data.CyclingIterator(4, of_epoch, start_epoch=1)) == [1, -1, 3, -3]
    assert seen == [1, 2, 3]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this system has no /proc")
def test_states_of_processes():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process_state.read_proc_state(process.pid) in ("R", "S", "D")
    process.communicate(b"\n")
    assert process_state.read_proc_state(process.pid) is None
    states = ("D", "D+", "R", "Z", "", None)
    assert [process_state.is_uninterruptible_state(state) for state in states] == [True, True, *[False] * 4]
