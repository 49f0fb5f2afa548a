"""Access to the tensors of a module by dotted name: get, set, swap. External packages import this name."""

from __future__ import annotations

from torchlite import Tensor
from torchlite.nn.modules.module import Module

from .stateless import _swap_tensor

__all__ = ["swap_tensor"]


def swap_tensor(module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Tensor:
    """Replace a parameter, a buffer or an attribute of `module` by a tensor, and return the old value; a second call
    restores it. AttributeError if there is none, unless `allow_missing`; TypeError if the new value is not a tensor.
    """
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if not allow_missing and not hasattr(module, name):
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    return _swap_tensor(module, name, tensor)
