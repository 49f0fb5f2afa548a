"""TorchScript's operators on numbers; integers wrap to 64 bits as in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def wrap_int64(value: Any) -> Any:
    """Wrap an integer to 64 bits; return other values unchanged."""
    if value.__class__ is int and not -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000
    return value


def sub(a: Any, b: Any, alpha: Any = 1) -> Any:
    """Subtract numbers."""
    return wrap_int64(a - (b if alpha == 1 else wrap_int64(b * alpha)))


def div(a: Any, b: Any, rounding_mode: Any = None) -> Any:
    """Divide numbers (true division)."""
    if rounding_mode == "floor":
        return float(a // b) if isinstance(a, float) or isinstance(b, float) else a // b
    if rounding_mode == "trunc":
        return math.trunc(a / b)
    if not isinstance(a, complex) and not isinstance(b, complex) and b == 0 and isinstance(b, float):
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def power(a: Any, b: Any) -> Any:
    """Return a power as float, as in PyTorch."""
    if isinstance(a, complex) or isinstance(b, complex):
        return a**b
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def shift_left(a: int, b: int) -> int:
    """Shift left in 64 bits."""
    return wrap_int64(a << b) if 0 <= b < 64 else 0


def _make_float_function(function: Callable) -> Callable:
    """Return a float function that gives NaN or infinity where Python raises."""

    def run(*args: Any) -> Any:
        try:
            return function(*args)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if function in (math.log, math.log2, math.log10) and args[0] == 0 else math.nan

    return run


def _round(value: Any, digits: Any = None) -> Any:
    return float(round(value)) if digits is None else round(value, max(-400, min(400, digits)))


def _factorial(n: int) -> int:
    if not 0 <= n <= 20:
        raise ValueError("factorial() is of 0 to 20: its result has 64 bits")
    return math.factorial(n)


_REAL: dict[str, Callable] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "erf": math.erf,
    "erfc": math.erfc,
    "gamma": math.gamma,
    "lgamma": math.lgamma,
    "fmod": math.fmod,
    "copysign": math.copysign,
    "fabs": math.fabs,
    "degrees": math.degrees,
    "radians": math.radians,
    "ldexp": lambda x, n: math.ldexp(x, max(-5000, min(5000, n))),
}
