"""Reduction operations, and the options of ProcessGroup's methods."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Any

default_pg_timeout = timedelta(minutes=30)


class RedOpType(enum.IntEnum):
    """The kinds of reduction."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    __hash__ = enum.IntEnum.__hash__
    __str__ = enum.Enum.__str__

    @property
    def op(self) -> RedOpType:
        """Return the kind itself, as `ReduceOp(ReduceOp.SUM).op` does."""
        return self


class _ReduceOpMeta(type):
    """Metaclass that makes `ReduceOp.SUM` an instance of ReduceOp."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, RedOpType) or super().__instancecheck__(instance)


class ReduceOp(metaclass=_ReduceOpMeta):
    """Reduction: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, and PREMUL_SUM with a factor.

    >>> from torchlite.distributed import ReduceOp
    >>> ReduceOp.SUM == ReduceOp(ReduceOp.SUM)
    True
    """

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    op: RedOpType

    def __init__(self, op: Any, factor: Any = None) -> None:
        if not isinstance(op, RedOpType):
            raise TypeError(f"ReduceOp(): argument 'op' must be RedOpType, not {type(op).__name__}")
        self.op, self.factor = op, factor

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ReduceOp) and self.op == other.op

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return f"<torch.distributed.distributed_c10d.ReduceOp.{self.op.name}>"

    __module__ = "torch.distributed.distributed_c10d"


ReduceOp.RedOpType = RedOpType  # type: ignore[attr-defined]


def _make_nccl_premul_sum(factor: Any) -> ReduceOp:
    """Return the sum of tensors times a number, or times a tensor of one element."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


class _ReduceOp:
    """`reduce_op`, the old name of `ReduceOp`."""

    def __getattribute__(self, key: str) -> Any:
        if key in RedOpType.__members__:
            import warnings

            warnings.warn(
                "torch.distributed.reduce_op is deprecated, please use torch.distributed.ReduceOp instead",
                FutureWarning,
                stacklevel=2,
            )
            return RedOpType[key]
        return object.__getattribute__(self, key)


reduce_op = _ReduceOp()


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
