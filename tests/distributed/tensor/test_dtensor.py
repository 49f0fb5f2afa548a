"""DTensors on 2, 3 and 4 processes and a 2x2 mesh. Each program tells how it is run alone, and its long form."""

from __future__ import annotations

import pytest

from tests.distributed.rank_launcher import needs_mpi

from .world_launcher import start

pytestmark = needs_mpi


@pytest.mark.parametrize("size, count", [(2, 2), (3, 1), (4, 1)])
def test_every_rule(size, count):
    assert start(size, "op_checks", "--count", str(count)).count(" agree, seed 0") == size


@pytest.mark.parametrize("size", [2, 4])
def test_networks(size):
    assert start(size, "training").count("agrees") == size


@pytest.mark.parametrize("size", [1, 3])
def test_dtensor_on_several_ranks(size):
    assert start(size, "dtensor_checks").count("agrees") == size
