"""Construction of modules without initialisation."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torchlite as torch

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Return `module_cls(*args, **kwargs)` with uninitialised parameters; the class must take `device`. The module is
    created on "meta", so nothing is drawn.
    """
    if not issubclass(module_cls, torch.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
