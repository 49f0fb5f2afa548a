"""Worlds of processes that nothing of MPI started: they meet by a store, and MPI by what `pmi_server` answers."""

import json
import re
import socket
import subprocess
import sys
import time

import pytest

import torchlite.distributed as dist
from tests.distributed.by_hand import losses
from tests.distributed.rank_launcher import ROOT, environment, needs_mpi

pytestmark = needs_mpi
PROGRAM = str(ROOT / "tests" / "distributed" / "by_hand.py")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def begin(kind, address, rank, size, seconds=60, **variables):
    command = [sys.executable, PROGRAM, kind, str(address), str(rank), str(size), str(seconds)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(**variables), cwd=ROOT
    )


def end(processes, seconds=90):
    """The exit codes and outputs; all end in time."""
    limit = time.monotonic() + seconds
    try:
        outputs = [process.communicate(timeout=max(limit - time.monotonic(), 1))[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [process.returncode for process in processes], outputs


def check_losses(codes, outputs):
    assert not any(codes), outputs
    expected = losses(0, 1, 5)
    for output in outputs:
        found = json.loads(re.search(r"losses (.*)", output).group(1))
        assert found == pytest.approx(expected, abs=1e-5)


def test_two_ranks_meet_by_tcp():
    address = f"localhost:{free_port()}"
    check_losses(*end([begin("tcp", address, rank, 2) for rank in range(2)]))


def test_two_ranks_meet_by_the_environment_under_a_secret():
    port, started = free_port(), []
    for rank in range(2):
        words = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": "2"}
        started.append(begin("env", "-", rank, 2, TORCHLITE_STORE_SECRET="x y", **words))
    check_losses(*end(started))


@pytest.mark.night
def test_three_ranks_meet_by_a_store():
    address = f"localhost:{free_port()}"
    check_losses(*end([begin("store", address, rank, 3) for rank in range(3)]))


def test_two_ranks_meet_by_a_file_that_goes(tmp_path):
    path = tmp_path / "meeting"
    check_losses(*end([begin("file", path, rank, 2) for rank in range(2)]))
    assert not path.exists()


def test_ranks_that_disagree_about_the_size():
    address = f"localhost:{free_port()}"
    codes, outputs = end([begin("tcp", address, rank, 2 + rank) for rank in range(2)])
    assert codes == [1, 1]
    # One of the two may only see that the other's store has gone.
    assert any("was given a world of" in output for output in outputs), outputs


def test_missing_ranks_are_named():
    address = f"localhost:{free_port()}"
    codes, outputs = end([begin("tcp", address, rank, 4, seconds=6) for rank in range(2)])
    assert codes == [1, 1]
    words = (
        "DistStoreError: Timed out after 6 seconds waiting for clients. "
        r"[12]/4 clients joined. These ranks did not: \[(1, )?2, 3\]"
    )
    assert re.search(words, outputs[0]), outputs[0]


def test_a_world_without_rank_0():
    codes, outputs = end([begin("tcp", f"localhost:{free_port()}", 1, 2, seconds=3)])
    assert codes == [1] and "The client socket has timed out after 3000ms" in outputs[0], outputs


def test_the_environment_must_name_the_master(monkeypatch):
    for name in ("MASTER_ADDR", "MASTER_PORT", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable MASTER_ADDR expected, but not set"):
        dist.init_process_group("gloo", rank=0, world_size=2)
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    with pytest.raises(ValueError, match="environment variable MASTER_PORT expected, but not set"):
        dist.init_process_group("gloo", rank=0, world_size=2)
    monkeypatch.setenv("MASTER_PORT", "1")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    with pytest.raises(RuntimeError, match="TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"):
        dist.init_process_group("gloo", rank=0, world_size=2)
