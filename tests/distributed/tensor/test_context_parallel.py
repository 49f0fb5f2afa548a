"""Attention of sequences that are cut over 2 and 4 ranks."""

from __future__ import annotations

import pytest

from tests.distributed.rank_launcher import needs_mpi

from .world_launcher import start

pytestmark = needs_mpi


@pytest.mark.parametrize("size", [2, 4])
def test_sequences_cut_over_ranks(size):
    assert start(size, "context_parallel_checks").count("agrees") == size
