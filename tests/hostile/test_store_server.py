"""A sample of the attacks on a TCPStore in `tests.hostile.store_server`."""

import pytest

from tests.hostile.store_server import (
    Master,
    connects,
    fill,
    full,
    garbage,
    hoard,
    idle,
    pipelines,
    slow,
    stops,
    unknown,
)

LONG = 20.0  # seconds: far beyond an answer's milliseconds, far below the minute of a blocked server


@pytest.mark.parametrize("secret", ["", "a secret"])
def test_strangers_do_not_block_clients(secret):
    with Master(secret) as master:
        before = master.megabytes()
        assert garbage(master, 300, 7) < LONG
        assert idle(master, 150) < LONG
        assert connects(master, 200) < LONG
        assert master.megabytes() < before + 30
        assert slow(master, 20, 0.5) < LONG


@pytest.mark.parametrize("count, how", [(16, "hold"), (16, "trickle"), (100, "return")])
def test_memory_hoarders_do_not_block_clients(count, how):
    """Together they hold what all connections may."""
    with Master("a secret") as master:
        large, small = hoard(master, count, how)
        print(
            f"{count} hoarders ({how}): sets of 4 MB {large:.3f} s, small {small:.3f} s, {master.megabytes():.0f} MiB"
        )
        assert large < LONG and small < LONG
        assert master.megabytes() < 1100


def test_endless_pipelining_does_not_block_clients():
    with Master("a secret") as master:
        fill(master, 20_000)
        for name, count, how in (
            ("count", 1, "read"),
            ("append", 5, "read"),
            ("get", 5, "ignore"),
            ("keys", 5, "return"),
        ):
            slowest = pipelines(master, name, count, how, 11)
            print(f"{count} that pipeline {name} ({how}): slowest answer {slowest:.3f} s")
            assert slowest < LONG


def test_who_does_not_know_the_secret_makes_the_master_hold_nothing():
    with Master("a secret") as master:
        before = master.megabytes()
        assert unknown(master, 50) < LONG
        assert master.megabytes() < before + 10


def test_a_stopped_master_keeps_no_call_beyond_its_timeout():
    with Master() as master:
        took = stops(master, 0.2)
        assert took.pop("after") < LONG
        assert all(0.15 < seconds < 2 for seconds in took.values()), took


def test_few_files_refuse_clients_until_others_leave():
    with Master(files=64) as master:
        assert full(master, 80) < LONG
