"""DTensors on 2, 3 and 4 processes and a 2x2 mesh. Each program tells how it is run alone, and its long form."""

from __future__ import annotations

import pytest

from tests.distributed.ranks import MISSING, finish, mpiexec
from tests.distributed.ranks import ROOT as ROOT

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def start(size: int, program: str, *args: str) -> str:
    """Run `python -m tests.dtensor.PROGRAM` on `size` ranks: what they said."""
    import sys

    name = mpiexec()
    assert name is not None
    ended = finish([name, "-n", str(size), sys.executable, "-m", f"tests.dtensor.{program}", *args], 150)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@pytest.mark.parametrize("size, count", [(2, 2), (3, 1), (4, 1)])
def test_every_rule(size, count):
    assert start(size, "rules", "--count", str(count)).count(" agree, seed 0") == size


@pytest.mark.parametrize("size", [2, 4])
def test_networks(size):
    assert start(size, "training").count("agrees") == size


@pytest.mark.parametrize("size", [1, 3])
def test_what_a_dtensor_is(size):
    assert start(size, "checks").count("agrees") == size
