"""Start a function or a program in several processes from Python, on this machine or on several that each do so.

Where they meet, restarts and changes of the number of machines are those of `torchlite-run --rdzv-backend c10d`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ..elastic import events
from ..elastic.agent.server import WorkerSpec
from ..elastic.agent.server.local_elastic_agent import LocalElasticAgent
from ..elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, SignalException
from ..elastic.multiprocessing.errors import ChildFailedError
from ..elastic.rendezvous import RendezvousError, RendezvousParameters
from ..elastic.rendezvous.registry import get_rendezvous_handler

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """How many processes start, where their machines meet, and how often they restart.

    Args:
        min_nodes: The least number of machines.
        max_nodes: The largest number of machines.
        nproc_per_node: Processes on each machine.
        logs_specs: Where output goes. Default: the console.
        run_id: The run's name, equal on all machines. Default: a random one.
        role: A name in front of the lines of output that ``logs_specs`` shows.
        rdzv_endpoint: Where machines meet, ``HOST:PORT``. One machine needs none.
        rdzv_backend: "c10d", or "static" with the machine's number as ``rdzv_configs["rank"]``. PyTorch's default,
            "etcd", is not supported.
        rdzv_configs: Limits of the meeting in seconds, as of ``--rdzv-conf``.
        rdzv_timeout: Seconds for the machines to meet. Default: 900.
        max_restarts: How often all processes start again after one failed. Default: 3.
        monitor_interval: Seconds between two looks at the processes. Default: 0.1.
        start_method: "spawn" (default), "fork" or "forkserver", for functions.
        log_line_prefix_template: Prefix of shown lines, in which ``${role_name}``, ``${rank}`` and ``${local_rank}``
            are replaced.
        metrics_cfg: Must be empty.
        local_addr: This machine's address, which the others reach. Default: found by the route to the endpoint.
        event_log_handler: Gets the events of the processes; see `torch.distributed.elastic.events`. Default: "null".
        numa_options: Must be ``None``.
        signals_to_handle: Signals that end the run, if the main thread launches.
        duplicate_stdout_filters: Lines of shown output that contain one of these go to a file of all processes too.
        duplicate_stderr_filters: The same for errors.
        virtual_local_rank: Must be ``False``.
        shutdown_timeout: Seconds that processes have to end after a signal. Default: 30.

    Example:
        >>> from torchlite.distributed.launcher.api import LaunchConfig
        >>> LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, rdzv_backend="c10d").max_restarts
        3
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        self.rdzv_configs.setdefault("timeout", 900)
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        elif self.shutdown_timeout < 0:
            raise ValueError(f"shutdown_timeout must be non-negative, got {self.shutdown_timeout}")


class elastic_launch:
    """Starts a function or a command in several processes when it is called with their arguments.

    Args:
        config: How many, and where.
        entrypoint: The function, or the command.
        health_check_server: A server that the program has started; the agent stops it at the end.

    Example:
        >>> import math
        >>> from torchlite.distributed.launcher.api import LaunchConfig, elastic_launch
        >>> config = LaunchConfig(1, 1, nproc_per_node=2, rdzv_backend="c10d", start_method="fork")
        >>> elastic_launch(config, math.sqrt)(9.0)
        {0: 3.0, 1: 3.0}
    """

    def __init__(
        self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, health_check_server: Any = None
    ) -> None:
        self._config, self._entrypoint, self._health_check_server = config, entrypoint, health_check_server

    def __call__(self, *args: Any) -> dict[int, Any]:
        """Runs to the end; see `launch_agent`.

        Args:
            *args: The arguments of the function or command.
        """
        return launch_agent(self._config, self._entrypoint, list(args), self._health_check_server)


def _name_of(entrypoint: Callable[..., Any] | str, args: list[Any]) -> str:
    """Return what an error calls the program."""
    if not isinstance(entrypoint, str):
        return getattr(entrypoint, "__qualname__", repr(entrypoint))
    if entrypoint == sys.executable:
        return next((str(arg) for arg in args if not str(arg).startswith("-")), "")
    return entrypoint


def _check(config: LaunchConfig) -> None:
    """NotImplementedError for settings that have no effect here."""
    for name in ("metrics_cfg", "numa_options", "virtual_local_rank"):
        if getattr(config, name):
            raise NotImplementedError(f"torch.distributed.launcher: {name} is not supported")


def _make_agent(
    config: LaunchConfig, entrypoint: Callable[..., Any] | str, args: list[Any], health_check_server: Any
) -> LocalElasticAgent:
    """Return the agent of this machine."""
    meeting = get_rendezvous_handler(RendezvousParameters(
        config.rdzv_backend, config.rdzv_endpoint, config.run_id, config.min_nodes, config.max_nodes,
        config.local_addr, **config.rdzv_configs,
    ))  # fmt: skip
    spec = WorkerSpec(
        config.role, config.nproc_per_node, meeting, entrypoint=entrypoint, args=tuple(args),
        max_restarts=config.max_restarts, monitor_interval=config.monitor_interval, local_addr=config.local_addr,
        event_log_handler=config.event_log_handler, duplicate_stdout_filters=config.duplicate_stdout_filters,
        duplicate_stderr_filters=config.duplicate_stderr_filters,
    )  # fmt: skip
    assert config.logs_specs is not None
    assert config.shutdown_timeout is not None
    agent = LocalElasticAgent(
        spec, config.logs_specs, config.start_method, log_line_prefix_template=config.log_line_prefix_template,
        shutdown_timeout=config.shutdown_timeout, health_check_server=health_check_server,
    )  # fmt: skip
    agent._signals = config.signals_to_handle
    return agent


def launch_agent(
    config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: list[Any], health_check_server: Any = None
) -> dict[int, Any]:
    """Starts a function or a command in several processes, and waits for their end.

    If a process fails, all start again, ``config.max_restarts`` times at most.

    Args:
        config: How many, and where.
        entrypoint: The function, or the command.
        args: Its arguments. In those that are text, ``${local_rank}`` is replaced.
        health_check_server: A server that the program has started; the agent stops it at the end.

    Returns:
        The function's results by the rank of this machine's processes; ``None`` for a command.

    Raises:
        ChildFailedError: Processes failed, and no restart is left.
        SignalException: A signal ended the run.
        RendezvousClosedError: The run has ended on another machine.
        RendezvousTimeoutError: Too few machines came.

    Example:
        >>> import math
        >>> from torchlite.distributed.launcher.api import LaunchConfig, launch_agent
        >>> launch_agent(LaunchConfig(1, 1, 1, rdzv_backend="c10d", start_method="fork"), math.sqrt, [9.0])
        {0: 3.0}
    """
    if entrypoint is None:
        raise AssertionError("launch_agent needs a function or a command")
    _check(config)
    config.run_id = config.run_id or str(uuid.uuid4().int)
    agent = _make_agent(config, entrypoint, args, health_check_server)
    meeting = agent.get_worker_group().spec.rdzv_handler
    goes_on = False  # for the other machines
    try:
        result = agent.run()
        if result is None:  # this machine was not needed
            return {}
        if result.is_failed():
            raise ChildFailedError(_name_of(entrypoint, args), result.failures)
        events.record(agent.get_event_succeeded(), config.event_log_handler)
        return result.return_values
    except ChildFailedError:
        with contextlib.suppress(RendezvousError):  # the others' store has gone: the failure here is what matters
            meeting.set_closed()
        raise
    except Exception as error:
        goes_on = isinstance(error, SignalException)
        events.record(agent.get_event_failed(), config.event_log_handler)
        raise
    finally:
        if not goes_on:
            meeting.shutdown()


__dir__ = make_module_dir(globals())
