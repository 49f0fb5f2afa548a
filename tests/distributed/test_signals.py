"""Killed and stopped processes: the launcher names them, and leaves nothing behind."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.distributed.killed_program import FAKES
from tests.distributed.rank_launcher import ROOT, environment, finish, needs_mpi

PROGRAM = str(ROOT / "tests" / "distributed" / "killed_program.py")
LAUNCHER = [sys.executable, "-m", "torchlite.distributed.run", "--standalone", "--nproc-per-node=3"]
# Seconds instead of half a minute until the launcher's patience with stopped processes ends.
WORDS = """import sys
from torchlite.distributed import run
from torchlite.distributed._launch import mpiexec_launcher
mpiexec_launcher._SIGNALED = 3.0
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
def test_lines_that_imitate_the_launchers_are_printed_as_text():
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


# A signal comes while the second start is made: before mpiexec runs, or when it does.
RESTARTED = """import os, signal, sys
from torchlite.distributed import run
starts, when, number = 0, sys.argv.pop(1), int(sys.argv.pop(1))
class World(run.LaunchedWorld):
    def __init__(self, *args):
        global starts
        starts += 1
        if starts == 2 and when == "before":
            os.kill(os.getpid(), number)
        super().__init__(*args)
        if starts == 2 and when == "after":
            os.kill(os.getpid(), number)
run.LaunchedWorld = World
code = run.main()
print("starts", starts)
sys.exit(code)
"""


@needs_mpi
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_within_a_restart_ends_the_job(when, number):
    program = "import os, sys, time; time.sleep(40 if os.environ['TORCHELASTIC_RESTART_COUNT'] == '1' else sys.exit(3))"
    begin = time.monotonic()
    ended = finish([
        sys.executable, "-c", RESTARTED, when, str(int(number)), "--standalone", "--max-restarts=5", "--no-python",
        sys.executable, "-c", program,
    ])  # fmt: skip
    assert ended.returncode and "starts 2\n" in ended.stdout, ended.stdout
    assert ended.stdout.count("start again") == 1 and time.monotonic() - begin < 30


@needs_mpi
def test_jobs_of_one_name_have_separate_log_folders(tmp_path):
    for word in ("first", "second"):
        ended = finish([
            *LAUNCHER[:-1], "--rdzv-id=a/b", "--redirects=1", f"--log-dir={tmp_path}", "--no-python", "echo", word,
        ])  # fmt: skip
        assert ended.returncode == 0, ended.stdout
    found = sorted(tmp_path.rglob("*.log"), key=lambda path: path.read_text())
    assert [path.read_text() for path in found] == ["first\n", "second\n"]
    assert all(path.relative_to(tmp_path).parts[0].startswith("a_b_") for path in found)
    assert all(path.relative_to(tmp_path).parts[1:] == ("attempt_0", "0", "stdout.log") for path in found)


ENDING = [sys.executable, "-m", "torchlite.distributed.run", "--standalone", "--nproc-per-node=2"]
ENDING_PROGRAM = str(ROOT / "tests" / "distributed" / "ending.py")


@needs_mpi
@needs_pidfd
@pytest.mark.parametrize(
    "how, code, words",
    [
        ("kill proxy", 1, "the process of mpiexec that had started the ranks [0, 1]"),
        ("kill proxy while one joins", 1, "the process of mpiexec that had started the ranks [0, 1]"),
        ("kill proxy within a group", 1, "the process of mpiexec that had started the ranks [0, 1]"),
        ("kill mpiexec", 137, "mpiexec was killed by SIGKILL"),
        ("abort 5", 5, "rank 1 aborted MPI"),
        ("abort 9", 9, "rank 1 aborted MPI"),
    ],
)
def test_the_cause_of_exit_is_reported(how, code, words):
    """Nothing that did not happen, and soon."""
    begin = time.monotonic()
    ended = finish([*ENDING, ENDING_PROGRAM, how])
    assert ended.returncode == code and f"torchlite-run: {words}" in ended.stdout, ended.stdout
    assert "was lost" not in ended.stdout and time.monotonic() - begin < 30


@needs_mpi
@needs_pidfd
def test_a_rank_of_mpi_alone_that_leaves_without_its_end_is_an_error():
    """MPICH kills the others, and mostly calls that a success."""
    ended = finish([*ENDING, ENDING_PROGRAM, "os._exit"])
    assert ended.returncode in (1, 9), ended.stdout
    if ended.returncode == 1:
        words = "torchlite-run: mpiexec ended the ranks [0] before their programs had come to an end. The ranks [1] had"
    else:
        words = "before that these ranks had come to the end of the program, which others may wait for: [1]"
    assert words in ended.stdout


@needs_mpi
def test_rank_0_alone_reads_the_launchers_input():
    process = subprocess.run(
        [*ENDING, ENDING_PROGRAM, "input"], input="words\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=environment(), cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stdout
    assert sorted(process.stdout.splitlines()) == ["rank 0 read 'words\\n'", "rank 1 read ''"]


@needs_mpi
def test_a_part_of_a_line_is_shown_at_once():
    """Also one whose begin looks like that of the launcher's messages."""
    process = subprocess.Popen(
        [*ENDING, ENDING_PROGRAM, "progress"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
        cwd=ROOT, start_new_session=True,
    )  # fmt: skip
    expected = "\rä \x1etorchlite-run 50%".encode()
    seen = b""
    try:
        os.set_blocking(process.stderr.fileno(), False)
        deadline = time.monotonic() + 30
        while seen != expected and time.monotonic() < deadline:
            seen += process.stderr.read() or b""
            time.sleep(0.05)
        os.set_blocking(process.stderr.fileno(), True)
        assert seen == expected
        _, rest = process.communicate(b"\n", timeout=30)
        assert b" done" in rest and process.returncode == 0, rest
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@needs_mpi
def test_a_program_that_removes_its_ranks_folder_has_not_failed():
    ended = finish([*ENDING, ENDING_PROGRAM, "remove"])
    assert ended.returncode == 0 and "Traceback" not in ended.stdout, ended.stdout


def test_an_impossible_log_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file" / "logs", tmp_path / "file"):
        ended = finish([*ENDING, "--tee=3", f"--log-dir={folder}", ENDING_PROGRAM, "remove"])
        assert ended.returncode == 2 and "Traceback" not in ended.stdout, ended.stdout
        assert ended.stdout.count("torchlite-run: [Errno") == 1


def test_parts_of_the_error_output_are_shown_or_heard():
    """However they are cut."""
    from torchlite.distributed._launch.mpiexec_launcher import MARK, LaunchedWorld

    mark = MARK.format("word").encode()
    message = mark + b'{"what": "state", "state": "joining", "rank": 3, "code": 0}\n'
    text = (
        b"\x1e a \x1etorchlite-run wor d\n" + message + b"half\r" + message + mark + b"torn\nAbort(5) on node 2 (rank 2"
    )
    for size in range(1, len(text) + 1):
        run, shown, heard, left = LaunchedWorld.__new__(LaunchedWorld), [], [], b""
        run._mark, run._write_output, run._handle_rank_message = mark, shown.append, heard.append
        for at in range(0, len(text), size):
            left = run._process_lines(left + text[at : at + size])
        assert [told["rank"] for told in heard] == [3, 3]
        assert b"".join(shown) + left == text.replace(message, b"") and not left


@pytest.mark.skipif(sys.platform != "linux", reason="named pipes of ranks are Linux's")
def test_what_a_rank_writes_before_it_is_killed_arrives(tmp_path):
    """Also where mpiexec has closed its own error output by then, and where a rank's process goes on."""
    from torchlite.distributed._launch.error_streams import ErrorStreams
    from torchlite.distributed._launch.rank_wrapper import pipe_path

    streams = ErrorStreams(str(tmp_path / "ranks"), 3)
    source, mpiexec = os.pipe()
    ranks = [os.open(pipe_path(str(tmp_path / "ranks"), rank), os.O_WRONLY) for rank in (0, 2)]
    os.write(mpiexec, b"proxy")
    os.close(mpiexec)
    os.write(ranks[0], b"Abort(9) on node 0")
    os.close(ranks[0])
    os.write(ranks[1], b"x" * 60_000)
    parts: dict[int, list[bytes]] = {}
    for descriptor, data in streams.read(source):
        parts.setdefault(descriptor, []).append(data)
    assert sorted(b"".join(data) for data in parts.values()) == [b"Abort(9) on node 0", b"proxy", b"x" * 60_000]
    assert parts[source][-1] == b""
    os.close(source)
    os.close(ranks[1])


def test_error_output_of_mpiexec_alone_is_read():
    from torchlite.distributed._launch.error_streams import ErrorStreams

    source, mpiexec = os.pipe()
    os.write(mpiexec, b"words")
    os.close(mpiexec)
    assert list(ErrorStreams("", 2).read(source)) == [(source, b"words"), (source, b"")]
    os.close(source)
