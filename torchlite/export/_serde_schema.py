"""The numbers and names by which `.pt2` files say dtypes, layouts and what functions a graph may call."""

from __future__ import annotations

import math
import operator
from typing import Any

import torchlite as torch
from torchlite._aten.allowlist import bounded_overload
from torchlite._dispatch.tracing import TRACES, trace_function
from torchlite._library.op_overload import OpOverload
from torchlite._types.checked_callable import CheckedCallable
from torchlite.func import _predispatch

SCHEMA_VERSION = 8, 20
DTYPES: dict[int, Any] = {
    code: found
    for code, name in {
        1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
        9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
        29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu",
        34: "uint32", 35: "uint64",
    }.items()
    if (found := getattr(torch, name, None)) is not None
}  # fmt: skip
DTYPE_CODES = {found: code for code, found in DTYPES.items()}
LAYOUTS: dict[int, Any] = {
    1: torch.sparse_coo, 2: torch.sparse_csr, 3: torch.sparse_csc, 4: torch.sparse_bsr, 5: torch.sparse_bsc,
    7: torch.strided,
}  # fmt: skip
LAYOUT_CODES = {found: code for code, found in LAYOUTS.items()}
MEMORY_FORMATS: dict[int, Any] = {
    1: torch.contiguous_format, 2: torch.channels_last, 3: torch.channels_last_3d, 4: torch.preserve_format,
}  # fmt: skip
MEMORY_FORMAT_CODES = {found: code for code, found in MEMORY_FORMATS.items()}
# Functions on sizes that a graph may call, beside ops.
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
        f"torch._functorch.predispatch.{name}": getattr(_predispatch, name)
        for name in (
            "lazy_load_decompositions _vmap_increment_nesting _vmap_decrement_nesting _add_batch_dim _remove_batch_dim"
        ).split()
    },
    "torch._sym_sqrt": torch.sym_sqrt, "torch.sym_sqrt": torch.sym_sqrt, "builtins.round": round,
    "builtins.float": float, "builtins.int": int, "builtins.bool": bool, "builtins.max": max, "builtins.min": min,
}  # fmt: skip
_NAMES = ("number", "ndigits")  # of round's parameters: the others take no keywords
_MAX_BITS = 4096  # of a whole number that a graph computes: sizes have 63


class CheckedFunction(CheckedCallable):
    """A function on numbers and tensors as the graph of a file calls it. OverflowError where a whole number would be
    too long, TypeError for text and lists, which some of them repeat.
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
                raise OverflowError(f"{self.__name__}: a whole number of {bits} bits is too large for a size")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if TRACES and (found := trace_function(self, *args, **kwargs)) is not NotImplemented:
            return found
        self.check(args, kwargs)
        return self.plain(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __reduce__(self) -> Any:
        return checked_target, (self.plain,)


def _bit_length(number: Any) -> int:
    return number.bit_length() if isinstance(number, int) else 0


# What a graph's nodes call in the place of functions that make long numbers or texts of short ones.
CHECKED: dict[Any, CheckedFunction] = {
    run: CheckedFunction(run, bits)
    for run, bits in {
        **dict.fromkeys((operator.add, operator.mul, operator.mod), lambda a, b: _bit_length(a) + _bit_length(b)),
        operator.pow: lambda a, b: _bit_length(a) * abs(b),
        operator.lshift: lambda a, b: _bit_length(a) + max(0, b),
        round: lambda a, b: 4 * abs(b),
    }.items()
}


def checked_target(target: Any) -> Any:
    """What a node of a file's graph calls in the place of a function or an op."""
    return bounded_overload(target) if isinstance(target, OpOverload) else CHECKED.get(target, target)


FUNCTION_NAMES = {found: name for name, found in reversed(FUNCTIONS.items())}


class FormatError(RuntimeError):
    """What cannot be read as an exported program."""


def format_error(part: str, why: str) -> FormatError:
    """The one error of files: which part of them it is."""
    return FormatError(f"torch.export.load: {part}: {why}")
