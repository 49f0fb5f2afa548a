"""How `fully_shard` and FullyShardedDataParallel reduce, and on which devices."""

import pytest

import torchlite as torch

from ..ddp.starting import run
from ..distributed.ranks import needs_mpi
from . import reducing

pytestmark = needs_mpi


def test_two_ranks(tmp_path):
    run(tmp_path, 2, reducing.hooks_of_communication, reducing.scales_that_ranks_share, reducing.optimizers_made_before)


def test_three_ranks(tmp_path):
    run(tmp_path, 3, reducing.a_hook_of_ones_own)


def test_devices_of_opencl(tmp_path):
    if not torch.opencl.is_available():
        pytest.skip("there is no device of OpenCL")
    run(tmp_path, 2, reducing.on_devices_of_opencl)
