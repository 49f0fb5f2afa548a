"""Quantized norms over the last dimensions, groups of channels, and single images."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn

from .utils import FromObserved, with_arguments


def _set_parameters(
    module: Any, weight: Any, bias: Any, scale: float, zero_point: int, device: Any, dtype: Any
) -> None:
    module.weight, module.bias = weight, bias
    module.register_buffer("scale", torch.tensor(scale, device=device, dtype=dtype))
    module.register_buffer("zero_point", torch.tensor(zero_point, device=device, dtype=dtype))


class LayerNorm(FromObserved, nn.LayerNorm):
    """`torch.nn.LayerNorm` of a quantized tensor.

    Args:
        normalized_shape: The last dimensions' sizes.
        weight: The factors, a Parameter or None.
        bias: The offsets, a Parameter or None.
        scale: Scale of the result.
        zero_point: Zero point of the result.
        eps: What is added to the variance. Default: 1e-5.
        elementwise_affine: Whether there are a weight and a bias. Default: ``True``.
        device: Device of the parameters. Default: the CPU.
        dtype: Dtype of the parameters. Default: that of a number.

    Example:
        >>> layer = torch.ao.nn.quantized.LayerNorm(4, None, None, 0.1, 128)
        >>> layer(torch.quantize_per_tensor(torch.rand(2, 4), 0.01, 0, torch.quint8)).shape
        torch.Size([2, 4])
    """

    def __init__(
        self, normalized_shape: Any, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-5,
        elementwise_affine: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        _set_parameters(self, weight, bias, scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps, float(self.scale), int(self.zero_point)
        )

    def _get_name(self) -> str:
        return "QuantizedLayerNorm"

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> LayerNorm:
        return cls(
            mod.normalized_shape, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, mod.elementwise_affine
        )


class GroupNorm(FromObserved, nn.GroupNorm):
    """`torch.nn.GroupNorm` of a quantized tensor.

    Args:
        num_groups: The number of groups.
        num_channels: The number of channels.
        weight: The factors, a Parameter or None.
        bias: The offsets, a Parameter or None.
        scale: Scale of the result.
        zero_point: Zero point of the result.
        eps: What is added to the variance. Default: 1e-5.
        affine: Whether there are a weight and a bias. Default: ``True``.
        device: Device of the parameters. Default: the CPU.
        dtype: Dtype of the parameters. Default: that of a number.

    Example:
        >>> torch.ao.nn.quantized.GroupNorm(1, 2, None, None, 0.1, 2)
        QuantizedGroupNorm(1, 2, eps=1e-05, affine=True, bias=False)
    """

    def __init__(
        self, num_groups: int, num_channels: int, weight: Any, bias: Any, scale: float, zero_point: int,
        eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_groups, num_channels, eps, affine, device, dtype)
        _set_parameters(self, weight, bias, scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.quantized.group_norm(
            input, self.num_groups, self.weight, self.bias, self.eps, float(self.scale), int(self.zero_point)
        )

    def _get_name(self) -> str:
        return "QuantizedGroupNorm"

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> GroupNorm:
        return cls(
            mod.num_groups, mod.num_channels, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, mod.affine
        )


_INSTANCE_NORM = """
num_features: Number of channels.
weight: The factors, a Parameter or None.
bias: The offsets, a Parameter or None.
scale: Scale of the result.
zero_point: Zero point of the result.
eps: What is added to the variance. Default: 1e-5.
momentum: Passed to the float class; statistics are those of each image. Default: 0.1.
affine: Passed to the float class. Default: ``False``.
track_running_stats: Passed to the float class. Default: ``False``.
device: Device of the parameters. Default: the CPU.
dtype: Dtype of the parameters. Default: that of a number.
"""


class _InstanceNorm(FromObserved):
    """What the norms of single sequences, images and volumes share."""

    def __init__(
        self, num_features: int, weight: Any, bias: Any, scale: float, zero_point: int, eps: float = 1e-5,
        momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)  # type: ignore[call-arg]
        _set_parameters(self, weight, bias, scale, zero_point, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        module: Any = self
        return torch.ops.quantized.instance_norm(
            input, module.weight, module.bias, module.eps, float(module.scale), int(module.zero_point)
        )

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        return cls(mod.num_features, mod.weight, mod.bias, float(scale), int(zero_point), mod.eps, mod.affine)


@with_arguments(_INSTANCE_NORM)
class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """`torch.nn.InstanceNorm1d` of a quantized tensor.

    Example:
        >>> type(torch.ao.nn.quantized.InstanceNorm1d(2, None, None, 0.1, 2)).__name__
        'InstanceNorm1d'
    """


@with_arguments(_INSTANCE_NORM)
class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """`torch.nn.InstanceNorm2d` of a quantized tensor.

    Example:
        >>> type(torch.ao.nn.quantized.InstanceNorm2d(2, None, None, 0.1, 2)).__name__
        'InstanceNorm2d'
    """


@with_arguments(_INSTANCE_NORM)
class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """`torch.nn.InstanceNorm3d` of a quantized tensor.

    Example:
        >>> type(torch.ao.nn.quantized.InstanceNorm3d(2, None, None, 0.1, 2)).__name__
        'InstanceNorm3d'
    """
