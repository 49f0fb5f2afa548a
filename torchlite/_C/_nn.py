"""Functions of layers that PyTorch names under `torch._C._nn`."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from ..nn.modules.module import _parse_to as _read_to


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Parse the arguments of `Module.to`: (device, dtype, non_blocking, memory_format).

    >>> from torchlite._C._nn import _parse_to
    >>> _parse_to("cpu", torch.float16)
    (device(type='cpu'), torch.float16, False, None)
    """
    return _read_to(args, kwargs)


def thnn_conv2d(
    input: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0
) -> torch.Tensor:
    """`conv2d` without dilation and groups; the weight's own sizes are the kernel's."""
    return torch.conv2d(input, weight, bias, stride, padding)


def slow_conv3d(
    input: Any, weight: Any, kernel_size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0
) -> torch.Tensor:
    """`conv3d` without dilation and groups; the weight's own sizes are the kernel's."""
    return torch.conv3d(input, weight, bias, stride, padding)
