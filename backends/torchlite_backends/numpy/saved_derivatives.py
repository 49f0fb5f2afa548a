"""Activations with their slopes: what compiled programs call where they keep the slope for the backward pass in the
place of the input. The backward pass is a product then, and what both passes compute is computed once. Results and
gradients have the bits of the two kernels of `activation.py`.
"""

from __future__ import annotations

import numpy as np

from . import cache_blocking
from .activation import _add_density, _cdf, _reciprocal_cdf
from .cache_blocking import scratch_buffer
from .row_blocks import F32


def _gelu_block(approximate):
    def block(out, slope, x):
        if x.dtype == F32 or approximate == "tanh":
            _reciprocal_cdf(x, approximate, slope)
            np.divide(x, slope, out=out)
            np.divide(x.dtype.type(1), slope, out=slope)
        else:
            np.multiply(_cdf(x, approximate, slope), x, out=out)
        _add_density(x, slope, approximate)

    return block


def _silu_block(out, slope, x):
    gate, one = scratch_buffer(0, x.shape, x.dtype), x.dtype.type(1)
    np.negative(x, out=gate)
    np.exp(gate, out=gate)
    np.add(gate, one, out=gate)
    np.divide(x, gate, out=out)
    np.reciprocal(gate, out=gate)
    np.subtract(one, gate, out=slope)
    np.multiply(slope, x, out=slope)
    np.add(slope, one, out=slope)
    np.multiply(slope, gate, out=slope)


_BLOCKS = {("gelu", "none"): _gelu_block("none"), ("gelu", "tanh"): _gelu_block("tanh"), ("silu",): _silu_block}


def with_derivative(name, *options):
    """`kernel(x)` that gives (result, slope) of a contiguous array of float32 or float64; None where there is none."""
    body = _BLOCKS.get((name, *options))
    if body is None:
        return None

    def kernel(x):
        out, slope = np.empty_like(x), np.empty_like(x)
        cache_blocking.elementwise(body, out, slope, x)
        return out, slope

    return kernel
