"""ONNX quantization ops."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor

from .._element_types import NAMES, NarrowTensor, dtype_of, type_name
from .casts import convert
from .conv_pool import conv
from .op_registry import Ints, op
from .resource_limits import check_broadcast, check_elements, check_matmul

_RANGES = {
    "uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767), "uint4": (0, 15),
    "int4": (-8, 7), "uint2": (0, 3), "int2": (-2, 1), "int32": (-(2**31), 2**31 - 1),
}  # fmt: skip


def _values_of(x: Any) -> Tensor:
    return x.values if isinstance(x, NarrowTensor) else x


def _expand_scale(value: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """Expand a scale or zero point: per tensor, per axis or per block."""
    if value.numel() == 1:
        return value.reshape(())
    if not block:
        if value.numel() != x.shape[axis]:
            raise ValueError(f"{value.numel()} scales for a dimension of {x.shape[axis]}")
        return value.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    axis %= x.ndim
    if (*value.shape[:axis], *value.shape[axis + 1 :]) != (*x.shape[:axis], *x.shape[axis + 1 :]):
        raise ValueError(f"scales of the shape {list(value.shape)} for blocks of {list(x.shape)}")
    check_elements("a scale of blocks", value.numel() * block)
    return value.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])


@op("QuantizeLinear")
def quantize(
    x: Any, scale: Tensor, zero: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0,
    precision: int = 0, saturate: int = 1,
) -> Any:  # fmt: skip
    name = type_name(zero) if zero is not None else NAMES[output_dtype] if output_dtype else "uint8"
    factor = _expand_scale(_values_of(scale), x, axis, block_size)
    if precision:
        x, factor = x.to(dtype_of(precision)), factor.to(dtype_of(precision))
    elif not x.is_floating_point():
        x = x.to(torch.float32)
    out = x / factor.to(x.dtype)
    shift = None if zero is None else _expand_scale(_values_of(zero), x, axis, block_size)
    if name in _RANGES:
        low, high = _RANGES[name]
        # In float32 the sum is exact where it is not clamped.
        wide = torch.float32 if max(-low, high) < 1 << 16 and x.dtype is not torch.float64 else torch.float64
        out = torch.round(out.to(wide))
        out = out if shift is None else out + shift.to(wide)
        return convert(torch.clamp(out, low, high), name)
    if name == "float4_e2m1" and shift is not None:
        out = out + shift.to(out.dtype)
    return convert(out, name, bool(saturate))


@op("DequantizeLinear")
def dequantize(
    x: Any, scale: Tensor, zero: Any = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0
) -> Tensor:
    values = _values_of(x)
    wide = values.to(torch.float32)
    if zero is not None:
        wide = wide - _expand_scale(_values_of(zero).to(torch.float32), values, axis, block_size)
    out = wide * _expand_scale(_values_of(scale).to(torch.float32), values, axis, block_size)
    return out.to(dtype_of(output_dtype) if output_dtype else _values_of(scale).dtype)


@op("DynamicQuantizeLinear")
def dynamic_quantize(x: Tensor, *, outputs: int = 3) -> Any:
    high = torch.clamp(torch.amax(x), min=0)
    low = torch.clamp(torch.amin(x), max=0)
    scale = torch.where(high == low, torch.ones_like(high), high - low) / 255
    zero = torch.round(torch.clamp(-low / scale, 0, 255))
    out = torch.clamp(torch.round(x / scale) + zero, 0, 255).to(torch.uint8)
    return (out, scale, zero.to(torch.uint8))[:outputs] if outputs > 1 else out


def _subtract_zero_point(x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    wide = x.to(torch.float64)
    if zero is None:
        return wide
    part = zero.to(torch.float64)
    if part.ndim == 1 and part.numel() > 1:
        part = part.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    if part.numel() == 1:
        return wide - part.reshape(())
    if any(n not in (1, m) for n, m in zip(part.shape[::-1], x.shape[::-1], strict=False)) or part.ndim > x.ndim:
        raise ValueError(f"zero points of the shape {list(part.shape)} for {list(x.shape)}")
    return wide - part


@op("MatMulInteger")
def matmul_integer(a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None) -> Tensor:
    check_matmul(a, b)
    return torch.matmul(_subtract_zero_point(a, a_zero, -2), _subtract_zero_point(b, b_zero, -1)).to(torch.int32)


@op("ConvInteger")
def conv_integer(
    x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None, *, auto_pad: str = "NOTSET",
    dilations: Ints = None, group: int = 1, kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    out = conv(
        _subtract_zero_point(x, x_zero, 1), _subtract_zero_point(w, w_zero, 0), auto_pad=auto_pad, dilations=dilations,
        group=group, pads=pads,
        strides=strides,
    )  # fmt: skip
    return torch.round(out).to(torch.int32)


def _requantize_scale(first: Tensor, second: Tensor, result: Tensor) -> Tensor:
    """Return the combined scale of a product: both input scales divided by the result's."""
    check_broadcast("scales", first, second, result)
    return first.to(torch.float64) * second.to(torch.float64) / result.to(torch.float64)


def _requantize(out: Tensor, factor: Tensor, zero: Tensor, axis: int) -> Tensor:
    if factor.ndim == 1 and factor.numel() > 1:
        factor = factor.reshape([-1 if d == axis % out.ndim else 1 for d in range(out.ndim)])
    low, high = _RANGES[type_name(zero)]
    check_broadcast("a scale", out, factor, zero)
    out = torch.round(out * (factor.reshape(()) if factor.numel() == 1 else factor)) + zero.to(torch.float64)
    return torch.clamp(out, low, high).to(zero.dtype)


@op("QLinearMatMul")
def qlinear_matmul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor, y_scale: Tensor,
    y_zero: Tensor,
) -> Tensor:  # fmt: skip
    check_matmul(a, b)
    out = torch.matmul(_subtract_zero_point(a, a_zero, -2), _subtract_zero_point(b, b_zero, -1))
    factor = _requantize_scale(a_scale, b_scale, y_scale)
    return _requantize(out, factor, y_zero, -1)


@op("QLinearConv")
def qlinear_conv(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, w: Tensor, w_scale: Tensor, w_zero: Tensor, y_scale: Tensor,
    y_zero: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: Ints = None, group: int = 1,
    kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    bias = None if b is None else b.to(torch.float64)
    out = conv(
        _subtract_zero_point(x, x_zero, 1), _subtract_zero_point(w, w_zero, 0), bias, auto_pad=auto_pad,
        dilations=dilations, group=group,
        pads=pads, strides=strides,
    )  # fmt: skip
    factor = _requantize_scale(x_scale, w_scale, y_scale)
    return _requantize(out, factor, y_zero, 1)
