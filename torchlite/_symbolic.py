"""Sizes that a compiler keeps as symbols, and the functions that take them: nothing is traced, so all are numbers."""

from __future__ import annotations

import math
from typing import Any

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min",
    "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip


class _Symbol:
    def __init__(self, node: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}: torchlite does not trace programs yet")


class SymInt(_Symbol):
    """An integer that is not known yet: there is none."""


class SymFloat(_Symbol):
    """A number that is not known yet: there is none."""


class SymBool(_Symbol):
    """A truth value that is not known yet: there is none."""


def sym_int(a: Any) -> int:
    """The whole number towards zero."""
    return int(a)


def sym_float(a: Any) -> float:
    """`float(a)`."""
    return float(a)


def sym_not(a: Any) -> bool:
    """`not a`."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger number; a float where one of them is."""
    found = max(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float where one of them is."""
    found = min(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t if b else f`."""
    return t if b else f


def sym_sqrt(a: Any) -> float:
    """`math.sqrt(a)`."""
    return math.sqrt(a)


def sym_sum(args: Any) -> Any:
    """`sum(args)`."""
    return sum(args)


def sym_fresh_size(expr: Any) -> Any:
    """NotImplementedError: a size without a trace is a number."""
    raise NotImplementedError("sym_fresh_size: torchlite does not trace programs yet")
