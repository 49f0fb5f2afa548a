"""Quantized layers with the activation or the sum after them."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.ao.nn.intrinsic.modules import fused as nni
from torchlite.ao.nn.quantized.modules import batchnorm, conv, linear
from torchlite.ao.nn.quantized.modules.conv import _CONV
from torchlite.ao.nn.quantized.modules.utils import with_arguments

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU", "LinearLeakyReLU", "LinearTanh",
    "ConvAdd2d", "ConvAddReLU2d",
]  # fmt: skip
_LINEAR = """
in_features: Size of the input's last dimension.
out_features: Size of the result's.
bias_: Whether there is a bias. Default: ``True``.
dtype: Dtype of the weight: `torch.qint8`.
"""
_NORM = """
num_features: Number of channels.
eps: What is added to the variance. Default: 1e-5.
momentum: Passed to the float class; statistics do not change. Default: 0.1.
device: Device of the parameters. Default: the CPU.
dtype: Dtype of the weight and the bias. Default: the default dtype.
"""


@with_arguments(_LINEAR)
class LinearReLU(linear.Linear):
    """A quantized linear layer and the positive part of its result.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.LinearReLU(3, 2)
        QuantizedLinearReLU(in_features=3, out_features=2, scale=1.0, zero_point=0, qscheme=torch.per_tensor_affine)
    """

    _FLOAT_MODULE: Any = nni.LinearReLU  # type: ignore[has-type]
    _op = "linear_relu"

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"


class LinearLeakyReLU(linear.Linear):
    """A quantized linear layer and a leaky ReLU of its result.

    Args:
        in_features: Size of the input's last dimension.
        out_features: Size of the result's.
        negative_slope: The factor of negative numbers.
        bias: Whether there is a bias. Default: ``True``.
        dtype: Dtype of the weight: `torch.qint8`.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.LinearLeakyReLU(3, 2, 0.1).negative_slope
        0.1
    """

    _FLOAT_MODULE: Any = nni.LinearLeakyReLU  # type: ignore[has-type]

    def __init__(
        self, in_features: int, out_features: int, negative_slope: float, bias: bool = True, dtype: Any = torch.qint8
    ) -> None:
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def _tl_script_text(self) -> tuple[str, str, str]:
        arguments = "x, self._packed_params._packed_params, self.scale, self.zero_point, self.negative_slope"
        return "x: Tensor", f"return ops.quantized.linear_leaky_relu({arguments})", "Tensor"

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.quantized.linear_leaky_relu(
            x, self._packed_params._packed_params, self.scale, self.zero_point, self.negative_slope
        )

    def _get_name(self) -> str:
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        made = cls(mod[0].in_features, mod[0].out_features, mod[1].negative_slope)
        found = linear.Linear.from_float.__func__(_as_linear(cls), mod, use_precomputed_fake_quant)  # type: ignore[attr-defined]
        made.set_weight_bias(*found._weight_bias())
        made.scale, made.zero_point = found.scale, found.zero_point
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Any, output_scale: float, output_zero_point: int) -> Any:
        linear, leaky_relu = ref_qlinear
        made = cls(linear.in_features, linear.out_features, leaky_relu.negative_slope)
        made.set_weight_bias(linear.get_quantized_weight(), linear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


def _as_linear(cls: Any) -> Any:
    """Return a class of plain linear layers that takes the float modules of another."""
    return type("Linear", (linear.Linear,), {"_FLOAT_MODULE": cls._FLOAT_MODULE})


@with_arguments(_LINEAR)
class LinearTanh(linear.Linear):
    """A quantized linear layer and the hyperbolic tangent of its result.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.LinearTanh(3, 2).in_features
        3
    """

    _FLOAT_MODULE: Any = nni.LinearTanh  # type: ignore[has-type]
    _op = "linear_tanh"

    def _get_name(self) -> str:
        return "QuantizedLinearTanh"


@with_arguments(_CONV)
class ConvReLU1d(conv.Conv1d):
    """A quantized convolution of sequences and the positive part of its result.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.ConvReLU1d(2, 3, 3)
        QuantizedConvReLU1d(2, 3, kernel_size=(3,), stride=(1,), scale=1.0, zero_point=0)
    """

    _FLOAT_MODULE: Any = nni.ConvReLU1d  # type: ignore[has-type]
    _end = "_relu"

    def _get_name(self) -> str:
        return "QuantizedConvReLU1d"


@with_arguments(_CONV)
class ConvReLU2d(conv.Conv2d):
    """A quantized convolution of images and the positive part of its result.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.ConvReLU2d(2, 3, 3)
        QuantizedConvReLU2d(2, 3, kernel_size=(3, 3), stride=(1, 1), scale=1.0, zero_point=0)
    """

    _FLOAT_MODULE: Any = nni.ConvReLU2d  # type: ignore[has-type]
    _end = "_relu"

    def _get_name(self) -> str:
        return "QuantizedConvReLU2d"


@with_arguments(_CONV)
class ConvReLU3d(conv.Conv3d):
    """A quantized convolution of volumes and the positive part of its result.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.ConvReLU3d(2, 3, 3).kernel_size
        (3, 3, 3)
    """

    _FLOAT_MODULE: Any = nni.ConvReLU3d  # type: ignore[has-type]
    _end = "_relu"

    def _get_name(self) -> str:
        return "QuantizedConvReLU3d"


@with_arguments(_CONV)
class ConvAdd2d(conv.Conv2d):
    """A quantized convolution of images and the sum of its result with another tensor.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.ConvAdd2d(2, 3, 3).kernel_size
        (3, 3)
    """

    _FLOAT_MODULE: Any = nni.ConvAdd2d
    _op = "conv2d_add"

    def _tl_script_text(self) -> tuple[str, str, str]:
        arguments = f"{self._padded_text()}, extra_input, self._packed_params, self.scale, self.zero_point"
        return "input: Tensor, extra_input: Tensor", f"return ops.quantized.{self._op}({arguments})", "Tensor"

    def forward(self, input: Tensor, extra_input: Tensor) -> Tensor:  # type: ignore[override]
        compute = getattr(torch.ops.quantized, self._op)
        return compute(self._padded(input), extra_input, self._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedConvAdd2d"


@with_arguments(_CONV)
class ConvAddReLU2d(ConvAdd2d):
    """A quantized convolution of images, the sum of its result with another tensor, and its positive part.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.ConvAddReLU2d(2, 3, 3).kernel_size
        (3, 3)
    """

    _FLOAT_MODULE: Any = nni.ConvAddReLU2d
    _op = "conv2d_add_relu"

    def _get_name(self) -> str:
        return "QuantizedConvAddReLU2d"


@with_arguments(_NORM)
class BNReLU2d(batchnorm.BatchNorm2d):
    """A quantized batch norm of images and the positive part of its result.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.BNReLU2d(3).num_features
        3
    """

    _FLOAT_MODULE: Any = nni.BNReLU2d  # type: ignore[has-type]
    _op = "batch_norm2d_relu"


@with_arguments(_NORM)
class BNReLU3d(batchnorm.BatchNorm3d):
    """A quantized batch norm of volumes and the positive part of its result.

    Example:
        >>> torch.ao.nn.intrinsic.quantized.BNReLU3d(3).num_features
        3
    """

    _FLOAT_MODULE: Any = nni.BNReLU3d  # type: ignore[has-type]
    _op = "batch_norm3d_relu"
