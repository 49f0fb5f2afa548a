"""DistributedDataParallel on two and three ranks."""

import pytest

import torchlite as torch
from tests.distributed.rank_launcher import needs_mpi

from . import composable_api, ddp_checks
from .world_launcher import run

pytestmark = needs_mpi


def test_two_ranks(tmp_path):
    run(
        tmp_path,
        2,
        ddp_checks.gradients_are_those_of_the_whole_batch,
        ddp_checks.buffers_and_parameters_begin_as_rank_0s,
        ddp_checks.no_sync_and_several_forwards,
        ddp_checks.unused_parameters,
        ddp_checks.states_and_copies,
        ddp_checks.sparse_gradients_and_shared_modules,
        ddp_checks.comm_hooks,
        ddp_checks.uneven_inputs,
        ddp_checks.batch_norm_over_the_world,
        ddp_checks.low_precision,
        ddp_checks.delayed_parameters,
        ddp_checks.optimizers_that_share_out,
        ddp_checks.models_averaged,
        ddp_checks.mistakes,
        composable_api.replicated_and_recomputed,
        composable_api.what_contracts_ask_for,
    )


def test_three_ranks(tmp_path):
    run(
        tmp_path,
        3,
        ddp_checks.gradients_are_those_of_the_whole_batch,
        ddp_checks.unused_parameters,
        ddp_checks.uneven_inputs,
        ddp_checks.batch_norm_over_the_world,
    )


def test_two_drivers_of_opencl(tmp_path):
    if torch.opencl.device_count() < 2:
        pytest.skip("there are not two devices of OpenCL")
    run(tmp_path, 2, ddp_checks.gradients_on_two_drivers_of_opencl)


def test_without_a_group():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
