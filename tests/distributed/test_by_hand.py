"""Worlds of processes that nothing of MPI started: they meet by a store, and MPI by what `pmi_server` answers."""

import importlib.util
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
LOST = str(ROOT / "tests" / "distributed" / "lost_in_new_group.py")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(*words, **variables):
    return subprocess.Popen(
        [sys.executable, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment(**variables), cwd=ROOT,
    )  # fmt: skip


def begin(kind, address, rank, size, seconds=60, steps=5, **variables):
    return start(PROGRAM, kind, address, rank, size, seconds, steps, **variables)


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


def test_two_ranks_by_slurms_variables():
    """The snippet of programs that `srun` starts: rank, size and local rank are Slurm's."""
    program, port, started = (
        "import os, torchlite as torch, torchlite.distributed as dist\n"
        "rank, size = int(os.environ['SLURM_PROCID']), int(os.environ['SLURM_NTASKS'])\n"
        "dist.init_process_group('gloo', rank=rank, world_size=size)\n"
        "x = torch.tensor([rank + 1.0]); dist.all_reduce(x)\n"
        "print('sum', x.item(), 'local rank', os.environ['SLURM_LOCALID'], flush=True)\n"
        "dist.destroy_process_group()\n"
    ), free_port(), []  # fmt: skip
    for rank in range(2):
        words = {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "2", "SLURM_LOCALID": str(rank), "SLURM_JOB_ID": "7"}
        words |= {"SLURM_JOB_NODELIST": "localhost", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
        started.append(start("-c", program, **words))
    codes, outputs = end(started)
    assert codes == [0, 0] and all("sum 3.0" in output for output in outputs), outputs


def test_two_ranks_that_multiprocessing_starts():
    program, port = (
        "import multiprocessing as mp, sys\n"
        "from tests.distributed.dask_ranks import train\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(2) as pool:\n"
        "        waiting = [pool.apply_async(train, (sys.argv[1], rank, 2)) for rank in range(2)]\n"
        "        print('losses', [each.get(60) for each in waiting], flush=True)\n"
    ), free_port()  # fmt: skip
    codes, outputs = end([start("-c", program, f"127.0.0.1:{port}")])
    check_losses_of_all(codes, outputs)


def check_losses_of_all(codes, outputs):
    """One process prints the losses of two ranks."""
    assert codes == [0], outputs
    found = json.loads(re.search(r"losses (.*)", outputs[0]).group(1))
    assert len(found) == 2
    for each in found:
        assert each == pytest.approx(losses(0, 1, 5), abs=1e-5)


@pytest.mark.night
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="dask is missing (pip install distributed)")
def test_two_ranks_that_workers_of_dask_run():
    started = start("-m", "tests.distributed.dask_ranks", free_port())
    check_losses_of_all(*end([started]))


@pytest.mark.night
def test_three_ranks_meet_by_a_store():
    address = f"localhost:{free_port()}"
    check_losses(*end([begin("store", address, rank, 3) for rank in range(3)]))


def test_two_ranks_meet_by_a_file_that_goes(tmp_path):
    path = tmp_path / "meeting"
    check_losses(*end([begin("file", path, rank, 2) for rank in range(2)]))
    assert not path.exists()


def test_a_file_of_a_run_that_was_killed_is_an_error(tmp_path):
    path = tmp_path / "meeting"
    killed = [begin("file", path, rank, 2, steps=200_000) for rank in range(2)]
    try:
        for process in killed:
            assert any(line.startswith("joined") for line in process.stdout)
    finally:
        for process in killed:
            process.kill()
            process.communicate()
    began = time.monotonic()
    codes, outputs = end([begin("file", path, rank, 2) for rank in range(2)])
    assert codes == [1, 1] and time.monotonic() - began < 50
    for rank, output in enumerate(outputs):
        words = (
            rf"is complete, with process {killed[rank].pid} on \S+ as rank {rank}: .* Delete the file of an earlier run"
        )
        assert re.search(words, output), output
    path.unlink()
    check_losses(*end([begin("file", path, rank, 2) for rank in range(2)]))


@pytest.mark.parametrize("early", [0, 1])
def test_a_file_of_a_run_that_did_not_begin(tmp_path, early):
    path = tmp_path / "meeting"
    killed = begin("file", path, early, 2)
    try:
        while not path.exists() or path.stat().st_size < 100:
            assert killed.poll() is None
            time.sleep(0.05)
    finally:
        killed.kill()
        killed.communicate()
    check_losses(*end([begin("file", path, rank, 2) for rank in range(2)]))


@pytest.mark.parametrize("lost", [0, 1])
def test_a_rank_that_is_killed_while_a_group_is_made(lost):
    address = f"localhost:{free_port()}"
    codes, outputs = end([start(LOST, address, rank, 3, lost, 4) for rank in range(3)])
    assert codes.pop(lost) == -9 and all(codes), outputs
    del outputs[lost]
    words = (
        r"DistBackendError: Timed out while making process group 1: the ranks \[0, 1, 2\] met, but did not make the "
        rf"group within 4.0 seconds. These ranks ended, or cannot be reached: \[{lost}\]"
    )
    for output in outputs:
        assert re.search(words, output) and 4 <= float(re.search(r"after (\S+) seconds", output).group(1)) < 20, output


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


@pytest.mark.night
@pytest.mark.parametrize("late", [0, 1])
def test_a_rank_that_comes_late(late):
    address = f"localhost:{free_port()}"
    first = begin("tcp", address, 1 - late, 2)
    time.sleep(5)
    check_losses(*end([first, begin("tcp", address, late, 2)]))


def begin_training(address, **options):
    """Two ranks that have joined, and train until something ends them."""
    started = [begin("tcp", address, rank, 2, steps=200_000, **options) for rank in range(2)]
    for process in started:
        assert any(line.startswith("joined") for line in process.stdout), "it ended before it joined"
    return started


def test_a_second_world_on_a_port():
    """It gets errors at once, and the first world goes on."""
    address = f"localhost:{free_port()}"
    first = begin_training(address)
    try:
        codes, outputs = end([begin("tcp", address, rank, 2, seconds=300) for rank in range(2)])
        assert codes == [1, 1], outputs
        assert "address already in use" in outputs[0].lower(), outputs[0]
        assert re.search(rf"is complete, with process {first[1].pid} on \S+ as rank 1: ", outputs[1]), outputs[1]
        assert [process.poll() for process in first] == [None, None]
    finally:
        for process in first:
            process.kill()
            process.communicate()


@pytest.mark.night
def test_a_rank_that_is_restarted():
    """The new process cannot join, and the other rank ends by its timeout."""
    address = f"localhost:{free_port()}"
    first = begin_training(address, seconds=20)
    first[1].kill()
    began = time.monotonic()
    codes, outputs = end([begin("tcp", address, 1, 2, seconds=300), *first])
    assert codes[0] == 1 and codes[1] not in (0, None) and time.monotonic() - began < 60, outputs
    assert re.search(r"a process that was restarted cannot join it again", outputs[0]), outputs[0]
    assert "DistBackendError" in outputs[1], outputs[1]


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
