"""`out_dtype`: an op of the library whose result has a wider dtype than its inputs, such as int32 for int8 products."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .._aten import OpOverload
from .control_flow_capture import current_recorder
from .higher_order_operator import HigherOrderOperator

_NAMES = ("linear.default", "mm.default", "conv2d.default", "convolution.default",
          "mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar")  # fmt: skip


def _allowed_ops() -> list[OpOverload]:
    packets = (name.split(".") for name in _NAMES)
    return [getattr(getattr(torch.ops.aten, packet), overload) for packet, overload in packets]


def _out_dtype(op: Any, output_dtype: Any, *args: Any) -> Any:
    """Return the op's result in `output_dtype`, computed in the dtype to which this and the inputs promote.

    Raise ValueError for an op that is not in the list of those that accept an output's dtype.

    >>> import torchlite as torch
    >>> from torchlite._higher_order_ops.out_dtype import out_dtype
    >>> a = torch.full((1, 2), 100, dtype=torch.int8)
    >>> out_dtype(torch.ops.aten.mm.default, torch.int32, a, a.T)
    tensor([[20000]], dtype=torch.int32)
    """
    if not isinstance(op, OpOverload):
        raise ValueError("out_dtype's first argument must be an OpOverload")
    if op._schema.is_mutable:
        raise ValueError("out_dtype's first argument needs to be a functional operator")
    returns = op._schema.returns
    if len(returns) != 1 or str(returns[0].type) != "Tensor":
        raise ValueError(
            f"out_dtype's can only apply to ops that return a single tensorInstead got {[r.type for r in returns]}"
        )
    allowed = _allowed_ops()
    if op not in allowed:
        raise ValueError(f"out_dtype only allows the following operators: {allowed}.")
    recorder = current_recorder()
    if recorder is None or not any(isinstance(arg, torch.Tensor) and recorder.follows(arg) for arg in args):
        return _compute(op, output_dtype, args)
    with recorder.paused():
        result = _compute(op, output_dtype, args)
    return recorder.noted(out_dtype, (op, output_dtype, *args), result)


def _compute(op: OpOverload, output_dtype: Any, args: tuple) -> Any:
    dtype = output_dtype
    for arg in args:
        if isinstance(arg, torch.Tensor):
            dtype = torch.promote_types(dtype, arg.dtype)
        elif isinstance(arg, (bool, int, float, complex)):
            dtype = torch.result_type(torch.empty(1, dtype=dtype), arg)
    given = [arg.to(dtype) if isinstance(arg, torch.Tensor) else arg for arg in args]
    return op(*given).to(output_dtype)


out_dtype = HigherOrderOperator("out_dtype", _out_dtype)
