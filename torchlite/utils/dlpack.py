"""DLPack under PyTorch's names: tensors shared with other libraries without a copy."""

from __future__ import annotations

from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .. import Tensor
from .._tensor.creation import from_dlpack
from .._tensor.interop import DLDeviceType

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """Returns a DLPack capsule on a tensor's memory, which one consumer takes over.

    Args:
        tensor: A tensor. It is detached.

    Example:
        >>> import torchlite as torch
        >>> torch.utils.dlpack.to_dlpack(torch.ones(2)).__class__.__name__
        'PyCapsule'

    See also:
        `torch.from_dlpack`.
    """
    return tensor.detach().__dlpack__()


__dir__ = make_module_dir(globals())
