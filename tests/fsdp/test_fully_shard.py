"""`fully_shard` on one to four ranks."""

import pytest

from ..ddp.starting import run
from ..distributed.ranks import needs_mpi
from . import checks

pytestmark = needs_mpi


def test_two_ranks(tmp_path):
    run(
        tmp_path,
        2,
        checks.gradients_and_steps_are_those_of_the_whole_batch,
        checks.what_a_rank_keeps,
        checks.no_sync_and_several_forwards,
        checks.other_dimensions_and_ignored,
        checks.low_precision,
        checks.prefetching_and_methods,
        checks.norms_of_gradients,
        checks.made_without_memory,
        checks.memory_is_shared_out,
    )


@pytest.mark.parametrize("size", [1, 3])
def test_other_numbers_of_ranks(tmp_path, size):
    run(
        tmp_path,
        size,
        checks.what_a_rank_keeps,
        checks.no_sync_and_several_forwards,
        checks.norms_of_gradients,
        checks.made_without_memory,
    )


def test_four_ranks(tmp_path):
    run(tmp_path, 4, checks.meshes_of_two_dimensions, checks.over_tensor_parallel)
