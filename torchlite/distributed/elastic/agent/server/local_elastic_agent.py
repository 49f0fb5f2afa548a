"""The agent that starts processes of a function or a command on its machine."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from typing import Any

from torchlite._settings.module_dir import make_module_dir
from torchlite._settings.temporary_folders import process_folder

from ...._launch.elastic_agent import handle_signals
from ...._launch.rank_starter import start_ranks
from ...multiprocessing import LogsSpecs, PContext, SignalException
from ...timer import FileTimerServer
from .api import RunResult, SimpleElasticAgent, WorkerGroup, WorkerSpec, WorkerState

__all__ = ["LocalElasticAgent"]

_SIGNALS = "TORCHELASTIC_SIGNALS_TO_HANDLE"
_TIMERS, _TIMER_FILE = "TORCHELASTIC_ENABLE_FILE_TIMER", "TORCHELASTIC_TIMER_FILE"


def _signals_as_errors() -> contextlib.AbstractContextManager[None]:
    """Raise SignalException in the main thread at the first signal; later ones are ignored."""
    came = list[int]()

    def end(number: int, _: Any) -> None:
        if not came:
            came.append(number)
            raise SignalException(f"Process {os.getpid()} got signal: {number}", signal.Signals(number))

    return handle_signals(os.environ.get(_SIGNALS, "SIGTERM,SIGINT,SIGHUP,SIGQUIT"), end)


@contextlib.contextmanager
def _file_timers(run_id: str) -> Iterator[None]:
    """Serve the timers of the processes, if a variable asks for it; another variable tells them the pipe."""
    if os.environ.get(_TIMERS) != "1":
        yield
        return
    given = os.environ.get(_TIMER_FILE)
    path = given or os.path.join(tempfile.mkdtemp(prefix="timers_", dir=process_folder()), "requests")
    server = FileTimerServer(path, run_id, max_interval=1)
    os.environ[_TIMER_FILE] = path
    server.start()
    try:
        yield
    finally:
        server.stop()
        if given is None:
            del os.environ[_TIMER_FILE]


class LocalElasticAgent(SimpleElasticAgent):
    """Agent of processes on this machine, which run a function or a command.

    Their variables are torchrun's: ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and others, so `init_process_group` needs
    no arguments. Signals that the variable ``TORCHELASTIC_SIGNALS_TO_HANDLE`` names end the run; those of its default
    are SIGTERM, SIGINT, SIGHUP and SIGQUIT. With ``TORCHELASTIC_ENABLE_FILE_TIMER=1`` the agent serves timers at the
    pipe that the variable ``TORCHELASTIC_TIMER_FILE`` names in the processes (`torch.distributed.elastic.timer`).

    Args:
        spec: What the processes run.
        logs_specs: Where their output goes.
        start_method: "spawn" (default), "fork" or "forkserver", for functions.
        exit_barrier_timeout: Seconds to wait for the other machines at the end. Default: 300.
        log_line_prefix_template: Prefix of shown lines, in which ``${role_name}``, ``${rank}`` and ``${local_rank}``
            are replaced.
        shutdown_timeout: Seconds that processes have to end after a signal. Default: 30.
        health_check_server: Must be ``None``.
        uninterruptible_state_timeout: Must be ``None``.

    Raises:
        NotImplementedError: An argument has no effect here.

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
        health_check_server: Any = None,
        uninterruptible_state_timeout: float | None = None,
    ) -> None:
        super().__init__(spec, exit_barrier_timeout, shutdown_timeout)
        if health_check_server is not None or uninterruptible_state_timeout is not None:
            raise NotImplementedError(
                "LocalElasticAgent: health_check_server and uninterruptible_state_timeout are not supported"
            )
        self._logs_specs, self._start_method, self._prefix = logs_specs, start_method, log_line_prefix_template
        self._pcontext: PContext | None = None

    def run(self, role: str = "default") -> RunResult:
        """Runs until the processes have ended; see `SimpleElasticAgent.run`.

        Args:
            role: Has no effect: the role is the spec's.
        """
        with _signals_as_errors(), _file_timers(self._worker_group.spec.rdzv_handler.get_run_id()):
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
            return RunResult(WorkerState.HEALTHY)
        ranks = {worker.local_rank: worker.global_rank for worker in worker_group.workers}
        if result.is_failed():
            failures = {ranks[local_rank]: failure for local_rank, failure in result.failures.items()}
            return RunResult(WorkerState.FAILED, failures=failures)
        values = {ranks[local_rank]: value for local_rank, value in result.return_values.items()}
        return RunResult(WorkerState.SUCCEEDED, values)

    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        self._shutdown(timeout=self._shutdown_timeout)

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        if self._pcontext is not None:
            self._pcontext.close(death_sig, timeout)


__dir__ = make_module_dir(globals())
