"""Kernels with constant arguments, for arrays of one shape: what a call decides by shapes is decided once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import conv_cpu_engine
from .blas import single_threaded
from .conv import _conv_forward_numpy, _normalize_geometry
from .conv_geometry import get_conv_geometry
from .fused_inference import ConvEpilogue


class Varying(NamedTuple):
    """In place of an array that each call gets anew."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


def bind_kernel(name: str, args: tuple) -> Callable | None:
    """Return a function of the `Varying` arguments; None if the op's kernel is to serve."""
    make = _BINDERS.get(name)
    return None if make is None else make(*args)


def _bind_convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *norm: Any,
) -> Callable | None:  # fmt: skip
    constants = (weight, bias, *norm[:4])
    if transposed or input.__class__ is not Varying or any(value.__class__ is Varying for value in constants):
        return None
    if input.dtype.char not in "fd" or any(value is not None and value.dtype != input.dtype for value in constants):
        return None
    stride, padding, dilation = _normalize_geometry(input, weight, stride, padding, dilation)
    plan = get_conv_geometry(
        input.shape[0], input.shape[1], weight.shape[0], input.shape[2:], weight.shape[2:], stride, padding, dilation,
        groups,
    )  # fmt: skip
    finish: Any = None
    if norm:
        scale, shift, mean, var, eps, least, most = norm
        finish = ConvEpilogue(scale, shift, mean, var, eps, least, most, bias)
    if finish is not None and finish.scale is not None:
        weight, bias = finish.fold_into_weight(weight)
    weight = np.ascontiguousarray(weight)
    if plan.pointwise and plan.places == plan.batch == plan.groups == 1:
        return _bind_channel_product(weight, bias, finish)
    served = conv_cpu_engine.bind_forward(plan, weight, bias, finish)
    if served is not None:
        return served

    def run(x: np.ndarray) -> np.ndarray:
        epilogue = None if finish is None else finish.copy()
        with single_threaded:
            out = _conv_forward_numpy(x, weight, bias, plan, epilogue)
        if epilogue is not None and not epilogue.done:
            epilogue.apply_to_images(out)
        return out

    return run


def _bind_channel_product(weight: np.ndarray, bias: np.ndarray | None, finish: Any) -> Callable:
    """Return the convolution of one image of one position with a kernel of one: a matrix times a vector."""
    matrix = weight.reshape(weight.shape[:2])
    shape = (1, len(matrix), *(1,) * (weight.ndim - 2))

    def run(x: np.ndarray) -> np.ndarray:
        out = matrix @ x.reshape(-1)
        if bias is not None:
            out += bias
        out = out.reshape(shape)
        return out if finish is None else finish.apply_to_images(out)

    return run


_BINDERS: dict[str, Callable[..., Callable | None]] = {
    "convolution": _bind_convolution,
    "_fused_conv_bn": _bind_convolution,
}
