"""Kernels with constant arguments, for arrays of one shape: what a call decides by shapes is decided once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import conv_cpu_engine, lstm
from .blas import single_threaded
from .conv import _conv_forward_numpy, _make_columns_function, _normalize_geometry
from .conv_geometry import get_conv_geometry
from .fused_inference import ConvEpilogue
from .quantized import bind_quantized_convolution, bind_quantized_matmul

# Elements of an image's columns up to which one call gathers them.
_MAX_GATHERED = 1 << 13


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
    if plan.batch == plan.groups == 1 and plan.channels * plan.taps * plan.places <= _MAX_GATHERED:
        return _bind_gathered_convolution(weight, bias, finish, plan)

    def run(x: np.ndarray) -> np.ndarray:
        epilogue = None if finish is None else finish.copy()
        with single_threaded:
            out = _conv_forward_numpy(x, weight, bias, plan, epilogue)
        if epilogue is not None and not epilogue.done:
            epilogue.apply_to_images(out)
        return out

    return run


def _bind_gathered_convolution(weight: np.ndarray, bias: np.ndarray | None, finish: Any, plan: Any) -> Callable:
    """Return the convolution of one small image: its columns are gathered by one call, at places computed before."""
    size = plan.channels * math.prod(plan.size)
    numbered = np.arange(1, size + 1, dtype=np.float64).reshape(1, plan.channels, *plan.size)
    columns = _make_columns_function(numbered, plan)((0, 1, 0, plan.out[0]))
    places = columns.reshape(-1, plan.places).astype(np.intp)  # 0 for the padding
    matrix = weight.reshape(len(weight), -1)
    column = None if bias is None else bias[:, None]
    shape = (1, plan.filters, *plan.out)

    def run(x: np.ndarray) -> np.ndarray:
        image = np.empty(size + 1, x.dtype)
        image[0] = 0
        image[1:] = x.reshape(-1)
        out = matrix @ image[places]
        if column is not None:
            out += column
        out = out.reshape(shape)
        return out if finish is None else finish.apply_to_images(out)

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


def _bind_lstm(
    input: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, reverse: bool
) -> Callable | None:  # fmt: skip
    constants = [value for value in (w_ih, w_hh, b_ih, b_hh) if value is not None]
    varying = [value.__class__ is Varying for value in (input, h0, c0)]
    if any(value.__class__ is Varying for value in constants) or not varying[0]:
        return None
    if input.dtype.char not in "fd" or any(value.dtype != input.dtype for value in (h0, c0, *constants)):
        return None
    if not (math.prod(input.shape) and w_hh.size):
        return None
    of_input, of_state = lstm.order_weights(w_ih, w_hh, b_ih, b_hh)
    engine = conv_cpu_engine.selected_engine()
    steps = (None if engine is None else engine.bind_lstm_steps(*constants)) or lstm._run_forward_steps

    def run(*arrays: np.ndarray) -> tuple:
        given = iter(arrays)
        x, h, c = (next(given) if varies else value for varies, value in zip(varying, (input, h0, c0), strict=True))
        return lstm.run_with_weights(steps, x, h, c, of_input, of_state, reverse)

    return run


def _bind_quantized_matmul(
    input: Any, other: Any, input_zero: Any = None, other_zero: Any = None, bias: Any = None, scale: Any = None,
    out_zero: Any = None,
) -> Callable | None:  # fmt: skip
    if other.__class__ is Varying or other_zero.__class__ is Varying:
        return None
    return _fill(bind_quantized_matmul(other, other_zero), (input, input_zero, bias, scale, out_zero))


def _bind_quantized_convolution(
    input: Any, weight: Any, input_zero: Any, weight_zero: Any, bias: Any, scale: Any, out_zero: Any, *geometry: Any
) -> Callable | None:
    if weight.__class__ is Varying or weight_zero.__class__ is Varying or input.__class__ is not Varying:
        return None
    bound = bind_quantized_convolution(input, weight, weight_zero, geometry)
    return _fill(bound, (input, input_zero, bias, scale, out_zero))


def _fill(function: Callable, args: tuple) -> Callable:
    """Return the function of the `Varying` arguments among `args`."""
    if args[0].__class__ is Varying and not any(value.__class__ is Varying for value in args[1:]):
        constants = args[1:]
        return lambda x: function(x, *constants)

    def run(*arrays: np.ndarray) -> Any:
        given = iter(arrays)
        return function(*[next(given) if value.__class__ is Varying else value for value in args])

    return run


_BINDERS: dict[str, Callable[..., Callable | None]] = {
    "convolution": _bind_convolution,
    "_fused_conv_bn": _bind_convolution,
    "_lstm_layer": _bind_lstm,
    "_quantized_convolution": _bind_quantized_convolution,
    "_quantized_matmul": _bind_quantized_matmul,
}
