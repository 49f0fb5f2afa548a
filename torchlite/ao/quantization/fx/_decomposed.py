"""`torch.ops.quantized_decomposed`: quantization to plain integer tensors, with scales and zero points as arguments.

The import of this module registers the ops. `torch.ops` imports it when it is asked for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.ao.quantization.utils import determine_qparams, validate_qmin_qmax
from torchlite.library import Library

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")
_INTEGERS = (torch.uint8, torch.int8, torch.uint16, torch.int16, torch.int32)
_DTYPE_TO_QVALUE_BOUNDS: dict[Any, tuple[int, int]] = {
    **{dtype: (torch.iinfo(dtype).min, torch.iinfo(dtype).max) for dtype in _INTEGERS},
    **{d: (int(torch.finfo(d).min), int(torch.finfo(d).max)) for d in (torch.float8_e5m2, torch.float8_e4m3fn)},
}
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_LEVELS = "int quant_min, int quant_max, "
_DTYPE = "ScalarType dtype"
_ONE, _TENSORS = "float scale, int zero_point, ", "Tensor scale, Tensor zero_point, "
_MANY, _OPTIONAL = "Tensor scales, Tensor zero_points, ", "Tensor scales, Tensor? zero_points, "
_OUT = ", *, ScalarType? out_dtype=None"


def decomposed_library() -> Library:
    """Return the library of the ops."""
    return quantized_decomposed_lib


def _define(schema: str, kernel: Callable, meta: Callable | None = None) -> None:
    """Register an op, and what it returns for tensors without data if the kernel reads numbers."""
    quantized_decomposed_lib.define(schema)
    name = schema[: schema.index("(")]
    quantized_decomposed_lib.impl(name, kernel, "CompositeExplicitAutograd")
    if meta is not None:
        quantized_decomposed_lib.impl(name, meta, "Meta")


# --- checks ---------------------------------------------------------------------------------------------------------


def _quant_min_max_bounds_check(quant_min: int, quant_max: int, dtype: Any) -> None:
    if dtype not in _DTYPE_TO_QVALUE_BOUNDS:
        raise ValueError(f"Unsupported dtype: {dtype}")
    low, high = _DTYPE_TO_QVALUE_BOUNDS[dtype]
    if quant_min < low:
        raise AssertionError(f"quant_min out of bounds for dtype, quant_min_lower_bound: {low} quant_min: {quant_min}")
    if quant_max > high:
        raise AssertionError(f"quant_max out of bounds for dtype, quant_max_upper_bound: {high} quant_max: {quant_max}")


def _wide(input: Tensor) -> Tensor:
    input = input.to(torch.float32) if input.dtype in (torch.float16, torch.bfloat16) else input
    if input.dtype != torch.float32:
        raise AssertionError(f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
    return input


def _check_axis(input: Tensor, axis: int) -> None:
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")


def _check_single(scale: Tensor, zero_point: Tensor) -> None:
    for name, tensor in (("zero_point", zero_point), ("scale", scale)):
        if tensor.numel() != 1:
            raise AssertionError(f"Expecting {name} tensor to be one element, but received : {tensor.numel()}")


def _along(values: Tensor, input: Tensor, axis: int) -> Tensor:
    """Numbers of channels, such that they broadcast with the input."""
    shape = [1] * input.dim()
    shape[axis] = values.shape[0]
    return values.view(shape)


# --- one scale ------------------------------------------------------------------------------------------------------


def quantize_per_tensor(
    input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: Any
) -> Tensor:
    """``clamp(round(input / scale) + zero_point)`` as integers."""
    input = _wide(input)
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    return torch.clamp(torch.round(input * (1.0 / scale)) + zero_point, quant_min, quant_max).to(dtype)


def dequantize_per_tensor(
    input: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: Any, *, out_dtype: Any = None
) -> Tensor:
    """``(input - zero_point) * scale`` of integers."""
    if input.dtype != dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got {input.dtype}")
    if dtype not in _DTYPE_TO_QVALUE_BOUNDS:
        raise ValueError(f"Unsupported dtype in dequantize_per_tensor: {dtype}")
    return (input.to(out_dtype or torch.float32) - zero_point) * scale


def _with_numbers(function: Callable) -> Callable:
    """The function for scales, zero points and limits that are tensors."""

    def run(
        input: Tensor, scale: Tensor, zero_point: Tensor, low: Any, high: Any, dtype: Any, **options: Any
    ) -> Tensor:
        _check_single(scale, zero_point)
        low, high = (x.item() if isinstance(x, Tensor) else x for x in (low, high))
        return function(input, scale.item(), zero_point.item(), low, high, dtype, **options)

    return run


def _quantize_meta(input: Tensor, scale: Any, zero_point: Any, low: Any, high: Any, dtype: Any) -> Tensor:
    if isinstance(scale, Tensor):
        _check_single(scale, zero_point)
    if not isinstance(low, Tensor):
        _quant_min_max_bounds_check(low, high, dtype)
    return torch.empty_like(_wide(input), dtype=dtype)


def _dequantize_meta(
    input: Tensor, scale: Any, zero_point: Any, low: Any, high: Any, dtype: Any, *, out_dtype: Any = None
) -> Tensor:
    if isinstance(scale, Tensor):
        _check_single(scale, zero_point)
    if input.dtype != dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got {input.dtype}")
    return torch.empty_like(input, dtype=out_dtype or torch.float32)


_LIMITS = "Tensor quant_min, Tensor quant_max, "
for _overload, _parameters, _levels in (
    ("", _ONE, _LEVELS),
    (".tensor", _TENSORS, _LEVELS),
    (".tensor2", _TENSORS, _LIMITS),
):
    _quantizing = quantize_per_tensor if not _overload else _with_numbers(quantize_per_tensor)
    _dequantizing = dequantize_per_tensor if not _overload else _with_numbers(dequantize_per_tensor)
    _define(
        f"quantize_per_tensor{_overload}(Tensor input, {_parameters}{_levels}{_DTYPE}) -> Tensor",
        _quantizing,
        _quantize_meta,
    )
    _define(
        f"dequantize_per_tensor{_overload}(Tensor input, {_parameters}{_levels}{_DTYPE}{_OUT}) -> Tensor",
        _dequantizing,
        _dequantize_meta,
    )


def _choose(qscheme: Any) -> Callable:
    def choose(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any) -> tuple[Tensor, Tensor]:
        if input.dtype not in _FLOATS:
            raise AssertionError(f"Expecting input to have dtype torch.float32/16/b16, but got dtype: {input.dtype}")
        if dtype not in _DTYPE_TO_QVALUE_BOUNDS:
            raise AssertionError(
                f"Expecting target dtype to be one of {_DTYPE_TO_QVALUE_BOUNDS.keys()}, but got: {dtype}"
            )
        validate_qmin_qmax(quant_min, quant_max)
        low, high = torch.aminmax(input)
        return determine_qparams(low, high, quant_min, quant_max, dtype, torch.tensor([eps]), False, qscheme)

    return choose


def _choice_meta(input: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return (
        torch.empty(1, dtype=torch.float64, device=input.device),
        torch.empty(1, dtype=torch.int64, device=input.device),
    )


for _name, _scheme in (("", torch.per_tensor_affine), ("_symmetric", torch.per_tensor_symmetric)):
    _schema = f"choose_qparams{_name}.tensor(Tensor input, {_LEVELS}float eps, {_DTYPE}) -> (Tensor, Tensor)"
    _define(_schema, _choose(_scheme), _choice_meta)

# --- a scale for each channel ---------------------------------------------------------------------------------------


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int, dtype: Any
) -> Tensor:
    """The same with a scale and a zero point for each channel."""
    input = _wide(input)
    _check_axis(input, axis)
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    levels = torch.round(input * (1.0 / _along(scales, input, axis))) + _along(zero_points, input, axis)
    return torch.clamp(levels, quant_min, quant_max).to(dtype)


def dequantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Any, axis: int, quant_min: int, quant_max: int, dtype: Any, *,
    out_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The same with a scale and a zero point for each channel."""
    if input.dtype != dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got dtype: {input.dtype}")
    _check_axis(input, axis)
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    levels = input if zero_points is None else input - _along(zero_points, input, axis)
    return (levels * _along(scales, input, axis)).to(out_dtype or torch.float32)


_define(f"quantize_per_channel(Tensor input, {_MANY}int axis, {_LEVELS}{_DTYPE}) -> Tensor", quantize_per_channel)
_define(
    f"dequantize_per_channel(Tensor input, {_OPTIONAL}int axis, {_LEVELS}{_DTYPE}{_OUT}) -> Tensor",
    dequantize_per_channel,
)


class FakeQuantPerChannel(torch.autograd.Function):
    """Rounding to levels, with the gradient of the input where the level is in the range."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, low: int, high: int) -> Tensor:
        if input.dtype != torch.float32:
            raise AssertionError(f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
        _check_axis(input, axis)
        scale = _along(scales.to(torch.float32), input, axis)
        zero_point = _along(zero_points.to(torch.int32), input, axis)
        levels = torch.round(input * (1.0 / scale)) + zero_point
        ctx.save_for_backward(torch.logical_and(levels >= low, levels <= high))
        return (torch.clamp(levels, low, high) - zero_point) * scale

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * ctx.saved_tensors[0], None, None, None, None, None


def fake_quant_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Rounding to the levels of each channel."""
    return FakeQuantPerChannel.apply(input, scales, zero_points, axis, quant_min, quant_max)


quantized_decomposed_lib.define(f"fake_quant_per_channel(Tensor input, {_MANY}int axis, {_LEVELS[:-2]}) -> Tensor")
quantized_decomposed_lib.impl("fake_quant_per_channel", fake_quant_per_channel, "CompositeImplicitAutograd")

# --- a scale for each token -----------------------------------------------------------------------------------------


def choose_qparams_per_token(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """Scales for signed bytes, by the greatest absolute number of each row; zero points of 0."""
    scales = input.abs().amax(dim=-1, keepdim=True)
    scales = scales.to(torch.float32) if scales.dtype == torch.float16 else scales
    if dtype != torch.int8:
        raise Exception(f"unsupported dtype in choose_qparams_per_token: {dtype}")
    scales = scales.clamp(min=1e-5).div(127)
    return scales, torch.zeros_like(scales)


def choose_qparams_per_token_asymmetric(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """Scales and zero points for signed bytes, by the range of each row."""
    low = torch.amin(input, dim=-1, keepdim=True).clamp(max=0)
    high = torch.amax(input, dim=-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 255.0).clamp(min=torch.finfo(torch.float32).eps)
    below, above = low / scale, high / scale
    zero_point = torch.where((-128 + below) + (127 + above) > 0, -128 - below, 127 - above)
    return scale.to(torch.float64), zero_point.clamp(-128, 127).round().to(torch.int64)


def _token_meta(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    size = (*input.shape[:-1], 1)
    return (
        torch.empty(size, dtype=torch.float64, device=input.device),
        torch.empty(size, dtype=torch.int64, device=input.device),
    )


def _per_token_quant_qparam_dim_check(input: Tensor, scales: Tensor, zero_points: Tensor) -> None:
    """AssertionError if there is not one scale and one zero point for each row."""
    tokens = math.prod(input.size()[:-1])
    for name, values in (("scales", scales), ("zero_points", zero_points)):
        if tokens != values.numel():
            raise AssertionError(f"num_tokens: {tokens} {name}: {values.size()}")


def quantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any
) -> Tensor:
    """``clamp(round(input / scales + zero_points))`` as integers."""
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    _per_token_quant_qparam_dim_check(input, scales, zero_points)
    return input.mul(1.0 / scales).add(zero_points).round().clamp(quant_min, quant_max).to(dtype)


def dequantize_per_token(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any, output_dtype: Any
) -> Tensor:
    """``(input - zero_points) * scales`` of integers."""
    return ((input - zero_points) * scales).to(output_dtype)


_TOKEN = f"(Tensor input, {_DTYPE}) -> (Tensor, Tensor)"
_define(f"choose_qparams_per_token{_TOKEN}", choose_qparams_per_token, _token_meta)
_define(f"_choose_qparams_per_token_asymmetric_impl{_TOKEN}", choose_qparams_per_token_asymmetric)
_define(f"choose_qparams_per_token_asymmetric{_TOKEN}", choose_qparams_per_token_asymmetric, _token_meta)
_define(f"quantize_per_token(Tensor input, {_MANY}{_LEVELS}{_DTYPE}) -> Tensor", quantize_per_token)
_define(
    f"dequantize_per_token(Tensor input, {_MANY}{_LEVELS}{_DTYPE}, ScalarType output_dtype) -> Tensor",
    dequantize_per_token,
)

# --- a scale for each group within a row ----------------------------------------------------------------------------


def _groups(input: Tensor, scales: Tensor, group_size: int, name: str) -> Tensor:
    """The matrix with a group in each row."""
    if group_size <= 1:
        raise AssertionError("group_size must be > 1")
    if group_size > input.shape[-1] and scales.shape[-1] == 1:
        group_size = input.shape[-1]
    if input.shape[-1] % group_size != 0:
        raise AssertionError(f"{name}.shape[-1] must be divisible by group_size")
    if input.dim() != 2:
        raise AssertionError(f"{name} must be 2-dimensional")
    return input.reshape(-1, group_size)


def quantize_per_channel_group(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any, group_size: int
) -> Tensor:
    """``clamp(round(input / scales + zero_points))`` of a matrix, as integers."""
    grouped = _groups(input, scales, group_size, "input")
    if bool(torch.isnan(grouped).any()):
        raise AssertionError("to_quant must not contain NaNs")
    levels = grouped.mul(1.0 / scales.reshape(-1, 1)).add(zero_points.reshape(-1, 1)).round()
    return levels.clamp(quant_min, quant_max).to(dtype).reshape_as(input)


def _quantize_group_meta(
    input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int, quant_max: int, dtype: Any, group_size: int
) -> Tensor:
    _groups(input, scales, group_size, "input")
    return torch.empty_like(input, dtype=dtype)


def dequantize_per_channel_group(
    input: Tensor, scales: Tensor, zero_points: Any, quant_min: int, quant_max: int, dtype: Any, group_size: int,
    output_dtype: Any,
) -> Tensor:  # fmt: skip
    """``(input - zero_points) * scales`` of a matrix of integers."""
    grouped = _groups(input, scales, group_size, "w_int8")
    levels = grouped if zero_points is None else grouped.sub(zero_points.reshape(-1, 1))
    return levels.mul(scales.reshape(-1, 1)).reshape_as(input).to(output_dtype)


_define(
    f"quantize_per_channel_group(Tensor input, {_MANY}{_LEVELS}{_DTYPE}, int group_size) -> Tensor",
    quantize_per_channel_group,
    _quantize_group_meta,
)
_define(
    f"dequantize_per_channel_group(Tensor input, {_OPTIONAL}{_LEVELS}{_DTYPE}, int group_size, "
    "ScalarType output_dtype) -> Tensor",
    dequantize_per_channel_group,
)
_define(f"convert_element_type.no_fuse(Tensor input, {_DTYPE}) -> Tensor", lambda input, dtype: input.to(dtype))
