"""`torchlite-run` on several machines that come and go: the world's size follows, and training its checkpoints."""

import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.distributed.elastic_training import losses
from tests.distributed.rank_launcher import ROOT, environment, finish, needs_mpi
from tests.distributed.test_by_hand import end, free_port
from torchlite.distributed import run as launcher
from torchlite.distributed._launch.elastic_meeting import Machine, Meeting, RunClosed, Settings
from torchlite.distributed._stores import HashStore

PROGRAM = str(ROOT / "tests" / "distributed" / "elastic_training.py")
LIMITS = "keep_alive_interval=1,keep_alive_max_attempt=4,last_call_timeout=2,join_timeout=60"


def words(port, *program, nnodes="1:2", **flags):
    """The command of a machine's launcher."""
    given = {"rdzv-backend": "c10d", "rdzv-endpoint": f"127.0.0.1:{port}", "rdzv-conf": LIMITS, **flags}
    return [
        sys.executable, "-m", "torchlite.distributed.run", f"--nnodes={nnodes}", "--rdzv-id=test",
        *(f"--{name.replace('_', '-')}={value}" for name, value in given.items()), *map(str, program),
    ]  # fmt: skip


def start(port, *program, **options):
    return subprocess.Popen(
        words(port, *program, **options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment(), cwd=ROOT,
    )  # fmt: skip


def read(folder):
    path = folder / "losses"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(folder, processes, condition, seconds=60):
    """Wait until the lines of losses meet a condition."""
    limit = time.monotonic() + seconds
    while not condition(read(folder)):
        assert time.monotonic() < limit and all(process.poll() is None for process in processes), read(folder)[-3:]
        time.sleep(0.1)


def check_losses(folder):
    """Each step was taken, with the loss of one process, and again only after a restart."""
    found = read(folder)
    expected = losses(found[-1]["step"])
    assert {line["step"] for line in found} == set(range(1, len(expected) + 1))
    for line in found:
        assert line["loss"] == pytest.approx(expected[line["step"] - 1], abs=1e-5), line
    return found


@needs_mpi
def test_a_machine_comes_and_goes(tmp_path):
    port = free_port()
    first = start(port, PROGRAM, tmp_path)
    second = None
    try:
        wait_for(tmp_path, [first], lambda lines: len(lines) > 2)
        assert {line["size"] for line in read(tmp_path)} == {1}
        second = start(port, PROGRAM, tmp_path)
        wait_for(tmp_path, [first, second], lambda lines: lines[-1]["size"] == 2)
        before = read(tmp_path)[-1]["step"]
        wait_for(tmp_path, [first, second], lambda lines: lines[-1]["step"] > before + 3)
        second.kill()
        wait_for(tmp_path, [first], lambda lines: lines[-1]["size"] == 1)
        (tmp_path / "enough").touch()
    finally:
        codes, outputs = end([process for process in (first, second) if process is not None])
    assert codes == [0, -signal.SIGKILL], outputs
    assert outputs[0].count("all processes start again") == 2, outputs[0]
    sizes = [line["size"] for line in check_losses(tmp_path)]
    assert re.fullmatch("1+2+1+", "".join(map(str, sizes))), sizes


@needs_mpi
def test_a_process_that_fails_on_one_machine(tmp_path):
    port = free_port()
    options = {"nnodes": "2", "max_restarts": 1}
    started = [start(port, PROGRAM, tmp_path, 4, **options) for _ in range(2)]
    try:
        wait_for(tmp_path, started, lambda lines: len(lines) > 10)
        (tmp_path / "enough").touch()
    finally:
        codes, outputs = end(started)
    assert codes == [0, 0], outputs
    assert sum("ValueError: this rank is tired" in output for output in outputs) == 1, outputs
    assert {line["size"] for line in check_losses(tmp_path)} == {2}


@needs_mpi
def test_a_failure_without_restarts_ends_all_machines(tmp_path):
    started = [start(free, PROGRAM, tmp_path, 2, nnodes="2") for free in [free_port()] for _ in range(2)]
    codes, outputs = end(started)
    assert codes == [1, 1], outputs
    assert sum("torchlite-run: rank 1 (local rank 0 on" in output for output in outputs) == 1, outputs
    assert sum("torchlite-run: the run has ended: rank 1" in output for output in outputs) == 1, outputs


@needs_mpi
def test_machines_with_numbers_and_an_address(tmp_path):
    """As torchrun's --node-rank and --master-addr, which may be given to machines in any order."""
    port, program = free_port(), tmp_path / "program.py"
    program.write_text(
        "import os\nimport torchlite as torch, torchlite.distributed as dist\ndist.init_process_group('gloo')\n"
        "x = torch.ones(1)\ndist.all_reduce(x)\n"
        "words = [*map(os.environ.get, ('GROUP_RANK', 'RANK', 'LOCAL_RANK')), str(int(x))]\n"
        "os.write(1, (' '.join(words) + '\\n').encode())\n"  # in one piece, between those of the other process
    )
    command = [sys.executable, "-m", "torchlite.distributed.run", "--nnodes=2", "--nproc-per-node=2"]
    started = []
    for number in (1, 0):
        flags = [f"--node-rank={number}", "--master-addr=localhost", f"--master-port={port}", str(program)]
        started.append(
            subprocess.Popen(
                [*command, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
                cwd=ROOT,
            )
        )  # fmt: skip
        time.sleep(0.5)
    codes, outputs = end(started)
    assert codes == [0, 0], outputs
    assert sorted(outputs[0].split("\n")) == ["", "1 2 0 4", "1 3 1 4"], outputs
    assert sorted(outputs[1].split("\n")) == ["", "0 0 0 4", "0 1 1 4"], outputs


def test_a_machine_that_waits_in_vain():
    flags = {"rdzv-conf": "join_timeout=1.5,last_call_timeout=0.1"}
    ended = finish(words(free_port(), "absent.py", nnodes="2", **flags), seconds=40)
    assert ended.returncode == 2
    assert "torchlite-run: too few machines came within 1.5 seconds: 1 of 2" in ended.stdout, ended.stdout


def test_flags_of_the_meeting():
    parse = launcher.get_args_parser().parse_args
    for flags, message in (
        (["--rdzv-backend=c10d"], "needs --rdzv-endpoint HOST:PORT"),
        (["--rdzv-backend=etcd", "--rdzv-endpoint=a:1"], "machines meet by c10d or static"),
        (["--rdzv-backend=c10d", "--rdzv-endpoint=a:b"], "is not HOST:PORT"),
        (["--rdzv-backend=c10d", "--rdzv-endpoint=a:1", "--rdzv-conf=x=1"], "'x=1' is none of join_timeout"),
        (["--rdzv-backend=c10d", "--rdzv-endpoint=a:1", "--rdzv-conf=join_timeout=y"], "'y' is no number of seconds"),
    ):
        with pytest.raises(ValueError, match=message):
            launcher.run(parse(["--nnodes=1:2", *flags, "x.py"]))


def test_variables_are_defaults_of_flags(monkeypatch):
    """As Kubeflow's PyTorchJob and TorchX tell torchrun."""
    told = "NNODES=1:4 NPROC_PER_NODE=2 RDZV_BACKEND=c10d RDZV_ENDPOINT=node1:29400 MAX_RESTARTS=3 NODE_RANK=1 MODULE=1"
    for word in f"{told} STANDALONE=0 TEE=3 LOG_DIR=logs".split():
        monkeypatch.setenv(*f"PET_{word}".split("="))
    found = launcher.get_args_parser().parse_args(["--max-restarts", "5", "x"])
    assert (found.nnodes, found.nproc_per_node) == ("1:4", "2")
    assert (found.rdzv_backend, found.rdzv_endpoint) == ("c10d", "node1:29400")
    assert (found.max_restarts, found.node_rank, found.tee, found.log_dir) == (5, 1, "3", "logs")
    assert found.module and not found.standalone


def meet(store, low, high, size, **limits):
    """Meetings of several machines of one store."""
    settings = Settings(**{"join_timeout": 2.0, "last_call_timeout": 0.2, "keep_alive_interval": 0.1, **limits})
    machines = [Machine(f"m{index}", 0, "127.0.0.1", 0, 1) for index in range(size)]
    return [Meeting(store, machine, low, high, settings) for machine in machines]


def join_all(meetings):
    """The rounds of several machines that join one after the other, each in a thread."""
    with ThreadPoolExecutor() as pool:
        started = []
        for meeting in meetings:
            started.append(pool.submit(meeting.join, 1, lambda: False))
            time.sleep(0.02)
        return [one.result() for one in started]


def test_rounds_of_machines():
    store = HashStore()
    first, second = meet(store, 1, 2, 2, keep_alive_interval=60)
    alone = first.join(1, lambda: False)
    assert [machine.name for machine in alone.machines] == ["m0"] and not first.must_meet_again(alone.number)
    with pytest.raises(TimeoutError, match="too few machines came"):
        second.join(2, lambda: False)
    assert first.must_meet_again(alone.number)  # the second waits
    both = join_all([first, second])
    assert [place.number for place in both] == [alone.number + 1] * 2 and [place.node for place in both] == [0, 1]
    assert not first.must_meet_again(both[0].number)
    first.close("it failed")
    with pytest.raises(RunClosed, match="it failed"):
        second.join(4, lambda: False)


def test_the_end_of_a_run_is_that_of_all_machines():
    meetings = meet(HashStore(), 2, 2, 2)
    rounds = join_all(meetings)
    assert {place.node for place in rounds} == {0, 1}
    assert not meetings[0].end_round(rounds[0].number)
    assert meetings[1].end_round(rounds[1].number) and meetings[0].end_round(rounds[0].number)
    with pytest.raises(RunClosed, match="^$"):
        meetings[0].must_meet_again(rounds[0].number)
