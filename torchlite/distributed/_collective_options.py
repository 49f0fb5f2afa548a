"""Options of ProcessGroup's methods."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ._reduce_ops import RedOpType

default_pg_timeout = timedelta(minutes=30)


class _Options:
    """Options of a ProcessGroup method: attributes with class-level defaults."""

    timeout: timedelta | None = None
    asyncOp = True

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class AllreduceOptions(_Options):
    """Options of `ProcessGroup.allreduce`."""

    reduceOp: Any = RedOpType.SUM
    sparseIndices: Any = None


class AllreduceCoalescedOptions(AllreduceOptions):
    """Options of `ProcessGroup.allreduce_coalesced`."""


class ReduceOptions(_Options):
    """Options of `ProcessGroup.reduce`."""

    reduceOp: Any = RedOpType.SUM
    rootRank = 0
    rootTensor = 0


class ReduceScatterOptions(_Options):
    """Options of `ProcessGroup.reduce_scatter`."""

    reduceOp: Any = RedOpType.SUM


class BroadcastOptions(_Options):
    """Options of `ProcessGroup.broadcast`."""

    rootRank = 0
    rootTensor = 0


class AllgatherOptions(_Options):
    """Options of `ProcessGroup.allgather`."""


class GatherOptions(_Options):
    """Options of `ProcessGroup.gather`."""

    rootRank = 0


class ScatterOptions(_Options):
    """Options of `ProcessGroup.scatter`."""

    rootRank = 0


class AllToAllOptions(_Options):
    """Options of `ProcessGroup.alltoall`."""


class BarrierOptions(_Options):
    """Options of `ProcessGroup.barrier`."""

    device_ids: Any = ()
    device: Any = None
