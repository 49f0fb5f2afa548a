"""How `fully_shard` and FullyShardedDataParallel reduce, and on which devices."""

import pytest

import torchlite as torch
from tests.distributed.ddp.world_launcher import run
from tests.distributed.rank_launcher import needs_mpi

from . import gradient_reduction

pytestmark = needs_mpi


def test_two_ranks(tmp_path):
    run(
        tmp_path,
        2,
        gradient_reduction.hooks_of_communication,
        gradient_reduction.scales_that_ranks_share,
        gradient_reduction.optimizers_made_before,
    )


def test_three_ranks(tmp_path):
    run(tmp_path, 3, gradient_reduction.a_hook_of_ones_own)


def test_devices_of_opencl(tmp_path):
    if not torch.opencl.is_available():
        pytest.skip("there is no device of OpenCL")
    run(tmp_path, 2, gradient_reduction.on_devices_of_opencl)
