"""The agent that starts processes of a function or a command on its machine."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from torchlite._settings.module_dir import make_module_dir
from torchlite._settings.temporary_folders import process_folder

from ...._launch.elastic_agent import handle_signals
from ...._launch.rank_starter import start_ranks
from ...multiprocessing import LogsSpecs, PContext, SignalException
from ...timer import FileTimerServer
from ...utils.process_state import is_uninterruptible_state, read_proc_state
from .api import RunResult, SimpleElasticAgent, WorkerGroup, WorkerSpec, WorkerState
from .health_check_server import HealthCheckServer, create_healthcheck_server

__all__ = ["LocalElasticAgent"]

_SIGNALS = "TORCHELASTIC_SIGNALS_TO_HANDLE"
_HEALTH_PORT, _HEALTH_TIMEOUT = "TORCHELASTIC_HEALTH_CHECK_PORT", 60  # seconds
_UNINTERRUPTIBLE = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"
_TIMERS, _TIMER_FILE = "TORCHELASTIC_ENABLE_FILE_TIMER", "TORCHELASTIC_TIMER_FILE"


def _signals_as_errors(names: str | None) -> contextlib.AbstractContextManager[None]:
    """Raise SignalException in the main thread at the first of these signals, by default those of the variable; later
    ones are ignored.
    """
    came = list[int]()

    def end(number: int, _: Any) -> None:
        if not came:
            came.append(number)
            raise SignalException(f"Process {os.getpid()} got signal: {number}", signal.Signals(number))

    if names is None:
        names = os.environ.get(_SIGNALS, "SIGTERM,SIGINT,SIGHUP,SIGQUIT")
    return handle_signals(names, end)


@contextlib.contextmanager
def _file_timers(run_id: str) -> Iterator[Callable[[], int]]:
    """Serve the timers of the processes, if a variable asks for it; another variable tells them the pipe. Give what
    returns the time of the last progress.
    """
    if os.environ.get(_TIMERS) != "1":
        yield lambda: int(time.time())
        return
    given = os.environ.get(_TIMER_FILE)
    path = given or os.path.join(tempfile.mkdtemp(prefix="timers_", dir=process_folder()), "requests")
    server = FileTimerServer(path, run_id, max_interval=1)
    os.environ[_TIMER_FILE] = path
    server.start()
    try:
        yield server.get_last_progress_time
    finally:
        server.stop()
        if given is None:
            del os.environ[_TIMER_FILE]


@contextlib.contextmanager
def _health_check(given: HealthCheckServer | None, alive_callback: Callable[[], int]) -> Iterator[None]:
    """Serve health checks by the given server, or by one of our own if a variable has its port."""
    port = os.environ.get(_HEALTH_PORT)
    if given is None and port:
        given = create_healthcheck_server(alive_callback, int(port), _HEALTH_TIMEOUT)
        given.start()
    try:
        yield
    finally:
        if given is not None:
            given.stop()


def _uninterruptible_timeout(given: float | None) -> float:
    """The given limit in seconds, else the variable's; 0 for none."""
    return max(0.0, float(os.environ.get(_UNINTERRUPTIBLE) or 0) if given is None else given)


class LocalElasticAgent(SimpleElasticAgent):
    """Agent of processes on this machine, which run a function or a command.

    Their variables are torchrun's: ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and others, so `init_process_group` needs
    no arguments. Signals that the variable ``TORCHELASTIC_SIGNALS_TO_HANDLE`` names end the run; those of its default
    are SIGTERM, SIGINT, SIGHUP and SIGQUIT. With ``TORCHELASTIC_ENABLE_FILE_TIMER=1`` the agent serves timers at the
    pipe that the variable ``TORCHELASTIC_TIMER_FILE`` names in the processes (`torch.distributed.elastic.timer`). With
    a port in ``TORCHELASTIC_HEALTH_CHECK_PORT`` a `HealthCheckServer` answers there; the last progress is that of the
    timers' server.

    Args:
        spec: What the processes run.
        logs_specs: Where their output goes.
        start_method: "spawn" (default), "fork" or "forkserver", for functions.
        exit_barrier_timeout: Seconds to wait for the other machines at the end. Default: 300.
        log_line_prefix_template: Prefix of shown lines, in which ``${role_name}``, ``${rank}`` and ``${local_rank}``
            are replaced.
        shutdown_timeout: Seconds that processes have to end after a signal. Default: 30.
        health_check_server: A server that the program has started; the agent stops it at the end.
        uninterruptible_state_timeout: Seconds after which a process that sleeps in the kernel counts as failed, so
            that all start again. Default: the variable ``TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT``, else no limit.

    Example:
        >>> import math
        >>> from torchlite.distributed.elastic.agent.server import WorkerSpec
        >>> from torchlite.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
        >>> from torchlite.distributed.elastic.multiprocessing import DefaultLogsSpecs
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousParameters
        >>> from torchlite.distributed.elastic.rendezvous.registry import get_rendezvous_handler
        >>> meeting = get_rendezvous_handler(RendezvousParameters("c10d", "", "run", 1, 1))
        >>> spec = WorkerSpec("trainer", 2, meeting, entrypoint=math.sqrt, args=(9.0,))
        >>> LocalElasticAgent(spec, DefaultLogsSpecs(), start_method="fork").run().return_values
        {0: 3.0, 1: 3.0}
        >>> meeting.shutdown()
        True
    """

    def __init__(
        self,
        spec: WorkerSpec,
        logs_specs: LogsSpecs,
        start_method: str = "spawn",
        exit_barrier_timeout: float = 300,
        log_line_prefix_template: str | None = None,
        shutdown_timeout: int = 30,
        health_check_server: HealthCheckServer | None = None,
        uninterruptible_state_timeout: float | None = None,
    ) -> None:
        super().__init__(spec, exit_barrier_timeout, shutdown_timeout)
        self._health_check_server = health_check_server
        self._uninterruptible_timeout = _uninterruptible_timeout(uninterruptible_state_timeout)
        self._uninterruptible_since: dict[int, float] = {}  # by the process's number
        self._logs_specs, self._start_method, self._prefix = logs_specs, start_method, log_line_prefix_template
        self._pcontext: PContext | None = None
        self._signals: str | None = None  # of a launcher, in the place of the variable's

    def run(self, role: str = "default") -> RunResult:
        """Runs until the processes have ended; see `SimpleElasticAgent.run`.

        Args:
            role: Has no effect: the role is the spec's.
        """
        timers = _file_timers(self._worker_group.spec.rdzv_handler.get_run_id())
        with (
            _signals_as_errors(self._signals),
            timers as last_progress,
            _health_check(self._health_check_server, last_progress),
        ):
            return super().run(role)

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        spec = worker_group.spec
        assert worker_group.group_rank is not None
        restart = spec.max_restarts - self._remaining_restarts
        options = {
            "role": spec.role, "per_node": spec.local_world_size, "nodes": worker_group.group_world_size,
            "master_addr": worker_group.master_addr, "master_port": worker_group.master_port,
            "run_id": spec.rdzv_handler.get_run_id(), "restart": restart, "max_restarts": spec.max_restarts,
            "agent_store": spec.rdzv_handler.use_agent_store,
            "folder": tempfile.mkdtemp(prefix="agent_", dir=process_folder()),
        }  # fmt: skip
        places = [
            {
                "rank": worker.global_rank, "size": worker.world_size, "local_rank": worker.local_rank,
                "local_size": spec.local_world_size, "node": worker_group.group_rank, "role_rank": worker.role_rank,
                "role_size": worker.role_world_size,
            }
            for worker in worker_group.workers
        ]  # fmt: skip
        self._pcontext = start_ranks(
            options, places, str(options["folder"]), spec.entrypoint, spec.args, self._logs_specs, self._start_method,
            self._prefix, (spec.duplicate_stdout_filters, spec.duplicate_stderr_filters),
        )  # fmt: skip
        return dict(self._pcontext.pids())

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        context = self._pcontext
        if context is None or {worker.id for worker in worker_group.workers} != set(context.pids().values()):
            return RunResult(WorkerState.UNKNOWN)
        result = context.wait(0)
        if result is None:
            return RunResult(WorkerState.UNHEALTHY if self._is_uninterruptible() else WorkerState.HEALTHY)
        ranks = {worker.local_rank: worker.global_rank for worker in worker_group.workers}
        if result.is_failed():
            failures = {ranks[local_rank]: failure for local_rank, failure in result.failures.items()}
            return RunResult(WorkerState.FAILED, failures=failures)
        values = {ranks[local_rank]: value for local_rank, value in result.return_values.items()}
        return RunResult(WorkerState.SUCCEEDED, values)

    def _is_uninterruptible(self) -> bool:
        """True if a process sleeps in the kernel for longer than the limit."""
        if not self._uninterruptible_timeout or self._pcontext is None:
            return False
        now, before = time.monotonic(), self._uninterruptible_since
        asleep = [pid for pid in self._pcontext.pids().values() if is_uninterruptible_state(read_proc_state(pid))]
        self._uninterruptible_since = {pid: before.get(pid, now) for pid in asleep}
        return any(now - since >= self._uninterruptible_timeout for since in self._uninterruptible_since.values())

    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        self._shutdown(timeout=self._shutdown_timeout)

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        if self._pcontext is not None:
            self._pcontext.close(death_sig, timeout)


__dir__ = make_module_dir(globals())
