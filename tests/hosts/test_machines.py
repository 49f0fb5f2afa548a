"""Ranks on two machines that nothing of MPI started: equal losses, and faults of the network and of machines."""

import re
import signal
import sys
import time

import pytest

from tests.distributed.test_by_hand import PROGRAM, check_losses, end
from tests.hosts.machines import Machines, why_not
from tests.hosts.slow_link import measure

WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it can")
LONG = 200_000  # steps of a program that a fault ends


@pytest.fixture
def two():
    with Machines(2) as machines:
        yield machines


def begin(machines, steps, seconds=60, size=2):
    """One rank a machine; it prints a line when all have joined."""
    words = [f"{machines.address(0)}:29500"]
    return [
        machines.start(rank, sys.executable, PROGRAM, "tcp", *words, str(rank), str(size), str(seconds), str(steps))
        for rank in range(size)
    ]


def wait_until_training(process):
    for line in process.stdout:
        if line.startswith("joined"):
            return
    raise AssertionError("the rank ended before it had joined")


def check_timeouts(processes, within):
    """All given processes raise the timeout of a collective in time."""
    start = time.monotonic()
    codes, outputs = end(processes, seconds=within)
    assert all(codes) and time.monotonic() - start < within, outputs
    for output in outputs:
        assert re.search(r"Dist(Backend|Store|Network)Error|RuntimeError", output), output


def test_losses_on_two_machines(two):
    check_losses(*end(begin(two, 5)))


@pytest.mark.night
def test_losses_on_three_machines():
    with Machines(3) as three:
        check_losses(*end(begin(three, 5, size=3)))


@pytest.mark.night
def test_a_link_that_is_cut_for_a_second(two):
    started = begin(two, 2000)
    for process in started:
        wait_until_training(process)
    two.link(1, "down")
    time.sleep(1)
    two.link(1, "up")
    codes, outputs = end(started, seconds=120)
    assert codes == [0, 0], outputs


@pytest.mark.night
def test_a_link_that_is_cut_for_good(two):
    started = begin(two, LONG, seconds=10)
    for process in started:
        wait_until_training(process)
    two.link(1, "down")
    check_timeouts(started, 25)


@pytest.mark.night
@pytest.mark.parametrize("killed", [0, 1])
def test_a_machine_whose_processes_are_killed(two, killed):
    started = begin(two, LONG, seconds=10)
    for process in started:
        wait_until_training(process)
    started[killed].send_signal(signal.SIGKILL)
    check_timeouts([started[1 - killed]], 25)


@pytest.mark.night
@pytest.mark.parametrize("late, lost", [(1, 0), (10, 1)])
def test_packets_that_are_late_and_lost(late, lost):
    with Machines(2, late, lost) as machines:
        check_losses(*end(begin(machines, 5, seconds=120), seconds=150))


@pytest.mark.night
def test_a_slow_link(two):
    two.limit("100mbit")
    check_losses(*end(begin(two, 5)))


def test_halves_are_sent_as_halves():
    """A hook that compresses gradients to float16 halves what a machine sends."""
    sent = {way: measure(way, "", 0, 0, 6, 32)["sent"] for way in ("default", "fp16")}
    assert 0.4 < sent["fp16"] / sent["default"] < 0.6, sent


@pytest.mark.night
def test_a_round_trip_takes_twice_the_delay():
    found = measure("nothing sent", "", 5, 0, 4, 32)
    assert 0.01 <= found["round trip"] < 0.1, found["round trip"]
