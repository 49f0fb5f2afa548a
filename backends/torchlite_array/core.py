"""Creation kernels that the core and the formulas use."""

from __future__ import annotations

from typing import Any

xp: Any = None


def _empty(size, dtype):
    return xp.empty(size, dtype=dtype.np)


def _full(size, value, dtype):
    return xp.full(size, value, dtype=dtype.np)


def _arange(start, end, step, dtype):
    return xp.arange(start, end, step, dtype=dtype.np)


def zeros_like(input):
    return xp.zeros(input.shape, dtype=input.dtype)


def ones_like(input):
    return xp.ones(input.shape, dtype=input.dtype)


def full_like(input, value):
    return xp.full(input.shape, value, dtype=input.dtype)


def new_zeros(input, shape):
    return xp.zeros(shape, dtype=input.dtype)


def new_full(input, shape, value):
    return xp.full(shape, value, dtype=input.dtype)


def new_arange(input, start, end, step, dtype):
    return xp.arange(start, end, step, dtype=dtype.np)
