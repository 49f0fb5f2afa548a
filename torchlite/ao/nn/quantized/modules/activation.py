"""Quantized activations: those whose result has a scale and a zero point of its own."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn

from .utils import FromObserved, observed_result


class ReLU6(FromObserved, nn.ReLU):
    """``min(max(x, 0), 6)`` of a quantized tensor.

    Args:
        inplace: Whether the input is overwritten. Default: ``False``.

    Example:
        >>> q = torch.quantize_per_tensor(torch.tensor([-1.0, 9.0]), 0.1, 10, torch.quint8)
        >>> torch.ao.nn.quantized.ReLU6()(q).dequantize()
        tensor([0., 6.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.relu6(input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        return cls(mod.inplace)


class Hardswish(FromObserved, nn.Hardswish):
    """``x * min(max(x + 3, 0), 6) / 6`` of a quantized tensor.

    Args:
        scale: Scale of the result.
        zero_point: Zero point of the result.
        device: Device of the parameters. Default: the CPU.
        dtype: Dtype of the parameters. Default: that of a number.

    Example:
        >>> q = torch.quantize_per_tensor(torch.tensor([3.0]), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.Hardswish(0.5, 0)(q).dequantize()
        tensor([3.])
    """

    def __init__(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.register_buffer("scale", torch.tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", torch.tensor(zero_point, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.hardswish(input, float(self.scale), int(self.zero_point))

    def _get_name(self) -> str:
        return "QuantizedHardswish"

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Hardswish:
        return cls(float(scale), int(zero_point))


class ELU(FromObserved, nn.ELU):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``, of a quantized tensor.

    Args:
        scale: Scale of the result.
        zero_point: Zero point of the result.
        alpha: The limit of negative numbers. Default: 1.

    Example:
        >>> torch.ao.nn.quantized.ELU(0.1, 3)
        QuantizedELU(alpha=1.0)
    """

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self) -> str:
        return "QuantizedELU"

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> ELU:
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(FromObserved, nn.LeakyReLU):
    """``x`` where it is positive, else ``negative_slope * x``, of a quantized tensor.

    Args:
        scale: Scale of the result.
        zero_point: Zero point of the result.
        negative_slope: The factor of negative numbers. Default: 0.01.
        inplace: Has no effect on the input. Default: ``False``.
        device: Device of the parameters. Default: the CPU.
        dtype: Dtype of the parameters. Default: that of a number.

    Example:
        >>> torch.ao.nn.quantized.LeakyReLU(0.1, 3)
        QuantizedLeakyReLU(negative_slope=0.01)
    """

    def __init__(
        self, scale: float, zero_point: int, negative_slope: float = 1e-2, inplace: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(negative_slope, inplace)
        self.register_buffer("scale", torch.tensor(scale, device=device, dtype=dtype))
        self.register_buffer("zero_point", torch.tensor(zero_point, device=device, dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.leaky_relu(
            input, self.negative_slope, self.inplace, float(self.scale), int(self.zero_point)
        )

    def _get_name(self) -> str:
        return "QuantizedLeakyReLU"

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> LeakyReLU:
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class Sigmoid(FromObserved, nn.Sigmoid):
    """``1 / (1 + exp(-x))`` of a quantized tensor.

    Args:
        output_scale: Scale of the result.
        output_zero_point: Zero point of the result.

    Example:
        >>> q = torch.quantize_per_tensor(torch.zeros(1), 0.1, 0, torch.quint8)
        >>> torch.ao.nn.quantized.Sigmoid(0.5, 0)(q).dequantize()
        tensor([0.5000])
    """

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Sigmoid:
        return cls(float(scale), int(zero_point))


class Softmax(FromObserved, nn.Softmax):
    """``exp(x) / sum(exp(x))`` along a dimension of a quantized tensor.

    Args:
        dim: The dimension. Default: the one that `torch.nn.Softmax` chooses.
        scale: Scale of the result. Default: 1.
        zero_point: Zero point of the result. Default: 0.

    Example:
        >>> torch.ao.nn.quantized.Softmax(1)
        QuantizedSoftmax(dim=1)
    """

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__(dim)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        dim = self.dim
        if dim is None:
            dim = 0 if input.ndim in (0, 1, 3) else 1
        return torch.ops.quantized.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Softmax:
        return cls(mod.dim, float(scale), int(zero_point))


class PReLU(FromObserved, nn.Module):
    """``x`` where it is positive, else ``weight * x``, of a quantized tensor.

    Args:
        output_scale: Scale of the result.
        output_zero_point: Zero point of the result.
        num_parameters: Number of weights: 1, or one for each channel. Default: 1.

    Example:
        >>> torch.ao.nn.quantized.PReLU(0.1, 3)
        QuantizedPReLU()
    """

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1) -> None:
        super().__init__()
        self.num_parameters, self.scale, self.zero_point = num_parameters, output_scale, output_zero_point
        self.set_weight(torch.quantize_per_tensor(torch.randn(num_parameters), 1.0, 0, torch.quint8))

    def set_weight(self, w: Any) -> None:
        """Sets the quantized weight.

        Args:
            w: The weight.
        """
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> PReLU:
        made = cls(*observed_result(mod), mod.num_parameters)
        observer = mod.qconfig.weight()
        weight = mod.weight.detach().float()
        observer(weight)
        scale, zero_point = observer.calculate_qparams()
        made.set_weight(torch.quantize_per_tensor(weight, float(scale), int(zero_point), torch.quint8))
        return made

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> PReLU:
        made = cls(float(scale), int(zero_point), mod.num_parameters)
        made.set_weight(mod.get_quantized_weight())
        return made
