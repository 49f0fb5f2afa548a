"""`fully_shard` on one to four ranks."""

import pytest

import torchlite.distributed as dist
from tests.distributed.ddp.world_launcher import run
from tests.distributed.rank_launcher import needs_mpi
from torchlite.distributed.device_mesh import init_device_mesh
from torchlite.distributed.fsdp import DataParallelMeshDims
from torchlite.distributed.fsdp._fully_shard import _resolve_mesh

from . import fsdp_checks


@needs_mpi
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


@needs_mpi
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


@needs_mpi
def test_four_ranks(tmp_path):
    run(tmp_path, 4, fsdp_checks.meshes_of_two_dimensions, fsdp_checks.over_tensor_parallel)


def test_the_dimensions_of_a_mesh_that_are_used():
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1, 1, 1), mesh_dim_names=("copies", "parts", "rest"))
        for dims, wanted in (
            (DataParallelMeshDims(shard="parts"), ("parts",)),
            (DataParallelMeshDims(shard="parts", replicate="copies"), ("copies", "parts")),
            (None, ("copies", "parts", "rest")),
        ):
            assert _resolve_mesh(mesh, dims).mesh_dim_names == wanted
    finally:
        dist.destroy_process_group()
