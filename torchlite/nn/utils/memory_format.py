"""Memory formats of convolution weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch

if TYPE_CHECKING:
    from torchlite.nn.modules.module import Module


__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert_weights(module, kinds, memory_format):
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Any:
    """Store the weights of every Conv2d and ConvTranspose2d in `module` in `memory_format`."""
    return _convert_weights(module, (torch.nn.Conv2d, torch.nn.ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Any:
    """Store the weights of every Conv3d and ConvTranspose3d in `module` in `memory_format`."""
    return _convert_weights(module, (torch.nn.Conv3d, torch.nn.ConvTranspose3d), memory_format)
