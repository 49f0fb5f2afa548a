"""Ranks that are killed, raise, leave or hang: the others end, the launcher reports the failure, a restart resumes."""

import re
import sys
import time

import pytest

from tests.distributed.rank_launcher import ROOT, finish, mpiexec, needs_mpi

PROGRAM = str(ROOT / "tests" / "distributed" / "failing_rank.py")


def run(*args, size=3, **more):
    launcher = [sys.executable, "-m", "torchlite.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    return finish([*launcher, *map(str, args)], seconds=100, **more)


@needs_mpi
@pytest.mark.parametrize(
    "how, where, words",
    [
        ("kill", "forward", "was killed by SIGKILL"),
        ("kill", "backward", "was killed by SIGKILL"),
        ("kill", "collective", "was killed by SIGKILL"),
        ("raise", "backward", "ended with exit code 1\nTraceback (most recent call last):"),
        ("exit", "forward", "ended with exit code 3"),
        ("kill", "stage's forward", "was killed by SIGKILL"),
        ("raise", "stage's backward", "ended with exit code 1\nTraceback (most recent call last):"),
    ],
)
def test_the_failed_rank_is_reported(tmp_path, how, where, words):
    start = time.monotonic()
    ended = run(PROGRAM, how, where, 1, tmp_path)
    assert ended.returncode == {"kill": 137, "raise": 1, "exit": 3}[how], ended.stdout
    said = ended.stdout[ended.stdout.index("torchlite-run: rank 1 (local rank 1 on") :]
    assert words in said and "\nloss " not in ended.stdout
    assert how != "raise" or "ValueError: this rank is tired" in said
    assert time.monotonic() - start < 60


@needs_mpi
def test_a_rank_that_hangs_meets_the_others_timeout(tmp_path):
    ended = run(PROGRAM, "hang", "forward", 2, tmp_path)
    assert ended.returncode == 1
    assert "DistBackendError: Timed out waiting 2000ms for allreduce on rank" in ended.stdout
    assert "torchlite-run: rank" in ended.stdout


@needs_mpi
@pytest.mark.parametrize("where", ["stage's forward", "stage's backward"])
def test_a_stage_that_hangs_meets_the_others_timeout(tmp_path, where):
    ended = run(PROGRAM, "hang", where, 1, tmp_path)
    assert ended.returncode == 1 and "\nloss " not in ended.stdout
    assert re.search(
        r"DistBackendError: Timed out waiting 2000ms for (recv from|send to) rank 1 on rank [02]", ended.stdout
    )
    assert "torchlite-run: rank" in ended.stdout


@needs_mpi
def test_a_restart_has_the_loss_of_a_run_without_faults(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    well = run(PROGRAM, "none", "forward", 0, tmp_path / "a")
    again = run(
        "--max-restarts=1", "--tee=3", "--log-dir", tmp_path / "logs", PROGRAM, "kill", "collective", 1, tmp_path / "b"
    )
    assert well.returncode == again.returncode == 0, well.stdout + again.stdout
    loss = next(line for line in well.stdout.splitlines() if line.startswith("loss"))
    assert f"[default0]:{loss}" in again.stdout and "start again" in again.stdout
    logs = sorted(path.relative_to(tmp_path / "logs").parts[1:] for path in (tmp_path / "logs").rglob("stdout.log"))
    assert logs == [(f"attempt_{a}", str(r), "stdout.log") for a in range(2) for r in range(3)]


@needs_mpi
def test_an_error_without_a_launcher_ends_all(tmp_path):
    command = [mpiexec(), "-n", "2", sys.executable, "-c", "import os;os.environ['RANK']=os.environ.get('PMI_RANK', "
               "os.environ.get('OMPI_COMM_WORLD_RANK'));os.environ['WORLD_SIZE']='2';import sys;sys.argv[1:]=['raise',"
               f"'forward','1',{str(tmp_path)!r}];import tests.distributed.failing_rank as f;f.main()"]  # fmt: skip
    ended = finish(command, seconds=60)
    assert ended.returncode and "[rank1]: ValueError: this rank is tired" in ended.stdout


def test_flags_that_make_no_sense(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("one slots=2\ntwo:1  # the small one\n\nthree\n")
    from torchlite.distributed import run as launcher
    from torchlite.distributed._launch.mpiexec_launcher import mpi_command, read_hosts

    found = read_hosts(str(hosts), 4)
    assert found.names == ["one", "two", "three"] and found.slots == [2, 1, 4]
    command = mpi_command("false", 7, 4, found)
    assert command == ["false", "-n", "7", "-hosts", "one:2,two:1,three:4"]
    for flags, words in (
        (["--nproc-per-node", "many", "x.py"], "Unsupported nproc_per_node value: many"),
        (["--nnodes", "a:b", "x.py"], 'is not in "MIN:MAX" format'),
        (["--tee", "7", "x.py"], "is none of 0, 1"),
        (["--nnodes", "5", "--hostfile", str(hosts), "x.py"], "asks for 5 machines"),
        (["--hostfile", str(tmp_path / "no"), "x.py"], "No such file"),
    ):
        with pytest.raises((ValueError, OSError), match=words):
            launcher.run(launcher.get_args_parser().parse_args(flags))
        assert launcher.main(flags) == 2


@needs_mpi
def test_the_older_launcher_gives_the_local_rank(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys\nsys.stdout.write(repr(sys.argv[1:]) + '\\n')\n")
    for flags, words in (([], ["--local-rank={}", "--lr", "1"]), (["--use_env"], ["--lr", "1"])):
        command = [sys.executable, "-m", "torchlite.distributed.launch", "--nproc_per_node=2", *flags]
        ended = finish([*command, str(program), "--lr", "1"], seconds=60)
        expected = [repr([word.format(rank) for word in words]) for rank in range(2)]
        assert sorted(ended.stdout.split("\n")[:2]) == sorted(expected), ended.stdout


LEAVING = str(ROOT / "tests" / "distributed" / "early_exit.py")


@needs_mpi
@pytest.mark.parametrize(
    "how, where, code, words",
    [
        ("os._exit", "collective", 1, "ended with exit code 0 while its process group existed"),
        ("os._exit", "barrier", 1, "ended with exit code 0 while its process group existed"),
        ("os._exit", "store", 1, "ended with exit code 0 while its process group existed"),
        ("status", "store", 7, "ended with exit code 7"),
        ("kill", "barrier", 137, "was killed by SIGKILL"),
    ],
)
def test_a_rank_that_leaves_while_others_wait_is_named(how, where, code, words):
    ended = run(LEAVING, how, where)
    assert ended.returncode == code, ended.stdout
    said = ended.stdout[ended.stdout.index("torchlite-run: rank 1 (local rank 1 on") :]
    assert words in said


@needs_mpi
def test_a_rank_that_ends_while_others_wait_for_it_is_named(tmp_path):
    ended = run(LEAVING, "sys.exit", "collective")
    assert ended.returncode == 1 and "Timed out waiting 3000ms for allreduce on rank" in ended.stdout
    assert "had come to the end of the program, which others may wait for: [1]" in ended.stdout


@needs_mpi
def test_ranks_that_left_are_reported_before_the_timeout(tmp_path):
    ended = run(LEAVING, "ends", "store")
    assert ended.returncode == 1
    said = ended.stdout.index("torchlite-run: ranks that have left (their program has ended): [1]")
    assert said < ended.stdout.index("wait timeout after 12000ms, keys: /")


@needs_mpi
@pytest.mark.parametrize("how, where", [("os._exit", "destroyed"), ("sys.exit", "nowhere"), ("none", "secret")])
def test_a_rank_that_leaves_properly_has_not_failed(how, where):
    ended = run(LEAVING, how, where)
    assert ended.returncode == 0 and "torchlite-run" not in ended.stdout, ended.stdout
    assert where != "secret" or ended.stdout.count("secret 64") == 3


FORKED = str(ROOT / "tests" / "distributed" / "forked.py")


@needs_mpi
def test_a_forked_child_cannot_use_its_parents_group():
    ended = run(FORKED, "forked", size=2)
    assert ended.returncode == 0, ended.stdout
    assert "child 0\n" in ended.stdout and "right 0\n" in ended.stdout and "right 1\n" in ended.stdout


@needs_mpi
def test_ranks_that_gave_up_meet_at_a_later_call():
    ended = run(FORKED, "late", size=2)
    assert ended.returncode == 0, ended.stdout
    for rank in range(2):
        assert f"rank {rank} gave up True DistBackendError\n" in ended.stdout, ended.stdout
        assert f"rank {rank} has [1.0, 1.0, 1.0]\n" in ended.stdout, ended.stdout


@needs_mpi
def test_a_rank_that_gave_up_and_ended_leaves_no_other_waiting():
    begin = time.monotonic()
    ended = run(FORKED, "alone", size=2)
    assert ended.returncode == 0, ended.stdout
    assert "rank 0 gave up True\n" in ended.stdout and "rank 1 gave up True\n" in ended.stdout
    assert time.monotonic() - begin < 40
