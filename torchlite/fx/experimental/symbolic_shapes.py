"""Guards and queries on symbolic sizes under PyTorch's names."""

from __future__ import annotations

from typing import Any

from ..._symbolic_shapes import SymInt

__all__ = [
    "ConstraintViolationError", "GuardOnDataDependentSymNode", "free_symbols", "free_unbacked_symbols",
    "guard_or_false", "guard_or_true", "guard_size_oblivious", "has_free_symbols",
    "is_concrete_bool", "is_concrete_int", "statically_known_true",
]  # fmt: skip


class GuardOnDataDependentSymNode(RuntimeError):
    """A data-dependent value is needed during tracing."""


def guard_or_false(a: Any) -> bool:
    """Return a condition's truth, False if unknown. It is always known."""
    return bool(a)


def guard_or_true(a: Any) -> bool:
    """Return a condition's truth, True if unknown. It is always known."""
    return bool(a)


def guard_size_oblivious(expr: Any) -> bool:
    """Return a condition's truth."""
    return bool(expr)


def statically_known_true(x: Any) -> bool:
    """True if a condition is known to be True."""
    return bool(x)


def is_concrete_int(a: Any) -> bool:
    """True if a size is a plain number."""
    return isinstance(a, int) and not isinstance(a, SymInt)


def is_concrete_bool(a: Any) -> bool:
    """True if a condition is a plain bool."""
    return isinstance(a, bool)


def free_symbols(val: Any) -> set[Any]:
    """Return the symbols of a size or of a tensor's sizes."""
    if isinstance(val, SymInt):
        return set(val.node.expr.free_symbols)
    shape = getattr(val, "shape", ())
    return set().union(*(free_symbols(n) for n in shape)) if shape else set()


def has_free_symbols(val: Any) -> bool:
    """True if a size, a tensor's sizes, or one of several of them has a symbol."""
    if isinstance(val, (tuple, list)):
        return any(map(has_free_symbols, val))
    return bool(free_symbols(val))


def free_unbacked_symbols(x: Any) -> set[Any]:
    """Return the unbacked symbols of a value: none.

    `x` has no effect: every size has a value.
    """
    return set()


class ConstraintViolationError(RuntimeError):
    """A size is outside its declared range."""
