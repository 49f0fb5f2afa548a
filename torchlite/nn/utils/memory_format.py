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
    """Stores the weights of the 2-d convolutions of a module in a memory format.

    Convolutions and transposed convolutions are changed, also those in submodules; other parameters are not.

    Args:
        module: The module, which is changed.
        memory_format: The memory format, such as ``torch.channels_last``.

    Returns:
        The module.

    Example:
        >>> conv = torch.nn.Conv2d(2, 4, 3)
        >>> _ = torch.nn.utils.convert_conv2d_weight_memory_format(conv, torch.channels_last)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    return _convert_weights(module, (torch.nn.Conv2d, torch.nn.ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Any:
    """Stores the weights of the 3-d convolutions of a module in a memory format.

    Convolutions and transposed convolutions are changed, also those in submodules; other parameters are not.

    Args:
        module: The module, which is changed.
        memory_format: The memory format, such as ``torch.channels_last_3d``.

    Returns:
        The module.

    Example:
        >>> conv = torch.nn.Conv3d(2, 4, 3)
        >>> _ = torch.nn.utils.convert_conv3d_weight_memory_format(conv, torch.channels_last_3d)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last_3d)
        True
    """
    return _convert_weights(module, (torch.nn.Conv3d, torch.nn.ConvTranspose3d), memory_format)
