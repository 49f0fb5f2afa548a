"""Sharded models, pipelines and checkpoints with ranks on several machines, and machines that are cut off or lost."""

import sys

import pytest

from tests.distributed.rank_launcher import ROOT
from tests.distributed.test_by_hand import end
from tests.distributed.test_elastic import LIMITS, check_losses, read, wait_for
from tests.hosts.machines import Machines, why_not

WHY_NOT = why_not()
pytestmark = [pytest.mark.night, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can")]
FSDP, PIPELINE = "tests.distributed.fsdp.fsdp_checks", "tests.distributed.pipeline_checks"


@pytest.mark.parametrize(
    "size, checks",
    [
        (2, [f"{FSDP}:gradients_and_steps_are_those_of_the_whole_batch", f"{FSDP}:norms_of_gradients"]),
        (2, [f"{PIPELINE}:gradients_are_those_of_one_process"]),
        (3, [f"{FSDP}:what_a_rank_keeps", f"{PIPELINE}:gradients_are_those_of_one_process"]),
    ],
)
def test_checks_on_machines(size, checks):
    with Machines(size) as machines:
        program = str(ROOT / "tests" / "hosts" / "checks.py")
        address = f"{machines.address(0)}:29500"
        started = [
            machines.start(rank, sys.executable, program, address, str(rank), str(size), *checks)
            for rank in range(size)
        ]
        codes, outputs = end(started, seconds=240)
    assert not any(codes), outputs
    assert all(output.count("passed") == len(checks) for output in outputs)


def launch(machines, machine, folder, *program, nnodes):
    flags = [f"--nnodes={nnodes}", "--rdzv-backend=c10d", "--rdzv-endpoint=node1:29400", "--max-restarts=3"]
    command = [sys.executable, "-m", "torchlite.distributed.run", *flags, f"--rdzv-conf={LIMITS}"]
    return machines.start(machine, *command, *map(str, program), str(folder))


ELASTIC = str(ROOT / "tests" / "distributed" / "elastic_training.py")


def test_a_machine_that_is_cut_off_comes_back(tmp_path):
    """Its link is down for a while: the other trains alone meanwhile, from the last checkpoint."""
    with Machines(2) as machines:
        started = [launch(machines, machine, tmp_path, ELASTIC, nnodes="1:2") for machine in range(2)]
        wait_for(tmp_path, started, lambda lines: lines and lines[-1]["size"] == 2)
        machines.link(1, "down")
        wait_for(tmp_path, started, lambda lines: lines[-1]["size"] == 1)
        machines.link(1, "up")
        wait_for(tmp_path, started, lambda lines: lines[-1]["size"] == 2, seconds=90)
        (tmp_path / "enough").touch()
        codes, outputs = end(started, seconds=120)
    assert codes == [0, 0], outputs
    check_losses(tmp_path)


def test_a_machine_that_is_lost(tmp_path):
    with Machines(3) as machines:
        started = [launch(machines, machine, tmp_path, ELASTIC, nnodes="2:3") for machine in range(3)]
        wait_for(tmp_path, started, lambda lines: lines and lines[-1]["size"] == 3)
        machines.kill(2)
        wait_for(tmp_path, started[:2], lambda lines: lines[-1]["size"] == 2)
        (tmp_path / "enough").touch()
        codes, outputs = end(started[:2], seconds=120)
    assert codes == [0, 0], outputs
    assert {line["size"] for line in check_losses(tmp_path)} == {2, 3}
    assert read(tmp_path)


def test_sharded_checkpoints(tmp_path):
    """A rank is killed in the middle of a step; all start again, and have the loss of a run without faults."""
    module, losses = "tests.distributed.fsdp.checkpoint_restart", []
    for kill in (0, 1):
        folder = tmp_path / str(kill)
        folder.mkdir()
        with Machines(2) as machines:
            started = []
            for machine in range(2):
                flags = ["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node1:29400", "--max-restarts=1"]
                words = ["-m", "torchlite.distributed.run", *flags, f"--rdzv-conf={LIMITS}", "-m", module]
                started.append(machines.start(machine, sys.executable, *words, str(folder), str(kill)))
            codes, outputs = end(started, seconds=120)
        assert codes == [0, 0], outputs
        lines = "".join(outputs).splitlines()
        losses += [line for line in lines if line.startswith("the last loss is")]
        assert ("begins at step 6" in lines) == bool(kill), outputs
    assert losses[0] == losses[1] and len(losses) == 2
