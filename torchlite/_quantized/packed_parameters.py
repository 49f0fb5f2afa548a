"""Weights and biases of quantized layers, as `torch.ops.quantized.linear_prepack` and its like hand them out."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .._dispatch import REGISTRY, function_for
from .._dispatch.call import wrap_array
from .._dispatch.error_translation import no_backend_kernel_error
from .._types.quantized_levels import LevelsMatrix
from .quantized_tensor import is_quantized, wrap_quantized
from .quantizers import PerChannel, PerTensor, check_numbers

_constant_matmul, _dynamic_linear = (function_for(REGISTRY[name]) for name in ("_constant_matmul", "_dynamic_linear"))
CLASSES = "__torch__.torch.classes.quantized."


def _check(tensor: Any, dtype: Any, op: str) -> None:
    if not is_quantized(tensor):
        raise no_backend_kernel_error(f"quantized::{op}", "", tensor)
    if tensor.dtype is not dtype:
        raise RuntimeError(f"quantized::{op}: expected a tensor of {dtype}, but got {tensor.dtype}")


class _Packed:
    """Common part of packed parameters: `weight` is quantized, `bias` has float32 numbers, or is None."""

    _schema_type: str
    _prepack: str  # the op that makes them
    _tl_is_immutable = True  # graphs read them as constants

    def __init__(self, weight: Any, bias: Any) -> None:
        _check(weight, torch.qint8, self._prepack)
        self._weight, self._bias = weight, None if bias is None else bias.detach().to(torch.float32)
        quantizer = weight._quantizer
        # Scales of float32, a number or one for each output, and zero points of int8.
        if isinstance(quantizer, PerTensor):
            self._scale: Any = quantizer.scale
            zero_points = None if quantizer.zero_point == 0 else [quantizer.zero_point]
        else:
            self._check_axis(quantizer)
            self._scale = quantizer.scales.to(torch.float32)
            zero_points = quantizer.zero_points.tolist()
        self._zero = None
        if zero_points and any(zero_points):
            self._zero = torch.tensor(zero_points, dtype=torch.int8, device=weight.device)

    def _check_axis(self, quantizer: PerChannel) -> None:
        if quantizer.axis != 0:
            raise RuntimeError("expected the channels of a weight along its first dimension")

    def __repr__(self) -> str:
        return f"ScriptObject <{self._schema_type}>"

    def _tl_parts(self) -> list[Any]:
        """The tensors that a graph reads, and the values of quantized ones."""
        return [_plain(value) for value in vars(self).values() if isinstance(value, torch.Tensor)]

    def unpack(self) -> tuple[Any, Any]:
        """Return the weight and the bias."""
        return self._weight, self._bias

    def bias(self) -> Any:
        """Return the bias."""
        return self._bias

    def _arguments(self, x: Any, scale: float, zero_point: int) -> dict[str, Any]:
        """The arguments of a product with a result of `scale` and `zero_point`."""
        both = self._scale * x.q_scale()
        bias = None if self._bias is None else torch.round(self._bias / both).to(torch.int32)
        device = x.device
        multiplier = both / scale
        if not isinstance(multiplier, torch.Tensor):
            multiplier = torch.tensor(multiplier, dtype=torch.float32, device=device)
        return {
            "input_zero": torch.tensor(x.q_zero_point(), dtype=x._values.dtype, device=device),
            "bias": bias, "scale": multiplier,
            "out_zero": torch.tensor(zero_point, dtype=x._values.dtype, device=device),
        }  # fmt: skip


def _plain(value: Any) -> Any:
    return value._values if is_quantized(value) else value


def _wrap(values: Any, scale: float, zero_point: int) -> Any:
    return wrap_quantized(values, PerTensor(scale, zero_point))


def quantize_dynamically(x: Any, reduce_range: bool) -> Any:
    """Numbers as quint8 by their least and greatest one."""
    return torch.quantize_per_tensor_dynamic(x.detach(), torch.quint8, reduce_range)


class LinearPackedParams(_Packed):
    """The weight, of shape ``(out_features, in_features)``, and the bias of a linear layer."""

    _schema_type = f"{CLASSES}LinearPackedParamsBase"
    _prepack = "linear_prepack"

    def __init__(self, weight: Any, bias: Any = None) -> None:
        super().__init__(weight, bias)
        if weight.ndim != 2:
            raise RuntimeError("The weight tensor for quantized::linear_prepack (fbgemm) should be 2-dimensional.")
        zero: Any = self._zero
        zero = None if zero is None else zero._tl_array
        # The levels as columns. A kernel's form replaces them, so that they are in memory once.
        self._matrix, self._quantizer = LevelsMatrix(weight._values.t()._tl_array, zero), weight._quantizer
        self._table = weight._values._tl_kernels
        del self._weight
        self._steps = torch.as_tensor(self._scale, dtype=torch.float32, device=weight.device)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.unpack()

    def unpack(self) -> tuple[Any, Any]:
        """Return the weight and the bias."""
        columns = wrap_array(self._table, self._matrix.levels())
        return wrap_quantized(columns.t().contiguous(), self._quantizer), self._bias

    def __call__(self, x: Any, scale: float, zero_point: int) -> Any:
        """The quantized result of the layer."""
        _check(x, torch.quint8, "linear")
        given = self._arguments(x, scale, zero_point)
        return _wrap(_constant_matmul(x._values, self._matrix, **given), scale, zero_point)

    def dynamic(self, x: Any, reduce_range: bool = False) -> Any:
        """The result for float32 numbers, which are quantized by their range."""
        check_numbers(x)
        if x.numel() == 0:
            out = torch.zeros(*x.shape[:-1], self._matrix.shape[1], device=x.device)
            return out if self._bias is None else out + self._bias
        return _dynamic_linear(x, self._matrix, self._steps, self._bias, 127 if reduce_range else 255)


class ConvPackedParams(_Packed):
    """The weight, of shape ``(out_channels, in_channels / groups, *kernel)``, the bias and the geometry of a
    convolution over one or two dimensions.
    """

    _schema_type = f"{CLASSES}Conv2dPackedParamsBase"
    _prepack = "conv_prepack"

    def __init__(
        self, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int,
        output_padding: Any = None,
    ) -> None:  # fmt: skip
        self._transposed = output_padding is not None
        super().__init__(weight, bias)
        self._geometry = tuple(stride), tuple(padding), tuple(dilation), groups
        self._output_padding = tuple(output_padding or ())

    def _check_axis(self, quantizer: PerChannel) -> None:
        if self._transposed and quantizer.axis != 1 or not self._transposed and quantizer.axis != 0:
            raise RuntimeError("expected the channels of a weight along the dimension of its outputs")

    def stride(self) -> list[int]:
        """Return the strides."""
        return list(self._geometry[0])

    def padding(self) -> list[int]:
        """Return the padding."""
        return list(self._geometry[1])

    def dilation(self) -> list[int]:
        """Return the dilations."""
        return list(self._geometry[2])

    def output_padding(self) -> list[int]:
        """Return the output padding."""
        return list(self._output_padding) or [0] * len(self._geometry[0])

    def groups(self) -> int:
        """Return the number of groups."""
        return self._geometry[3]

    def transpose(self) -> bool:
        """Return whether the convolution is transposed."""
        return self._transposed

    def __call__(self, x: Any, scale: float, zero_point: int) -> Any:
        """The quantized result of the convolution."""
        _check(x, torch.quint8, "conv_transpose" if self._transposed else "conv")
        if self._transposed:
            return torch.quantize_per_tensor(self._on_numbers(x.dequantize()), scale, zero_point, torch.quint8)
        stride, padding, dilation, groups = self._geometry
        given = self._arguments(x, scale, zero_point)
        out = torch.ops.torchlite._quantized_convolution(
            x._values, self._weight._values, given["input_zero"], self._zero, given["bias"], given["scale"],
            given["out_zero"], stride, padding * 2, dilation, groups,
        )  # fmt: skip
        return _wrap(out, scale, zero_point)

    def dynamic(self, x: Any, reduce_range: bool = False) -> Any:
        """The result for float32 numbers, which are quantized by their range."""
        return self._on_numbers(quantize_dynamically(x, reduce_range).dequantize())

    def _on_numbers(self, x: Any) -> Any:
        stride, padding, dilation, groups = self._geometry
        weight = self._weight.dequantize()
        if not self._transposed:
            return torch.convolution(
                x, weight, self._bias, stride, padding, dilation, False, (0,) * len(stride), groups
            )
        return torch.convolution(x, weight, self._bias, stride, padding, dilation, True, self._output_padding, groups)


class Conv3dPackedParams(ConvPackedParams):
    """Those of a convolution over three dimensions, which have another type in schemas."""

    _schema_type = f"{CLASSES}Conv3dPackedParamsBase"


class EmbeddingPackedParams:
    """The weight of an embedding, quantized for each row with a float scale and zero point."""

    _schema_type = f"{CLASSES}EmbeddingPackedParamsBase"
    _tl_is_immutable = True

    def __init__(self, weight: Any) -> None:
        _check(weight, torch.quint8, "embedding_bag_prepack")
        if not isinstance(weight._quantizer, PerChannel) or weight._quantizer.axis != 0:
            raise RuntimeError("expected a weight that is quantized for each row")
        self._weight = weight

    def _tl_parts(self) -> list[Any]:
        quantizer = self._weight._quantizer
        return [self._weight._values, quantizer.scales, quantizer.zero_points]

    def unpack(self) -> Any:
        """Return the weight."""
        return self._weight

    def rows(self, indices: Any) -> Any:
        """Return rows as numbers."""
        quantizer, flat = self._weight._quantizer, indices.reshape(-1)
        chosen = PerChannel(quantizer.scales[flat], quantizer.zero_points[flat], 0)
        return chosen.dequantize(self._weight._values[flat]).reshape(*indices.shape, -1)
