"""Meeting of machines whose state a program's own backend keeps: `DynamicRendezvousHandler`.

The rounds are those of the handler "c10d". The backend keeps the state, and a store has signs of life and the values of
the ranks.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ..._launch.elastic_agent import new_machine
from ..._launch.elastic_meeting import Meeting, Settings
from ..._stores import PrefixStore
from ._meeting_handler import RoundsHandler
from .api import RendezvousParameters

__all__ = ["DynamicRendezvousHandler", "RendezvousBackend", "RendezvousSettings", "RendezvousTimeout", "create_handler"]


class RendezvousBackend(ABC):
    """Interface of an object that keeps the state of a meeting for all machines.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend
        >>> sorted(RendezvousBackend.__abstractmethods__)
        ['get_state', 'name', 'set_state']
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the kind of meeting."""

    @abstractmethod
    def get_state(self) -> tuple[bytes, Any] | None:
        """Returns the state with a token of this version, or ``None`` before the first `set_state`.

        Raises:
            RendezvousConnectionError: The state cannot be reached.
            RendezvousStateError: The state is damaged.
        """

    @abstractmethod
    def set_state(self, state: bytes, token: Any | None = None) -> tuple[bytes, Any, bool] | None:
        """Replaces the state of a version.

        Args:
            state: The new state.
            token: The version's token. Default: there is no state yet.

        Returns:
            The present state, its token, and whether the state was replaced: another machine may have been faster.
            ``None`` if there is no state.

        Raises:
            RendezvousConnectionError: The state cannot be reached.
            RendezvousStateError: The state is damaged.
        """


class RendezvousTimeout:
    """Limits of time of a meeting.

    Args:
        join: For the least number of machines to come. Default: 600 seconds.
        last_call: For further machines after these. Default: 30 seconds.
        close: For the end of a meeting; has no effect, because a change of the state waits for nothing. Default: 30
            seconds.
        heartbeat: For a sign of life; has no effect, because it waits for nothing. Default: 5 seconds.

    Raises:
        ValueError: A limit is not positive.

    Example:
        >>> from datetime import timedelta
        >>> from torchlite.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousTimeout
        >>> RendezvousTimeout(join=timedelta(seconds=5)).join.total_seconds()
        5.0
    """

    def __init__(
        self,
        join: timedelta | None = None,
        last_call: timedelta | None = None,
        close: timedelta | None = None,
        heartbeat: timedelta | None = None,
    ) -> None:
        given = {"join": (join, 600), "last_call": (last_call, 30), "close": (close, 30), "heartbeat": (heartbeat, 5)}
        self._limits: dict[str, timedelta] = {}
        for name, (limit, default) in given.items():
            self._limits[name] = timedelta(seconds=default) if limit is None else limit
            if self._limits[name] <= timedelta(0):
                raise ValueError(f"The {name} timeout ({self._limits[name]}) must be positive.")

    @property
    def join(self) -> timedelta:
        """For the least number of machines to come."""
        return self._limits["join"]

    @property
    def last_call(self) -> timedelta:
        """For further machines after these."""
        return self._limits["last_call"]

    @property
    def close(self) -> timedelta:
        """For the end of a meeting."""
        return self._limits["close"]

    @property
    def heartbeat(self) -> timedelta:
        """For a sign of life."""
        return self._limits["heartbeat"]


@dataclass(repr=False, eq=False, frozen=True)
class RendezvousSettings:
    """Settings of a meeting.

    Args:
        run_id: The name of the run.
        min_nodes: The least number of machines.
        max_nodes: The greatest number.
        timeout: The limits of time.
        keep_alive_interval: Between two signs of life that are expected.
        keep_alive_max_attempt: How many may be missing before a machine counts as lost.

    Example:
        >>> from datetime import timedelta
        >>> from torchlite.distributed.elastic.rendezvous import dynamic_rendezvous as rendezvous
        >>> timeout = rendezvous.RendezvousTimeout()
        >>> rendezvous.RendezvousSettings("run", 1, 2, timeout, timedelta(seconds=5), 3).max_nodes
        2
    """

    run_id: str
    min_nodes: int
    max_nodes: int
    timeout: RendezvousTimeout
    keep_alive_interval: timedelta
    keep_alive_max_attempt: int

    def _of_meeting(self) -> Settings:
        return Settings(
            self.timeout.join.total_seconds(), self.timeout.last_call.total_seconds(),
            self.keep_alive_interval.total_seconds(), float(self.keep_alive_max_attempt),
        )  # fmt: skip


class _StateOfBackend:
    """The state of a run in a backend."""

    def __init__(self, backend: RendezvousBackend) -> None:
        self._backend = backend

    def read(self) -> tuple[bytes, Any]:
        found = self._backend.get_state()
        return (b"", None) if found is None else found

    def write(self, data: bytes, token: Any) -> bool:
        found = self._backend.set_state(data, token)
        return found is not None and found[2]


class DynamicRendezvousHandler(RoundsHandler):
    """Handler of a meeting whose state a backend keeps. `from_backend` and `create_handler` make it.

    Args:
        settings: The settings.
        backend: Keeps the state.
        store: Has signs of life, and the values of the ranks.
        local_addr: This machine's address. Default: that of its host name.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
        >>> from torchlite.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler
        >>> store = torch.distributed.HashStore()
        >>> backend = C10dRendezvousBackend(store, "run")
        >>> handler = DynamicRendezvousHandler.from_backend("run", store, backend, 1, 1, "localhost")
        >>> handler.next_rendezvous().world_size, handler.shutdown()
        (1, True)
    """

    def __init__(
        self, settings: RendezvousSettings, backend: RendezvousBackend, store: Any, local_addr: str | None = None
    ) -> None:
        super().__init__(settings.run_id)
        self._settings, self._backend, self._store, self._local_addr = settings, backend, store, local_addr

    @classmethod
    def from_backend(
        cls,
        run_id: str,
        store: Any,
        backend: RendezvousBackend,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        timeout: RendezvousTimeout | None = None,
        keep_alive_interval: int = 5,
        keep_alive_max_attempt: int = 3,
    ) -> DynamicRendezvousHandler:
        """Returns a handler.

        Args:
            run_id: The name of the run.
            store: Has signs of life, and the values of the ranks.
            backend: Keeps the state.
            min_nodes: The least number of machines.
            max_nodes: The greatest number.
            local_addr: This machine's address. Default: that of its host name.
            timeout: The limits of time. Default: those of `RendezvousTimeout`.
            keep_alive_interval: Seconds between two signs of life that are expected. Default: 5.
            keep_alive_max_attempt: How many may be missing before a machine counts as lost. Default: 3.

        Raises:
            ValueError: The numbers of machines are wrong.
        """
        if min_nodes < 1:
            raise ValueError(f"The minimum number of nodes ({min_nodes}) must be greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of nodes ({max_nodes}) must be greater than or equal to the minimum number of "
                f"nodes ({min_nodes})."
            )
        settings = RendezvousSettings(
            run_id, min_nodes, max_nodes, timeout or RendezvousTimeout(), timedelta(seconds=keep_alive_interval),
            keep_alive_max_attempt,
        )  # fmt: skip
        return cls(settings, backend, store, local_addr)

    @property
    def settings(self) -> RendezvousSettings:
        """The settings."""
        return self._settings

    def get_backend(self) -> str:
        """Returns the backend's name."""
        return self._backend.name

    def _make(self) -> tuple[Meeting, str, bool, Any]:
        settings = self._settings
        own = new_machine(0, self._local_addr or socket.gethostbyname(socket.gethostname()), 1)
        store = PrefixStore(f"torch.rendezvous.{settings.run_id}", self._store)
        limits = settings._of_meeting()
        state = _StateOfBackend(self._backend)
        return Meeting(store, own, settings.min_nodes, settings.max_nodes, limits, state), own.address, False, store


def _limit(params: RendezvousParameters, name: str) -> timedelta | None:
    seconds = params.get_as_int(f"{name}_timeout")
    return None if seconds is None else timedelta(seconds=seconds)


def create_handler(store: Any, backend: RendezvousBackend, params: RendezvousParameters) -> DynamicRendezvousHandler:
    """Returns a handler with the settings of parameters.

    Args:
        store: Has signs of life, and the values of the ranks.
        backend: Keeps the state.
        params: The numbers of machines, and in its configuration ``join_timeout``, ``last_call_timeout``,
            ``close_timeout``, ``heartbeat_timeout`` and ``keep_alive_interval`` in seconds, ``keep_alive_max_attempt``.

    Raises:
        ValueError: A setting is wrong.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousParameters
        >>> from torchlite.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
        >>> from torchlite.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler
        >>> store = torch.distributed.HashStore()
        >>> params = RendezvousParameters("mine", "", "run", 1, 2, join_timeout=5)
        >>> create_handler(store, C10dRendezvousBackend(store, "run"), params).settings.timeout.join.total_seconds()
        5.0
    """
    limits = RendezvousTimeout(*(_limit(params, name) for name in ("join", "last_call", "close", "heartbeat")))
    interval, attempts = params.get_as_int("keep_alive_interval", 5), params.get_as_int("keep_alive_max_attempt", 3)
    assert interval is not None and attempts is not None
    return DynamicRendezvousHandler.from_backend(
        params.run_id, store, backend, params.min_nodes, params.max_nodes, params.local_addr, limits, interval, attempts
    )


__dir__ = make_module_dir(globals())
