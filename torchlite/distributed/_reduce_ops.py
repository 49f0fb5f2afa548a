"""Reduction operations: ReduceOp."""

from __future__ import annotations

import enum
from typing import Any


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
    """Reduction of a collective: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, or PREMUL_SUM with a factor.

    Args:
        op: One of the kinds.
        factor: The factor of PREMUL_SUM. Default: ``None``.

    Raises:
        TypeError: ``op`` is no kind of reduction.

    Example:
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
