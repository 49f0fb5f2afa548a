"""PyTorch's functions that are implemented as custom Functions."""

from __future__ import annotations

import functools
import operator
from typing import Any

from ..function import Function

__all__ = ["Resize"]


class Resize(Function):
    """A contiguous tensor of the same elements in another shape. RuntimeError where their number differs."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: Any) -> Any:
        count = functools.reduce(operator.mul, sizes, 1)
        if tensor.numel() != count:
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({count} elements in total), but the given tensor "
                f"has a size of {'x'.join(map(str, tensor.size()))} ({tensor.numel()} elements). autograd's resize can "
                "only change the shape of a given tensor, while preserving the number of elements. "
            )
        ctx.input_sizes = tensor.size()
        return tensor.contiguous().clone().view(sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0].contiguous().view(ctx.input_sizes), None
