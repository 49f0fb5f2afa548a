"""Killed and stopped processes: the launcher names them, and leaves nothing behind."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.distributed.ranks import ROOT, environment, finish, needs_mpi
from tests.distributed.signalled import FAKES

PROGRAM = str(ROOT / "tests" / "distributed" / "signalled.py")
LAUNCHER = [sys.executable, "-m", "torchlite.distributed.run", "--standalone", "--nproc-per-node=3"]
# Seconds instead of half a minute until the launcher's patience with stopped processes ends.
WORDS = """import sys
from torchlite.distributed import run
from torchlite.distributed._launch import starting
starting._SIGNALED = 3.0
sys.exit(run.main())
"""
IMPATIENT = [sys.executable, "-c", WORDS, *LAUNCHER[3:]]
needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system has no descriptors of processes")


@needs_mpi
def test_a_real_time_signal_is_named():
    ended = finish([*LAUNCHER, PROGRAM, "real-time"])
    number = signal.SIGRTMIN + 6
    assert ended.returncode == 128 + number, ended.stdout
    assert "torchlite-run: rank 1 (local rank 1 on" in ended.stdout
    assert f"was killed by signal {number}" in ended.stdout


@needs_mpi
def test_lines_that_look_like_the_launchers_own_are_text():
    ended = finish([*LAUNCHER, PROGRAM, "fakes"])
    assert ended.returncode == 5, ended.stdout[-2000:]
    assert all(f"{line}\n" in ended.stdout for line in FAKES)
    assert "line 19999 of many\n" in ended.stdout
    said = ended.stdout[ended.stdout.index("torchlite-run: rank 1 (local rank 1 on") :]
    assert "ended with exit code 5" in said


@needs_mpi
@needs_pidfd
def test_a_rank_whose_watcher_was_killed_is_named():
    ended = finish([*LAUNCHER, PROGRAM, "watcher"])
    assert ended.returncode, ended.stdout
    said = ended.stdout[ended.stdout.index("torchlite-run: rank") :]
    assert "rank 1 (local rank 1 on" in said and "was lost: the process that watches it (pid" in said


def alive(process):
    """Whether a process exists and is no zombie."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@contextlib.contextmanager
def started(command):
    """A launcher, and the numbers of all processes under it: of each rank the program, watcher, proxy and mpiexec."""
    launcher = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(), cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    found = []
    try:
        while len(found) < 3:
            line = launcher.stdout.readline()
            assert line, "the launcher ended"
            if line.startswith("pids "):
                found.append([int(word) for word in line.split()[1:]])
        yield launcher, found
    finally:
        for process in (launcher.pid, *(number for numbers in found for number in reversed(numbers))):
            if process == launcher.pid or alive(process):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        launcher.wait(10)
        launcher.stdout.close()


def ends(numbers, seconds):
    """Whether all processes end in time."""
    deadline = time.monotonic() + seconds
    while any(map(alive, numbers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not any(map(alive, numbers))


@needs_mpi
@needs_pidfd
@pytest.mark.parametrize("which", [slice(0, 4), slice(0, 2), slice(2, 3), slice(0, 0)])
def test_a_signal_ends_the_launcher_also_where_processes_are_stopped(which):
    with started([*IMPATIENT, PROGRAM, "pids"]) as (launcher, found):
        for number in {number for numbers in found for number in numbers[which]}:
            os.kill(number, signal.SIGSTOP)
        launcher.terminate()
        assert launcher.wait(40)
        assert ends({number for numbers in found for number in numbers}, 10)


@needs_mpi
@needs_pidfd
@pytest.mark.parametrize("which", [slice(2, 3), slice(0, 1), slice(0, 0)])
def test_nothing_outlives_a_launcher_that_was_killed(which):
    with started([*LAUNCHER, PROGRAM, "pids"]) as (launcher, found):
        for number in {number for numbers in found for number in numbers[which]}:
            os.kill(number, signal.SIGSTOP)
        launcher.kill()
        assert ends({number for numbers in found for number in numbers}, 40)


@needs_mpi
@needs_pidfd
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_no_reason_to_start_again(number):
    with started([*LAUNCHER, "--max-restarts=2", PROGRAM, "pids"]) as (launcher, found):
        launcher.send_signal(number)
        said = launcher.communicate(timeout=40)[0]
        assert launcher.returncode and "start again" not in said and "the others were ended" in said
        assert ends({number for numbers in found for number in numbers}, 10)
