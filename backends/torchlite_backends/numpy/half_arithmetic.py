"""Elementwise kernels for large arrays of half precision, which NumPy computes number by number.

Arithmetic is done in float32, block by block: one rounding of a sum, difference, product, quotient or root is as one in
half precision. Signs and order are read from the bits, which are those of a sign and a magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy._core._multiarray_umath import __cpu_features__

from .cache_blocking import run_blocks
from .half_casts import cast_by_bits
from .half_tables import is_large_half, look_up, make_tabulated, make_tabulated_in_place

_SINGLE = np.dtype("f4")
_BLOCK = 1 << 14  # elements of a block that stays in a core's cache
_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80}
_SIGN = np.int16(-0x8000)


def _is_number_of(x: Any, dtype: np.dtype) -> bool:
    """Whether this is one number of the dtype. Python numbers have another precision in some ops."""
    return getattr(x, "ndim", 1) == 0 and x.dtype == dtype


def make_half_arithmetic(op: str, ufunc: np.ufunc, plain: Callable) -> Callable:
    """Return a kernel of two operands, one of which may be a number; `plain` serves all others."""

    def kernel(input, other, *out, **named):
        large = input if getattr(input, "ndim", 0) else other
        if getattr(large, "itemsize", 0) != 2 or out or named or not is_large_half(large):
            return plain(input, other, *out, **named)
        found = _compute(op, ufunc, input, other, large, None)
        return plain(input, other) if found is None else found

    kernel.__name__ = kernel.__qualname__ = op
    return _like(kernel, plain)


def make_half_arithmetic_in_place(op: str, ufunc: np.ufunc, plain: Callable) -> Callable:
    """Return the in-place kernel of arithmetic; `plain` serves all that is no large array of half precision."""

    def kernel(target, other):
        apart = other is target or other.__class__ is np.ndarray and not np.may_share_memory(target, other)
        if target.itemsize != 2 or not apart or not is_large_half(target):
            return plain(target, other)
        if _compute(op, ufunc, target, other, target, target) is None:
            plain(target, other)
        return None

    return _like(kernel, plain)


def _compute(op: str, ufunc: np.ufunc, input: Any, other: Any, large: np.ndarray, out: Any) -> np.ndarray | None:
    """Return the result, in `out` if that is an array; None for operands of other dtypes and shapes than `large`."""
    with_number = False
    for x in (input, other):
        if _is_number_of(x, large.dtype):
            with_number = True
        elif not is_large_half(x) or x.dtype != large.dtype or x.shape != large.shape:
            return None
    if with_number:
        found = look_up(op, lambda one, two: _compute_in_blocks(ufunc, one, two, None), (input, other), out)
        if found is not None:
            return found
    return _compute_in_blocks(ufunc, input, other, out)


def _compute_in_blocks(ufunc: np.ufunc, input: Any, other: Any, out: Any) -> np.ndarray:
    """Compute with contiguous arrays of one shape, or with one and a number."""
    large = input if input.ndim else other
    first, second = (x.reshape(-1) if x.ndim else np.asarray(x).astype(_SINGLE) for x in (input, other))
    made = np.empty(large.shape, large.dtype) if out is None else out
    result, same = made.reshape(-1), input is other

    def compute_part(start: int, stop: int) -> None:
        one = cast_by_bits(first[start:stop], _SINGLE) if first.ndim else first
        two = one if same else cast_by_bits(second[start:stop], _SINGLE) if second.ndim else second
        wide = one if first.ndim else two
        result[start:stop] = cast_by_bits(ufunc(one, two, out=wide), large.dtype)

    run_blocks(compute_part, made.size, 1, _BLOCK)
    return made


def make_half_function(ufunc: np.ufunc, plain: Callable) -> Callable:
    """Return a kernel of one operand; `plain` serves all others."""

    def kernel(input, *out, **named):
        if getattr(input, "itemsize", 0) != 2 or out or named or not is_large_half(input):
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
        if getattr(input, "itemsize", 0) != 2 or out or named or not is_large_half(input):
            return plain(input, *out, **named)
        return np.bitwise_xor(input.view(np.int16), _SIGN).view(input.dtype)

    return _like(neg, plain)


def make_half_relu(plain: Callable) -> Callable:
    """Return relu: a NaN stays one."""

    def relu(input, into=None):
        if getattr(input, "itemsize", 0) != 2 or into is not None or not is_large_half(input) or _has_nan(input):
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
            or not is_large_half(input)
            or not is_large_half(other)
            or other.dtype != input.dtype
            or other.shape != input.shape
            or _has_nan(input)
            or _has_nan(other)
        ):
            return plain(input, other, *out, **named)
        made = np.empty(input.shape, np.int16)
        one, two, result = (x.reshape(-1).view(np.int16) for x in (input, other, made))

        def compute_part(start: int, stop: int) -> None:
            first, second, chosen = one[start:stop], two[start:stop], result[start:stop]
            integers(first, second, out=chosen)
            both_negative = first & second  # then their magnitudes have the other order
            both_negative >>= 15
            both_negative &= first ^ second
            np.bitwise_xor(chosen, both_negative, out=chosen)

        run_blocks(compute_part, made.size, 1, 4 * _BLOCK)
        return made.view(input.dtype)

    return _like(kernel, plain)


def make_half_extreme_along(plain: Callable) -> Callable:
    """Return the largest or smallest elements along dimensions, by the order of the bits."""

    def kernel(input, *dims, **named):
        if getattr(input, "itemsize", 0) != 2 or not is_large_half(input) or _has_nan(input):
            return plain(input, *dims, **named)
        found = plain(_ordered(input.view(np.int16)), *dims, **named)
        return _ordered(np.asarray(found)).view(input.dtype)

    return _like(kernel, plain)


def _ordered(bits: np.ndarray) -> np.ndarray:
    """Return whole numbers in the order of the numbers with these bits; and the bits of these."""
    out = np.right_shift(bits, 15, out=np.empty_like(bits))
    np.bitwise_and(out, 0x7FFF, out=out)
    return np.bitwise_xor(out, bits, out=out)


def _has_nan(x: np.ndarray) -> bool:
    infinity = _INFINITY[x.dtype.name]
    return int(x.view(np.int16).max()) > infinity or int(x.view(np.uint16).max()) > infinity + 0x8000


def _like(kernel: Callable, plain: Callable) -> Callable:
    """Give a kernel the attributes of the one in whose place it is."""
    kernel.__dict__.update(getattr(plain, "__dict__", {}))
    return kernel


# Functions of one array that take longer than to look up their results. NumPy has vectors of float16 for some.
_TABULATED = """_clamp_scalars _elu celu clamp_max clamp_min deg2rad digamma elu erf erfc erfinv floor ceil frac gelu
    hardshrink hardsigmoid hardswish hardtanh i0 leaky_relu lgamma logit logsigmoid mish polygamma pow rad2deg
    reciprocal relu6 round rsqrt selu sgn sigmoid sign silu sinc softplus softshrink special_entr special_i0e
    special_i1 special_i1e special_log_ndtr special_ndtr square threshold trunc""".split()
_IN_VECTORS = """acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 sin sinh tan
    tanh""".split()


def replace_half_kernels(table: dict[str, Any], small: dict[str, Any]) -> None:
    """Put the kernels of this module over those of a table, or of the one for small arrays, which they fall back to."""
    for op, ufunc in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
        table[f"{op}_"] = make_half_arithmetic_in_place(op, ufunc, table.get(f"{op}_") or small[f"{op}_"])
        table[op] = make_half_arithmetic(op, ufunc, table[op])
    table["sqrt"] = make_half_function(np.sqrt, table["sqrt"])
    table["neg"] = make_half_neg(table["neg"])
    for op, extreme in (("maximum", np.maximum), ("minimum", np.minimum)):
        table[op] = make_half_extreme(extreme, table[op])
    for op in ("amax", "amin"):
        table[op] = make_half_extreme_along(table[op])
    if "relu" in table:
        table["relu"] = make_half_relu(table["relu"])
    for op in ("sqrt", *_TABULATED, *(() if __cpu_features__.get("AVX512_SPR") else _IN_VECTORS)):
        plain = table.get(op) or small.get(op)
        if plain is not None:
            table[op] = make_tabulated(op, plain)
            in_place = table.get(f"{op}_") or small.get(f"{op}_")
            if in_place is not None:
                table[f"{op}_"] = make_tabulated_in_place(op, plain, in_place)
