"""ATen ops for custom symbolic functions: `symbolic_opset11.unsqueeze(g, x, 0)`."""

from __future__ import annotations

from typing import Any

__all__ = ["add", "div", "mul", "select", "squeeze", "sub", "unsqueeze"]


def add(g: Any, self: Any, other: Any, alpha: Any = None) -> Any:
    """Add `self` and `alpha * other`."""
    return g.op("Add", self, other if alpha is None or alpha == 1 else g.op("Mul", other, alpha))


def sub(g: Any, self: Any, other: Any, alpha: Any = None) -> Any:
    """Subtract `alpha * other`."""
    return g.op("Sub", self, other if alpha is None or alpha == 1 else g.op("Mul", other, alpha))


def mul(g: Any, self: Any, other: Any) -> Any:
    """Multiply elementwise."""
    return g.op("Mul", self, other)


def div(g: Any, self: Any, other: Any) -> Any:
    """Divide elementwise."""
    return g.op("Div", self, other)


def unsqueeze(g: Any, self: Any, dim: int) -> Any:
    """Insert a dimension of size 1."""
    return g.op("Unsqueeze", self, [dim])


def squeeze(g: Any, self: Any, dim: int | None = None) -> Any:
    """Remove a dimension of size 1, or all of them."""
    return g.op("Squeeze", self) if dim is None else g.op("Squeeze", self, [dim])


def select(g: Any, self: Any, dim: int, index: Any) -> Any:
    """Select an index of a dimension, and remove the dimension if the index is a number."""
    return g.op("Gather", self, index, axis_i=dim)
