"""Numbers without arithmetic: the powers of two of float8_e8m0fnu, pairs of float4, integers of fewer than eight bits,
and bits. Their NumPy dtype is a structure of one byte (bits16: two), which NumPy copies and indexes.

A byte e of float8_e8m0fnu is 2**(e - 127), and 255 is NaN. There is neither a sign nor a zero: as in PyTorch, negative
numbers lose their sign, and zero becomes the smallest power.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .dtypes import FROM_NUMPY, dtype, float4_e2m1fn_x2, float8_e4m3fn

_E8M0 = "float8_e8m0fnu"
SMALLEST = np.float32(2.0**-127)  # what zero becomes as float8_e8m0fnu


@functools.cache
def _values_of_e8m0() -> np.ndarray:
    """The 256 values as float32."""
    bits = np.arange(256, dtype=np.uint32) << 23
    bits[0], bits[255] = 1 << 22, 0x7F800001  # a subnormal number, and PyTorch's NaN
    return bits.view(np.float32)


def decode(array: np.ndarray, kernel: str = "copy_") -> np.ndarray:
    """The values of float8_e8m0fnu as float32. NotImplementedError for the other dtypes, which have no values."""
    if array.dtype.names != (_E8M0,):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{FROM_NUMPY[array.dtype].scalar_name}'")
    return _values_of_e8m0()[array.view(np.uint8)]


def encode(array: Any, target: dtype) -> np.ndarray:
    """Numbers as float8_e8m0fnu: the nearest power of two, ties to the even exponent of the next one.
    NotImplementedError for the other dtypes.
    """
    if target.name != _E8M0:
        raise NotImplementedError(f"\"copy_\" not implemented for '{target.scalar_name}'")
    bits = np.asarray(np.real(array), np.float32).view(np.uint32)
    exponent, mantissa = (bits >> 23) & 255, bits & 0x7FFFFF
    half = 1 << 22
    up = (mantissa > half) | (mantissa == half) & (exponent > 0)
    return np.minimum(exponent + up, 255).astype(np.uint8).view(target.np)


def refuse(target: dtype, kernel: str) -> None:
    """NotImplementedError for an opaque dtype; `kernel` is the name in PyTorch's message."""
    if target._np is None and target.np.names:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{target.scalar_name}'")


def cast(array: np.ndarray, target: dtype) -> np.ndarray:
    """An array in another dtype, where one of the two is opaque or a float8."""
    if array.dtype.names and target.np.names and array.dtype == target.np:
        return array
    if array.dtype.names:
        wide = array.dtype == float4_e2m1fn_x2.np and target.np == np.float32
        array = decode(array, "copy_kernel" if wide else "copy_")
    elif target is float4_e2m1fn_x2 and array.dtype == np.float32:
        raise NotImplementedError(f"\"copy_kernel\" not implemented for '{target.scalar_name}'")
    if target.np.names:
        return encode(array, target)
    if target is float8_e4m3fn:  # it has no infinity: greater numbers become its greatest one
        array = np.clip(np.asarray(np.real(array), np.float32), -448, 448)
    with np.errstate(invalid="ignore"):
        return array.astype(target.np)


def full(size: Any, value: Any, target: dtype) -> np.ndarray:
    """An array of one value: any number as float8_e8m0fnu, and zero in all dtypes."""
    out = np.zeros(size, target.np)
    if target.name == _E8M0:
        out[...] = encode(np.array(value), target)
    elif value != 0:
        raise NotImplementedError(f"\"fill_cpu\" not implemented for '{target.scalar_name}'")
    return out


def shown_values(array: np.ndarray) -> np.ndarray:
    """The numbers that a text shows as floats: the values of float8_e8m0fnu, and the bytes of the other dtypes."""
    return decode(array) if array.dtype.names == (_E8M0,) else array.view(f"u{array.itemsize}").astype(np.float32)


def python_values(array: np.ndarray) -> list:
    """The numbers of an array as nested lists. RuntimeError for a dtype that has no values."""
    if array.dtype.names != (_E8M0,):
        raise RuntimeError("load_scalar: invalid type")
    return decode(array).tolist()


def python_value(array: np.ndarray) -> float:
    """The number of an array of one element."""
    return decode(array, "_local_scalar_dense_cpu").item()
