"""FullyShardedDataParallel, and checkpoints that other numbers of ranks load."""

from tests.distributed.ddp.world_launcher import run
from tests.distributed.rank_launcher import needs_mpi

from . import fsdp_wrapper

pytestmark = needs_mpi


def test_two_ranks(tmp_path):
    run(
        tmp_path,
        2,
        fsdp_wrapper.strategies_and_policies,
        fsdp_wrapper.whole_parameters_for_a_while,
        fsdp_wrapper.what_is_held_and_loaded,
        fsdp_wrapper.gradients_that_wait_and_norms,
        fsdp_wrapper.kinds_of_state,
        fsdp_wrapper.whole_states_from_one_rank,
    )


def test_checkpoints_on_other_numbers_of_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHLITE_TEST_FOLDER", str(tmp_path))
    for number, (size, checks) in enumerate((
        (4, (fsdp_wrapper.saves, fsdp_wrapper.fails_on_one_rank, fsdp_wrapper.hybrid_strategies)),
        (3, (fsdp_wrapper.goes_on,)),
        (2, (fsdp_wrapper.goes_on,)),
        (1, (fsdp_wrapper.goes_on,)),
    )):  # fmt: skip
        place = tmp_path / f"world{number}"
        place.mkdir()
        run(place, size, *checks)
