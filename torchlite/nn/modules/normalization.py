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
    """x / (k + alpha / size * sum of x^2 over `size` neighbouring channels)^beta: (N, C, *)
    (Krizhevsky et al. 2012).
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
    """Local response normalisation of (N, C, H, W) across channels, divided by `size` at the edges too. Its gradient is
    the true one (PyTorch's is not).
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
    """(x - mean) / sqrt(var + eps) weight + bias over the last dimensions, of shape `normalized_shape` (Ba et al.
    2016).

    >>> torchlite.nn.LayerNorm(10)(torchlite.zeros(20, 5, 10)).shape
    torch.Size([20, 5, 10])
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
    """Normalisation of each sample over groups of channels: (N, C, *), C divisible by `num_groups` (Wu and He 2018)."""

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
    """x / sqrt(mean(x^2) + eps) weight over the last dimensions (Zhang and Sennrich 2019); eps None: the machine
    epsilon of the dtype.
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
