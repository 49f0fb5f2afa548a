"""A sample of the attacks on a TCPStore in `tests.hostile.store_server`."""

import pytest

from tests.hostile.store_server import Master, connects, full, garbage, idle, slow, stops

LONG = 5.0  # seconds: far beyond an answer's milliseconds, far below the client's timeout


@pytest.mark.parametrize("secret", ["", "a secret"])
def test_strangers_keep_nobody_out(secret):
    with Master(secret) as master:
        before = master.megabytes()
        assert garbage(master, 300, 7) < LONG
        assert idle(master, 150) < LONG
        assert connects(master, 200) < LONG
        assert master.megabytes() < before + 30
        assert slow(master, 20, 0.5) < LONG


def test_a_stopped_master_keeps_no_call_beyond_its_timeout():
    with Master() as master:
        took = stops(master, 0.2)
        assert took.pop("after") < LONG
        assert all(0.15 < seconds < 2 for seconds in took.values()), took


def test_few_files_refuse_clients_until_others_leave():
    with Master(files=64) as master:
        assert full(master, 80) < LONG
