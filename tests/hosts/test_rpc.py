"""Remote calls between workers on machines of their own, and workers that vanish."""

import re
import sys
import time

import pytest

from tests.distributed.rank_launcher import ROOT
from tests.distributed.test_by_hand import end
from tests.hosts.machines import Machines, why_not

WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can")
CALLS = str(ROOT / "tests" / "distributed" / "rpc" / "calls.py")
WORKER = str(ROOT / "tests" / "hosts" / "rpc_worker.py")


@pytest.fixture
def three():
    with Machines(3) as machines:
        yield machines


def begin(machines, *words):
    """A worker on each machine. The functions of the case, if there is one, are `words`."""
    address = f"{machines.address(0)}:29500"
    return [machines.start(rank, sys.executable, *words, address, str(rank), "3") for rank in range(3)]


def begin_waiting(machines):
    """Workers that wait for each other's replies."""
    started = begin(machines, WORKER)
    for process in started:
        assert any(line == "waits\n" for line in process.stdout), "it ended before it called"
    time.sleep(1)
    return started


def check_waits(outputs, least, most):
    """All calls to the lost worker failed in time, and so did the end of RPC."""
    for output in outputs:
        waited = float(re.search(r"^waited (.*)$", output, re.MULTILINE).group(1))
        assert least <= waited < most, output
        assert float(re.search(r"^shutdown (.*)$", output, re.MULTILINE).group(1)) < 30, output


@pytest.mark.parametrize("case", ["values", "references"])
def test_calls_between_machines(three, case):
    codes, outputs = end(begin(three, CALLS, case))
    assert not any(codes) and all(output.endswith("done\n") for output in outputs), outputs


def test_a_worker_that_is_killed(three):
    """The system of its machine says that the connections have ended: nobody waits."""
    started = begin_waiting(three)
    three.kill(1)
    codes, outputs = end(started)
    assert codes[0] == codes[2] == 0, outputs
    check_waits([outputs[0], outputs[2]], 0, 14)


@pytest.mark.night
def test_a_worker_that_is_cut_off(three):
    """Nobody says anything: the others and the worker itself find out after 15 seconds."""
    started = begin_waiting(three)
    three.link(1, "down")
    codes, outputs = end(started, seconds=120)
    assert not any(codes), outputs
    check_waits(outputs, 10, 30)


@pytest.mark.night
def test_a_worker_that_is_cut_off_for_a_second(three):
    started = begin_waiting(three)
    three.link(1, "down")
    time.sleep(3)
    three.link(1, "up")
    time.sleep(20)
    assert all(process.poll() is None for process in started)
    three.kill(1)
    codes, outputs = end(started)
    assert codes[0] == codes[2] == 0, outputs
    check_waits([outputs[0], outputs[2]], 20, 60)
