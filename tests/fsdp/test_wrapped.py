"""FullyShardedDataParallel, and checkpoints that other numbers of ranks load."""

from ..ddp.starting import run
from ..distributed.ranks import needs_mpi
from . import wrapped

pytestmark = needs_mpi


def test_two_ranks(tmp_path):
    run(
        tmp_path,
        2,
        wrapped.strategies_and_policies,
        wrapped.whole_parameters_for_a_while,
        wrapped.gradients_that_wait_and_norms,
        wrapped.kinds_of_state,
        wrapped.whole_states_from_one_rank,
    )


def test_checkpoints_on_other_numbers_of_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHLITE_TEST_FOLDER", str(tmp_path))
    for number, (size, checks) in enumerate((
        (4, (wrapped.saves, wrapped.fails_on_one_rank, wrapped.hybrid_strategies)),
        (3, (wrapped.goes_on,)),
        (2, (wrapped.goes_on,)),
        (1, (wrapped.goes_on,)),
    )):  # fmt: skip
        place = tmp_path / f"world{number}"
        place.mkdir()
        run(place, size, *checks)
