"""Fused CPU kernels of the piecewise and exponential activations.

Half precision is computed in float32, which also keeps bfloat16 what it is beside Python numbers.
"""

from __future__ import annotations

import numpy as np

from .activation import _map
from .blocks import buffer


def leaky_relu(input, negative_slope=0.01):
    largest = np.maximum if negative_slope <= 1 else np.minimum

    def block(out, x):
        np.multiply(x, negative_slope, out=out)
        largest(out, x, out=out)

    return _map(block, "leaky_relu_cpu", input)


def _leaky_relu_backward(grad, input, negative_slope):
    def block(out, g, x):
        np.multiply(g, negative_slope, out=out)
        np.copyto(out, g, where=x > 0)

    return _map(block, "leaky_relu_cpu", grad, input)


def _elu(input, alpha, scale, input_scale):
    def block(out, x):
        negative = buffer(0, x.shape, x.dtype)
        np.minimum(x, 0, out=negative)
        np.multiply(negative, input_scale, out=negative)
        np.expm1(negative, out=negative)
        np.multiply(negative, alpha * scale, out=negative)
        np.maximum(x, 0, out=out)
        np.multiply(out, scale, out=out)
        np.add(out, negative, out=out)

    return _map(block, "elu_cpu", input)


def _elu_backward(grad, input, alpha, scale, input_scale):
    def block(out, g, x):
        slope = buffer(0, x.shape, x.dtype)
        np.minimum(x, 0, out=slope)
        np.multiply(slope, input_scale, out=slope)
        np.exp(slope, out=slope)
        np.multiply(slope, alpha * scale * input_scale, out=slope)
        np.copyto(slope, scale, where=x > 0)
        np.multiply(slope, g, out=out)

    return _map(block, "elu_cpu", grad, input)


def elu(input, alpha=1.0):
    return _elu(input, alpha, 1.0, 1.0)


def softplus(input, beta=1.0, threshold=20.0):
    def block(out, x):
        scaled = buffer(0, x.shape, x.dtype)
        np.multiply(x, beta, out=scaled)
        linear = scaled > threshold
        np.minimum(scaled, threshold, out=scaled)
        np.exp(scaled, out=scaled)
        np.log1p(scaled, out=scaled)
        np.multiply(scaled, 1.0 / beta, out=out)
        np.copyto(out, x, where=linear)

    return _map(block, "softplus_cpu", input)


def _six(x, out):
    """min(max(x + 3, 0), 6) / 6."""
    np.add(x, 3.0, out=out)
    np.clip(out, 0.0, 6.0, out=out)
    np.multiply(out, 1.0 / 6.0, out=out)


def hardsigmoid(input):
    return _map(lambda out, x: _six(x, out), "hardsigmoid_cpu", input)


def _hardswish_block(out, x):
    gate = buffer(0, x.shape, x.dtype)
    _six(x, gate)
    np.multiply(gate, x, out=out)


def hardswish(input):
    return _map(_hardswish_block, "hardswish_cpu", input)


def softshrink(input, lambd=0.5):
    if lambd < 0:
        from torchlite._dtype import finfo, from_np

        dtype = from_np(input.dtype)
        raise RuntimeError(
            f"lambda must be in range [0, {finfo(dtype).max:g}] for input dtype {dtype.scalar_name}, but found "
            f"{lambd:g}"
        )

    def block(out, x):
        inside = buffer(0, x.shape, x.dtype)
        np.clip(x, -lambd, lambd, out=inside)
        np.subtract(x, inside, out=out)

    return _map(block, "softshrink_cpu", input)
