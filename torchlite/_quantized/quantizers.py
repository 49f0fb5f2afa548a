"""The map between numbers and the integers of a quantized tensor, for a whole tensor or for each channel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import torchlite as torch

from .._types.qschemes import per_channel_affine, per_channel_affine_float_qparams, per_tensor_affine, qscheme

# The dtype of the integers, and the least and greatest of them.
INTEGERS = {
    torch.qint8: (torch.int8, -128, 127),
    torch.quint8: (torch.uint8, 0, 255),
    torch.qint32: (torch.int32, -(2**31), 2**31 - 1),
    torch.quint4x2: (torch.uint8, 0, 15),
    torch.quint2x4: (torch.uint8, 0, 3),
}
# The bits of a level.
BITS = {torch.qint8: 8, torch.quint8: 8, torch.qint32: 32, torch.quint4x2: 4, torch.quint2x4: 2}
QUANTIZED = {integers: dtype for dtype, (integers, *_) in INTEGERS.items() if BITS[dtype] >= 8}


def check_dtype(dtype: Any) -> None:
    """RuntimeError for a dtype that is not quantized."""
    if dtype not in INTEGERS:
        raise RuntimeError(f"ScalarType {dtype.scalar_name} is not supported in new_qtensor.")


def check_numbers(input: Any) -> None:
    """TypeError or RuntimeError for what is no tensor of float32."""
    if not isinstance(input, torch.Tensor):
        raise TypeError(f"expected a Tensor to quantize, but got {type(input).__name__}")
    if input.dtype is not torch.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {input.dtype.scalar_name}")


def _to_integers(x: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    """Return ``round(x / scale + zero_point)`` within the dtype's range, as PyTorch computes it: by the reciprocal of
    the scale, in float32. NaN becomes the greatest integer, or the least of qint32 and of levels
    with fewer than eight bits.
    """
    integers, low, high = INTEGERS[dtype]
    levels = torch.round(x * scale + zero_point)
    if dtype is torch.qint32:
        levels = levels.double()
    nan = low if dtype is torch.qint32 or BITS[dtype] < 8 else high
    return torch.nan_to_num(levels, nan, high, low).clamp(low, high).to(integers)


class PerTensor(NamedTuple):
    """One scale and one zero point."""

    scale: float
    zero_point: int

    @property
    def scheme(self) -> qscheme:
        return per_tensor_affine

    def quantize(self, x: Any, dtype: Any) -> Any:
        integers, low, high = INTEGERS[dtype]
        if BITS[dtype] < 8:
            high = torch.iinfo(integers).max  # PyTorch checks zero points by the byte
        for wrong, bound in ((self.zero_point > high, "above upper"), (self.zero_point < low, "below lower")):
            if wrong:
                raise RuntimeError(f"quantize_tensor_per_tensor_affine zero_point {self.zero_point} is {bound} bound.")
        with np.errstate(divide="ignore"):
            inverse = float(np.float32(1) / np.float32(self.scale))
        return _to_integers(x, inverse, self.zero_point, dtype)

    def dequantize(self, values: Any) -> Any:
        return (values.to(torch.float32) - self.zero_point) * self.scale

    def equals(self, other: Any) -> bool:
        return other.__class__ is PerTensor and self == other

    def moved(self, where: Any) -> PerTensor:
        return self

    def copied(self) -> PerTensor:
        return self


class PerChannel:
    """Scales and zero points of the channels, which are along `axis`. Zero points are int64, or float32 in the scheme
    with float parameters.
    """

    __slots__ = ("scales", "zero_points", "axis")

    def __init__(self, scales: Any, zero_points: Any, axis: int) -> None:
        self.scales, self.zero_points, self.axis = scales, zero_points, axis

    @property
    def scheme(self) -> qscheme:
        floats = self.zero_points.dtype.is_floating_point
        return per_channel_affine_float_qparams if floats else per_channel_affine

    def _along(self, ndim: int) -> tuple[Any, Any]:
        shape = [1] * ndim
        shape[self.axis] = -1
        return (part.to(torch.float32).reshape(shape) for part in (self.scales, self.zero_points))  # type: ignore[return-value]

    def check(self, shape: tuple[int, ...]) -> None:
        """RuntimeError unless there is a scale and a zero point for each channel."""
        if not -len(shape) <= self.axis < len(shape):
            raise RuntimeError(
                "Channel axis out of range in per channel affine quantization. "
                f"Got: {self.axis}Expected: [0, {len(shape)})"
            )
        count = self.scales.numel()
        if shape[self.axis] != count:
            raise RuntimeError(f"length of scales must equal to channel, expected {shape[self.axis]} got, {count}")

    def quantize(self, x: Any, dtype: Any) -> Any:
        scales, zero_points = self._along(x.ndim)
        return _to_integers(x, 1 / scales, zero_points, dtype)

    def dequantize(self, values: Any) -> Any:
        scales, zero_points = self._along(values.ndim)
        return (values.to(torch.float32) - zero_points) * scales

    def equals(self, other: Any) -> bool:
        return (
            other.__class__ is PerChannel
            and self.axis == other.axis
            and torch.equal(self.scales, other.scales)
            and torch.equal(self.zero_points, other.zero_points)
        )

    def moved(self, where: Any) -> PerChannel:
        return PerChannel(self.scales.to(where), self.zero_points.to(where), self.axis)

    def copied(self) -> PerChannel:
        return PerChannel(self.scales.clone(), self.zero_points.clone(), self.axis)

    def on_axis(self, axis: int) -> PerChannel:
        return PerChannel(self.scales, self.zero_points, axis)

    def of_channels(self, part: slice) -> PerChannel | PerTensor:
        scales, zero_points = self.scales[part], self.zero_points[part]
        if scales.numel() == 1:
            return PerTensor(scales.item(), int(zero_points.item()))
        return PerChannel(scales, zero_points, self.axis)

    def of_channel(self, index: int) -> PerTensor:
        return PerTensor(self.scales[index].item(), int(self.zero_points[index].item()))


def make_per_channel(scales: Any, zero_points: Any, axis: int) -> PerChannel:
    """The parameters in the dtypes that PyTorch keeps, checked."""
    if scales.ndim != 1 or zero_points.ndim != 1:
        raise RuntimeError(f"{'scale' if scales.ndim != 1 else 'zero_points'} tensor must have dimension 1")
    if scales.numel() != zero_points.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")
    if zero_points.dtype.is_floating_point:
        return PerChannel(scales.detach().to(torch.float32), zero_points.detach().to(torch.float32), axis)
    return PerChannel(scales.detach().to(torch.float64), zero_points.detach().to(torch.int64), axis)
