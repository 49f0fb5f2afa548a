"""Elementwise kernels of float32 that NumPy computes number by number, by its vector loops of float64 or of bits.

A quotient in double precision has the right integral part where that is below 2**28: a quotient of float32 numbers that
is no integer differs from one by more than a double's rounding. A divisor times that part, and the rest, are exact.
Where a quotient is larger, or an operand infinite or NaN, NumPy's function computes the block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.array import binary as shared

from .elementwise_partitioning import apply_to_elementwise_parts

MIN_SIZE = 1 << 10  # elements
_BLOCK = 1 << 14  # elements, of which a few arrays of doubles stay in a core's cache
_BITS_BLOCK = 1 << 16  # of twelve short passes, whose calls take longer than their memory
_LARGEST_QUOTIENT = float(1 << 28)
_LARGEST_INTEGER = float(1 << 22)  # of float32, with one more bit
_F32, _F64 = np.dtype("f4"), np.dtype("f8")


def _compute(body: Any, plain: Any, input: Any, other: Any) -> np.ndarray:
    """Return a new array filled by `body(out, x, y)` over blocks as doubles; `plain(x, y)` where it returns False."""
    arrays = [a for a in (input, other) if a.__class__ is np.ndarray and a.ndim]
    if not arrays or any(a.dtype != _F32 for a in arrays) or max(a.size for a in arrays) < MIN_SIZE:
        return plain(input, other)
    operands = tuple(a if a.__class__ is np.ndarray and a.ndim else np.float32(a) for a in (input, other))
    out = np.empty(np.broadcast_shapes(*[a.shape for a in arrays]), _F32)
    if not out.size:
        return plain(input, other)

    def block(part: np.ndarray, x: Any, y: Any) -> None:
        with np.errstate(all="ignore"):
            if not body(part, x.astype(_F64), y.astype(_F64)):
                part[...] = plain(x, y)

    apply_to_elementwise_parts(block, out, operands, _BLOCK)
    return out


def _is_below(x: np.ndarray, limit: float) -> bool:
    """Whether all elements are finite and of a smaller size."""
    return -limit < np.minimum.reduce(x, axis=None) and np.maximum.reduce(x, axis=None) < limit


def _rest(part: np.ndarray, x: Any, y: Any, integral: np.ufunc) -> Any:
    """Return x less the integral part of the quotient times y; None where that is not exact."""
    whole = integral(np.divide(x, y))
    if not _is_below(whole, _LARGEST_QUOTIENT):
        return None
    np.multiply(whole, y, out=whole)
    np.subtract(x, whole, out=whole)
    return whole if _is_below(whole, np.inf) else None  # NaN: of a number and an infinite divisor


def _fill_fmod(part: np.ndarray, x: Any, y: Any) -> bool:
    rest = _rest(part, x, y, np.trunc)
    if rest is None:
        return False
    np.copysign(rest, x, out=part, casting="unsafe")
    return True


def _fill_remainder(part: np.ndarray, x: Any, y: Any) -> bool:
    rest = _rest(part, x, y, np.floor)
    if rest is None:
        return False
    np.copysign(rest, x, out=rest, where=rest == 0)
    np.copyto(part, rest, casting="unsafe")
    return True


def _fill_floor_quotient(part: np.ndarray, x: Any, y: Any) -> bool:
    quotient = np.divide(x, y)
    np.floor(quotient, out=quotient)
    if not _is_below(quotient, _LARGEST_INTEGER) or np.isinf(y).any():
        return False
    np.copyto(part, quotient, casting="unsafe")
    return True


def _fill_hypot(part: np.ndarray, x: Any, y: Any) -> bool:
    size = x * x
    size += y * y
    if not _is_below(size, np.inf):
        return False
    np.sqrt(size, out=part, casting="unsafe")
    return True


def fmod(input, other):
    return _compute(_fill_fmod, shared.fmod, input, other)


def remainder(input, other):
    return _compute(_fill_remainder, shared.remainder, input, other)


def floor_divide(input, other):
    return _compute(_fill_floor_quotient, shared.floor_divide, input, other)


def _floor_divide(input, other):
    return floor_divide(input, other)


def hypot(input, other):
    return _compute(_fill_hypot, shared.hypot, input, other)


def _add_exponentials(input: Any, other: Any, plain: Any, exponential: np.ufunc, factor: float) -> np.ndarray:
    """Return log(exp(input) + exp(other)) of floats, for another base with `factor`, 1 / log(base)."""
    arrays = [a for a in (input, other) if a.__class__ is np.ndarray and a.ndim]
    if (
        not arrays
        or any(a.dtype != arrays[0].dtype or a.dtype.char not in "fd" for a in arrays)
        or max(a.size for a in arrays) < MIN_SIZE
    ):
        return plain(input, other)
    dtype = arrays[0].dtype
    operands = tuple(a if a.__class__ is np.ndarray and a.ndim else dtype.type(a) for a in (input, other))
    out = np.empty(np.broadcast_shapes(*[a.shape for a in arrays]), dtype)
    if not out.size:
        return out

    def block(part: np.ndarray, x: Any, y: Any) -> None:
        with np.errstate(all="ignore"):
            np.subtract(x, y, out=part)
            if not _is_below(part, np.inf):
                part[...] = plain(x, y)
                return
            np.absolute(part, out=part)
            np.negative(part, out=part)
            exponential(part, out=part)
            np.log1p(part, out=part)
            if factor != 1.0:
                np.multiply(part, dtype.type(factor), out=part)
            np.add(part, np.maximum(x, y), out=part)

    apply_to_elementwise_parts(block, out, operands, _BLOCK)
    return out


def logaddexp(input, other):
    return _add_exponentials(input, other, shared.logaddexp, np.exp, 1.0)


def logaddexp2(input, other):
    return _add_exponentials(input, other, shared.logaddexp2, np.exp2, 1.4426950408889634)


def nextafter(input, other):
    """The next number is one step of the bits, but from zero."""
    arrays = input, other
    if any(a.__class__ is not np.ndarray or a.dtype != _F32 for a in arrays) or input.size < MIN_SIZE:
        return shared.nextafter(input, other)
    if input.shape != other.shape or not (input.flags.c_contiguous and other.flags.c_contiguous):
        return shared.nextafter(input, other)
    out = np.empty(input.shape, _F32)

    def block(part: np.ndarray, x: Any, y: Any) -> None:
        above, below, bits = np.less(x, y), np.greater(x, y), x.view(np.int32)
        steps = np.subtract(above.view(np.int8), below.view(np.int8)).astype(np.int32)
        sign = np.right_shift(bits, 31)
        steps ^= sign  # the bits of negative numbers go the other way
        steps -= sign
        np.add(bits, steps, out=part.view(np.int32))
        moved = np.logical_or(above, below, out=above)
        moved &= np.not_equal(x, 0)
        if not moved.all():  # equal, zero or NaN
            rest = ~moved
            part[rest] = np.nextafter(x[rest], y[rest])

    apply_to_elementwise_parts(block, out, arrays, _BITS_BLOCK)
    return out
