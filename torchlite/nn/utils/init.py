"""Construction of modules without initialisation."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torchlite as torch

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Creates a module whose parameters are not initialized, when all are to be loaded or set anyway.

    The module is constructed on the device "meta", so nothing is computed; then memory is allocated.

    Args:
        module_cls: Class of the module; its constructor must accept ``device``.
        args: Positional arguments of the constructor.
        kwargs: Keyword arguments of the constructor. ``device`` is the device of the result; default: the CPU.

    Returns:
        The module.

    Raises:
        RuntimeError: ``module_cls`` is not a subclass of `torch.nn.Module`, or does not accept ``device``.

    Example:
        >>> layer = torch.nn.utils.skip_init(torch.nn.Linear, 3, 2)
        >>> layer.weight.shape, layer.weight.device
        (torch.Size([2, 3]), device(type='cpu'))
    """
    if not issubclass(module_cls, torch.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
