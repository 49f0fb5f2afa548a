"""Ranks that do not come to `init_process_group`: the others end by its timeout, or the launcher ends them."""

import re
import sys
import time

import pytest

from tests.distributed.rank_launcher import ROOT, finish, mpiexec, needs_mpi

PROGRAM = str(ROOT / "tests" / "distributed" / "missing_rank.py")
LAUNCHER = [sys.executable, "-m", "torchlite.distributed.run", "--standalone", "--nproc-per-node=3"]
LATE = "Timed out after 4 seconds waiting for clients. "


def run(how, seconds, plain=False):
    before = [mpiexec(), "-n", "3", sys.executable] if plain else LAUNCHER
    return finish([*before, PROGRAM, how, str(seconds)], seconds=70)


@needs_mpi
@pytest.mark.parametrize("how", ["sys.exit", "os._exit"])
def test_the_launcher_names_a_rank_that_left_before_it_joined(how):
    start = time.monotonic()
    ended = run(how, 300)
    assert ended.returncode == 1 and "sum" not in ended.stdout, ended.stdout
    said = ended.stdout[ended.stdout.index("torchlite-run: rank 1 (local rank 1 on") :]
    assert "ended with exit code 0 before it had joined its world" in said and "[0, 2]" in said
    assert time.monotonic() - start < 60


@needs_mpi
def test_the_timeout_names_a_rank_that_hangs_before_it_joined():
    ended = run("hang", 4)
    assert ended.returncode == 1, ended.stdout
    # On a busy machine another rank may be on its way too.
    assert re.search(
        rf"DistStoreError: {LATE}[12]/3 clients joined. These ranks did not: \[(0, )?1(, 2)?\]", ended.stdout
    )
    assert "torchlite-run: rank" in ended.stdout


@needs_mpi
@pytest.mark.parametrize("how", ["sys.exit", "hang"])
def test_the_timeout_holds_without_the_launcher(how):
    start = time.monotonic()
    ended = run(how, 4, plain=True)
    assert ended.returncode and f"DistStoreError: {LATE}" in ended.stdout, ended.stdout
    assert time.monotonic() - start < 60


@needs_mpi
@pytest.mark.parametrize("plain", [False, True])
def test_a_late_rank_meets_another_collective(plain):
    ended = run("late", 4, plain)
    assert ended.returncode == 0 and ended.stdout.count("sum 3.0") == 3, ended.stdout
    assert ended.stdout.count(f"caught {LATE}") == 2


@needs_mpi
def test_a_program_may_continue_without_missing_ranks():
    ended = run("caught", 4)
    assert ended.returncode == 0 and ended.stdout.count(f"caught {LATE}") == 2, ended.stdout


@needs_mpi
def test_a_rank_may_end_early_without_a_process_group():
    ended = run("nobody", 4)
    assert ended.returncode == 0 and "before it had joined" not in ended.stdout, ended.stdout
