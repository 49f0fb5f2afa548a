"""Unary elementwise kernels: rounding, classification, angles, parts of complex numbers."""

import math
import operator

import numpy as np

from torchlite._types.dtypes import FROM_NUMPY, is_complex32

from .pointwise import complex_as_real_view, sign

xp = np


def _not_implemented_error(kernel, array):
    """Return PyTorch's error for an unsupported dtype; `kernel` is the name in PyTorch's message."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{FROM_NUMPY[np.dtype(array.dtype)].scalar_name}'")


def _copy_array(input):
    return input.copy()


def _round_with(input, function, name):
    kind = input.dtype.kind
    if kind == "f":
        return function(input)
    if kind in "iu":
        return _copy_array(input)
    if kind in "cW" and name != "round":
        raise NotImplementedError(f"{name} is not supported for complex inputs")
    if kind in "bcW":
        raise _not_implemented_error(f"{name}_vml_cpu", input)
    return function(input).astype(input.dtype, copy=False)


def ceil(input):
    return _round_with(input, xp.ceil, "ceil")


def floor(input):
    return _round_with(input, xp.floor, "floor")


def trunc(input):
    return _round_with(input, xp.trunc, "trunc")


def round(input, *, decimals=0):
    decimals = operator.index(decimals)
    if decimals == 0:
        return _round_with(input, xp.rint, "round")
    if input.dtype.kind in "iubcW":
        raise _not_implemented_error("round_cpu", input)
    scale = input.dtype.type(10.0 ** abs(decimals))
    return xp.rint(input * scale) / scale if decimals > 0 else xp.rint(input / scale) * scale


def frac(input):
    if input.dtype.kind in "iubcW":
        raise _not_implemented_error("frac_cpu", input)
    return xp.subtract(input, xp.trunc(input))


def signbit(input):
    kind = input.dtype.kind
    if kind in "cW":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return xp.less(input, 0) if kind in "iub" else xp.signbit(input)


def sgn(input):
    if is_complex32(input.dtype):
        return sgn(input.astype(xp.complex64)).astype(input.dtype)
    if input.dtype.kind == "c":
        infinite = xp.isinf(input)
        if infinite.any():
            input = xp.where(infinite, _direction_of_infinity(input), input)
        size, out = xp.abs(input), xp.empty_like(input)
        out.real, out.imag = input.real / size, input.imag / size  # each by itself, which keeps the signs of zeros
        return xp.where(input == 0, xp.zeros_like(input), out)
    return sign(input)


def _direction_of_infinity(input):
    """Return complex numbers with the angles of infinite ones: an infinite part counts 1, a finite one 0."""
    out = xp.empty_like(input)
    for part, x in ((out.real, input.real), (out.imag, input.imag)):
        part[...] = xp.where(xp.isinf(x), xp.copysign(1, x), x * 0)
    return out


def positive(input):
    if input.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def isposinf(input):
    if input.dtype.kind in "cW":
        raise RuntimeError("isposinf does not support complex inputs.")
    return xp.equal(input, xp.inf)


def isneginf(input):
    if input.dtype.kind in "cW":
        raise RuntimeError("isneginf does not support complex inputs.")
    return xp.equal(input, -xp.inf)


def isreal(input):
    return imag(input) == 0 if input.dtype.kind in "cW" else xp.ones(input.shape, dtype=bool)


def angle(input):
    if input.dtype.kind in "cW":
        both = complex_as_real_view(input)
        return xp.arctan2(both[..., 1], both[..., 0])
    out = xp.less(input, 0).astype(input.dtype) * input.dtype.type(math.pi)
    if isinstance(input, np.ndarray) and input.size and not np.isnan(np.minimum.reduce(input, axis=None)):
        return out
    return xp.where(xp.isnan(input), input, out)


def conj_physical(input):
    return xp.conj(input) if input.dtype.kind in "cW" else input


def imag(input):
    if input.dtype.kind not in "cW":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return complex_as_real_view(input)[..., 1] if is_complex32(input.dtype) else input.imag


def deg2rad(input):
    if input.dtype.kind in "cW":
        raise RuntimeError("deg2rad is not supported for complex tensors.")
    return xp.multiply(input, input.dtype.type(math.pi / 180))


def rad2deg(input):
    if input.dtype.kind in "cW":
        raise RuntimeError("rad2deg is not supported for complex tensors.")
    return xp.multiply(input, input.dtype.type(180 / math.pi))


def _replace_nonfinite(input, nan, posinf, neginf):
    largest = float(np.finfo(input.dtype).max) if input.dtype.kind == "f" else _largest_finite_value(input.dtype)
    high = largest if posinf is None else posinf
    low = -largest if neginf is None else neginf
    out = xp.where(xp.isnan(input), input.dtype.type(0.0 if nan is None else nan), input)
    out = xp.where(input == xp.inf, input.dtype.type(high), out)
    return xp.where(input == -xp.inf, input.dtype.type(low), out)


def _largest_finite_value(dtype):
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).max)


def nan_to_num(input, nan=None, posinf=None, neginf=None):
    kind = input.dtype.kind
    if kind in "iub":
        return _copy_array(input)
    if kind in "cW":
        out = xp.empty(input.shape, dtype=input.dtype)
        out.real = _replace_nonfinite(input.real, nan, posinf, neginf)
        out.imag = _replace_nonfinite(input.imag, nan, posinf, neginf)
        return out
    if isinstance(input, np.ndarray) and np.isfinite(np.add.reduce(input, axis=None)):
        return _copy_array(input)  # a sum is finite if all elements are, and it does not overflow
    return _replace_nonfinite(input, nan, posinf, neginf)


def bitwise_not(input):
    if input.dtype.kind not in "iub":
        raise _not_implemented_error("bitwise_not_cpu", input)
    return xp.invert(input)


def sinc(input):
    zero = input == 0
    scaled = xp.where(zero, xp.ones_like(input), input * math.pi)
    return xp.where(zero, xp.ones_like(input), xp.sin(scaled) / scaled).astype(input.dtype, copy=False)


def special_entr(input):
    return xp.where(
        input > 0, -input * xp.log(xp.abs(input)), xp.where(input == 0, 0, xp.where(input < 0, -xp.inf, input))
    ).astype(input.dtype)


def logit(input, eps=None):
    if eps is not None:
        input = xp.clip(input, eps, 1 - eps)
    return xp.log(input / (1 - input))


def log1p(input):
    """log(1 + z). For complex z near 0 the real part is log1p(|1 + z|^2 - 1) / 2."""
    if input.dtype.kind != "c":
        return xp.log1p(input)
    x, y = input.real, input.imag
    more = x * (2 + x) + y * y
    near = xp.abs(more) < 0.5
    out = xp.asarray(xp.log(1 + input))
    out.real = xp.where(near, xp.log1p(xp.where(near, more, 0)) / 2, out.real)
    out.imag = xp.arctan2(y, 1 + x)
    return out
