"""Dispatch of ops on nested tensors with the jagged layout, by the rules of the other modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._dispatch.op_record import POINTWISE, Op

from . import matmul_ops, reductions, shape_ops  # noqa: F401 they register their rules
from .nested_tensor import NestedTensor
from .ops import RULES, OpCall, flatten, run_pointwise


def run_record(op: Op, values: Sequence[Any], writes: bool = False) -> Any:
    """The result of an op with nested tensors among its bound arguments."""
    if any(getattr(v, "is_nested", False) and not isinstance(v, NestedTensor) for v in flatten(values)):
        raise RuntimeError(f"{op.function_name}(): nested tensors of two layouts cannot be mixed")
    found = OpCall(op, values, writes)
    own = RULES.get(op.name)
    if own is not None:
        return own(found)
    if op.tags & POINTWISE:
        return run_pointwise(found)
    if op.is_implicit and op.composite is not None:
        result = op.composite(CALLBACKS.F, *values)
        return found.write(result) if writes else result
    raise NotImplementedError(f"aten.{op.function_name}.default")


NestedTensor._run_record = staticmethod(run_record)
