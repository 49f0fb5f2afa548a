"""Export rules of fake quantization and `quantized_decomposed`, as QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._element_types import NUMBERS
from .._protobuf import Message
from ..errors import OnnxExporterError
from .graph_builder import OnnxGraphBuilder, WriterValue, dtype_name, translates

_RANGES = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767),
           "int32": (-(2**31), 2**31 - 1)}  # fmt: skip
_FAKE = "aten.fake_quantize_per"
_OPS = "quantized_decomposed."


def _single(w: OnnxGraphBuilder, value: Any, dtype: str) -> Any:
    """A scale or zero point of a whole tensor, as a number without dimensions."""
    if not isinstance(value, WriterValue):
        return w.constant(value, dtype)
    cast = w.cast(value, dtype)
    return w.op("Reshape", cast, w.constant([], "int64")) if value.ndim else cast


def _vector(w: OnnxGraphBuilder, value: WriterValue, dtype: str) -> str:
    return w.cast(value, dtype)


def _quantize(
    w: OnnxGraphBuilder, x: Any, scale: Any, zero: Any, low: int, high: int, dtype: str, axis: int | None = None
) -> str:
    if dtype not in _RANGES or dtype == "int32":
        raise OnnxExporterError(f"ONNX's QuantizeLinear makes no levels of {dtype}")
    part = _single if axis is None else _vector
    named: dict[str, Any] = {} if axis is None else {"axis": axis}
    x = w.cast(x, "float32") if isinstance(x, WriterValue) and x.dtype != "float32" else x
    levels = w.op("QuantizeLinear", x, part(w, scale, "float32"), part(w, zero, dtype), **named)
    if (low, high) == _RANGES[dtype]:
        return levels
    return w.op("Clip", levels, w.constant(low, dtype), w.constant(high, dtype))


def _dequantize(
    w: OnnxGraphBuilder, levels: Any, scale: Any, zero: Any, dtype: str, axis: int | None = None,
    out_dtype: Any = None, block: int | None = None,
) -> str:  # fmt: skip
    part = _single if axis is None else _vector
    named: dict[str, Any] = {} if axis is None else {"axis": axis}
    if block is not None:
        named["block_size"] = block
    zero = None if zero is None else part(w, zero, dtype)
    out = w.op("DequantizeLinear", levels, part(w, scale, "float32"), zero, **named)
    return out if out_dtype is None else w.cast(out, dtype_name(out_dtype), known="float32")


def _levels_of(low: int, high: int) -> str:
    """The dtype of levels from the least to the greatest one."""
    for dtype in ("uint8", "int8", "uint16", "int16"):
        if _RANGES[dtype][0] <= low and high <= _RANGES[dtype][1]:
            return dtype
    raise OnnxExporterError(f"ONNX has no levels from {low} to {high}")


def _fake(w: OnnxGraphBuilder, x: WriterValue, scale: Any, zero: Any, low: int, high: int, axis: Any = None) -> str:
    dtype = _levels_of(low, high)
    levels = _quantize(w, x, scale, zero, low, high, dtype, axis)
    out = _dequantize(w, levels, scale, zero, dtype, axis)
    return out if x.dtype == "float32" else w.cast(out, x.dtype, known="float32")


@translates(f"{_FAKE}_tensor_affine", f"{_FAKE}_tensor_affine.tensor_qparams")
def fake_quantize(
    w: OnnxGraphBuilder, x: WriterValue, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> str:
    return _fake(w, x, scale, zero_point, quant_min, quant_max)


@translates(f"{_FAKE}_channel_affine")
def fake_quantize_channels(
    w: OnnxGraphBuilder, x: WriterValue, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> str:
    return _fake(w, x, scale, zero_point, quant_min, quant_max, axis)


@translates(f"{_FAKE}_tensor_affine_cachemask")
def fake_quantize_with_mask(
    w: OnnxGraphBuilder, x: WriterValue, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> list[str | None]:
    return [_fake(w, x, scale, zero_point, quant_min, quant_max), None]


@translates(f"{_FAKE}_channel_affine_cachemask")
def fake_quantize_channels_with_mask(
    w: OnnxGraphBuilder, x: WriterValue, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> list[str | None]:
    return [_fake(w, x, scale, zero_point, quant_min, quant_max, axis), None]


@translates("aten.fused_moving_avg_obs_fake_quant")
def observe_and_fake_quantize(
    w: OnnxGraphBuilder, x: WriterValue, observer_on: Any, fake_quant_on: WriterValue, running_min: Any,
    running_max: Any, scale: WriterValue, zero_point: WriterValue, averaging_const: float, quant_min: int,
    quant_max: int, ch_axis: int, per_row_fake_quant: bool = False, symmetric_quant: bool = False,
) -> str:  # fmt: skip
    """The file has the scale and zero point of now: an observer does not move them there."""
    del observer_on, running_min, running_max, averaging_const, symmetric_quant
    switch = w.initializers.get(fake_quant_on.name)
    if switch is not None and not any(bytes(switch.raw_data)):
        return x.name
    return _fake(w, x, scale, zero_point, quant_min, quant_max, ch_axis if per_row_fake_quant else None)


@translates("aten._fused_moving_avg_obs_fq_helper")
def observe_and_fake_quantize_with_mask(
    w: OnnxGraphBuilder, x: WriterValue, observer_on: Any, fake_quant_on: WriterValue, running_min: Any,
    running_max: Any, scale: WriterValue, zero_point: WriterValue, averaging_const: float, quant_min: int,
    quant_max: int, ch_axis: int, per_row_fake_quant: bool = False, symmetric_quant: bool = False,
) -> list[str | None]:  # fmt: skip
    out = observe_and_fake_quantize(
        w, x, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, averaging_const, quant_min,
        quant_max, ch_axis, per_row_fake_quant, symmetric_quant,
    )  # fmt: skip
    return [out, None]


@translates(f"{_OPS}fake_quant_per_channel")
def fake_quant_per_channel(
    w: OnnxGraphBuilder, input: WriterValue, scales: Any, zero_points: Any, axis: int, quant_min: int, quant_max: int
) -> str:
    return _fake(w, input, scales, zero_points, quant_min, quant_max, axis)


@translates(f"{_OPS}quantize_per_tensor")
def quantize_per_tensor(
    w: OnnxGraphBuilder, input: WriterValue, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: Any
) -> str:
    return _quantize(w, input, scale, zero_point, quant_min, quant_max, dtype_name(dtype))


@translates(f"{_OPS}dequantize_per_tensor")
def dequantize_per_tensor(
    w: OnnxGraphBuilder, input: WriterValue, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: Any,
    *, out_dtype: Any = None,
) -> str:  # fmt: skip
    del quant_min, quant_max, dtype  # the levels are in the range, and have the dtype
    return _dequantize(w, input, scale, zero_point, input.dtype, None, out_dtype)


@translates(f"{_OPS}quantize_per_channel")
def quantize_per_channel(
    w: OnnxGraphBuilder, input: WriterValue, scales: Any, zero_points: Any, axis: int, quant_min: int, quant_max: int,
    dtype: Any,
) -> str:  # fmt: skip
    return _quantize(w, input, scales, zero_points, quant_min, quant_max, dtype_name(dtype), axis)


@translates(f"{_OPS}dequantize_per_channel")
def dequantize_per_channel(
    w: OnnxGraphBuilder, input: WriterValue, scales: Any, zero_points: Any, axis: int, quant_min: int, quant_max: int,
    dtype: Any, *, out_dtype: Any = None,
) -> str:  # fmt: skip
    del quant_min, quant_max, dtype  # the levels are in the range, and have the dtype
    return _dequantize(w, input, scales, zero_points, input.dtype, axis, out_dtype)


@translates(f"{_OPS}dequantize_per_channel_group")
def dequantize_groups(
    w: OnnxGraphBuilder, input: WriterValue, scales: Any, zero_points: Any, quant_min: int, quant_max: int, dtype: Any,
    group_size: int = 128, output_dtype: Any = None,
) -> str:  # fmt: skip
    """Levels of four bits are packed in pairs, if they are constants."""
    held = w.initializers.get(input.name)
    dtype = input.dtype
    if (quant_min, quant_max) == (-8, 7) and held is not None and w.version >= 21:
        dtype = "int4"
        codes = np.frombuffer(held.raw_data, np.uint8) & 15
        codes = np.concatenate([codes, np.zeros(codes.size % 2, np.uint8)])
        packed = codes[::2] | codes[1::2] << 4
        name = w.name(f"{input.name}_int4")
        w.initializers[name] = Message(
            "Tensor", dims=list(held.dims), data_type=NUMBERS[dtype], name=name, raw_data=packed.tobytes()
        )
        input = input._replace(name=name, dtype=dtype)
    return _dequantize(w, input, scales, zero_points, dtype, 1, output_dtype, group_size)


@translates(f"{_OPS}choose_qparams")
def choose_qparams(
    w: OnnxGraphBuilder, input: WriterValue, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> list[str]:
    """The scale and zero point of the range from the least to the greatest number and zero."""
    del dtype  # the zero point is int64 for each
    zero = w.constant(0.0, "float32")
    least = w.op("Min", w.op("ReduceMin", input, keepdims=0), zero)
    greatest = w.op("Max", w.op("ReduceMax", input, keepdims=0), zero)
    steps = w.constant(float(quant_max - quant_min), "float32")
    scale = w.op("Max", w.op("Div", w.op("Sub", greatest, least), steps), w.constant(eps, "float32"))
    shift = w.op("Sub", w.constant(float(quant_min), "float32"), w.op("Round", w.op("Div", least, scale)))
    shift = w.op("Clip", shift, w.constant(float(quant_min), "float32"), w.constant(float(quant_max), "float32"))
    one = w.constant([1], "int64")
    return [
        w.op("Reshape", w.cast(scale, "float64", known="float32"), one),
        w.op("Reshape", w.cast(shift, "int64", known="float32"), one),
    ]


# -- products of levels ----------------------------------------------------------------------------


@translates("torchlite._dynamic_quantize")
def dynamic_quantize(w: OnnxGraphBuilder, input: WriterValue) -> list[str]:
    return w.op("DynamicQuantizeLinear", input, outputs=3)


@translates("torchlite._quantized_matmul")
def quantized_matmul(
    w: OnnxGraphBuilder, input: WriterValue, other: WriterValue, input_zero: Any = None, other_zero: Any = None,
    bias: Any = None, scale: Any = None, out_zero: Any = None,
) -> str:  # fmt: skip
    if out_zero is not None:
        raise OnnxExporterError("a product of levels whose result is quantized is not written")
    out = w.op("MatMulInteger", input, other, input_zero, other_zero)
    out = out if bias is None else w.op("Add", out, bias)
    return out if scale is None else w.op("Mul", w.cast(out, "float32", known="int32"), scale)
