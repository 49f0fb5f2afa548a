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
    """Options of `ProcessGroup.allreduce`.

    Args:
        given: Attributes by name: ``reduceOp``, ``sparseIndices``, ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.AllreduceOptions(asyncOp=False).asyncOp
        False
    """

    reduceOp: Any = RedOpType.SUM
    sparseIndices: Any = None


class AllreduceCoalescedOptions(AllreduceOptions):
    """Options of `ProcessGroup.allreduce_coalesced`.

    Args:
        given: Attributes by name: ``reduceOp``, ``sparseIndices``, ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.AllreduceCoalescedOptions().asyncOp
        True
    """


class ReduceOptions(_Options):
    """Options of `ProcessGroup.reduce`.

    Args:
        given: Attributes by name: ``reduceOp``, ``rootRank``, ``rootTensor``, ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.ReduceOptions(rootRank=1).rootRank
        1
    """

    reduceOp: Any = RedOpType.SUM
    rootRank = 0
    rootTensor = 0


class ReduceScatterOptions(_Options):
    """Options of `ProcessGroup.reduce_scatter`.

    Args:
        given: Attributes by name: ``reduceOp``, ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.ReduceScatterOptions().asyncOp
        True
    """

    reduceOp: Any = RedOpType.SUM


class BroadcastOptions(_Options):
    """Options of `ProcessGroup.broadcast`.

    Args:
        given: Attributes by name: ``rootRank``, ``rootTensor``, ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.BroadcastOptions(rootRank=1).rootRank
        1
    """

    rootRank = 0
    rootTensor = 0


class AllgatherOptions(_Options):
    """Options of `ProcessGroup.allgather`.

    Args:
        given: Attributes by name: ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.AllgatherOptions().asyncOp
        True
    """


class GatherOptions(_Options):
    """Options of `ProcessGroup.gather`.

    Args:
        given: Attributes by name: ``rootRank``, ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.GatherOptions(rootRank=1).rootRank
        1
    """

    rootRank = 0


class ScatterOptions(_Options):
    """Options of `ProcessGroup.scatter`.

    Args:
        given: Attributes by name: ``rootRank``, ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.ScatterOptions(rootRank=1).rootRank
        1
    """

    rootRank = 0


class AllToAllOptions(_Options):
    """Options of `ProcessGroup.alltoall`.

    Args:
        given: Attributes by name: ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.AllToAllOptions().asyncOp
        True
    """


class BarrierOptions(_Options):
    """Options of `ProcessGroup.barrier`.

    Args:
        given: Attributes by name: ``device_ids``, ``device``, ``timeout``, ``asyncOp``.

    Example:
        >>> torch.distributed.BarrierOptions().device_ids
        ()
    """

    device_ids: Any = ()
    device: Any = None
