"""Collectives under 1, 2, 3 and 4 ranks against NumPy's answers, and random programs of them.

The long forms: `mpiexec -n 4 python -m tests.distributed.random_programs --seeds 0:5000`.
"""

import pytest

from tests.distributed.rank_launcher import needs_mpi, start


@needs_mpi
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_collective(size):
    assert start(size, "collectives", seconds=150).count("agrees") == size


@needs_mpi
@pytest.mark.parametrize("size, seeds", [(2, "0:70"), (3, "70:130"), (4, "130:200")])
def test_random_programs(size, seeds):
    assert start(size, "random_programs", "--seeds", seeds, seconds=150).count("ran the seeds") == size


@needs_mpi
def test_tensors_of_a_device(device):
    if device != "cpu":
        assert start(2, "collectives", "--device", device, seconds=150).count("agrees") == 2


@needs_mpi
def test_groups_objects_meshes_and_gradients():
    assert start(4, "groups", seconds=100).count("agrees") == 4
