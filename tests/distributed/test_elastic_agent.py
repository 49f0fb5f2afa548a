"""`LocalElasticAgent`, agents of a program's own, and the handlers by which their machines meet."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import torchlite.distributed as dist
from tests.distributed import launched_functions as functions
from tests.distributed.rank_launcher import ROOT, environment, needs_mpi
from tests.distributed.test_by_hand import end, free_port
from torchlite.distributed.elastic import events, metrics, rendezvous
from torchlite.distributed.elastic.agent.server import (
    RunResult,
    SimpleElasticAgent,
    Worker,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
    local_elastic_agent,
)
from torchlite.distributed.elastic.agent.server.health_check_server import HealthCheckServer
from torchlite.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torchlite.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torchlite.distributed.elastic.multiprocessing.errors import ProcessFailure
from torchlite.distributed.elastic.rendezvous.registry import get_rendezvous_handler

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are forked")
HEALTHY, UNHEALTHY, SUCCEEDED, FAILED = (
    WorkerState.HEALTHY, WorkerState.UNHEALTHY, WorkerState.SUCCEEDED, WorkerState.FAILED
)  # fmt: skip


class Alone(rendezvous.RendezvousHandler):
    """A meeting of one machine, which notes what it is asked. `waiting` are answers about other machines."""

    def __init__(self, waiting=()):
        self.store, self.waiting, self.calls = dist.HashStore(), list(waiting), []

    def get_backend(self):
        return "mine"

    def next_rendezvous(self):
        self.calls.append("meet")
        where = rendezvous.RendezvousStoreInfo("node7", 77)
        return rendezvous.RendezvousInfo(self.store, 0, 1, where)

    def is_closed(self):
        return False

    def set_closed(self):
        raise AssertionError

    def num_nodes_waiting(self):
        return self.waiting.pop(0) if self.waiting else 0

    def get_run_id(self):
        return "run"

    def shutdown(self):
        return True


class Told(SimpleElasticAgent):
    """An agent without processes, which are in the given states at its looks."""

    def __init__(self, spec, states):
        super().__init__(spec, exit_barrier_timeout=5, shutdown_timeout=7)
        self.states, self.calls = list(states), spec.rdzv_handler.calls

    def _start_workers(self, worker_group):
        self.calls.append(f"start after {worker_group.state.name} for {worker_group.master_addr}")
        return {worker.local_rank: f"id{worker.local_rank}" for worker in worker_group.workers}

    def _stop_workers(self, worker_group):
        self.calls.append("stop")

    def _monitor_workers(self, worker_group):
        assert [worker.id for worker in worker_group.workers] == ["id0", "id1"]
        state = self.states.pop(0)
        if isinstance(state, Exception):
            raise state
        return RunResult(state, {worker.global_rank: 5 for worker in worker_group.workers if state == SUCCEEDED})

    def _shutdown(self, death_sig=signal.SIGTERM, timeout=30):
        self.calls.append(f"end by {signal.Signals(death_sig).name} within {timeout}")


BEGIN, AGAIN, END = (
    ["meet", "start after INIT for node7"],
    ["stop", "meet", "start after STOPPED for node7"],
    ["end by SIGTERM within 7"],
)


@pytest.mark.parametrize(
    "states, waiting, restarts, last, calls",
    [
        ([HEALTHY, SUCCEEDED], (), 0, SUCCEEDED, BEGIN + END),
        ([HEALTHY, FAILED, SUCCEEDED], (), 1, SUCCEEDED, BEGIN + AGAIN + END),
        ([HEALTHY, HEALTHY, SUCCEEDED], [1], 0, SUCCEEDED, BEGIN + AGAIN + END),
        ([UNHEALTHY, FAILED], (), 1, FAILED, BEGIN + AGAIN + ["stop"] + END),
    ],
    ids=["no restart", "a failure", "a machine comes", "too many failures"],
)
def test_the_loop_of_an_agent(states, waiting, restarts, last, calls):
    """The calls are those that PyTorch's class makes."""
    handler = Alone(waiting)
    spec = WorkerSpec("t", 2, handler, entrypoint=max, monitor_interval=0.01, max_restarts=restarts)
    agent = Told(spec, states)
    result = agent.run()
    assert result.state == agent.get_worker_group().state == last
    assert result.return_values == ({0: 5, 1: 5} if last == SUCCEEDED else {})
    assert handler.calls == calls


def test_events_and_metrics_of_an_agent(monkeypatch):
    lines, values = [], []

    class Kept(logging.Handler):
        def emit(self, record):
            lines.append(json.loads(record.getMessage()))

    class Values(metrics.MetricHandler):
        def emit(self, metric_data):
            values.append((metric_data.name, metric_data.value))

    monkeypatch.setitem(events.handlers._log_handlers, "of_agents", Kept())
    monkeypatch.setitem(metrics.api._handlers, None, Values())
    spec = WorkerSpec(
        "t", 2, Alone(), entrypoint=max, monitor_interval=0.01, max_restarts=1, event_log_handler="of_agents"
    )
    agent = Told(spec, [FAILED, SUCCEEDED])
    agent.run()
    assert [line["name"] for line in lines] == ["torchelastic.worker.status.SUCCEEDED"] * 2
    found = [line["metadata"] for line in lines]
    assert [(one["global_rank"], one["role"], one["agent_restarts"], one["rdzv_backend"]) for one in found] == [
        (0, "t", 1, "mine"), (1, "t", 1, "mine")
    ]  # fmt: skip
    assert json.loads(found[1]["metadata"]) == {
        "group_world_size": 1, "entry_point": "max", "local_rank": [1], "role_rank": [1], "role_world_size": [2]
    }  # fmt: skip
    assert ("workers.t.remaining_restarts", 1) in values and ("workers.t.failed", 1) in values
    assert ("SimpleElasticAgent._rendezvous.success", 1) in values
    assert agent.get_event_succeeded().source is events.EventSource.AGENT
    try:
        raise ValueError("lost")
    except ValueError:
        assert "ValueError: lost" in agent.get_event_failed().metadata["raw_error"]
    lines.clear()
    failed = RunResult(FAILED, failures={1: ProcessFailure(1, 5, 3, "none")})
    agent._record_worker_events(failed)
    assert [line["metadata"]["state"] for line in lines] == ["TERMINATED", "FAILED"]
    logging.getLogger("torchelastic-events-of_agents").handlers.clear()


@needs_mpi
def test_a_timer_ends_a_process(monkeypatch):
    """It starts again, and stays in time."""
    monkeypatch.setenv("TORCHELASTIC_ENABLE_FILE_TIMER", "1")
    result = run(functions.overstays_at_first, size=1, max_restarts=1)
    assert result.return_values == {0: 1}
    assert "TORCHELASTIC_TIMER_FILE" not in os.environ


def test_errors_end_an_agent():
    for error, kind in (
        (WorkerState.UNKNOWN, Exception),
        (SignalException("ended", signal.SIGINT), SignalException),
        (rendezvous.RendezvousGracefulExitError("enough"), None),
    ):
        handler = Alone()
        agent = Told(WorkerSpec("t", 2, handler, entrypoint=max, monitor_interval=0.01), [error])
        if kind is None:
            assert agent.run() is None
        else:
            with pytest.raises(kind, match="UNKNOWN state|ended"):
                agent.run()
        number = "SIGINT" if kind is SignalException else "SIGTERM"
        assert handler.calls == [*BEGIN, f"end by {number} within 7"]


def test_specs_and_groups():
    handler = Alone()
    for wrong in ({"local_world_size": 0}, {"monitor_interval": 0}, {"entrypoint": None}):
        with pytest.raises(AssertionError):
            WorkerSpec(**{"role": "t", "local_world_size": 1, "rdzv_handler": handler, "entrypoint": max, **wrong})
    for name in ("numa_options", "virtual_local_rank"):
        with pytest.raises(NotImplementedError, match=name):
            WorkerSpec("t", 1, handler, entrypoint=max, **{name: "x"})
    with pytest.warns(DeprecationWarning, match="use WorkerSpec.entrypoint"):
        spec = WorkerSpec("t", 2, handler, fn=functions.reduced)
    assert spec.get_entrypoint_name() == "reduced"
    assert WorkerSpec("t", 1, handler, entrypoint="/usr/bin/python").get_entrypoint_name() == "python"
    group = WorkerGroup(spec)
    assert group.state == WorkerState.INIT and str(group.workers[1]) == str(Worker(1))
    assert str(Worker(0)) == "local_rank=0,global_rank=-1,role_rank=-1,world_size=-1,role_world_size=-1"
    with pytest.raises(TypeError, match="abstract"):
        SimpleElasticAgent(spec)


def test_ranks_of_machines_with_several_roles():
    """Ranks follow the machines; each role has numbers of its own."""
    store, found = dist.HashStore(), {}
    roles = [("train", 2), ("read", 1), ("train", 3)]

    def assign(rank):
        role, size = roles[rank]
        spec = WorkerSpec(role, size, Alone(), entrypoint=max)
        found[rank] = Told(spec, [])._assign_worker_ranks(store, rank, len(roles), spec)

    threads = [threading.Thread(target=assign, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ranks = [[(worker.global_rank, worker.role_rank, worker.role_world_size) for worker in found[n]] for n in range(3)]
    assert ranks == [[(0, 0, 5), (1, 1, 5)], [(2, 0, 1)], [(3, 2, 5), (4, 3, 5), (5, 4, 5)]]
    assert {worker.world_size for workers in found.values() for worker in workers} == {6}


def meeting(**options):
    return get_rendezvous_handler(rendezvous.RendezvousParameters("c10d", "", "run", 1, 1, **options))


def run(entrypoint, *args, size=2, method="fork", **options):
    """The result of an agent of one machine."""
    handler = meeting()
    try:
        spec = WorkerSpec("trainer", size, handler, entrypoint=entrypoint, args=args, **options)
        return LocalElasticAgent(spec, DefaultLogsSpecs(), start_method=method).run()
    finally:
        assert handler.shutdown()


@needs_mpi
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_function_on_two_ranks(method):
    result = run(functions.reduced, 3, method=method)
    assert result.state == SUCCEEDED
    assert result.return_values == {0: ([7.0, 7.0], 0, "0"), 1: ([7.0, 7.0], 1, "1")}


def test_restarts_and_failures(tmp_path):
    assert run(functions.fails_at_first, str(tmp_path)).return_values == {0: 1, 1: 1}
    began = time.monotonic()
    result = run(functions.fails_on_rank_1, 60, max_restarts=0)
    assert time.monotonic() - began < 30
    assert result.is_failed() and list(result.failures) == [1]
    assert result.failures[1].message["message"] == "ValueError: rank 1 cannot"


def test_a_command(monkeypatch):
    """It has torchrun's variables, and keeps the number of threads that the user has set."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    program = (
        "import os, sys; names = 'LOCAL_RANK RANK ROLE_NAME WORLD_SIZE TORCHELASTIC_RUN_ID OMP_NUM_THREADS'.split()\n"
        "sys.exit([os.environ[name] for name in names] != [sys.argv[1], sys.argv[1], 'trainer', '2', 'run', '3'])"
    )
    result = run(sys.executable, "-c", program, "${local_rank}", max_restarts=0)
    assert result.state == SUCCEEDED and result.return_values == {0: None, 1: None}


def test_a_signal_ends_the_processes(tmp_path):
    before = signal.getsignal(signal.SIGTERM)

    def end_it():
        while not (tmp_path / "alone").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=end_it)
    thread.start()
    began = time.monotonic()
    with pytest.raises(SignalException, match="got signal: 15"):
        run(functions.waits_for_a_world_of_two, str(tmp_path), size=1)
    thread.join()
    assert time.monotonic() - began < 30 and signal.getsignal(signal.SIGTERM) is before


def machine(port, low, high, size, entrypoint, *args, **options):
    """A program that is the agent of a machine; it prints the results or failures by rank."""
    limits = "join_timeout=60, last_call_timeout=1, keep_alive_interval=1, keep_alive_max_attempt=5"
    program = (
        "import json\nfrom tests.distributed import launched_functions as functions\n"
        "from tests.distributed.test_elastic_agent import *\n"
        f"where = rendezvous.RendezvousParameters('c10d', '127.0.0.1:{port}', 'x', {low}, {high}, {limits})\n"
        "handler = get_rendezvous_handler(where)\n"
        f"spec = WorkerSpec('t', {size}, handler, entrypoint=functions.{entrypoint}, args={args}, **{options})\n"
        "result = LocalElasticAgent(spec, DefaultLogsSpecs(), start_method='fork').run()\n"
        "handler.shutdown()\n"
        "print('state', result.state.name, json.dumps(result.return_values), flush=True)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def values(output):
    words = output.splitlines()[-1].split(" ", 2)
    assert words[:2] == ["state", "SUCCEEDED"], output
    return {int(rank): value for rank, value in json.loads(words[2]).items()}


@needs_mpi
def test_two_machines_with_different_numbers_of_processes():
    port = free_port()
    codes, outputs = end([machine(port, 2, 2, size, "reduced", 3) for size in (1, 2)])
    assert codes == [0, 0], outputs
    found = {rank: value for output in outputs for rank, value in values(output).items()}
    assert {rank: value[:2] for rank, value in found.items()} == {rank: [[12.0, 12.0], rank] for rank in range(3)}


def test_a_machine_comes_and_a_process_fails(tmp_path):
    """All start again when the second machine comes, and when its process has failed."""
    port = free_port()
    first = machine(port, 1, 2, 1, "waits_for_a_world_of_two", str(tmp_path), max_restarts=0)
    started = [first]
    try:
        limit = time.monotonic() + 60
        while not (tmp_path / "alone").exists():
            assert time.monotonic() < limit and first.poll() is None
            time.sleep(0.05)
        started.append(machine(port, 1, 2, 1, "waits_for_a_world_of_two", str(tmp_path), max_restarts=1))
    finally:
        codes, outputs = end(started)
    assert codes == [0, 0], outputs
    assert sorted([*values(outputs[0]).items(), *values(outputs[1]).items()]) == [(0, "0 of 2"), (1, "1 of 2")]
    assert (tmp_path / "failed").exists()


def test_handlers():
    """The kinds that torchlite has, and errors of a meeting."""
    handler = meeting()
    assert (handler.get_backend(), handler.get_run_id(), handler.use_agent_store) == ("c10d", "run", False)
    info = handler.next_rendezvous()
    assert (info.rank, info.world_size) == (0, 1) and info.bootstrap_store_info.master_port > 0
    info.store.set("a", "b")
    assert handler.num_nodes_waiting() == 0 and not handler.is_closed()
    handler.set_closed()
    assert handler.is_closed() and handler.num_nodes_waiting() == 1  # an agent's next meeting tells it
    with pytest.raises(rendezvous.RendezvousClosedError, match="another machine has closed the run"):
        handler.next_rendezvous()
    assert handler.shutdown() and handler.shutdown()
    few = rendezvous.RendezvousParameters("c10d", f"127.0.0.1:{free_port()}", "run", 2, 2, join_timeout=0.5)
    handler = get_rendezvous_handler(few)
    with pytest.raises(rendezvous.RendezvousTimeoutError, match="1 of 2"):
        handler.next_rendezvous()
    assert handler.shutdown()
    nobody = rendezvous.RendezvousParameters("c10d", f"192.0.2.1:{free_port()}", "run", 2, 2, read_timeout=0.5)
    with pytest.raises(rendezvous.RendezvousConnectionError, match="the store of the machines was lost"):
        get_rendezvous_handler(nobody).next_rendezvous()
    with pytest.raises(ValueError, match="The rendezvous backend 'etcd' is not registered"):
        get_rendezvous_handler(rendezvous.RendezvousParameters("etcd", "", "run", 1, 1))
    with pytest.raises(ValueError, match="Endpoint is missing"):
        get_rendezvous_handler(rendezvous.RendezvousParameters("static", "", "run", 1, 1))


def run_alone(entrypoint, *args, max_restarts=0, **options):
    """Run a function in one process under an agent."""
    spec = WorkerSpec("t", 1, Alone(), entrypoint=entrypoint, args=args, max_restarts=max_restarts)
    return LocalElasticAgent(spec, DefaultLogsSpecs(), "fork", shutdown_timeout=5, **options).run()


def test_health_checks(monkeypatch):
    last = [time.time()]
    server = HealthCheckServer(lambda: int(last[0]), 0, timeout=60)
    server.stop()  # it was not started
    server.start()
    assert functions.health(server.port) == 200
    last[0] -= 100
    assert functions.health(server.port) == 503
    assert run_alone(functions.health, server.port, health_check_server=server).return_values == {0: 503}
    with pytest.raises(OSError):
        functions.health(server.port)  # the agent has stopped it

    port = free_port()
    monkeypatch.setenv("TORCHELASTIC_HEALTH_CHECK_PORT", str(port))
    assert run_alone(functions.health, port).return_values == {0: 200}


def test_processes_that_sleep_in_the_kernel_start_again(monkeypatch, tmp_path):
    monkeypatch.setattr(local_elastic_agent, "read_proc_state", lambda pid: "D")
    began = time.monotonic()
    result = run_alone(functions.notes_and_waits, str(tmp_path), max_restarts=1, uninterruptible_state_timeout=1)
    assert result.state is UNHEALTHY and time.monotonic() - began < 60
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]  # two attempts
    monkeypatch.setenv("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "0.1")
    assert run_alone(functions.waits).state is UNHEALTHY
    monkeypatch.setattr(local_elastic_agent, "read_proc_state", lambda pid: "S")
    assert run_alone(functions.says).state is SUCCEEDED
