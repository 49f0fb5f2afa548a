"""Functions on sizes that graphs from files may call, with bounds on their results."""

from __future__ import annotations

import math
import operator
from typing import Any

import torchlite as torch
from torchlite._aten.allowlist import bounded_overload
from torchlite._dispatch.tracing import TRACES, trace_function
from torchlite._functorch import predispatch
from torchlite._library.op_overload import OpOverload
from torchlite._types.checked_callable import CheckedCallable

# Functions on sizes, besides ops, that a graph may call.
FUNCTIONS: dict[str, Any] = {
    **{
        f"_operator.{name}": getattr(operator, name)
        for name in (
            "add sub mul floordiv truediv mod pow neg pos eq ne lt le gt ge and_ or_ xor lshift rshift abs not_ getitem"
        ).split()
    },
    **{f"math.{name}": getattr(math, name) for name in ("ceil", "floor", "trunc", "sqrt", "log2")},
    **{
        f"torch.{name}": getattr(torch, name)
        for name in ("sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum")
    },
    **{
        f"torch._functorch.predispatch.{name}": getattr(predispatch, name)
        for name in (
            "lazy_load_decompositions _vmap_increment_nesting _vmap_decrement_nesting _add_batch_dim _remove_batch_dim"
        ).split()
    },
    "torch._sym_sqrt": torch.sym_sqrt, "torch.sym_sqrt": torch.sym_sqrt, "builtins.round": round,
    "builtins.float": float, "builtins.int": int, "builtins.bool": bool, "builtins.max": max, "builtins.min": min,
}  # fmt: skip
_NAMES = ("number", "ndigits")  # parameters of round; the other functions take no keywords
_MAX_BITS = 4096  # of computed integers; sizes have 63 bits


class CheckedFunction(CheckedCallable):
    """Function on numbers and tensors in a graph from a file. Raise OverflowError for too large an integer, TypeError
    for strings and lists, which some functions would repeat.
    """

    def __init__(self, plain: Any, bits: Any) -> None:
        self.plain, self.bits = plain, bits
        self.__name__, self.__qualname__, self.__module__ = plain.__name__, plain.__qualname__, plain.__module__

    def check(self, args: tuple, kwargs: dict[str, Any]) -> None:
        args = (*args, *(kwargs[name] for name in _NAMES if name in kwargs))
        if any(isinstance(value, (str, bytes, list, tuple, dict)) for value in args):
            kinds = " and ".join(type(value).__name__ for value in args)
            raise TypeError(f"{self.__name__} takes numbers, but got {kinds}")
        if len(args) == 2 and isinstance(args[1], int) and isinstance(args[0], (int, float)):
            bits = self.bits(args[0], args[1])
            if bits > _MAX_BITS:
                raise OverflowError(f"{self.__name__}: an integer of {bits} bits is too large for a size")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if TRACES and (found := trace_function(self, *args, **kwargs)) is not NotImplemented:
            return found
        self.check(args, kwargs)
        return self.plain(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __reduce__(self) -> Any:
        return make_checked_target, (self.plain,)


def _check_bit_length(number: Any) -> int:
    return number.bit_length() if isinstance(number, int) else 0


# Checked replacements of functions that can make large integers or strings.
CHECKED: dict[Any, CheckedFunction] = {
    run: CheckedFunction(run, bits)
    for run, bits in {
        **dict.fromkeys(
            (operator.add, operator.mul, operator.mod), lambda a, b: _check_bit_length(a) + _check_bit_length(b)
        ),
        operator.pow: lambda a, b: _check_bit_length(a) * abs(b),
        operator.lshift: lambda a, b: _check_bit_length(a) + max(0, b),
        round: lambda a, b: 4 * abs(b),
    }.items()
}


def make_checked_target(target: Any) -> Any:
    """Return the checked form of a function or op in a file's graph."""
    return bounded_overload(target) if isinstance(target, OpOverload) else CHECKED.get(target, target)


FUNCTION_NAMES = {found: name for name, found in reversed(FUNCTIONS.items())}
