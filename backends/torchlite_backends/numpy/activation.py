"""Activations and their backward passes, block by block in cache. Each is a kernel of the record of its name.

Half precision is computed in float32, which also keeps bfloat16 what it is beside Python numbers.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from torchlite_backends.array.special import erf
from torchlite_backends.array.special_coefficients import NORMAL_TANH

from . import cache_blocking
from .cache_blocking import scratch_buffer
from .row_blocks import F32, F64, SMALL, ZERO, as_contiguous, is_half, refuse, run_in_float32

I32, I8 = np.dtype("i4"), np.dtype("i1")
ONE_BIT = np.ones((), I32)


def blockwise(body, kernel, x, *more, block=0):
    """`body(out, x, ...)` over arrays of one shape and float dtype, block by block of `block` elements."""
    dtype = x.dtype
    if dtype is not F32 and dtype != F32 and dtype != F64:
        if not is_half(dtype):
            refuse(x, kernel)
        return run_in_float32(lambda *wide: blockwise(body, kernel, *wide, block=block), x, *more)
    arrays = [x if x.flags.c_contiguous else x.copy()]
    for other in more:
        if other.shape != x.shape:
            other = np.broadcast_to(other, x.shape)
        arrays.append(other if other.flags.c_contiguous else other.copy())
    out = np.empty(x.shape, dtype)
    cache_blocking.elementwise(body, out, *arrays, block=block)
    return out


# --- relu -----------------------------------------------------------------------------------------


# NumPy's vectors serve the larger of two arrays' elements, not of an array and a number: 2048 elements take 0.8 us with
# zeros of their own, 1.2 with one, and 1.9 by `np.clip`, whose way there is longer; 65,536 take 4.4, 27 and 6.5. Zeros
# and NaN come out alike. Nothing writes these zeros, so that the system keeps one page for them.
_SMALL_SIZE, _ZEROS = 512, np.zeros(SMALL, F32)
# Elements from which `np.clip` beats `np.maximum` for other dtypes.
_MIN_SIZE_TO_CLIP = 1 << 12


def relu(input, into=None):
    if into is not None:
        return _clip(input, 0, np.inf, into)
    if input.dtype is F32 and (size := input.size) <= SMALL:
        if size <= _SMALL_SIZE:
            return np.maximum(ZERO, input)
        if input.flags.c_contiguous:
            return np.maximum(_ZEROS[:size].reshape(input.shape), input)
    kind = input.dtype.kind
    if kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if input.dtype.char == "e":
        return np.maximum(input, 0)  # of float16 NumPy takes the first of two zeros, of others the second
    if kind != "f" or input.size <= _MIN_SIZE_TO_CLIP or not input.flags.c_contiguous:
        return np.maximum(0, input)
    out = np.empty_like(input)
    cache_blocking.elementwise(
        lambda o, x: np.clip(x, 0, np.inf, out=o), out, input, block=cache_blocking.LARGEST_BLOCK
    )
    return out


def _clip(input, least, most, into):
    """The input between two numbers in `into`, of the input's shape and dtype, which may be the input itself."""
    if input.dtype == F32 or input.dtype == F64:
        return np.clip(input, least, most, out=into)
    np.copyto(into, relu(input) if most == np.inf else hardtanh(input, least, most))
    return into


def _relu_mask(out_block, grad, out):
    # The bits of the gradient and of -1, but 0 where out <= 0: a product with the mask would make NaN of an infinite
    # gradient.
    bits = out_block.view(I32)
    bits[...] = (out <= 0).view(I8)
    np.subtract(bits, 1, bits)
    np.bitwise_and(bits, grad.view(I32), bits)


def _relu_backward(grad, out):
    if grad.dtype != F32 or out.dtype != F32 or not out.ndim:
        return np.where(out <= 0, grad.dtype.type(0), grad)
    if not (grad.flags.c_contiguous and out.flags.c_contiguous):
        grad, out = grad.copy(), as_contiguous(out)
    if grad.size <= SMALL:
        bits = np.less_equal(out, ZERO).view(I8).astype(I32)
        np.subtract(bits, ONE_BIT, bits)
        np.bitwise_and(bits, grad.view(I32), bits)
        return bits.view(F32)
    result = np.empty_like(grad)
    cache_blocking.elementwise(_relu_mask, result, grad, out)
    return result


# --- gelu -----------------------------------------------------------------------------------------

# The normal distribution function is 1 / (1 + exp(-2 x P(x^2))). P was fitted here by weighted least squares (Lawson's
# iteration towards the smallest largest error) on [0, 5.6]: the error of gelu is below 7e-8 + rounding. Beyond, P stays
# above 1.7 and goes to infinity, so the function is exactly 1 in float32. The approximation has P = sqrt(2/pi) (1 +
# 0.044715 x^2).
TANH_SCALE, TANH_CUBIC = 0.7978845608028654, 0.044715
INV_SQRT_2PI = 0.3989422804014327


@functools.cache
def _fastest_exp(dtype):
    """NumPy's quickest exponential function, and the factor of its argument that makes it that of e. With AVX-512
    `exp2` of float32 takes 0.6 of the time of `exp` and rounds less; where it has no loop of vectors it takes ten times
    as long.
    """
    from numpy.lib import introspect

    loops = introspect.opt_func_info(func_name="^exp2$", signature="float32").get("exp2", {})
    quick = dtype == F32 and any(not loop["current"].startswith("baseline") for loop in loops.values())
    return (np.exp2, math.log2(math.e)) if quick else (np.exp, 1.0)


@functools.cache
def _cdf_coefficients():
    """The coefficients of -2 P, the highest first, for the exponential function of float32."""
    return [np.float32(-2 * c * _fastest_exp(F32)[1]) for c in NORMAL_TANH]


def _reciprocal_cdf(x, approximate, out):
    """1 / cdf(x) into a block of float32, or of any numbers for the approximation. Without it x^2 is left in the
    scratch memory 1.
    """
    exponential, factor = _fastest_exp(x.dtype)
    if approximate == "tanh":
        np.multiply(x, x, out=out)
        np.multiply(out, x.dtype.type(-2 * TANH_SCALE * TANH_CUBIC * factor), out=out)
        np.add(out, x.dtype.type(-2 * TANH_SCALE * factor), out=out)
    else:
        highest, *others, last = _cdf_coefficients()
        square = scratch_buffer(1, x.shape, F32)
        np.multiply(x, x, out=square)
        np.multiply(square, highest, out=out)
        for coefficient in others:
            np.add(out, coefficient, out=out)
            np.multiply(out, square, out=out)
        np.add(out, last, out=out)
    np.multiply(out, x, out=out)
    exponential(out, out=out)
    np.add(out, x.dtype.type(1), out=out)


def _cdf(x, approximate, out=None):
    """The normal distribution function, or its approximation, in scratch memory if no other is given."""
    out = scratch_buffer(0, x.shape, x.dtype) if out is None else out
    if x.dtype == F32 or approximate == "tanh":
        _reciprocal_cdf(x, approximate, out)
        return np.divide(x.dtype.type(1), out, out=out)  # `reciprocal` takes twice as long
    np.multiply(erf(x * 0.7071067811865476), 0.5, out=out)
    return np.add(out, 0.5, out=out)


def _gelu_block(approximate):
    def block(out, x):
        if x.dtype == F32 or approximate == "tanh":
            _reciprocal_cdf(x, approximate, out)
            np.divide(x, out, out=out)
        else:
            np.multiply(_cdf(x, approximate), x, out=out)

    return block


_GELU = {"none": _gelu_block("none"), "tanh": _gelu_block("tanh")}


def gelu(input, *, approximate="none"):
    body = _GELU.get(approximate)
    if body is None:
        raise RuntimeError("approximate argument must be either none or tanh.")
    return blockwise(body, "GeluKernelImpl", input)


def _add_density(x, cdf, approximate):
    """Add x times the slope of the distribution function to that function, which makes gelu's slope of it. The scratch
    memory 1 has x^2 where `_one_over_cdf` leaves it.
    """
    number = x.dtype.type
    slope = scratch_buffer(1, x.shape, x.dtype)
    if approximate == "tanh":
        # 2 cdf (1 - cdf) scale (1 + 3 cubic x^2)
        inner = scratch_buffer(2, x.shape, x.dtype)
        np.multiply(x, x, out=inner)
        np.multiply(inner, number(6 * TANH_SCALE * TANH_CUBIC), out=inner)
        np.add(inner, number(2 * TANH_SCALE), out=inner)
        np.subtract(number(1), cdf, out=slope)
        np.multiply(slope, cdf, out=slope)
        np.multiply(slope, inner, out=slope)
    else:
        exponential, factor = _fastest_exp(x.dtype)
        if x.dtype != F32:  # else it is there
            np.multiply(x, x, out=slope)
        np.multiply(slope, number(-0.5 * factor), out=slope)
        exponential(slope, out=slope)
        np.multiply(slope, number(INV_SQRT_2PI), out=slope)
    np.multiply(slope, x, out=slope)
    np.add(cdf, slope, out=cdf)


def _gelu_backward_block(approximate):
    def block(out, grad, x):
        slope = _cdf(x, approximate)
        _add_density(x, slope, approximate)
        np.multiply(slope, grad, out=out)

    return block


_GELU_BACKWARD = {"none": _gelu_backward_block("none"), "tanh": _gelu_backward_block("tanh")}


def _gelu_backward(grad, input, approximate="none"):
    return blockwise(_GELU_BACKWARD[approximate], "GeluBackwardKernelImpl", grad, input)


# --- silu and mish --------------------------------------------------------------------------------


def _sigmoid_into(x, out):
    """1 / (1 + e^-x): by way of tanh it would be a pass less, but without digits far below zero."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, x.dtype.type(1), out=out)
    np.reciprocal(out, out=out)


def _silu_block(out, x):
    divisor = scratch_buffer(0, x.shape, x.dtype)
    np.negative(x, out=divisor)
    np.exp(divisor, out=divisor)
    np.add(divisor, x.dtype.type(1), out=divisor)
    np.divide(x, divisor, out=out)


def _silu_backward_block(out, grad, x):
    gate, slope = scratch_buffer(0, x.shape, x.dtype), scratch_buffer(1, x.shape, x.dtype)
    one = x.dtype.type(1)
    _sigmoid_into(x, gate)
    np.subtract(one, gate, out=slope)
    np.multiply(slope, x, out=slope)
    np.add(slope, one, out=slope)
    np.multiply(slope, gate, out=slope)
    np.multiply(slope, grad, out=out)


def silu(input):
    if input.dtype.kind == "c":
        return input / (1 + np.exp(-input))
    return blockwise(_silu_block, "silu_cpu", input)


def _silu_backward(grad, input):
    if input.dtype.kind == "c":
        gate = 1 / (1 + np.exp(-input))
        return grad * np.conj(gate * (1 + input * (1 - gate)))
    return blockwise(_silu_backward_block, "silu_cpu", grad, input)


def _tanh_softplus_into(x, out, scratch):
    """tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); x is limited to 20, where the result is 1."""
    number = x.dtype.type
    np.minimum(x, number(20), out=scratch)
    np.exp(scratch, out=scratch)
    np.add(scratch, number(2), out=out)
    np.multiply(out, scratch, out=out)
    np.add(out, number(2), out=scratch)
    np.divide(out, scratch, out=out)


def _mish_block(out, x):
    bounded = scratch_buffer(0, x.shape, x.dtype)
    _tanh_softplus_into(x, bounded, scratch_buffer(1, x.shape, x.dtype))
    np.multiply(bounded, x, out=out)


def _mish_backward_block(out, grad, x):
    bounded, scratch, gate = (scratch_buffer(slot, x.shape, x.dtype) for slot in range(3))
    one = x.dtype.type(1)
    _tanh_softplus_into(x, bounded, scratch)
    _sigmoid_into(x, gate)
    np.multiply(bounded, bounded, out=scratch)
    np.subtract(one, scratch, out=scratch)
    np.multiply(scratch, gate, out=scratch)
    np.multiply(scratch, x, out=scratch)
    np.add(scratch, bounded, out=scratch)
    np.multiply(scratch, grad, out=out)


def mish(input):
    return blockwise(_mish_block, "mish_cpu", input)


def _mish_backward(grad, input):
    return blockwise(_mish_backward_block, "mish_cpu", grad, input)


# --- piecewise and exponential --------------------------------------------------------------------


def leaky_relu(input, negative_slope=0.01):
    largest = np.maximum if negative_slope <= 1 else np.minimum

    def block(out, x):
        np.multiply(x, negative_slope, out=out)
        largest(out, x, out=out)

    return blockwise(block, "leaky_relu_cpu", input)


def _leaky_relu_backward(grad, input, negative_slope):
    def block(out, g, x):
        np.multiply(g, negative_slope, out=out)
        np.copyto(out, g, where=x > 0)

    return blockwise(block, "leaky_relu_cpu", grad, input)


def hardtanh(input, min_val=-1.0, max_val=1.0, into=None):
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if into is not None:
        return _clip(input, min_val, max_val, into)
    if input.dtype != F32 and input.dtype != F64:
        if input.dtype.kind == "b":
            raise RuntimeError("Bool inputs not supported for hardtanh")
        low = np.where(input < min_val, input.dtype.type(min_val), input)
        return np.where(low > max_val, input.dtype.type(max_val), low)

    def block(out, x):
        np.clip(x, min_val, max_val, out=out)

    return blockwise(block, "hardtanh", input, block=cache_blocking.LARGEST_BLOCK)


def _hardtanh_backward(grad, input, min_val, max_val):
    if input.dtype != F32 or grad.dtype != F32 or not input.ndim:
        inside = np.logical_and(input > min_val, input < max_val)
        return np.where(inside, grad, grad.dtype.type(0))

    def block(out, g, x):
        # As in `_relu_mask`: the gradient's bits, and ones or zeros.
        bits, inside = out.view(I32), np.greater(x, min_val)
        np.logical_and(inside, np.less(x, max_val), out=inside)
        bits[...] = inside.view(I8)
        np.negative(bits, bits)
        np.bitwise_and(bits, g.view(I32), bits)

    return blockwise(block, "hardtanh", grad, input)


def relu6(input, into=None):
    return hardtanh(input, 0, 6, into)


def _elu(input, alpha, scale, input_scale):
    def block(out, x):
        negative = scratch_buffer(0, x.shape, x.dtype)
        np.minimum(0, x, out=negative)
        np.multiply(negative, input_scale, out=negative)
        np.expm1(negative, out=negative)
        np.multiply(negative, alpha * scale, out=negative)
        np.maximum(0, x, out=out)
        np.multiply(out, scale, out=out)
        np.add(out, negative, out=out)

    return blockwise(block, "elu_cpu", input)


def _elu_backward(grad, input, alpha, scale, input_scale):
    def block(out, g, x):
        slope = scratch_buffer(0, x.shape, x.dtype)
        np.minimum(x, 0, out=slope)
        np.multiply(slope, input_scale, out=slope)
        np.exp(slope, out=slope)
        np.multiply(slope, alpha * scale * input_scale, out=slope)
        np.copyto(slope, scale, where=x > 0)
        np.multiply(slope, g, out=out)

    return blockwise(block, "elu_cpu", grad, input)


def elu(input, alpha=1.0):
    return _elu(input, alpha, 1.0, 1.0)


def softplus(input, beta=1.0, threshold=20.0):
    def block(out, x):
        scaled = scratch_buffer(0, x.shape, x.dtype)
        np.multiply(x, beta, out=scaled)
        linear = scaled > threshold
        np.minimum(scaled, threshold, out=scaled)
        np.exp(scaled, out=scaled)
        np.log1p(scaled, out=scaled)
        np.multiply(scaled, 1.0 / beta, out=out)
        np.copyto(out, x, where=linear)

    return blockwise(block, "softplus_cpu", input)


def _relu6_shifted(x, out):
    """min(max(x + 3, 0), 6) / 6."""
    np.add(x, 3.0, out=out)
    np.clip(out, 0.0, 6.0, out=out)
    np.multiply(out, 1.0 / 6.0, out=out)


def hardsigmoid(input):
    return blockwise(lambda out, x: _relu6_shifted(x, out), "hardsigmoid_cpu", input)


def _hardswish_block(out, x):
    gate = scratch_buffer(0, x.shape, x.dtype)
    _relu6_shifted(x, gate)
    np.multiply(gate, x, out=out)


def hardswish(input):
    return blockwise(_hardswish_block, "hardswish_cpu", input)


def softshrink(input, lambd=0.5):
    if lambd < 0:
        from torchlite._types.dtypes import finfo, from_np

        dtype = from_np(input.dtype)
        raise RuntimeError(
            f"lambda must be in range [0, {finfo(dtype).max:g}] for input dtype {dtype.scalar_name}, but found "
            f"{lambd:g}"
        )

    def block(out, x):
        inside = scratch_buffer(0, x.shape, x.dtype)
        np.clip(x, -lambd, lambd, out=inside)
        np.subtract(x, inside, out=out)

    return blockwise(block, "softshrink_cpu", input)
