"""Machines whose number and ranks are known before: they meet once, by a store on the first."""

from __future__ import annotations

import datetime
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ..._stores import PrefixStore, TCPStore
from ._meeting_handler import find_endpoint
from .api import RendezvousHandler, RendezvousInfo, RendezvousParameters, RendezvousStoreInfo

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]

_TIMEOUT = 600  # seconds


class StaticTCPRendezvous(RendezvousHandler):
    """Meeting of machines with ranks of their own; the machine of rank 0 serves the store.

    The machines are always the same. `get_rendezvous_handler` of the kind "static" makes a handler that lets machines
    meet again after a failure instead.

    Args:
        master_addr: The address of the machine of rank 0.
        master_port: The store's port there.
        rank: This machine's number.
        world_size: How many machines there are.
        run_id: The name of the run, a prefix of its keys.
        timeout: Seconds to wait for the store, and for keys.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous
        >>> meeting = StaticTCPRendezvous("localhost", 0, rank=0, world_size=1, run_id="run", timeout=60)
        >>> meeting.next_rendezvous().world_size
        1
    """

    def __init__(
        self, master_addr: str, master_port: int, rank: int, world_size: int, run_id: str, timeout: int
    ) -> None:
        self.master_addr, self.master_port = master_addr, master_port
        self.rank, self.world_size, self.run_id = rank, world_size, run_id
        self.timeout = datetime.timedelta(seconds=timeout)
        self._store: TCPStore | None = None

    def get_backend(self) -> str:
        """Returns "static"."""
        return "static"

    @property
    def use_agent_store(self) -> bool:
        """True: the ranks use the store of the agents."""
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        """Waits until the machine of rank 0 serves the store."""
        if self._store is None:
            self._store = TCPStore(
                self.master_addr, self.master_port, self.world_size, self.rank == 0, self.timeout, multi_tenant=True
            )
        where = RendezvousStoreInfo(self.master_addr, self.master_port)
        return RendezvousInfo(PrefixStore(self.run_id, self._store), self.rank, self.world_size, where)

    def is_closed(self) -> bool:
        """Returns ``False``: the meeting stays open."""
        return False

    def set_closed(self) -> None:
        """Has no effect."""

    def num_nodes_waiting(self) -> int:
        """Returns 0: no machine joins later."""
        return 0

    def get_run_id(self) -> str:
        """Returns the name of the run."""
        return self.run_id

    def shutdown(self) -> bool:
        """Returns ``True``. The store stays open for the ranks as long as this object exists."""
        return True


def create_rdzv_handler(params: RendezvousParameters) -> RendezvousHandler:
    """Returns a `StaticTCPRendezvous`.

    Args:
        params: The endpoint, the largest number of machines, the run's name, and in the configuration ``rank``, and
            ``timeout`` in seconds (600).

    Raises:
        ValueError: The rank, the endpoint or its port is missing.

    Example:
        >>> from torchlite.distributed.elastic.rendezvous import RendezvousParameters
        >>> from torchlite.distributed.elastic.rendezvous.static_tcp_rendezvous import create_rdzv_handler
        >>> create_rdzv_handler(RendezvousParameters("static", "localhost:29500", "run", 2, 2, rank=1)).rank
        1
    """
    rank: Any = params.config.get("rank")
    if rank is None:
        raise ValueError("rank is absent in RendezvousParameters. Try to add --node-rank")
    host, port = find_endpoint(params)
    return StaticTCPRendezvous(
        host, port, int(rank), params.max_nodes, params.run_id, int(params.config.get("timeout", _TIMEOUT))
    )


__dir__ = make_module_dir(globals())
