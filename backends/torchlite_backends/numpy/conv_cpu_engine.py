"""Dispatch of convolutions and integer products to a CPU engine's compiled programs."""

from __future__ import annotations

import functools
from typing import Any

from torchlite_backends.cpu_engines import engine_selection


@functools.cache
def selected_engine() -> Any:
    return engine_selection.select_engine().engine


def integer_products() -> Any:
    """Return the engine's products of integers (`torchlite_backends.cc.native_integer_gemm`), or None."""
    engine = selected_engine()
    return None if engine is None else engine.integer_products()


def _engine_convolutions() -> Any:
    engine = selected_engine()
    return None if engine is None else engine.convolutions()


def conv_forward(x, weight, bias, plan, finish=None):
    """Forward pass, None if NumPy is to compute it.

    `plan` is of `torchlite_backends.numpy.conv`, `finish` of `torchlite_backends.numpy.fused_inference`.
    """
    serving = _engine_convolutions()
    return serving and serving.forward(plan, x, weight, bias, finish)


def bind_forward(plan, weight, bias, finish):
    """A function of the images, for constant weights; None if NumPy is to compute it."""
    engine = selected_engine()
    return None if engine is None else engine.bind_convolution(plan, weight, bias, finish)


def conv_transpose(g, weight, bias, plan):
    """Transpose of `conv_forward`: the gradient of the input, and the transposed convolution."""
    serving = _engine_convolutions()
    return serving and serving.conv_transpose(plan, g, weight, bias)


def weight_gradient(g, x, plan):
    """Return the gradient of the weight."""
    serving = _engine_convolutions()
    return serving and serving.weight_gradient(plan, g, x)


def bias_gradient(g):
    """Return the gradient of the bias: the sum over all dimensions but the channels."""
    serving = _engine_convolutions()
    return serving and serving.bias_gradient(g)
