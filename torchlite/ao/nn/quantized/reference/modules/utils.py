"""How reference layers round their weights: by the scales and zero points that an observer found."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite.nn import Module

__all__ = ["ReferenceQuantizedModule"]
_QUANTIZED = (torch.quint8, torch.qint8, torch.quint4x2, torch.qint32)
_PER_CHANNEL = (torch.per_channel_affine, torch.per_channel_affine_float_qparams)
_SCHEMES = (torch.per_tensor_affine, *_PER_CHANNEL)
# The dtype of the integers, and their range.
_INTEGERS = {
    torch.quint8: (torch.uint8, 0, 255), torch.qint8: (torch.int8, -128, 127),
    torch.qint32: (torch.int32, -(2**31), 2**31 - 1),
}  # fmt: skip
USUAL: dict[str, Any] = {"qscheme": torch.per_tensor_affine, "dtype": torch.quint8, "scale": 1.0, "zero_point": 0}


def as_buffer(value: Any, dtype: Any, device: Any) -> Any:
    """Return a copy of a tensor, or a tensor of a number."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return torch.tensor(value, dtype=dtype, device=device)


def _unsupported(dtype: Any, qscheme: Any) -> ValueError:
    return ValueError(f"Unsupported dtype and qscheme: {dtype}, {qscheme}")


def _decomposed(weight: Any, qparams: tuple, limits: tuple) -> tuple:
    """Return the integers of a weight as a plain tensor, and the numbers that they stand for."""
    qscheme, dtype, scale, zero_point, axis = qparams
    if dtype not in _INTEGERS:
        raise _unsupported(dtype, qscheme)
    plain, low, high = _INTEGERS[dtype]
    low, high = (low, high) if None in limits else limits
    ops = torch.ops.quantized_decomposed
    rest: Any
    if qscheme in _PER_CHANNEL:
        rest = (scale, zero_point, axis, low, high, plain)
        integers = ops.quantize_per_channel(weight, *rest)
        return integers, ops.dequantize_per_channel(integers, *rest)
    rest = (scale, zero_point, low, high, plain)
    integers = ops.quantize_per_tensor(weight, *rest)
    return integers, ops.dequantize_per_tensor(integers, *rest)


def _quantize_weight(weight: Any, qscheme: Any, dtype: Any, scale: Any, zero_point: Any, axis: Any) -> Any:
    """Return a weight, quantized, or in half precision."""
    if dtype is torch.float16:
        return weight.to(dtype)
    if qscheme is torch.per_tensor_affine and dtype in _INTEGERS:
        return torch.quantize_per_tensor(weight, scale, zero_point, dtype)
    if qscheme in _PER_CHANNEL and dtype in _QUANTIZED:
        return torch.quantize_per_channel(weight, scale, zero_point, axis, dtype)
    raise _unsupported(dtype, qscheme)


def _quantize_and_dequantize_weight(
    weight: Any, qscheme: Any, dtype: Any, scale: Any, zero_point: Any, axis: Any
) -> Any:
    """Return the numbers that a weight has after it was quantized."""
    if qscheme not in _SCHEMES:
        return weight
    return _quantize_weight(weight, qscheme, dtype, scale, zero_point, axis).dequantize()


class ReferenceQuantizedModule(Module):
    """The base of layers with a float weight, and the parameters by which it is quantized.

    Example:
        >>> from torchlite.ao.nn.quantized.reference.modules.utils import ReferenceQuantizedModule
        >>> isinstance(torch.ao.nn.quantized.reference.Linear(1, 1), ReferenceQuantizedModule)
        True
    """

    weight: Any
    weight_scale: Any
    weight_zero_point: Any
    weight_axis: Any

    def _init_weight_qparams(self, weight_qparams: Any, device: Any) -> None:
        given = USUAL if weight_qparams is None else weight_qparams
        self.weight_qscheme, self.weight_dtype = given["qscheme"], given["dtype"]
        is_quantized = self.weight_dtype in _QUANTIZED
        has_axis = is_quantized and self.weight_qscheme in _PER_CHANNEL
        scale, zero_point = (given["scale"], given["zero_point"]) if is_quantized else (1.0, 0)
        self.register_buffer("weight_scale", as_buffer(scale, torch.float, device))
        self.register_buffer("weight_zero_point", as_buffer(zero_point, torch.int, device))
        self.register_buffer("weight_axis", as_buffer(given["axis"] if has_axis else 0, torch.int, device))
        self.is_decomposed: bool = given.get("is_decomposed", False)
        self.weight_axis_int: int = int(self.weight_axis)
        self.weight_quant_min, self.weight_quant_max = given.get("quant_min"), given.get("quant_max")

    def _qparams(self) -> tuple:
        scale, zero_point = self.weight_scale, self.weight_zero_point
        return self.weight_qscheme, self.weight_dtype, scale, zero_point, self.weight_axis_int

    def _decomposed_weight(self) -> tuple:
        return _decomposed(self.weight, self._qparams(), (self.weight_quant_min, self.weight_quant_max))

    def get_weight(self) -> Any:
        """The numbers that the weight has after it was quantized."""
        if self.is_decomposed:
            return self._decomposed_weight()[1] if self.weight_qscheme in _SCHEMES else self.weight
        return _quantize_and_dequantize_weight(self.weight, *self._qparams())

    def get_quantized_weight(self) -> Any:
        """The quantized weight, or its integers if the layer is of decomposed ops."""
        if self.is_decomposed:
            return self._decomposed_weight()[0]
        return _quantize_weight(self.weight, *self._qparams())

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight_qscheme"] = self.weight_qscheme
        destination[f"{prefix}weight_dtype"] = self.weight_dtype
        if self.weight_qscheme is not None:
            destination[f"{prefix}weight_scale"] = self.weight_scale
            destination[f"{prefix}weight_zero_point"] = self.weight_zero_point
            if self.weight_qscheme is torch.per_channel_affine:
                destination[f"{prefix}weight_axis"] = self.weight_axis

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        names = ["weight_qscheme", "weight_dtype"]
        if state_dict[f"{prefix}weight_qscheme"] is not None:
            names += ["weight_scale", "weight_zero_point"]
        for name in names:
            setattr(self, name, state_dict.pop(prefix + name))
        local_metadata, _, *lists = rest
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)


def with_float_parameters(made: Any, source: Any) -> Any:
    """Return a layer with the weight and the bias of a float one."""
    made.weight = torch.nn.Parameter(source.weight.detach())
    if source.bias is not None:
        made.bias = torch.nn.Parameter(source.bias.detach())
    return made
