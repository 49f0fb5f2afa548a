"""Questions about sizes that a trace keeps as symbols: all are numbers, and are answered by their values."""

from __future__ import annotations

from typing import Any

from ..._symbolic_shapes import SymInt

__all__ = [
    "ConstraintViolationError", "GuardOnDataDependentSymNode", "free_symbols", "free_unbacked_symbols",
    "guard_or_false", "guard_or_true",
    "guard_size_oblivious", "is_concrete_bool", "is_concrete_int", "statically_known_true",
]  # fmt: skip


class GuardOnDataDependentSymNode(RuntimeError):
    """A size that depends on elements where its value is wanted."""


def guard_or_false(a: Any) -> bool:
    """The truth of a condition; False where it is not known, which it always is."""
    return bool(a)


def guard_or_true(a: Any) -> bool:
    """The truth of a condition; True where it is not known, which it always is."""
    return bool(a)


def guard_size_oblivious(expr: Any) -> bool:
    """The truth of a condition."""
    return bool(expr)


def statically_known_true(x: Any) -> bool:
    """Whether a condition is known to hold."""
    return bool(x)


def is_concrete_int(a: Any) -> bool:
    """Whether a size is a number."""
    return isinstance(a, int) and not isinstance(a, SymInt)


def is_concrete_bool(a: Any) -> bool:
    """Whether a condition is True or False."""
    return isinstance(a, bool)


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a size, or in the size of a tensor."""
    if isinstance(val, SymInt):
        return set(val.node.expr.free_symbols)
    shape = getattr(val, "shape", ())
    return set().union(*(free_symbols(n) for n in shape)) if shape else set()


def free_unbacked_symbols(x: Any) -> set[Any]:
    """The symbols without a value in a value: none. `x` has no effect: every size has a value."""
    return set()


class ConstraintViolationError(RuntimeError):
    """A size that is not in the range that was asked for."""
