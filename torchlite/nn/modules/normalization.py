"""Layer, group, RMS and local response normalisation."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite.nn import functional as F
from torchlite.nn import init
from torchlite.nn.parameter import Parameter

from .module import Module, weight_and_bias

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import DeviceLike, DType, Ints


__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    r"""Divides each element by a power of the sum of squares of neighbouring channels at its position.

    .. math::

        y_c = x_c \left( k + \frac{\alpha}{\text{size}} \sum_{c' = \max(0, c - \text{lo})}^{\min(C - 1, c + \text{hi})}
        x_{c'}^2 \right)^{-\beta}

    The window of ``size`` channels begins ``size // 2`` channels before channel :math:`c`. Channels outside of the
    input count as zeros.

    Args:
        size: Number of channels of the window.
        alpha: Factor of the sum of squares. Default: 1e-4.
        beta: Exponent of the denominator. Default: 0.75.
        k: Constant added to the sum. Default: 1.

    Shape:
        - Input: ``(N, C, *)`` with at least 3 dimensions.
        - Output: the shape of the input.

    Raises:
        ValueError: The input has fewer than 3 dimensions.

    Example:
        >>> layer = torch.nn.LocalResponseNorm(2)
        >>> layer(torch.zeros(32, 5, 24, 24)).shape
        torch.Size([32, 5, 24, 24])

    References:
        - A. Krizhevsky, I. Sutskever, G. E. Hinton. ImageNet classification with deep convolutional neural networks.
          2012.

    See also:
        `torch.nn.functional.local_response_norm`, `CrossMapLRN2d`.
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: Any, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    r"""Local response normalization of images, with a window that is symmetric about the channel.

    .. math::

        y_c = x_c \left( k + \frac{\alpha}{\text{size}} \sum_{|c' - c| \le (\text{size} - 1) / 2} x_{c'}^2
        \right)^{-\beta}

    The gradient is that of the formula; PyTorch's differs from it.

    Args:
        size: Number of channels of the window.
        alpha: Factor of the sum of squares. Default: 1e-4.
        beta: Exponent of the denominator. Default: 0.75.
        k: Constant added to the sum. Default: 1.

    Shape:
        - Input: ``(N, C, H, W)``.
        - Output: the shape of the input.

    Raises:
        ValueError: The input has not 4 dimensions.

    Example:
        >>> layer = torch.nn.CrossMapLRN2d(3)
        >>> layer(torch.zeros(2, 5, 4, 4)).shape
        torch.Size([2, 5, 4, 4])

    References:
        - A. Krizhevsky, I. Sutskever, G. E. Hinton. ImageNet classification with deep convolutional neural networks.
          2012.

    See also:
        `LocalResponseNorm`.
    """

    def __init__(self, size: Any, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels = input.shape[1]
        before = int((self.size - 1) / 2 + 1)  # the window reaches before - 1 channels to each side
        square = F.pad(input * input, (0, 0, 0, 0, before - 1, before - 1))
        total = square[:, :channels]
        for shift in range(1, 2 * before - 1):
            total = total + square[:, shift : shift + channels]
        return input * (total * (self.alpha / self.size) + self.k).pow(-self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LayerNorm(Module):
    r"""Normalizes each sample with its mean and variance over the last dimensions.

    .. math::

        y = \frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x] + \epsilon}} \, \gamma + \beta

    The mean and the biased variance are over the last dimensions, whose sizes are ``normalized_shape``. They are the
    same in training and in evaluation mode. Unlike in `BatchNorm1d`, each element has its own weight and bias.

    Args:
        normalized_shape: Sizes of the last dimensions of the input; an int for the last dimension alone.
        eps: Added to the variance before the square root. Default: 1e-5.
        elementwise_affine: Whether the module has learnable ``weight`` and ``bias``. Default: ``True``.
        bias: Whether an affine module has a ``bias``. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.

    Shape:
        - Input: ``(*, *normalized_shape)``.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``normalized_shape``, initialized to 1. ``None`` if not
            ``elementwise_affine``.
        bias (Parameter): :math:`\beta`, shape ``normalized_shape``, initialized to 0. ``None`` if not
            ``elementwise_affine`` or ``bias=False``.

    Raises:
        RuntimeError: The last dimensions of the input are not ``normalized_shape``.

    Example:
        >>> layer = torch.nn.LayerNorm(10)
        >>> layer(torch.zeros(20, 5, 10)).shape
        torch.Size([20, 5, 10])
        >>> torch.nn.LayerNorm([5, 10]).weight.shape
        torch.Size([5, 10])

    References:
        - J. L. Ba, J. R. Kiros, G. E. Hinton. Layer normalization. 2016.

    See also:
        `torch.nn.functional.layer_norm`, `RMSNorm`, `GroupNorm`.
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        sizes: Any = (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else normalized_shape
        self.normalized_shape: tuple[int, ...] = tuple(sizes)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.register_parameter(
            "weight", Parameter(torch.empty(self.normalized_shape, **factory_kwargs)) if elementwise_affine else None
        )
        self.register_parameter(
            "bias",
            Parameter(torch.empty(self.normalized_shape, **factory_kwargs)) if elementwise_affine and bias else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        weight, bias = weight_and_bias(self, LayerNorm)
        return F.layer_norm(input, self.normalized_shape, weight, bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    r"""Normalizes groups of channels of each sample with their mean and variance.

    .. math::

        y = \frac{x - \operatorname{E}[x]}{\sqrt{\operatorname{Var}[x] + \epsilon}} \, \gamma + \beta

    The channels are divided into ``num_groups`` groups of neighbours. Mean and biased variance are over the channels
    of a group and all positions. They are the same in training and in evaluation mode. With one group, the statistics
    are those of `LayerNorm` over all dimensions but the first; with one channel a group, those of `InstanceNorm2d`.

    Args:
        num_groups: Number of groups; a divisor of ``num_channels``.
        num_channels: Number of channels :math:`C` of the input.
        eps: Added to the variance before the square root. Default: 1e-5.
        affine: Whether the module has learnable ``weight`` and ``bias``, one value a channel. Default: ``True``.
        device: Device of the parameters. Default: the default device.
        dtype: Dtype of the parameters. Default: the default dtype.
        bias: Whether an affine module has a ``bias``. Keyword only. Default: ``True``.

    Shape:
        - Input: ``(N, C, *)``.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``(num_channels,)``, initialized to 1. ``None`` if not ``affine``.
        bias (Parameter): :math:`\beta`, shape ``(num_channels,)``, initialized to 0. ``None`` if not ``affine`` or
            ``bias=False``.

    Raises:
        ValueError: ``num_groups`` does not divide ``num_channels``.

    Example:
        >>> layer = torch.nn.GroupNorm(3, 6)
        >>> layer(torch.zeros(20, 6, 10, 10)).shape
        torch.Size([20, 6, 10, 10])

    References:
        - Y. Wu, K. He. Group normalization. 2018.

    See also:
        `torch.nn.functional.group_norm`, `LayerNorm`, `InstanceNorm2d`, `BatchNorm2d`.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        factory_kwargs: dict[str, Any] = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(torch.empty(num_channels, **factory_kwargs)) if affine else None)
        self.register_parameter(
            "bias", Parameter(torch.empty(num_channels, **factory_kwargs)) if affine and bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    r"""Divides each sample by its root mean square over the last dimensions.

    .. math::

        y = \frac{x}{\sqrt{\frac{1}{n} \sum_{i=1}^{n} x_i^2 + \epsilon}} \, \gamma

    Unlike `LayerNorm`, it subtracts no mean and has no bias.

    Args:
        normalized_shape: Sizes of the last dimensions of the input; an int for the last dimension alone.
        eps: Added to the mean square. ``None`` is the machine epsilon of the dtype of the computation: the input's, or
            float32 for 16-bit inputs. Default: ``None``.
        elementwise_affine: Whether the module has a learnable ``weight``. Default: ``True``.
        device: Device of the parameter. Default: the default device.
        dtype: Dtype of the parameter. Default: the default dtype.

    Shape:
        - Input: ``(*, *normalized_shape)``.
        - Output: the shape of the input.

    Attributes:
        weight (Parameter): :math:`\gamma`, shape ``normalized_shape``, initialized to 1. ``None`` if not
            ``elementwise_affine``.

    Example:
        >>> layer = torch.nn.RMSNorm(2, elementwise_affine=False)
        >>> layer(torch.tensor([1.0, 7.0]))
        tensor([0.2000, 1.4000])

    References:
        - B. Zhang, R. Sennrich. Root mean square layer normalization. 2019.

    See also:
        `torch.nn.functional.rms_norm`, `LayerNorm`.
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        sizes: Any = (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else normalized_shape
        self.normalized_shape: tuple[int, ...] = tuple(sizes)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter(
            "weight",
            Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Any) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
