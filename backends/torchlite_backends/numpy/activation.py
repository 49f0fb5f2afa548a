"""Activations, forward and backward, cache-blocked. Each function is the kernel of the record of its name.

Most are formulas, from which `in_place_calls` generates NumPy calls in 0.7 to 1.0 of the time of calls ordered by hand
(figures: docs/architecture.md). Written by hand are `relu` and `hardtanh` with their backward passes, which work on
bits; `gelu`, which shares parts with `saved_derivatives` and whose exponential function depends on the processor; and
`leaky_relu`, two calls, which a formula makes 6% slower for 1,000 elements.

Half precision is computed in float32; bfloat16 would otherwise promote with Python numbers.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from torchlite_backends.array.special import erf
from torchlite_backends.array.special_coefficients import NORMAL_TANH

from . import cache_blocking
from .cache_blocking import get_scratch_buffer
from .in_place_calls import compile_block
from .large_pointwise import _where as choose_bits
from .row_blocks import F32, F64, SMALL, ZERO, as_contiguous, is_half, raise_not_implemented, run_in_float32

LARGEST = {kind: float(np.finfo(kind).max) for kind in (F32, F64)}
I32, I8 = np.dtype("i4"), np.dtype("i1")
ONE_BIT, ONE = np.ones((), I32), np.ones((), F32)


def apply_blockwise(body, kernel, x, *more, block=0):
    """Call `body(out, x, ...)` over arrays of one shape and float dtype, in blocks of `block` elements."""
    dtype = x.dtype
    if dtype is not F32 and dtype != F32 and dtype != F64:
        if not is_half(dtype):
            raise_not_implemented(x, kernel)
        return run_in_float32(lambda *wide: apply_blockwise(body, kernel, *wide, block=block), x, *more)
    arrays = [x if x.flags.c_contiguous else x.copy()]
    for other in more:
        if other.shape != x.shape:
            other = np.broadcast_to(other, x.shape)
        arrays.append(other if other.flags.c_contiguous else other.copy())
    out = np.empty(x.shape, dtype)
    cache_blocking.apply_elementwise_blocks(body, out, *arrays, block=block)
    return out


# --- relu -----------------------------------------------------------------------------------------


# NumPy vectorises the maximum of two arrays, not of an array and a number: 2048 elements take 0.8 us with an array of
# zeros, 1.2 with a number, and 1.9 by `np.clip`, which has more overhead; 65,536 take 4.4, 27 and 6.5. Zeros and NaN
# are the same. The zeros are never written, so that the system maps one page for them.
_SMALL_SIZE, _ZEROS = 512, np.zeros(SMALL, F32)
# Minimum elements for which `np.clip` beats `np.maximum` for other dtypes.
_MIN_SIZE_TO_CLIP = 1 << 12


def relu(input, into=None):
    if into is not None:
        return _clip_into(input, 0, np.inf, into)
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
        return np.maximum(input, 0)  # for float16 NumPy returns the first of two zeros, for others the second
    if kind != "f" or input.size <= _MIN_SIZE_TO_CLIP or not input.flags.c_contiguous:
        return np.maximum(0, input)
    out = np.empty_like(input)
    cache_blocking.apply_elementwise_blocks(
        lambda o, x: np.clip(x, 0, np.inf, out=o), out, input, block=cache_blocking.LARGEST_BLOCK
    )
    return out


def _clip_into(input, least, most, into):
    """Clamp the input to two numbers in `into`, of the input's shape and dtype, possibly the input itself."""
    if input.dtype == F32 or input.dtype == F64:
        return np.clip(input, least, most, out=into)
    np.copyto(into, relu(input) if most == np.inf else hardtanh(input, least, most))
    return into


def _multiply_by_relu_mask(out_block, grad, out):
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
    cache_blocking.apply_elementwise_blocks(_multiply_by_relu_mask, result, grad, out)
    return result


# --- gelu -----------------------------------------------------------------------------------------

# The normal distribution function is 1 / (1 + exp(-2 x P(x^2))). P was fitted by weighted least squares (Lawson's
# iteration towards the minimax error) on [0, 5.6]: the error of gelu is below 7e-8 + rounding. Beyond, P stays above
# 1.7 and goes to infinity, so the function is exactly 1 in float32. The approximation has P = sqrt(2/pi) (1 + 0.044715
# x^2).
TANH_SCALE, TANH_CUBIC = 0.7978845608028654, 0.044715
INV_SQRT_2PI = 0.3989422804014327


@functools.cache
def _choose_fastest_exp(dtype):
    """Return NumPy's fastest exponential function, and the factor of its argument for base e.

    With AVX-512 `exp2` of float32 takes 0.6 of the time of `exp` and rounds less; without a vector loop it takes ten
    times as long.
    """
    from numpy.lib import introspect

    loops = introspect.opt_func_info(func_name="^exp2$", signature="float32").get("exp2", {})
    quick = dtype == F32 and any(not loop["current"].startswith("baseline") for loop in loops.values())
    return (np.exp2, math.log2(math.e)) if quick else (np.exp, 1.0)


@functools.cache
def _scaled_cdf_coefficients():
    """Return the coefficients of -2 P, highest power first, for the float32 exponential function, as 0-d arrays."""
    return [np.array(-2 * c * _choose_fastest_exp(F32)[1], F32) for c in NORMAL_TANH]


def _compute_reciprocal_cdf(x, approximate, out):
    """Compute 1 / cdf(x) in a float32 block, or for the approximation in any dtype; otherwise scratch memory 1 has x^2
    then.
    """
    exponential, factor = _choose_fastest_exp(x.dtype)
    if approximate == "tanh":
        np.multiply(x, x, out=out)
        np.multiply(out, x.dtype.type(-2 * TANH_SCALE * TANH_CUBIC * factor), out=out)
        np.add(out, x.dtype.type(-2 * TANH_SCALE * factor), out=out)
    else:
        highest, *others, last = _scaled_cdf_coefficients()
        square = get_scratch_buffer(1, x.shape, F32)
        np.multiply(x, x, square)
        np.multiply(square, highest, out)
        for coefficient in others:
            np.add(out, coefficient, out)
            np.multiply(out, square, out)
        np.add(out, last, out)
    np.multiply(out, x, out)
    exponential(out, out)
    np.add(out, ONE if x.dtype is F32 else x.dtype.type(1), out)


def _compute_normal_cdf(x, approximate, out=None):
    """Compute the normal distribution function, or its approximation, by default in scratch memory."""
    out = get_scratch_buffer(0, x.shape, x.dtype) if out is None else out
    if x.dtype == F32 or approximate == "tanh":
        _compute_reciprocal_cdf(x, approximate, out)
        return np.divide(x.dtype.type(1), out, out=out)  # `reciprocal` takes twice as long
    np.multiply(erf(x * 0.7071067811865476), 0.5, out=out)
    return np.add(out, 0.5, out=out)


def _make_gelu_block(approximate):
    def block(out, x):
        if x.dtype == F32 or approximate == "tanh":
            _compute_reciprocal_cdf(x, approximate, out)
            np.divide(x, out, out=out)
        else:
            np.multiply(_compute_normal_cdf(x, approximate), x, out=out)

    return block


_GELU = {"none": _make_gelu_block("none"), "tanh": _make_gelu_block("tanh")}


def gelu(input, *, approximate="none"):
    body = _GELU.get(approximate)
    if body is None:
        raise RuntimeError("approximate argument must be either none or tanh.")
    return apply_blockwise(body, "GeluKernelImpl", input)


def _add_density(x, cdf, approximate):
    """Add x times the density to the distribution function, which gives the derivative of gelu.

    Scratch memory 1 has x^2 from `_compute_reciprocal_cdf`.
    """
    number = x.dtype.type
    slope = get_scratch_buffer(1, x.shape, x.dtype)
    if approximate == "tanh":
        # 2 cdf (1 - cdf) scale (1 + 3 cubic x^2)
        inner = get_scratch_buffer(2, x.shape, x.dtype)
        np.multiply(x, x, out=inner)
        np.multiply(inner, number(6 * TANH_SCALE * TANH_CUBIC), out=inner)
        np.add(inner, number(2 * TANH_SCALE), out=inner)
        np.subtract(number(1), cdf, out=slope)
        np.multiply(slope, cdf, out=slope)
        np.multiply(slope, inner, out=slope)
    else:
        exponential, factor = _choose_fastest_exp(x.dtype)
        if x.dtype != F32:  # else it is in scratch memory
            np.multiply(x, x, out=slope)
        np.multiply(slope, number(-0.5 * factor), out=slope)
        exponential(slope, out=slope)
        np.multiply(slope, number(INV_SQRT_2PI), out=slope)
    np.multiply(slope, x, out=slope)
    np.add(cdf, slope, out=cdf)


def _make_gelu_backward_block(approximate):
    def block(out, grad, x):
        slope = _compute_normal_cdf(x, approximate)
        _add_density(x, slope, approximate)
        np.multiply(slope, grad, out=out)

    return block


_GELU_BACKWARD = {"none": _make_gelu_backward_block("none"), "tanh": _make_gelu_backward_block("tanh")}


def _gelu_backward(grad, input, approximate="none"):
    return apply_blockwise(_GELU_BACKWARD[approximate], "GeluBackwardKernelImpl", grad, input)


# --- from formulas ---------------------------------------------------------------------------------


def _from_formula(kernel, text, arrays="x", numbers=""):
    """Return `run(*arrays, *numbers)` for a formula; `kernel` is the name in PyTorch's message for unsupported
    dtypes.
    """
    block = compile_block(kernel, text, arrays, numbers)
    if arrays == "x":

        def run(x, *numbers):
            return apply_blockwise(lambda out, x: block(out.dtype)(out, x, *numbers), kernel, x)
    else:

        def run(grad, x, *numbers):
            return apply_blockwise(lambda out, grad, x: block(out.dtype)(out, grad, x, *numbers), kernel, grad, x)

    return run


# 1 / (1 + e^-x): tanh would save a pass, but lose all digits far below zero.
_silu = _from_formula("silu_cpu", "out = x / (exp(-x) + 1)")
_silu_slope = _from_formula(
    "silu_cpu", "gate = reciprocal(exp(-x) + 1)\nout = ((1 - gate) * x + 1) * gate * grad", "grad x"
)
# tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); x is limited to 20, where the result is 1.
_TANH_SOFTPLUS = "e = exp(minimum(x, 20))\nn = (e + 2) * e\nbounded = n / (n + 2)\n"
mish = _from_formula("mish_cpu", _TANH_SOFTPLUS + "out = bounded * x")
_mish_backward = _from_formula(
    "mish_cpu",
    _TANH_SOFTPLUS + "gate = reciprocal(exp(-x) + 1)\nout = ((1 - bounded * bounded) * gate * x + bounded) * grad",
    "grad x",
)
_leaky_relu_backward = _from_formula("leaky_relu_cpu", "out = where(x > 0, grad, grad * slope)", "grad x", "slope")


def _make_elu():
    compute = compile_block(
        "elu_cpu",
        "out = maximum(0, x) * scale + expm1(minimum(0, x) * input_scale) * (alpha * scale)",
        "x",
        "alpha scale input_scale",
    )

    def run(x, alpha, scale, input_scale):
        def block(out, x):
            if x.size and np.minimum.reduce(x, axis=None) >= 0:
                np.multiply(x, scale, out=out)
            else:
                compute(out.dtype)(out, x, alpha, scale, input_scale)

        return apply_blockwise(block, "elu_cpu", x)

    return run


_elu = _make_elu()
_elu_backward = _from_formula(
    "elu_cpu",
    "out = where(x > 0, scale, exp(minimum(x, 0) * input_scale) * (alpha * scale * input_scale)) * grad",
    "grad x",
    "alpha scale input_scale",
)
_softplus, _softplus_beyond_exp = (
    _from_formula(
        "softplus_cpu",
        f"scaled = x * beta\nout = where(scaled > threshold, x, ({curve}) * reciprocal_beta)",
        "x",
        "beta threshold reciprocal_beta",
    )
    for curve in ("log1p(exp(minimum(scaled, threshold)))", "log1p(exp(-absolute(scaled))) + maximum(scaled, 0)")
)
_softplus_backward = _from_formula(
    "softplus_backward_cpu",
    "scaled = x * beta\nout = where(scaled > threshold, grad, grad / (exp(-scaled) + 1))",
    "grad x",
    "beta threshold",
)
logsigmoid = _from_formula("log_sigmoid_cpu", "out = minimum(x, 0) - log1p(exp(-absolute(x)))")
_RELU6_SHIFTED = "clip(x + 3, 0, 6) * 0.16666666666666666"
hardsigmoid = _from_formula("hardsigmoid_cpu", f"out = {_RELU6_SHIFTED}")
hardswish = _from_formula("hardswish_cpu", f"out = {_RELU6_SHIFTED} * x")
_softshrink = _from_formula("softshrink_cpu", "out = x - clip(x, -lambd, lambd)", "x", "lambd")


_huber_of_equal_shapes = _from_formula(
    "huber_cpu", "error = x - y\nnear = clip(error, -delta, delta)\nout = (error - near * 0.5) * near", "x y", "delta"
)


def _huber(input, target, delta):
    shape = np.broadcast_shapes(input.shape, target.shape)
    input = input if input.shape == shape else np.broadcast_to(input, shape)
    return _huber_of_equal_shapes(input, target, min(delta, LARGEST[F64 if input.dtype == F64 else F32]))


def silu(input):
    return input / (1 + np.exp(-input)) if input.dtype.kind == "c" else _silu(input)


def _silu_backward(grad, input):
    if input.dtype.kind == "c":
        gate = 1 / (1 + np.exp(-input))
        return grad * np.conj(gate * (1 + input * (1 - gate)))
    return _silu_slope(grad, input)


def elu(input, alpha=1.0):
    return _elu(input, alpha, 1.0, 1.0)


def softplus(input, beta=1.0, threshold=20.0):
    run = _softplus if threshold <= 80 else _softplus_beyond_exp  # where e^threshold is infinite
    return run(input, beta, threshold, 1.0 / beta if beta else math.copysign(math.inf, beta))


def softshrink(input, lambd=0.5):
    if lambd < 0:
        from torchlite._types.dtypes import finfo, from_np

        dtype = from_np(input.dtype)
        raise RuntimeError(
            f"lambda must be in range [0, {finfo(dtype).max:g}] for input dtype {dtype.scalar_name}, but found "
            f"{lambd:g}"
        )
    return _softshrink(input, lambd)


# --- piecewise linear -----------------------------------------------------------------------------


def leaky_relu(input, negative_slope=0.01):
    largest = np.maximum if negative_slope <= 1 else np.minimum

    def block(out, x):
        np.multiply(x, negative_slope, out=out)
        largest(out, x, out=out)

    return apply_blockwise(block, "leaky_relu_cpu", input)


def threshold(input, threshold, value):
    return choose_bits(np.less_equal(input, threshold), input.dtype.type(value), input)


def hardshrink(input, lambd=0.5):
    if input.dtype.kind != "f" and not is_half(input.dtype):
        raise_not_implemented(input, "hardshrink_cpu")
    return choose_bits(np.less_equal(np.absolute(input), lambd), 0.0, input)


def _prelu(input, weight):
    scaled = np.multiply(input, weight)
    if np.all((weight > 0) & (weight <= 1)):
        return np.maximum(input, scaled)
    return choose_bits(np.greater(input, 0), input, scaled)


def hardtanh(input, min_val=-1.0, max_val=1.0, into=None):
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if into is not None:
        return _clip_into(input, min_val, max_val, into)
    if input.dtype != F32 and input.dtype != F64 and not is_half(input.dtype):
        if input.dtype.kind == "b":
            raise RuntimeError("Bool inputs not supported for hardtanh")
        low = np.where(input < min_val, input.dtype.type(min_val), input)
        return np.where(low > max_val, input.dtype.type(max_val), low)

    def block(out, x):
        np.clip(x, min_val, max_val, out=out)

    return apply_blockwise(block, "hardtanh", input, block=cache_blocking.LARGEST_BLOCK)


def _hardtanh_backward(grad, input, min_val, max_val):
    if input.dtype != F32 or grad.dtype != F32 or not input.ndim:
        return np.where(np.logical_or(input <= min_val, input >= max_val), grad.dtype.type(0), grad)

    def block(out, g, x):
        # As in `_multiply_by_relu_mask`: the gradient's bits, and zeros or ones.
        bits, outside = out.view(I32), np.less_equal(x, min_val)
        np.logical_or(outside, np.greater_equal(x, max_val), out=outside)
        bits[...] = outside.view(I8)
        np.subtract(bits, ONE_BIT, bits)
        np.bitwise_and(bits, g.view(I32), bits)

    return apply_blockwise(block, "hardtanh", grad, input)


def relu6(input, into=None):
    return hardtanh(input, 0, 6, into)
