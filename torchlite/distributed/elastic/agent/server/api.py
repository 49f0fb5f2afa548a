"""Names of the agent that watches the processes of a machine: its interface, states and result.

`torch.distributed.launcher.api.launch_agent` runs torchlite's own agent. `SimpleElasticAgent`, `WorkerSpec`, `Worker`
and `WorkerGroup` are names for annotations and `isinstance`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ...._unavailable_stubs import make_unavailable_class
from ...multiprocessing.errors import ProcessFailure

__all__ = ["ElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState"]

_HERE = "torch.distributed.elastic.agent.server"

Worker, WorkerGroup, WorkerSpec = (
    make_unavailable_class(name, _HERE) for name in ("Worker", "WorkerGroup", "WorkerSpec")
)


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
    def get_worker_group(self, role: str = "default") -> Any:
        """Returns the processes.

        Args:
            role: Their role.
        """


SimpleElasticAgent = make_unavailable_class("SimpleElasticAgent", _HERE, ElasticAgent)

__dir__ = make_module_dir(globals())
