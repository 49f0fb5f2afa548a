"""Names of the meeting of launchers: errors, parameters, the interface of handlers, and their registry."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torchlite._settings.module_dir import make_module_dir

__all__ = [
    "RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError",
    "RendezvousHandler", "RendezvousHandlerCreator", "RendezvousHandlerRegistry", "RendezvousInfo",
    "RendezvousParameters", "RendezvousStateError", "RendezvousStoreInfo", "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]  # fmt: skip

_BOOLS = {**dict.fromkeys(("1", "true", "t", "yes", "y"), True), **dict.fromkeys(("0", "false", "f", "no", "n"), False)}


class RendezvousError(Exception):
    """Base class of the errors of a meeting.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousError, RendezvousTimeoutError
        >>> issubclass(RendezvousTimeoutError, RendezvousError)
        True
    """


class RendezvousClosedError(RendezvousError):
    """The run has ended on another machine.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousClosedError
        >>> str(RendezvousClosedError("rank 1 failed"))
        'rank 1 failed'
    """


class RendezvousTimeoutError(RendezvousError):
    """Too few machines came in time.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousTimeoutError
        >>> str(RendezvousTimeoutError("1 of 2 came"))
        '1 of 2 came'
    """


class RendezvousConnectionError(RendezvousError):
    """The store of the meeting cannot be reached.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousConnectionError
        >>> str(RendezvousConnectionError("refused"))
        'refused'
    """


class RendezvousStateError(RendezvousError):
    """The state in the store cannot be read.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousStateError
        >>> str(RendezvousStateError("no state"))
        'no state'
    """


class RendezvousGracefulExitError(RendezvousError):
    """A machine was not taken, which is no failure.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousGracefulExitError
        >>> str(RendezvousGracefulExitError("enough machines"))
        'enough machines'
    """


def _find_free_port() -> int:
    with socket.create_server(("", 0)) as listener:
        return listener.getsockname()[1]


@dataclass
class RendezvousStoreInfo:
    """Address and port of the store of the ranks.

    Args:
        master_addr: The address.
        master_port: The port.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousStoreInfo
        >>> RendezvousStoreInfo.build(0, torch.distributed.HashStore(), "node1", 29500)
        RendezvousStoreInfo(master_addr='node1', master_port=29500)
    """

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(rank: int, store: Any, local_addr: str | None, server_port: int | None = None) -> RendezvousStoreInfo:
        """Machine 0 writes its address and a free port to the store; all read them.

        Args:
            rank: The number of this machine.
            store: The store of the machines.
            local_addr: The address of this machine. Default: its name.
            server_port: The port. Default: a free one.
        """
        if rank == 0:
            store.set(RendezvousStoreInfo.MASTER_ADDR_KEY, local_addr or socket.getfqdn())
            store.set(RendezvousStoreInfo.MASTER_PORT_KEY, str(server_port or _find_free_port()))
        address = store.get(RendezvousStoreInfo.MASTER_ADDR_KEY).decode()
        return RendezvousStoreInfo(address, int(store.get(RendezvousStoreInfo.MASTER_PORT_KEY).decode()))


class RendezvousInfo:
    """The outcome of a meeting.

    Args:
        store: The store of the machines.
        rank: The number of this machine.
        world_size: The number of machines.
        bootstrap_store_info: Where the ranks meet.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousInfo, RendezvousStoreInfo
        >>> RendezvousInfo(None, 0, 2, RendezvousStoreInfo("node1", 29500)).world_size
        2
    """

    def __init__(self, store: Any, rank: int, world_size: int, bootstrap_store_info: RendezvousStoreInfo) -> None:
        self._store, self._rank, self._world_size = store, rank, world_size
        self._bootstrap_store_info = bootstrap_store_info

    @property
    def store(self) -> Any:
        """The store of the machines."""
        return self._store

    @property
    def rank(self) -> int:
        """The number of this machine."""
        return self._rank

    @property
    def world_size(self) -> int:
        """The number of machines."""
        return self._world_size

    @property
    def bootstrap_store_info(self) -> RendezvousStoreInfo | None:
        """Where the ranks meet."""
        return self._bootstrap_store_info


class RendezvousHandler(ABC):
    """Interface of a meeting of a program's own.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousHandler
        >>> "next_rendezvous" in RendezvousHandler.__abstractmethods__
        True
    """

    @abstractmethod
    def get_backend(self) -> str:
        """Returns the name of the kind of meeting."""

    @property
    def use_agent_store(self) -> bool:
        """Whether the ranks may use the store of the machines."""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Waits until the machines have met."""

    @abstractmethod
    def is_closed(self) -> bool:
        """Returns whether the run has ended."""

    @abstractmethod
    def set_closed(self) -> None:
        """Ends the run for all machines."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """Returns how many machines wait for the next meeting."""

    @abstractmethod
    def get_run_id(self) -> str:
        """Returns the name of the run."""

    @abstractmethod
    def shutdown(self) -> bool:
        """Closes what the meeting has opened, and returns whether that worked."""


class RendezvousParameters:
    """Parameters of a rendezvous.

    Args:
        backend: The kind of meeting.
        endpoint: Where the machines meet, ``HOST:PORT``.
        run_id: The name of the run.
        min_nodes: The least number of machines.
        max_nodes: The largest number of machines.
        local_addr: The address of this machine. Default: ``None``.
        **kwargs: Settings of this kind of meeting.

    Raises:
        ValueError: The kind is empty, or the numbers contradict each other.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousParameters
        >>> RendezvousParameters("c10d", "node1:29400", "run", 1, 2, timeout="60").get_as_int("timeout")
        60
    """

    def __init__(
        self,
        backend: str,
        endpoint: str,
        run_id: str,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        **kwargs: Any,
    ) -> None:
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or equal to the minimum "
                f"number of rendezvous nodes ({min_nodes})."
            )
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes, self.local_addr, self.config = min_nodes, max_nodes, local_addr, kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a setting.

        Args:
            key: Its name.
            default: Returned if there is none.
        """
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """Returns a setting as a truth value; ValueError if it is none.

        Args:
            key: Its name.
            default: Returned if there is none.
        """
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        found = _BOOLS.get(str(value).lower()) if isinstance(value, int | str) else None
        if found is None:
            raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid boolean value.")
        return found

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """Returns a setting as an integer; ValueError if it is none.

        Args:
            key: Its name.
            default: Returned if there is none.
        """
        value = self.get(key, default)
        try:
            return value if value is None else int(value)
        except ValueError as error:
            raise ValueError(
                f"The rendezvous configuration option '{key}' does not represent a valid integer value."
            ) from error


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """Makers of handlers, by the kind of meeting.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousHandlerRegistry, RendezvousParameters
        >>> RendezvousHandlerRegistry().create_handler(RendezvousParameters("mine", "", "run", 1, 1))
        Traceback (most recent call last):
        ValueError: The rendezvous backend 'mine' is not registered. Did you forget to call `register`?
    """

    def __init__(self) -> None:
        self._registry: dict[str, RendezvousHandlerCreator] = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """Registers a maker.

        Args:
            backend: The kind of meeting.
            creator: Called with the parameters.

        Raises:
            ValueError: The name is empty, or has another maker.
        """
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        kept = self._registry.setdefault(backend, creator)
        if kept != creator:
            raise ValueError(
                f"The rendezvous backend '{backend}' cannot be registered with '{creator}' as it is already registered "
                f"with '{kept}'."
            )

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """Returns a new handler.

        Args:
            params: Its parameters.

        Raises:
            ValueError: The kind has no maker.
            RuntimeError: The handler is of another kind.
        """
        creator = self._registry.get(params.backend)
        if creator is None:
            raise ValueError(
                f"The rendezvous backend '{params.backend}' is not registered. Did you forget to call `register`?"
            )
        handler = creator(params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(
                f"The rendezvous backend '{handler.get_backend()}' does not match the requested backend "
                f"'{params.backend}'."
            )
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()

__dir__ = make_module_dir(globals(), "rendezvous_handler_registry")
