"""Activations that also return their derivative, which compiled programs save in place of the input.

The backward pass is then a product, and common parts of both passes are computed once. Results and gradients are
bitwise those of the two kernels in `activation`.
"""

from __future__ import annotations

import numpy as np

from . import cache_blocking
from .activation import _add_density, _compute_normal_cdf, _compute_reciprocal_cdf
from .cache_blocking import get_scratch_buffer
from .row_blocks import F32


def _make_gelu_block(approximate):
    def block(out, slope, x):
        if x.dtype == F32 or approximate == "tanh":
            _compute_reciprocal_cdf(x, approximate, slope)
            np.divide(x, slope, out=out)
            np.divide(x.dtype.type(1), slope, out=slope)
        else:
            np.multiply(_compute_normal_cdf(x, approximate, slope), x, out=out)
        _add_density(x, slope, approximate)

    return block


def _silu_block(out, slope, x):
    gate, one = get_scratch_buffer(0, x.shape, x.dtype), x.dtype.type(1)
    np.negative(x, out=gate)
    np.exp(gate, out=gate)
    np.add(gate, one, out=gate)
    np.divide(x, gate, out=out)
    np.reciprocal(gate, out=gate)
    np.subtract(one, gate, out=slope)
    np.multiply(slope, x, out=slope)
    np.add(slope, one, out=slope)
    np.multiply(slope, gate, out=slope)


_BLOCKS = {
    ("gelu", "none"): _make_gelu_block("none"),
    ("gelu", "tanh"): _make_gelu_block("tanh"),
    ("silu",): _silu_block,
}


def _make_kernel(body):
    def kernel(x):
        out, slope = np.empty_like(x), np.empty_like(x)
        cache_blocking.apply_elementwise_blocks(body, out, slope, x)
        return out, slope

    return kernel


_KERNELS = {key: _make_kernel(body) for key, body in _BLOCKS.items()}


def kernel_with_derivative(name, *options):
    """Return `kernel(x)` -> (result, derivative) for contiguous float32 or float64 arrays; None if there is none. It is
    the same one in each call.
    """
    return _KERNELS.get((name, *options))
