"""ONNX ops that create constants and convert types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor

from .._element_types import NAMES, NARROW, NUMBERS, OLD_NAMES, NarrowTensor, dtype_of, to_narrow, type_name
from .op_registry import Ints, ints, op
from .resource_limits import check_elements, check_work, dtype_width

_FIRST_OVERFLOW = 464.0  # the greatest number that rounds to 448, the greatest of float8_e4m3fn
_FLOAT8 = {"float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2": 57344.0, "float8_e5m2fnuz": 57344.0}


def make_narrow(values: Tensor, type: str) -> NarrowTensor:
    """Return a tensor of a narrow type."""
    return NarrowTensor(values, type)


def to_plain(value: Any) -> Any:
    """Return a value for the user: narrow types as their wider dtype."""
    if isinstance(value, NarrowTensor):
        return value.values
    return [to_plain(item) for item in value] if isinstance(value, list) else value


def on_device_of(value: Any, other: Any) -> Any:
    """Move a value from the host to another's device if needed."""
    if isinstance(value, Tensor) and isinstance(other, Tensor) and value.device != other.device:
        return value.to(other.device)
    return value


@op("Cast")
def cast(x: Any, *, to: Any, saturate: int = 1, round_mode: str = "up") -> Any:
    name = OLD_NAMES.get(to.lower(), to.lower()) if isinstance(to, str) else NAMES[to]
    if name not in NUMBERS or name == "undefined":
        raise ValueError(f"Cast: there is no type {name!r}")
    return convert(x, name, bool(saturate), round_mode)


@op("CastLike")
def cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return convert(x, type_name(like), bool(saturate), round_mode)


@op("BitCast")
def bit_cast(x: Any, *, to: int) -> Tensor:
    x = x.values if isinstance(x, NarrowTensor) else x
    return x.view(dtype_of(to))


def convert(x: Any, name: str, saturate: bool = True, round_mode: str = "up") -> Any:
    """Cast a value to another element type."""
    if isinstance(x, np.ndarray):
        return x if name == "string" else _parse_text(x, name)
    values = x.values if isinstance(x, NarrowTensor) else x
    if name == "string":
        return _to_text(values)
    if name in NARROW or name in _FLOAT8:
        check_work("Cast", 16 * values.numel())
    if name in NARROW:
        return x if isinstance(x, NarrowTensor) and x.type == name else to_narrow(values, name, saturate, round_mode)
    if name in _FLOAT8:
        return _round_to_float8(values, name, saturate)
    dtype = getattr(torch, name)
    if values.dtype is dtype:
        return values
    if str(values.dtype).startswith("torch.float8"):
        values = values.to(torch.float32)
    return values.to(dtype)


def _round_to_float8(values: Tensor, name: str, saturate: bool) -> Tensor:
    dtype, most = getattr(torch, name), _FLOAT8[name]
    wide = values.to(torch.float32)
    if not saturate:
        # Overflow rounds to infinity, or NaN if the type has no infinity. PyTorch's cast to e4m3fn saturates.
        if name == "float8_e4m3fn":
            wide = torch.where(wide.abs() > _FIRST_OVERFLOW, torch.full_like(wide, math.nan), wide)
        return wide.to(dtype)
    clamped = torch.clamp(wide, -most, most)
    return torch.where(torch.isnan(wide), wide, clamped).to(dtype)


def _to_text(values: Tensor) -> np.ndarray:
    check_elements("Cast", values.numel(), each=32)
    array = values.to(torch.float32).numpy() if str(values.dtype) == "torch.bfloat16" else values.cpu().numpy()
    out = np.empty(array.size, object)
    out[:] = [_format_float(item) for item in array.ravel()]
    return out.reshape(array.shape)


def _format_float(item: Any) -> str:
    if isinstance(item, np.floating):
        if np.isnan(item):
            return "NaN"
        if np.isinf(item):
            return "INF" if item > 0 else "-INF"
        return str(item)
    return str(item)


def _parse_text(x: np.ndarray, name: str) -> Any:
    check_elements("Cast", x.size, each=16)
    kind = float if "float" in name else int
    values = np.array([kind(item) for item in x.ravel()], np.float64 if kind is float else np.int64).reshape(x.shape)
    return convert(torch.from_numpy(values), name)


@op("Identity")
def identity(x: Any) -> Any:
    return x


@op("ConstantOfShape")
def constant_of_shape(shape: Ints, *, value: Any = None) -> Any:
    sizes = ints(shape) or []
    if value is None:
        check_elements("ConstantOfShape", *sizes)
        return torch.zeros(sizes)
    if isinstance(value, np.ndarray):
        check_elements("ConstantOfShape", *sizes, each=16 + len(value.reshape(-1)[0]))
        return np.full(sizes, value.reshape(-1)[0], object)
    check_elements(
        "ConstantOfShape",
        *sizes,
        each=dtype_width(value.values.dtype if isinstance(value, NarrowTensor) else value.dtype),
    )
    if isinstance(value, NarrowTensor):
        return NarrowTensor(value.values.reshape(()).expand(sizes), value.type)
    return value.reshape(()).expand(sizes).clone()


@op("EyeLike")
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    kind = x.dtype if dtype is None else dtype_of(dtype)
    rows, columns = x.shape
    check_elements("EyeLike", rows, columns, each=3)
    place = torch.arange(columns, device=x.device) - torch.arange(rows, device=x.device).reshape(-1, 1)
    return (place == k).to(kind)
