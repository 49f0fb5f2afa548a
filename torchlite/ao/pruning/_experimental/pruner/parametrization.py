"""Masks of whole channels as parametrizations, and biases of masked layers."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import Tensor, nn
from torchlite.ao.pruning.sparsifier.utils import module_contains_param

__all__ = ["BiasHook", "FakeStructuredSparsity", "module_contains_param"]


class FakeStructuredSparsity(nn.Module):
    """A parametrization that multiplies a tensor by a mask of its first dimension.

    Args:
        mask: The mask, with one element for each channel.

    Example:
        >>> from torchlite.ao.pruning._experimental.pruner import FakeStructuredSparsity
        >>> FakeStructuredSparsity(torch.tensor([True, False]))(torch.ones(2, 2))
        tensor([[1., 1.],
                [0., 0.]])
    """

    mask: Tensor

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        if not isinstance(self.mask, torch.Tensor):
            raise AssertionError("mask must be a torch.Tensor")
        if self.mask.shape[0] != x.shape[0]:
            raise AssertionError(f"mask shape[0] ({self.mask.shape[0]}) must match x shape[0] ({x.shape[0]})")
        return self.mask.reshape(-1, *[1] * (x.dim() - 1)) * x

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """An empty dictionary: the pruner saves the mask.

        Args:
            *args: No effect.
            **kwargs: No effect.
        """
        return {}


class BiasHook:
    """A hook that adds a layer's ``_bias`` to its output.

    Args:
        parametrization: The mask of the layer.
        prune_bias: Whether biases of masked channels are zero.
    """

    def __init__(self, parametrization: Any, prune_bias: bool) -> None:
        self.param = parametrization
        self.prune_bias = prune_bias

    def __call__(self, module: Any, input: Any, output: Tensor) -> Tensor:
        if getattr(module, "_bias", None) is None:
            return output
        bias = module._bias.data
        if self.prune_bias:
            bias[~self.param.mask] = 0
        output += bias.reshape(1, -1, *[1] * (output.dim() - 2))
        return output
