"""Elementwise kernels that are more than one function of the namespace."""
from __future__ import annotations

from typing import Any

xp: Any = None


def pow(input, other):
    kind = getattr(input, "dtype", None)
    if kind is not None and kind.kind in "iub":
        _check_negative(other)
    return xp.power(input, other)


def _check_negative(exponent):
    if exponent.__class__ is int and exponent < 0 or hasattr(exponent, "dtype") and exponent.dtype.kind == "i" and exponent.size and (exponent < 0).any():
        raise RuntimeError("Integers to negative integer powers are not allowed.")


def sub(input, other):
    return xp.subtract(input, other)


def floor_divide(input, other):
    if _is_integer(input) and _is_integer(other):
        _check_zero(other)
        return xp.floor_divide(input, other)
    return xp.floor_divide(input, other)


def _is_integer(value):
    return isinstance(value, int) or hasattr(value, "dtype") and value.dtype.kind in "iub"


def _check_zero(divisor):
    if not (divisor.all() if hasattr(divisor, "all") else divisor):
        raise RuntimeError("ZeroDivisionError")


def _trunc_divide(input, other):
    if _is_integer(input) and _is_integer(other):
        _check_zero(other)
        quotient = xp.floor_divide(input, other)
        return quotient + ((quotient < 0) & (quotient * other != input))
    return xp.trunc(xp.divide(input, other))


def remainder(input, other):
    if _is_integer(input) and _is_integer(other):
        _check_zero(other)
    return xp.remainder(input, other)


def conj(input):
    return xp.conjugate(input) if input.dtype.kind == "c" else input


def real(input):
    return input.real if input.dtype.kind == "c" else input


def imag(input):
    if input.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return input.imag


def sgn(input):
    return xp.sign(input)


def sign(input):
    return input.copy() if input.dtype.kind == "b" else xp.sign(input)


def rsqrt(input):
    return xp.reciprocal(xp.sqrt(input))


def reciprocal(input):
    return xp.reciprocal(input)


def sigmoid(input):
    if input.dtype.kind == "c":
        return xp.reciprocal(xp.exp(-input) + 1)
    half = input * 0.5
    return xp.tanh(half) * 0.5 + 0.5


def floor(input):
    return input.copy() if input.dtype.kind in "iub" else xp.floor(input)


def ceil(input):
    return input.copy() if input.dtype.kind in "iub" else xp.ceil(input)


def trunc(input):
    return input.copy() if input.dtype.kind in "iub" else xp.trunc(input)


def bitwise_left_shift(input, other):
    return xp.left_shift(input, other)


def bitwise_right_shift(input, other):
    return xp.right_shift(input, other)


def _where(condition, input, other):
    return xp.where(condition if condition.dtype.kind == "b" else condition != 0, input, other)


def to(input, dtype):
    target = dtype.np
    if input.dtype == target:
        return input
    if input.dtype.kind == "c" and target.kind not in "cb":
        input = input.real
    return input.astype(target)
