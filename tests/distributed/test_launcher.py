"""`torch.distributed.launcher` and the public names of `torch.distributed.elastic`."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import torchlite.distributed as dist
from tests.distributed import launched_functions as functions
from tests.distributed.rank_launcher import ROOT, environment, needs_mpi
from tests.distributed.test_by_hand import end, free_port
from torchlite.distributed.elastic import events, rendezvous
from torchlite.distributed.elastic.agent.server import ElasticAgent, RunResult, SimpleElasticAgent, WorkerState
from torchlite.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std, start_processes, to_map
from torchlite.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from torchlite.distributed.elastic.rendezvous import _meeting_handler
from torchlite.distributed.launcher.api import LaunchConfig, elastic_launch

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked")
pytestmark = linux


def config(processes=2, **options):
    return LaunchConfig(
        1, 1, processes, **{"rdzv_backend": "c10d", "max_restarts": 0, "start_method": "fork", **options}
    )


@needs_mpi
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_function_on_two_ranks(method):
    endpoint = f"localhost:{free_port()}" if method == "spawn" else ""
    found = elastic_launch(config(start_method=method, rdzv_endpoint=endpoint), functions.reduced)(3)
    assert found == {0: ([7.0, 7.0], 0, "0"), 1: ([7.0, 7.0], 1, "1")}


def test_a_failure_ends_the_others():
    began = time.monotonic()
    with pytest.raises(ChildFailedError, match="ValueError: rank 1 cannot") as caught:
        elastic_launch(config(), functions.fails_on_rank_1)(60)
    assert time.monotonic() - began < 30
    rank, failure = caught.value.get_first_failure()
    assert (rank, failure.local_rank, failure.exitcode) == (1, 1, 1)
    assert failure.message["message"] == "ValueError: rank 1 cannot"
    assert caught.value.name == "fails_on_rank_1" and str(caught.value).startswith("\n=")


def test_a_restart(tmp_path):
    assert elastic_launch(config(max_restarts=2), functions.fails_at_first)(str(tmp_path)) == {0: 1, 1: 1}
    assert {"0-1", "1-1"} <= {path.name for path in tmp_path.iterdir()}


def test_a_process_that_is_killed():
    with pytest.raises(ChildFailedError, match=r"Signal 9 \(SIGKILL\) received by PID"):
        elastic_launch(config(1), functions.kills_itself)()


def test_a_value_that_cannot_be_pickled():
    with pytest.raises(ChildFailedError, match="pickle"):
        elastic_launch(config(1), functions.returns_what_cannot_be_pickled)()


def test_a_command():
    words = ("-c", "import os, sys; sys.exit(sys.argv[1] != os.environ['LOCAL_RANK'])", "${local_rank}")
    assert elastic_launch(config(), sys.executable)(*words) == {0: None, 1: None}
    with pytest.raises(ChildFailedError, match="train.py FAILED"):
        elastic_launch(config(1), sys.executable)("-u", "train.py")


def test_a_failure_on_another_machine_ends_the_run():
    endpoint = f"127.0.0.1:{free_port()}"

    def machine(number):
        options = {"rdzv_backend": "static", "rdzv_endpoint": endpoint, "rdzv_configs": {"rank": number}}
        chosen = config(1, run_id="x", start_method="spawn", **options)
        chosen.min_nodes = chosen.max_nodes = 2
        try:
            elastic_launch(chosen, functions.fails_on_rank_1)(120)
        except Exception as error:
            errors[number] = error

    errors, began = {}, time.monotonic()
    threads = [threading.Thread(target=machine, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert time.monotonic() - began < 100
    assert isinstance(errors[0], rendezvous.RendezvousClosedError) and isinstance(errors[1], ChildFailedError), errors


def test_a_lost_store_hides_no_failure(monkeypatch):
    def lost(self):
        raise rendezvous.RendezvousConnectionError("the store of the machines was lost")

    monkeypatch.setattr(_meeting_handler.MeetingHandler, "set_closed", lost)
    with pytest.raises(ChildFailedError):
        elastic_launch(config(1), functions.kills_itself)()
    assert "TORCHELASTIC_SIGNALS_TO_HANDLE" not in os.environ


def test_events_of_a_launch(monkeypatch):
    seen = []

    class Note(logging.Handler):
        def emit(self, line):
            seen.append(json.loads(line.getMessage()))

    monkeypatch.setitem(events.handlers._log_handlers, "notes-of-a-launch", Note())
    elastic_launch(config(1, event_log_handler="notes-of-a-launch"), functions.says)()
    assert [(event["source"], event["metadata"]["state"]) for event in seen] == [
        ("WORKER", "SUCCEEDED"), ("AGENT", "SUCCEEDED"),
    ]  # fmt: skip


@needs_mpi
def test_two_machines():
    port, program = free_port(), (
        "import sys, json; from tests.distributed import launched_functions as functions\n"
        "from torchlite.distributed.launcher.api import LaunchConfig, elastic_launch\n"
        "port, rank = sys.argv[1:]\n"
        "config = LaunchConfig(2, 2, 1, run_id='x', rdzv_backend='static', rdzv_endpoint=f'127.0.0.1:{port}',\n"
        "    rdzv_configs={'rank': int(rank)}, start_method='fork')\n"
        "print(json.dumps(elastic_launch(config, functions.reduced)(3)))\n"
    )  # fmt: skip
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(port), str(rank)], cwd=ROOT, env=environment(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    codes, outputs = end(started)
    assert codes == [0, 0], outputs
    for rank, output in enumerate(outputs):
        assert json.loads(output.splitlines()[-1]) == {str(rank): [[7.0, 7.0], rank, "0"]}


def test_a_signal_ends_the_run():
    program = (
        "from tests.distributed import launched_functions as functions\n"
        "from torchlite.distributed.launcher.api import LaunchConfig, elastic_launch\n"
        "elastic_launch(LaunchConfig(1, 1, 1, rdzv_backend='c10d', start_method='fork'), functions.waits)()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 1 and f"SignalException: Process {process.pid} got signal: 15" in output, output


def test_output_goes_to_files_and_to_the_console(tmp_path, capfd):
    logs = DefaultLogsSpecs(str(tmp_path), redirects=Std.ERR, tee={1: Std.OUT})
    words = dict.fromkeys(range(2), ())
    context = start_processes(
        "t", functions.says, words, {0: {}, 1: {}}, logs, start_method="fork", duplicate_stdout_filters=["second"]
    )
    result = context.wait(60, 0.05)
    assert not result.is_failed() and result.stdouts[0] == "" and result.return_values == {0: None, 1: None}
    assert [Path(result.stderrs[rank]).read_text() for rank in range(2)] == ["to the errors\n"] * 2
    assert Path(result.stdouts[1]).read_text() == "to the output\nsecond line\n"
    shown = capfd.readouterr()
    assert sorted(shown.out.splitlines()) == ["[t1]:second line", "[t1]:to the output", "second line", "to the output"]
    assert not shown.err
    (filtered,) = tmp_path.glob("*/attempt_0/filtered_stdout.log")
    assert filtered.read_text() == "[t1]:second line\n"


def test_waiting_has_a_limit():
    context = start_processes("t", "sleep", {0: (60,)}, {0: {}}, DefaultLogsSpecs())
    try:
        assert context.wait(0) is None and context.wait(0.1, 0.02) is None
    finally:
        context.close()
    assert context.exit_codes() == {0: -signal.SIGTERM}


def test_ranks_that_are_absent():
    with pytest.raises(RuntimeError, match="envs, local rank mapping mismatch, expected: {0, 1}, actual: {0}"):
        start_processes("t", "true", {0: (), 1: ()}, {0: {}}, DefaultLogsSpecs())


@pytest.mark.parametrize("name", ["metrics_cfg", "numa_options", "virtual_local_rank"])
def test_settings_without_effect_are_refused(name):
    with pytest.raises(NotImplementedError, match=name):
        elastic_launch(config(**{name: {"a": "b"}}), functions.waits)()


@pytest.mark.parametrize(
    "options, words",
    [
        ({"rdzv_backend": "etcd"}, "The rendezvous backend 'etcd' is not registered"),
        ({"rdzv_backend": "static"}, "Endpoint is missing in endpoint"),
        ({"rdzv_backend": "static", "rdzv_endpoint": "node1"}, "port is missing in endpoint: node1"),
        ({"rdzv_configs": {"wrong": 1}}, "'wrong=1' is none of"),
        ({"max_nodes": 0}, "must be greater than or equal to the minimum"),
    ],
)
def test_wrong_settings(options, words):
    given = config(**{key: value for key, value in options.items() if key != "max_nodes"})
    given.max_nodes = options.get("max_nodes", 1)
    with pytest.raises(ValueError, match=words):
        elastic_launch(given, functions.waits)()


def test_too_few_machines():
    given = config(rdzv_endpoint=f"127.0.0.1:{free_port()}", rdzv_timeout=1)
    given.min_nodes = given.max_nodes = 2
    with pytest.raises(rendezvous.RendezvousTimeoutError, match="too few machines came within 1 seconds: 1 of 2"):
        elastic_launch(given, functions.waits)()


def test_streams():
    assert Std.from_str("3") is Std.ALL and Std.from_str("0:1,2:2") == {0: Std.OUT, 2: Std.ERR}
    assert to_map(Std.ERR, 2) == {0: Std.ERR, 1: Std.ERR}
    with pytest.raises(ValueError, match="4 does not match"):
        Std.from_str("4")


def test_failures_of_a_launcher_are_handed_on(tmp_path, monkeypatch):
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    theirs.write_text(json.dumps({"message": {"message": "lost", "extraInfo": {"py_callstack": "", "timestamp": "7"}}}))
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(own))

    @record
    def launch():
        raise ChildFailedError("t", {2: ProcessFailure(0, 1, -9, str(theirs)), 0: ProcessFailure(1, 2, 1, "")})

    with pytest.raises(ChildFailedError) as caught:
        launch()
    assert caught.value.get_first_failure()[0] == 2
    assert json.loads(own.read_text())["message"]["errorCode"] == -9


def test_names_of_rendezvous_and_agents():
    info = rendezvous.RendezvousStoreInfo.build(0, dist.HashStore(), "node1")
    assert info.master_addr == "node1" and info.master_port > 0
    given = rendezvous.RendezvousParameters("mine", "x:1", "run", 1, 2, yes="True", number="3", bad="x")
    assert given.get_as_bool("yes") is True and given.get_as_int("number") == 3 and given.get("none", 4) == 4
    with pytest.raises(ValueError, match="'bad' does not represent a valid boolean"):
        given.get_as_bool("bad")
    with pytest.raises(ValueError, match="'bad' does not represent a valid integer"):
        given.get_as_int("bad")
    registry = rendezvous.RendezvousHandlerRegistry()
    registry.register("mine", len)
    with pytest.raises(ValueError, match="is already registered"):
        registry.register("mine", max)
    assert issubclass(SimpleElasticAgent, ElasticAgent)
    assert RunResult(WorkerState.FAILED).is_failed() and not WorkerState.is_running(WorkerState.INIT)
    assert os.environ.get("TORCHELASTIC_ERROR_FILE") is None
