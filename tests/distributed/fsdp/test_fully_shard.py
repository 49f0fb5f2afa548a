"""`fully_shard` on one to four ranks."""

import pytest

from tests.distributed.ddp.world_launcher import run
from tests.distributed.rank_launcher import needs_mpi

from . import fsdp_checks

pytestmark = needs_mpi


def test_two_ranks(tmp_path):
    run(
        tmp_path,
        2,
        fsdp_checks.gradients_and_steps_are_those_of_the_whole_batch,
        fsdp_checks.what_a_rank_keeps,
        fsdp_checks.no_sync_and_several_forwards,
        fsdp_checks.other_dimensions_and_ignored,
        fsdp_checks.low_precision,
        fsdp_checks.prefetching_and_methods,
        fsdp_checks.norms_of_gradients,
        fsdp_checks.made_without_memory,
        fsdp_checks.memory_is_shared_out,
    )


@pytest.mark.parametrize("size", [1, 3])
def test_other_numbers_of_ranks(tmp_path, size):
    run(
        tmp_path,
        size,
        fsdp_checks.what_a_rank_keeps,
        fsdp_checks.no_sync_and_several_forwards,
        fsdp_checks.norms_of_gradients,
        fsdp_checks.made_without_memory,
    )


def test_four_ranks(tmp_path):
    run(tmp_path, 4, fsdp_checks.meshes_of_two_dimensions, fsdp_checks.over_tensor_parallel)
