"""ONNX element types, and NarrowTensor for types without torchlite dtype."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import torchlite as torch
from torchlite import Tensor

NAMES = (
    "undefined float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 uint32 uint64 complex64 "
    "complex128 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz uint4 int4 float4_e2m1 "
    "float8_e8m0 uint2 int2"
).split()
NUMBERS = {name: number for number, name in enumerate(NAMES)}
OLD_NAMES = {"float": "float32", "double": "float64"}  # type names of Cast in opset 1
# By narrow type: the dtype that holds its values, and its bits.
NARROW = {
    "uint4": ("uint8", 4), "int4": ("int8", 4), "uint2": ("uint8", 2), "int2": ("int8", 2),
    "float4_e2m1": ("float32", 4), "float8_e8m0": ("float32", 8),
}  # fmt: skip
FLOAT4 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], np.float32)


class NarrowTensor(NamedTuple):
    """Tensor of a narrow type: values in a wider dtype, and the type's name."""

    values: Tensor
    type: str


def dtype_of(number: int) -> torch.dtype:
    """Return the dtype of an ONNX type number. Raise ValueError for a type without tensors."""
    if not 0 < number < len(NAMES) or NAMES[number] in NARROW or NAMES[number] == "string":
        raise ValueError(f"there are no tensors of ONNX's type {number}")
    return getattr(torch, NAMES[number])


def type_name(value: Any) -> str:
    """Return the name of a value's element type."""
    if isinstance(value, NarrowTensor):
        return value.type
    if isinstance(value, np.ndarray):
        return "string"
    return str(value.dtype).rpartition(".")[2]


def to_narrow(values: Tensor, type: str, saturate: bool = True, round_mode: str = "up") -> NarrowTensor:
    """Round values to a narrow type, stored in a wider dtype."""
    if type == "float8_e8m0":
        return NarrowTensor(_round_to_power_of_two(values, saturate, round_mode), type)
    if type == "float4_e2m1":
        return NarrowTensor(_round_to_float4(values), type)
    holder, bits = NARROW[type]
    low, count = (0 if type[0] == "u" else -(1 << bits - 1)), 1 << bits
    if values.is_floating_point():
        out = torch.nan_to_num(torch.round(values.float())).to(torch.int64)
    else:
        out = values.to(torch.int64)
    return NarrowTensor(((out - low) % count + low).to(getattr(torch, holder)), type)


def _round_to_float4(values: Tensor) -> Tensor:
    """Round to float4: the nearest of sixteen values, ties to even."""
    size = values.float().abs()
    out = torch.zeros_like(size)
    for i in range(1, 8):
        half = float(FLOAT4[i - 1] + FLOAT4[i]) / 2
        passed = size > half if i % 2 else size >= half
        out = torch.where(passed, torch.full_like(out, float(FLOAT4[i])), out)
    # NaN becomes -0, as in ml_dtypes.
    return torch.where(torch.isnan(size), torch.full_like(out, -0.0), torch.copysign(out, values.float()))


def _round_to_power_of_two(values: Tensor, saturate: bool, round_mode: str) -> Tensor:
    """Round to a power of two from 2**-127 to 2**127."""
    mantissa, exponent = torch.frexp(values.float().abs())
    low = exponent - 1
    up = {
        "up": mantissa > 0.5, "down": torch.zeros_like(mantissa, dtype=torch.bool), "nearest": mantissa >= 0.75,
    }[round_mode]  # fmt: skip
    power = low + up.to(low.dtype)
    power = torch.clamp(power, -127, 127) if saturate else torch.clamp(power, min=-127)
    out = torch.ldexp(torch.ones_like(mantissa), power)
    out = torch.where(values == 0, torch.full_like(out, 2.0**-127), out)
    wrong = torch.isnan(values) | (torch.isinf(values) if not saturate else torch.zeros_like(values, dtype=torch.bool))
    wrong = wrong | (power > 127)
    out = torch.where(torch.isinf(values), torch.full_like(out, 2.0**127), out)
    return torch.where(wrong, torch.full_like(out, math.nan), out)


def unpack_sub_bytes(data: np.ndarray, type: str, count: int) -> np.ndarray:
    """Unpack values of less than a byte, lowest bits first."""
    holder, bits = NARROW[type]
    if type == "float8_e8m0":
        out = np.ldexp(np.float32(1), data.astype(np.int32) - 127).astype(np.float32)
        return np.where(data == 255, np.float32(np.nan), out)[:count]
    steps = np.arange(0, 8, bits, dtype=np.uint8)
    codes = ((data[:, None] >> steps) & ((1 << bits) - 1)).ravel()[:count]
    if type == "float4_e2m1":
        return np.where(codes & 8, -FLOAT4[codes & 7], FLOAT4[codes & 7]).astype(np.float32)
    if type[0] == "u":
        return codes.astype(np.uint8)
    signed = codes.astype(np.int8)
    return np.where(signed >> (bits - 1), signed - (1 << bits), signed).astype(np.dtype(holder))
