"""Ranks that disagree in a collective or a message: all of them raise, and no wrong data arrive."""

import re
import sys

import pytest

from tests.distributed.rank_launcher import finish, mpiexec, needs_mpi


def run(size, program, debug):
    command = [mpiexec(), "-n", str(size), sys.executable, "-m", f"tests.distributed.{program}"]
    ended = finish(command, 100, TORCH_DISTRIBUTED_DEBUG=debug)
    assert ended.returncode == 0 and ended.stdout.count("agrees") == size, ended.stdout
    return ended.stdout


@needs_mpi
@pytest.mark.parametrize("size, debug", [(2, "OFF"), (3, "DETAIL"), (4, "OFF")])
def test_collectives_that_differ(size, debug):
    (count,) = re.findall(r"(\d+) disagreements", run(size, "mismatched_collectives", debug))
    assert int(count) > 200


@needs_mpi
@pytest.mark.parametrize("size, debug", [(2, "OFF"), (3, "DETAIL")])
def test_messages_that_do_not_fit(size, debug):
    run(size, "mismatched_messages", debug)
