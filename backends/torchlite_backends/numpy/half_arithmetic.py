"""Elementwise kernels for large arrays of half precision, which NumPy computes number by number.

Arithmetic is done in float32, block by block: one rounding of a sum, difference, product, quotient or root is as one in
half precision. Signs and order are read from the bits, which are those of a sign and a magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .cache_blocking import run_blocks
from .half_casts import cast_by_bits

_SINGLE = np.dtype("f4")
_HALF = np.dtype("f2")
_LEAST, _BLOCK = 4096, 1 << 14  # elements from which bits pay, and of a block that stays in a core's cache
_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80}
_SIGN = np.int16(-0x8000)


def _is_large(x: Any) -> bool:
    """Whether this is a contiguous array of half precision that is worth it."""
    return (
        x.__class__ is np.ndarray
        and x.itemsize == 2
        and x.size >= _LEAST
        and (x.dtype == _HALF or x.dtype.name == "bfloat16")
        and x.flags.c_contiguous
    )


def _is_number_of(x: Any, dtype: np.dtype) -> bool:
    """Whether this is one number of the dtype. Python numbers have another precision in some ops."""
    return getattr(x, "ndim", 1) == 0 and x.dtype == dtype


def make_half_arithmetic(ufunc: np.ufunc, plain: Callable) -> Callable:
    """Return a kernel of two operands, one of which may be a number; `plain` serves all others."""

    def kernel(input, other, *out, **named):
        large = input if getattr(input, "ndim", 0) else other
        if getattr(large, "itemsize", 0) != 2 or out or named or not _is_large(large):
            return plain(input, other, *out, **named)
        operands = []
        for x in (input, other):
            if _is_number_of(x, large.dtype):
                operands.append(np.asarray(x).astype(_SINGLE))
            elif _is_large(x) and x.dtype == large.dtype and x.shape == large.shape:
                operands.append(x.reshape(-1))
            else:
                return plain(input, other)
        made = np.empty(large.shape, large.dtype)
        first, second = operands
        result, same = made.reshape(-1), input is other

        def compute_part(start: int, stop: int) -> None:
            one = cast_by_bits(first[start:stop], _SINGLE) if first.ndim else first
            two = one if same else cast_by_bits(second[start:stop], _SINGLE) if second.ndim else second
            wide = one if first.ndim else two
            result[start:stop] = cast_by_bits(ufunc(one, two, out=wide), large.dtype)

        run_blocks(compute_part, made.size, 1, _BLOCK)
        return made

    return _like(kernel, plain)


def make_half_function(ufunc: np.ufunc, plain: Callable) -> Callable:
    """Return a kernel of one operand; `plain` serves all others."""

    def kernel(input, *out, **named):
        if getattr(input, "itemsize", 0) != 2 or out or named or not _is_large(input):
            return plain(input, *out, **named)
        made, x = np.empty(input.shape, input.dtype), input.reshape(-1)
        result = made.reshape(-1)

        def compute_part(start: int, stop: int) -> None:
            wide = cast_by_bits(x[start:stop], _SINGLE)
            result[start:stop] = cast_by_bits(ufunc(wide, out=wide), input.dtype)

        run_blocks(compute_part, made.size, 1, _BLOCK)
        return made

    return _like(kernel, plain)


def make_half_neg(plain: Callable) -> Callable:
    """Return the negation."""

    def neg(input, *out, **named):
        if getattr(input, "itemsize", 0) != 2 or out or named or not _is_large(input):
            return plain(input, *out, **named)
        return np.bitwise_xor(input.view(np.int16), _SIGN).view(input.dtype)

    return _like(neg, plain)


def make_half_relu(plain: Callable) -> Callable:
    """Return relu: a NaN stays one."""

    def relu(input, into=None):
        if getattr(input, "itemsize", 0) != 2 or into is not None or not _is_large(input) or _has_nan(input):
            return plain(input, into)
        bits = input.view(np.int16)
        keep = np.right_shift(bits, 15)
        np.invert(keep, out=keep)
        return np.bitwise_and(bits, keep, out=keep).view(input.dtype)

    return _like(relu, plain)


def make_half_extreme(integers: np.ufunc, plain: Callable) -> Callable:
    """Return the larger or the smaller of two arrays of one shape, by the order of the bits."""

    def kernel(input, other, *out, **named):
        if (
            getattr(input, "itemsize", 0) != 2
            or out
            or named
            or not _is_large(input)
            or not _is_large(other)
            or other.dtype != input.dtype
            or other.shape != input.shape
            or _has_nan(input)
            or _has_nan(other)
        ):
            return plain(input, other, *out, **named)
        found = integers(_ordered(input.view(np.int16)), _ordered(other.view(np.int16)))
        return _ordered(found).view(input.dtype)

    return _like(kernel, plain)


def _ordered(bits: np.ndarray) -> np.ndarray:
    """Return whole numbers in the order of the numbers with these bits; and the bits of these."""
    out = np.right_shift(bits, 15)
    np.bitwise_and(out, 0x7FFF, out=out)
    return np.bitwise_xor(out, bits, out=out)


def _has_nan(x: np.ndarray) -> bool:
    return int(np.bitwise_and(x.view(np.int16), 0x7FFF).max()) > _INFINITY[x.dtype.name]


def _like(kernel: Callable, plain: Callable) -> Callable:
    """Give a kernel the attributes of the one in whose place it is."""
    kernel.__dict__.update(getattr(plain, "__dict__", {}))
    return kernel


def replace_half_kernels(table: dict[str, Any]) -> None:
    """Put the kernels of this module over those of a table, which they fall back to."""
    for op, ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
        table[op] = make_half_arithmetic(ufunc, table[op])
    table["sqrt"] = make_half_function(np.sqrt, table["sqrt"])
    table["neg"] = make_half_neg(table["neg"])
    for op, extreme in (("maximum", np.maximum), ("minimum", np.minimum)):
        table[op] = make_half_extreme(extreme, table[op])
    if "relu" in table:
        table["relu"] = make_half_relu(table["relu"])
