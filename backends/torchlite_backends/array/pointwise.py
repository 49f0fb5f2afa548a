"""Elementwise kernels that combine several functions of the namespace.

Operands are promoted to one dtype already; one of two may be a Python number.
"""

from __future__ import annotations

import numpy as np

from torchlite._types import opaque_dtypes
from torchlite._types.dtypes import FROM_NUMPY, is_complex32

from .shape import copy_preserving_strides

xp = np


def _promoted_dtype_kind(input, other):
    dtype = (input if hasattr(input, "dtype") else xp.asarray(input) if not hasattr(other, "dtype") else other).dtype
    return "W" if is_complex32(dtype) else dtype.kind


def _not_implemented_error(kernel, *operands):
    """Return PyTorch's error for an unsupported dtype; `kernel` is the name in PyTorch's message."""
    dtype = next((o.dtype for o in operands if hasattr(o, "dtype")), None) or xp.asarray(operands[0]).dtype
    return NotImplementedError(f"\"{kernel}\" not implemented for '{FROM_NUMPY[np.dtype(dtype)].scalar_name}'")


def pow(input, exponent):
    kind = _promoted_dtype_kind(input, exponent)
    if kind in "biu":
        return _compute_integer_power(input, exponent, kind)
    if kind in "cW" and (found := _trivial_complex_power(input, exponent)) is not None:
        return found
    if kind == "W":
        raise NotImplementedError("\"pow\" not implemented for 'ComplexHalf'")
    if not hasattr(exponent, "dtype") and kind not in "cW":
        if exponent == 2:
            return xp.multiply(input, input)
        if exponent == 3:
            cube = xp.multiply(input, input)
            return cube * input if cube.ndim == 0 else xp.multiply(cube, input, out=cube)
        if exponent == 0.5:
            return xp.sqrt(input)
        if exponent == -1:
            return xp.reciprocal(input)
        if exponent == 1:
            return input.copy()
    if kind in "cW":
        return _compute_complex_power(input, exponent)
    return xp.power(input, exponent)


def _trivial_complex_power(input, exponent):
    """Return a power of 1, a power with exponent 0, or a first power, also of NaN; None for others.

    A number is one of Python's, or an array without dimensions if it was rounded to half precision.
    """
    if not getattr(input, "ndim", 0) and input == 1:
        return xp.ones_like(exponent) if hasattr(exponent, "dtype") else xp.ones_like(input)
    if getattr(exponent, "ndim", 0) or exponent not in (0, 1):
        return None
    return input.copy() if exponent else xp.ones_like(input)


def _compute_complex_power(input, exponent):
    """Complex power; 0 to a power with a positive real part is 0."""
    if not hasattr(exponent, "dtype") and exponent == 2:
        return xp.multiply(input, input)
    return xp.power(input, exponent)


def _compute_integer_power(input, exponent, kind):
    if kind == "b":
        if exponent is True:  # PyTorch copies before it reads the dtype
            return input.copy()
        raise _not_implemented_error("pow", input, exponent)
    if not hasattr(exponent, "dtype"):
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return xp.multiply(input, input) if exponent == 2 else xp.power(input, exponent)
    negative = exponent < 0
    if not negative.any():
        return xp.power(input, exponent)
    # 1 and -1 have an inverse among the integers; the rest becomes 0
    base = xp.asarray(input, dtype=exponent.dtype)
    sign = xp.where(exponent % 2 == 0, 1, base)
    inverse = xp.where(xp.abs(base) == 1, sign, 0).astype(exponent.dtype)
    return xp.where(negative, inverse, xp.power(base, xp.where(negative, 0, exponent)))


def maximum(input, other):
    if _promoted_dtype_kind(input, other) in "cW":
        raise RuntimeError("maximum not implemented for complex tensors.")
    return xp.maximum(input, other)


def minimum(input, other):
    if _promoted_dtype_kind(input, other) in "cW":
        raise RuntimeError("minimum not implemented for complex tensors.")
    return xp.minimum(input, other)


def _compare_real(function, input, other, name):
    if _promoted_dtype_kind(input, other) in "cW":
        raise _not_implemented_error(f"{name}_cpu", input, other)
    return function(input, other)


def lt(input, other):
    return _compare_real(xp.less, input, other, "lt")


def le(input, other):
    return _compare_real(xp.less_equal, input, other, "le")


def gt(input, other):
    return _compare_real(xp.greater, input, other, "gt")


def ge(input, other):
    return _compare_real(xp.greater_equal, input, other, "ge")


def abs(input):
    if input.dtype.kind == "b":
        raise _not_implemented_error("abs_cpu", input)
    return xp.absolute(input)


def abs_(input):
    if input.dtype.kind == "b":
        raise _not_implemented_error("abs_cpu", input)
    if input.dtype.kind in "cW":
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    xp.absolute(input, out=input)


def square(input):
    return input.astype(xp.int64) if input.dtype.kind == "b" else xp.multiply(input, input)


def conj(input):
    return xp.conjugate(input) if input.dtype.kind in "cW" else input


def is_nonzero_complex32(input):
    """Whether each element differs from 0. A cast to bool warns that it discards the imaginary part."""
    return complex_as_real_view(input).any(-1)


def real(input):
    if is_complex32(input.dtype):
        return complex_as_real_view(input)[..., 0]
    return input.real if input.dtype.kind == "c" else input


def complex_as_real_view(input):
    """View a complex array with a last dimension for the real and imaginary parts."""
    return input[..., None].view({4: xp.float16, 8: xp.float32, 16: xp.float64}[input.dtype.itemsize])


def sign(input):
    kind = input.dtype.kind
    if kind in "cW":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    if kind in "bu":
        return xp.not_equal(input, 0).astype(input.dtype)
    # NaN is neither. NumPy's `sign` of floats has no vector loop.
    return xp.subtract(xp.greater(input, 0).view(xp.int8), xp.less(input, 0).view(xp.int8)).astype(input.dtype)


def rsqrt(input):
    if input.dtype.itemsize == 2:
        return rsqrt(input.astype(xp.float32)).astype(input.dtype)
    root = xp.sqrt(input)
    return xp.reciprocal(root) if root.ndim == 0 else xp.reciprocal(root, out=root)


def reciprocal(input):
    return xp.reciprocal(input)


def sigmoid(input):
    if input.dtype.itemsize == 2:  # half and bfloat16: one rounding
        return sigmoid(input.astype(xp.float32)).astype(input.dtype)
    out = xp.negative(input)
    if out.ndim == 0:
        return xp.reciprocal(xp.exp(out) + 1)
    xp.exp(out, out=out)
    xp.add(out, 1, out=out)
    return xp.reciprocal(out, out=out)


def _cast_number_to_dtype_of(number, array):
    """Return a Python number as an array of another array's dtype, if that can hold it.

    `where` is faster with it, and correct for dtypes that NumPy does not know.
    """
    kind = array.dtype.kind
    if (kind in "iub" and not isinstance(number, int)) or (isinstance(number, complex) and kind not in "cW"):
        return number
    return xp.asarray(number, dtype=array.dtype)


def _where(condition, input, other):
    if not hasattr(input, "dtype"):
        input = _cast_number_to_dtype_of(input, other) if hasattr(other, "dtype") else input
    elif not hasattr(other, "dtype"):
        other = _cast_number_to_dtype_of(other, input)
    return xp.where(condition if condition.dtype.kind == "b" else condition != 0, input, other)


def where(condition, input=None, other=None):
    return _where(condition, input, other)


def _choose(input, other, condition):
    return _where(condition, input, other)


def to(input, dtype):
    target = dtype.np
    if input.dtype == target:
        return input
    kind = input.dtype.kind
    if kind in "cW":
        if target.kind not in "cWb":
            input = real(input)
        elif target.kind == "b" and is_complex32(input.dtype):
            return is_nonzero_complex32(input)
    if (kind == "V" or target.kind == "V") and (input.dtype.names or target.names or target.itemsize == 1):
        return opaque_dtypes.cast(input, dtype)
    return copy_preserving_strides(input, target)
