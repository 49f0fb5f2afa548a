"""The numbers and names by which `.pt2` files say dtypes, layouts and what functions a graph may call."""

from __future__ import annotations

import math
import operator
from typing import Any

import torchlite as torch
from torchlite._functorch import predispatch

SCHEMA = 8, 20
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
        f"torch._functorch.predispatch.{name}": getattr(predispatch, name)
        for name in (
            "lazy_load_decompositions _vmap_increment_nesting _vmap_decrement_nesting _add_batch_dim _remove_batch_dim"
        ).split()
    },
    "torch._sym_sqrt": torch.sym_sqrt, "torch.sym_sqrt": torch.sym_sqrt, "builtins.round": round,
    "builtins.float": float, "builtins.int": int, "builtins.bool": bool, "builtins.max": max, "builtins.min": min,
}  # fmt: skip
_MOST_BITS = 4096  # of a whole number that a graph computes: sizes have 63


def _of_numbers(run: Any, bits: Any) -> Any:
    """A function on numbers and tensors, as a graph calls it. OverflowError where a whole number would be too long,
    TypeError for text and lists, which some of them repeat.
    """

    def checked(a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            if bits(a, b) > _MOST_BITS:
                raise OverflowError(f"{run.__name__}: a whole number of {bits(a, b)} bits is too large for a size")
        elif isinstance(a, (str, list, tuple)) or isinstance(b, (str, list, tuple)):
            raise TypeError(f"{run.__name__} takes numbers, but got {type(a).__name__} and {type(b).__name__}")
        return run(a, b)

    return checked


def _bits(a: int, b: int) -> int:
    return a.bit_length() + b.bit_length()


def _round(number: Any, ndigits: Any = None) -> Any:
    return round(number, ndigits if ndigits is None else max(-400, min(400, ndigits)))


# What a graph's nodes run in the place of functions that make long numbers or texts of short ones.
CHECKED: dict[Any, Any] = {
    **{run: _of_numbers(run, _bits) for run in (operator.add, operator.mul, operator.mod)},
    operator.pow: _of_numbers(operator.pow, lambda a, b: a.bit_length() * abs(b)),
    operator.lshift: _of_numbers(operator.lshift, lambda a, b: a.bit_length() + max(0, b)),
    round: _round,
}
FUNCTION_NAMES = {found: name for name, found in reversed(FUNCTIONS.items())}


class FormatError(RuntimeError):
    """What cannot be read as an exported program."""


def wrong(part: str, why: str) -> FormatError:
    """The one error of files: which part of them it is."""
    return FormatError(f"torch.export.load: {part}: {why}")
