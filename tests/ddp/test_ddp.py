"""DistributedDataParallel on two and three ranks."""

import pytest

import torchlite as torch

from ..distributed.ranks import needs_mpi
from . import checks, composed
from .starting import run

pytestmark = needs_mpi


def test_two_ranks(tmp_path):
    run(
        tmp_path,
        2,
        checks.gradients_are_those_of_the_whole_batch,
        checks.buffers_and_parameters_begin_as_rank_0s,
        checks.no_sync_and_several_forwards,
        checks.unused_parameters,
        checks.states_and_copies,
        checks.sparse_gradients_and_shared_modules,
        checks.comm_hooks,
        checks.uneven_inputs,
        checks.batch_norm_over_the_world,
        checks.low_precision,
        checks.delayed_parameters,
        checks.optimizers_that_share_out,
        checks.models_averaged,
        checks.mistakes,
        composed.replicated_and_recomputed,
        composed.what_contracts_ask_for,
    )


def test_three_ranks(tmp_path):
    run(
        tmp_path,
        3,
        checks.gradients_are_those_of_the_whole_batch,
        checks.unused_parameters,
        checks.uneven_inputs,
        checks.batch_norm_over_the_world,
    )


def test_two_drivers_of_opencl(tmp_path):
    if torch.opencl.device_count() < 2:
        pytest.skip("there are not two devices of OpenCL")
    run(tmp_path, 2, checks.gradients_on_two_drivers_of_opencl)


def test_without_a_group():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
