"""ATen ops for custom symbolic functions, of the oldest opset that PyTorch's exporter writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .symbolic_opset11 import add, div, mul, select, squeeze, sub, unsqueeze

__all__ = ["add", "div", "mul", "select", "squeeze", "sub", "unsqueeze"]


def _prepare_onnx_paddings(dim: int, pad: Sequence[Any]) -> list[Any]:
    """Return the padding of all dimensions in ONNX's order: the beginnings, then the ends.

    dim: the number of dimensions. pad: beginning and end of the last dimension, of the one before it, and so on.

    >>> _prepare_onnx_paddings(3, [1, 2, 3, 4])
    [0, 3, 1, 0, 4, 2]
    """
    pairs = [*pad, *[0] * (2 * dim - len(pad))]
    return [*pairs[-2::-2], *pairs[::-2]]
