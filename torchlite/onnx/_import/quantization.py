"""ONNX quantization ops."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite._dispatch import F

from .._element_types import NAMES, NarrowTensor, dtype_of, type_name
from .casts import convert
from .conv_pool import convolution_geometry
from .op_registry import Ints, op
from .resource_limits import check_broadcast, check_elements, check_matmul

RANGES = {
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
    elif x.dtype is not torch.float64:
        # ONNX Runtime divides numbers of half precision in float32.
        x, factor = x.to(torch.float32), factor.to(torch.float32)
    out = x / factor.to(x.dtype)
    shift = None if zero is None else _expand_scale(_values_of(zero), x, axis, block_size)
    if name in RANGES:
        low, high = RANGES[name]
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
    values, factor = _values_of(x), _values_of(scale)
    wide = values.to(torch.float32)
    if zero is not None:
        wide = wide - _expand_scale(_values_of(zero).to(torch.float32), values, axis, block_size)
    out = wide * _expand_scale(factor.to(torch.float32), values, axis, block_size)
    return out.to(dtype_of(output_dtype) if output_dtype else factor.dtype)


@op("DynamicQuantizeLinear")
def dynamic_quantize(x: Tensor, *, outputs: int = 3) -> Any:
    found = F._dynamic_quantize(x)
    return tuple(found)[:outputs] if outputs > 1 else found[0]


# -- products with exact sums ----------------------------------------------------------------------

_LEVELS = (torch.uint8, torch.int8)


def _flat(value: Tensor | None, size: int) -> Tensor | None:
    """A number, or one for each row or column. ValueError for other shapes."""
    if value is None:
        return None
    if value.numel() == 1:
        return value.reshape(())
    if value.ndim != 1 or value.numel() != size:
        raise ValueError(f"zero points or scales of the shape {list(value.shape)} for {size} lines")
    return value


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


def integer_matmul(
    a: Tensor, b: Tensor, a_zero: Tensor | None, b_zero: Tensor | None, bias: Tensor | None = None,
    scale: Tensor | None = None, out_zero: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The product of levels less their zero points, see the op `_quantized_matmul`."""
    check_matmul(a, b)
    left, right = a.unsqueeze(0) if a.ndim == 1 else a, b.unsqueeze(1) if b.ndim == 1 else b
    rows, columns = left.shape[-2], right.shape[-1]
    stacked = any(zero is not None and zero.ndim > 1 and zero.numel() > 1 for zero in (a_zero, b_zero))
    if stacked or a.dtype not in _LEVELS or b.dtype not in _LEVELS:
        total = torch.matmul(_subtract_zero_point(left, a_zero, -2), _subtract_zero_point(right, b_zero, -1))
        out = _convert_total(total, bias, _flat(scale, columns), out_zero)
    else:
        out = F._quantized_matmul(
            left, right, _flat(a_zero, rows), _flat(b_zero, columns), bias, _flat(scale, columns), _flat(out_zero, 1)
        )
    if a.ndim == 1:
        out = out.squeeze(-2)
    return out.squeeze(-1) if b.ndim == 1 else out


def to_levels(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Numbers rounded to the nearest levels of a dtype."""
    low, high = RANGES[str(dtype).rpartition(".")[2]]
    return torch.clamp(torch.round(x), low, high).to(dtype)


def _convert_total(total: Tensor, bias: Tensor | None, scale: Tensor | None, zero: Tensor | None) -> Tensor:
    """Sums in float64 as int32, times a scale, or as levels around a zero point."""
    total = total.to(torch.int64).to(torch.int32)  # sums of 16-bit levels wrap around
    total = total if bias is None else total + bias
    if scale is None:
        return total
    out = total.to(torch.float32) * scale
    if zero is None:
        return out
    low, high = RANGES[type_name(zero)]
    return torch.clamp(torch.round(out) + zero.to(torch.float32), low, high).to(zero.dtype)


@op("MatMulInteger")
def matmul_integer(a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None) -> Tensor:
    return integer_matmul(a, b, a_zero, b_zero)


def _integer_convolution(
    x: Tensor, w: Tensor, x_zero: Tensor | None, w_zero: Tensor | None, bias: Tensor | None, scale: Tensor | None,
    out_zero: Tensor | None, auto_pad: str, dilations: Ints, group: int, pads: Ints, strides: Ints,
) -> Tensor:  # fmt: skip
    """The convolution of levels less their zero points, see the op `_quantized_convolution`."""
    strides, begin, end, dilations = convolution_geometry(x, w, auto_pad, dilations, group, pads, strides)
    filters = w.shape[0]
    return F._quantized_convolution(
        x, w, _flat(x_zero, 1), _flat(w_zero, filters), bias, _flat(scale, filters), _flat(out_zero, 1), tuple(strides),
        (*begin, *end), tuple(dilations), group,
    )  # fmt: skip


@op("ConvInteger")
def conv_integer(
    x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None, *, auto_pad: str = "NOTSET",
    dilations: Ints = None, group: int = 1, kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    return _integer_convolution(
        x, w, x_zero, w_zero, None, None, None, auto_pad, dilations, group, pads, strides
    )  # fmt: skip


def _requantize_scale(first: Tensor, second: Tensor, result: Tensor) -> Tensor:
    """Return the scale of a product's levels: both input scales divided by the result's, in float32."""
    check_broadcast("scales", first, second, result)
    return first.to(torch.float32) * second.to(torch.float32) / result.to(torch.float32)


@op("QLinearMatMul")
def qlinear_matmul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor, y_scale: Tensor,
    y_zero: Tensor,
) -> Tensor:  # fmt: skip
    return integer_matmul(a, b, a_zero, b_zero, None, _requantize_scale(a_scale, b_scale, y_scale), y_zero)


@op("QLinearConv")
def qlinear_conv(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, w: Tensor, w_scale: Tensor, w_zero: Tensor, y_scale: Tensor,
    y_zero: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: Ints = None, group: int = 1,
    kernel_shape: Ints = None, pads: Ints = None, strides: Ints = None,
) -> Tensor:  # fmt: skip
    return _integer_convolution(
        x, w, x_zero, w_zero, b, _requantize_scale(x_scale, w_scale, y_scale), y_zero, auto_pad, dilations, group, pads,
        strides,
    )  # fmt: skip
