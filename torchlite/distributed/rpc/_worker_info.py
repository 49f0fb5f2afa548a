"""WorkerInfo: the number and name of a rank."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class WorkerInfo:
    """The name and the number of a worker.

    Args:
        name: The name.
        id: The rank.

    Example:
        >>> torch.distributed.rpc.WorkerInfo("worker1", 1)
        WorkerInfo(id=1, name=worker1)
    """

    name: str
    id: int

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"
