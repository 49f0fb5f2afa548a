"""The agent that watches the processes of a machine: what it starts, its loop, states and result.

`local_elastic_agent.LocalElasticAgent` starts processes; a subclass of `SimpleElasticAgent` starts what it likes.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ...events import Event, EventSource, record
from ...metrics import prof, put_metric
from ...multiprocessing.api import SignalException
from ...multiprocessing.errors import ProcessFailure
from ...rendezvous.api import RendezvousGracefulExitError, RendezvousHandler

__all__ = ["ElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState"]

_logger = logging.getLogger(__name__)


@dataclass
class WorkerSpec:
    """Description of the processes of an agent, and of the meeting of its machine with the others.

    Args:
        role: A name of the processes.
        local_world_size: How many there are on this machine.
        rdzv_handler: The meeting of the machines, as from `get_rendezvous_handler`.
        fn: The former name of ``entrypoint``.
        entrypoint: The function, or the command.
        args: Its arguments. In those that are text, ``${local_rank}`` is replaced.
        max_restarts: How often all processes start again after one failed. Default: 3.
        monitor_interval: Seconds between two looks at the processes. Default: 0.1.
        master_port: The port of the ranks' store. Default: from the meeting.
        master_addr: Its address. Default: from the meeting.
        local_addr: This machine's address, for a program's own agents. The meeting has one of its own.
        event_log_handler: Gets the events of the processes; see `torch.distributed.elastic.events`. Default: "null".
        numa_options: Must be ``None``.
        duplicate_stdout_filters: Lines of shown output that contain one of these go to a file of all processes too.
        duplicate_stderr_filters: The same for errors.
        virtual_local_rank: Must be ``False``.

    Raises:
        AssertionError: There is no function or command, or a number is not positive.
        NotImplementedError: A setting has no effect here.

    Example:
        >>> import math
        >>> from torchlite.distributed.elastic.agent.server import WorkerSpec
        >>> WorkerSpec("trainer", 2, None, entrypoint=math.sqrt, args=(9.0,)).get_entrypoint_name()
        'sqrt'
    """

    role: str
    local_world_size: int
    rdzv_handler: RendezvousHandler
    fn: Callable[..., Any] | None = None
    entrypoint: Callable[..., Any] | str | None = None
    args: tuple[Any, ...] = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: int | None = None
    master_addr: str | None = None
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False

    def __post_init__(self) -> None:
        if self.local_world_size <= 0:
            raise AssertionError(f"local_world_size must be positive, got {self.local_world_size}")
        if self.monitor_interval <= 0:
            raise AssertionError(f"monitor_interval must be positive, got {self.monitor_interval}")
        if self.fn:
            warnings.warn(
                "WorkerSpec.fn is deprecated: use WorkerSpec.entrypoint", category=DeprecationWarning, stacklevel=3
            )
            self.entrypoint = self.fn
        if not self.entrypoint:
            raise AssertionError("a WorkerSpec needs an entrypoint")
        for name, given in (("numa_options", self.numa_options), ("virtual_local_rank", self.virtual_local_rank)):
            if given:
                raise NotImplementedError(f"WorkerSpec: {name} is not supported")

    def get_entrypoint_name(self) -> str:
        """Returns the function's qualified name, or the command's without its folder."""
        if isinstance(self.entrypoint, str):
            return os.path.basename(self.entrypoint)
        assert self.entrypoint is not None
        return self.entrypoint.__qualname__


class Worker:
    """A process of an agent. Its attribute ``id`` is what `SimpleElasticAgent._start_workers` returned for it.

    Args:
        local_rank: Its number on this machine.
        global_rank: Its rank; -1 before the machines have met, as the following ones.
        role_rank: Its number among the processes of its role.
        world_size: How many processes there are.
        role_world_size: How many have its role.

    Example:
        >>> from torchlite.distributed.elastic.agent.server import Worker
        >>> Worker(1, global_rank=3, role_rank=3, world_size=4, role_world_size=4)
        local_rank=1,global_rank=3,role_rank=3,world_size=4,role_world_size=4
    """

    __slots__ = ("global_rank", "id", "local_rank", "role_rank", "role_world_size", "world_size")

    def __init__(
        self,
        local_rank: int,
        global_rank: int = -1,
        role_rank: int = -1,
        world_size: int = -1,
        role_world_size: int = -1,
    ) -> None:
        self.id: Any = None
        self.local_rank, self.global_rank, self.role_rank = local_rank, global_rank, role_rank
        self.world_size, self.role_world_size = world_size, role_world_size

    def __repr__(self) -> str:
        names = ("local_rank", "global_rank", "role_rank", "world_size", "role_world_size")
        return ",".join(f"{name}={getattr(self, name)}" for name in names)


class WorkerState(str, Enum):  # noqa: UP042 -- str(state) is PyTorch's
    """State of the processes of a machine.

    Example:
        >>> from torchlite.distributed.elastic.agent.server import WorkerState
        >>> WorkerState.is_running(WorkerState.HEALTHY), WorkerState.is_running(WorkerState.FAILED)
        (True, False)
    """

    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state: WorkerState) -> bool:
        """Returns whether processes in this state run.

        Args:
            state: The state.

        Example:
            >>> from torchlite.distributed.elastic.agent.server import WorkerState
            >>> WorkerState.is_running(WorkerState.STOPPED)
            False
        """
        return state in (WorkerState.HEALTHY, WorkerState.UNHEALTHY)


class WorkerGroup:
    """The processes of a machine, their state, and the outcome of the last meeting.

    Args:
        spec: What they run.

    Example:
        >>> from torchlite.distributed.elastic.agent.server import WorkerGroup, WorkerSpec
        >>> group = WorkerGroup(WorkerSpec("trainer", 2, None, entrypoint=max))
        >>> group.state.name, [worker.local_rank for worker in group.workers]
        ('INIT', [0, 1])
    """

    __slots__ = (
        "group_rank", "group_world_size", "master_addr", "master_port", "spec", "state", "store", "workers"
    )  # fmt: skip

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec, self.state = spec, WorkerState.INIT
        self.workers = [Worker(local_rank) for local_rank in range(spec.local_world_size)]
        self.store: Any = None
        self.group_rank: int | None = None
        self.group_world_size: int | None = None
        self.master_addr: str | None = None
        self.master_port: int | None = None


@dataclass
class RunResult:
    """The outcome of a run on a machine: what ranks returned, or how they failed.

    Args:
        state: The last state.
        return_values: By rank.
        failures: By rank.

    Example:
        >>> from torchlite.distributed.elastic.agent.server import RunResult, WorkerState
        >>> RunResult(WorkerState.SUCCEEDED, {0: 3}).is_failed()
        False
    """

    state: WorkerState
    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Returns whether the run failed."""
        return self.state == WorkerState.FAILED


class ElasticAgent(ABC):
    """Interface of an agent, which watches the processes of a machine.

    Example:
        >>> from torchlite.distributed.elastic.agent.server import ElasticAgent
        >>> sorted(ElasticAgent.__abstractmethods__)
        ['get_worker_group', 'run']
    """

    @abstractmethod
    def run(self, role: str = "default") -> RunResult:
        """Runs until the processes have ended.

        Args:
            role: Their role.
        """

    @abstractmethod
    def get_worker_group(self, role: str = "default") -> WorkerGroup:
        """Returns the processes.

        Args:
            role: Their role.
        """


class SimpleElasticAgent(ElasticAgent):
    """Agent of one group of processes, which a subclass starts, looks at and stops.

    The machines meet, and the processes start. If one fails, all start again after another meeting, as often as the
    spec allows. If another machine waits, they start again without that. After the end of its own processes the agent
    waits for the other machines.

    Args:
        spec: What the processes run.
        exit_barrier_timeout: Seconds to wait for the other machines at the end. Default: 300.
        shutdown_timeout: Seconds that processes have to end after a signal. Default: 30.

    Example:
        A group without processes, which ends at the first look::

            class Nothing(SimpleElasticAgent):
                def _start_workers(self, worker_group):
                    return {worker.local_rank: None for worker in worker_group.workers}

                def _monitor_workers(self, worker_group):
                    return RunResult(WorkerState.SUCCEEDED)

                def _stop_workers(self, worker_group):
                    pass

                def _shutdown(self, death_sig=signal.SIGTERM, timeout=30):
                    pass
    """

    def __init__(self, spec: WorkerSpec, exit_barrier_timeout: float = 300, shutdown_timeout: int = 30) -> None:
        self._worker_group = WorkerGroup(spec)
        self._remaining_restarts = spec.max_restarts
        self._store: Any = None
        self._exit_barrier_timeout, self._shutdown_timeout = exit_barrier_timeout, shutdown_timeout
        self._total_execution_time = 0

    def get_worker_group(self, role: str = "default") -> WorkerGroup:
        """Returns the processes.

        Args:
            role: Has no effect: there is one group.
        """
        return self._worker_group

    @abstractmethod
    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        """Start the processes; return an identity of each by local rank."""

    @abstractmethod
    def _stop_workers(self, worker_group: WorkerGroup) -> None:
        """Stop the processes that there are, in any state."""

    @abstractmethod
    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        """Return the present state of the processes, with results or failures by rank."""

    @abstractmethod
    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, timeout: int = 30) -> None:
        """Release what the agent has, and end the processes that run: by a signal, later by SIGKILL."""

    def run(self, role: str = "default") -> RunResult:
        """Runs until the processes have ended, or failed more often than they may start again.

        Args:
            role: Has no effect: the role is the spec's.

        Returns:
            The results or failures of this machine's processes, by rank. ``None`` if the machine was not needed.

        Raises:
            SignalException: A signal ended the run.
            RendezvousClosedError: The run has ended on another machine.
            RendezvousTimeoutError: Too few machines came.
        """
        began, number = time.monotonic(), signal.SIGTERM
        try:
            result = self._invoke_run(role)
            self._total_execution_time = int(time.monotonic() - began)
            self._record_worker_events(result)
            return result
        except RendezvousGracefulExitError as error:
            _logger.info("this machine is not needed: %s", error)
            return None  # type: ignore[return-value]  # as PyTorch's
        except SignalException as error:
            number = error.sigval
            raise
        finally:
            self._shutdown(number, timeout=self._shutdown_timeout)
            self._total_execution_time = int(time.monotonic() - began)

    def _invoke_run(self, role: str = "default") -> RunResult:
        group = self._worker_group
        self._initialize_workers(group)
        while True:
            time.sleep(group.spec.monitor_interval)
            result = self._monitor_workers(group)
            group.state = result.state
            put_metric(f"workers.{group.spec.role}.remaining_restarts", self._remaining_restarts)
            put_metric(f"workers.{group.spec.role}.{result.state.name.lower()}", 1)
            if result.state == WorkerState.SUCCEEDED:
                self._exit_barrier()
                return result
            if result.state in (WorkerState.UNHEALTHY, WorkerState.FAILED):
                if self._remaining_restarts <= 0:
                    self._stop_workers(group)
                    group.state = WorkerState.FAILED
                    return result
                self._remaining_restarts -= 1
                self._restart_workers(group)
            elif result.state != WorkerState.HEALTHY:
                raise Exception(f"[{group.spec.role}] Worker group in {result.state.name} state")
            elif group.spec.rdzv_handler.num_nodes_waiting() > 0:
                self._restart_workers(group)

    # -- events

    def get_event_succeeded(self) -> Event:
        """Returns an event of the agent: its processes have ended well."""
        return self._construct_event("SUCCEEDED", EventSource.AGENT)

    def get_event_failed(self) -> Event:
        """Returns an event of the agent: an error is being handled, whose traceback the event has."""
        return self._construct_event("FAILED", EventSource.AGENT, raw_error=traceback.format_exc())

    def _record_worker_events(self, result: RunResult) -> None:
        """Record how each process of this machine ended."""
        group = self._worker_group
        for worker in group.workers:
            failure = result.failures.get(worker.global_rank)
            ended = "TERMINATED" if result.is_failed() else "SUCCEEDED"
            error = None if failure is None else json.dumps(failure.error_file_data)
            event = self._construct_event("FAILED" if failure else ended, EventSource.WORKER, worker, error)
            record(event, group.spec.event_log_handler)

    def _construct_event(
        self, state: str, source: EventSource, worker: Worker | None = None, raw_error: str | None = None
    ) -> Event:
        group = self._worker_group
        spec = group.spec
        where = {
            "group_world_size": group.group_world_size, "entry_point": spec.get_entrypoint_name(),
            **({} if worker is None else {
                "local_rank": [worker.local_rank], "role_rank": [worker.role_rank],
                "role_world_size": [worker.role_world_size],
            }),
        }  # fmt: skip
        return Event(f"torchelastic.worker.status.{state}", source, metadata={
            "run_id": spec.rdzv_handler.get_run_id(), "rdzv_backend": spec.rdzv_handler.get_backend(),
            "group_rank": group.group_rank, "global_rank": None if worker is None else worker.global_rank,
            "worker_id": None if worker is None else str(worker.id), "role": spec.role,
            "hostname": socket.getfqdn(), "state": state, "total_run_time": self._total_execution_time,
            "raw_error": raw_error, "metadata": json.dumps(where),
            "agent_restarts": spec.max_restarts - self._remaining_restarts,
        })  # fmt: skip

    # -- starting

    @prof
    def _initialize_workers(self, worker_group: WorkerGroup) -> None:
        self._rendezvous(worker_group)
        for local_rank, name in self._start_workers(worker_group).items():
            worker_group.workers[local_rank].id = name
        worker_group.state = WorkerState.HEALTHY

    @prof
    def _restart_workers(self, worker_group: WorkerGroup) -> None:
        self._stop_workers(worker_group)
        worker_group.state = WorkerState.STOPPED
        self._initialize_workers(worker_group)

    @prof
    def _rendezvous(self, worker_group: WorkerGroup) -> None:
        """Meet the other machines, and give ranks to the processes."""
        spec = worker_group.spec
        met = spec.rdzv_handler.next_rendezvous()
        where = met.bootstrap_store_info
        self._store = worker_group.store = met.store
        worker_group.group_rank, worker_group.group_world_size = met.rank, met.world_size
        worker_group.master_addr = spec.master_addr or (where.master_addr if where is not None else None)
        worker_group.master_port = spec.master_port or (where.master_port if where is not None else None)
        worker_group.workers = self._assign_worker_ranks(met.store, met.rank, met.world_size, spec)

    @prof
    def _assign_worker_ranks(
        self, store: Any, group_rank: int, group_world_size: int, spec: WorkerSpec
    ) -> list[Worker]:
        """Return this machine's processes, which have the ranks behind those of the machines before it."""
        here = {"role": spec.role, "processes": spec.local_world_size}
        store.set(f"torchelastic/role_info/{group_rank}", json.dumps(here))
        machines = [json.loads(store.get(f"torchelastic/role_info/{rank}")) for rank in range(group_world_size)]
        before = sum(machine["processes"] for machine in machines[:group_rank])
        size = sum(machine["processes"] for machine in machines)
        same = [machine["processes"] if machine["role"] == spec.role else 0 for machine in machines]
        role_before, role_size = sum(same[:group_rank]), sum(same)
        return [
            Worker(local_rank, before + local_rank, role_before + local_rank, size, role_size)
            for local_rank in range(spec.local_world_size)
        ]

    def _exit_barrier(self) -> None:
        """Wait until the processes of all machines have ended, for some time at most."""
        group = self._worker_group
        if self._store is None or group.group_world_size is None:
            return
        keys = [f"torchelastic/agent/terminal_state/{rank}" for rank in range(group.group_world_size)]
        try:
            self._store.set(keys[group.group_rank or 0], "ended")
            self._store.wait(keys, timedelta(seconds=self._exit_barrier_timeout))
        except RuntimeError as error:  # the others take longer, or the machine of the store has ended
            _logger.warning("[%s] the end of the other machines was not seen: %s", group.spec.role, error)


__dir__ = make_module_dir(globals())
