"""`inline_asm_elementwise`: PTX on each element of CUDA tensors. No backend runs PTX, so every call is an error."""

from __future__ import annotations

from typing import Any

from .higher_order_operator import HigherOrderOperator

__all__ = ["inline_asm_elementwise"]


def _inline_asm_elementwise(
    *inputs: Any, asm_str: str, constraints: str, dtype: Any, is_pure: bool = True, pack: int = 1
) -> Any:
    """Raise an error: ValueError for arguments that PyTorch refuses, RuntimeError for others.

    asm_str, constraints, dtype: no effect.
    """
    if not inputs:
        raise ValueError("inline_asm_elementwise requires at least one input tensor")
    if not is_pure:
        raise ValueError("inline_asm_elementwise only supports is_pure=True")
    raise RuntimeError(
        "inline_asm_elementwise only supports CUDA tensors"
        if any(x.device.type != "cuda" for x in inputs)
        else "inline_asm_elementwise: torchlite runs no PTX"
    )


inline_asm_elementwise = HigherOrderOperator("inline_asm_elementwise", _inline_asm_elementwise)
