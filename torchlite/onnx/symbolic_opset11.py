"""Ops of aten in ONNX's, for functions that describe ops of their own: `symbolic_opset11.unsqueeze(g, x, 0)`."""

from __future__ import annotations

from typing import Any

__all__ = ["add", "div", "mul", "select", "squeeze", "sub", "unsqueeze"]


def add(g: Any, self: Any, other: Any, alpha: Any = None) -> Any:
    """A sum; `alpha` times `other`."""
    return g.op("Add", self, other if alpha is None or alpha == 1 else g.op("Mul", other, alpha))


def sub(g: Any, self: Any, other: Any, alpha: Any = None) -> Any:
    """A difference; `alpha` times `other`."""
    return g.op("Sub", self, other if alpha is None or alpha == 1 else g.op("Mul", other, alpha))


def mul(g: Any, self: Any, other: Any) -> Any:
    """A product of elements."""
    return g.op("Mul", self, other)


def div(g: Any, self: Any, other: Any) -> Any:
    """A quotient of elements."""
    return g.op("Div", self, other)


def unsqueeze(g: Any, self: Any, dim: int) -> Any:
    """A new dimension of size 1."""
    return g.op("Unsqueeze", self, [dim])


def squeeze(g: Any, self: Any, dim: int | None = None) -> Any:
    """Without a dimension of size 1, or without all of them."""
    return g.op("Squeeze", self) if dim is None else g.op("Squeeze", self, [dim])


def select(g: Any, self: Any, dim: int, index: Any) -> Any:
    """What stands at an index of a dimension, which is gone where the index is a number."""
    return g.op("Gather", self, index, axis_i=dim)
