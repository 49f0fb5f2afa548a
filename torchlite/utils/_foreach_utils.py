"""Grouping of tensor lists by device and dtype, for multi-tensor ops."""

from __future__ import annotations

import torchlite as torch
from torchlite import Tensor

__all__: list[str] = []

_Groups = dict[tuple[torch.device, torch.dtype], tuple[list[list[Tensor | None]], list[int]]]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Tensor | None]], with_indices: bool = False
) -> _Groups:
    """Group several parallel lists by the device and dtype of the first list's tensors: for each group the lists'
    parts, and with `with_indices` their indices.
    """
    groups: _Groups = {}
    for place, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError(
                "Tensors of the same index must be on the same device and the same dtype: the first is None"
            )
        parts, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for part, tensors in zip(parts, tensorlistlist, strict=True):
            part.append(tensors[place])
        if with_indices:
            places.append(place)
    return groups


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the device types where multi-tensor ops are faster."""
    return ["cuda", "opencl"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the device types that have fused optimizer steps."""
    return ["cpu", "cuda", "opencl"]


def _device_has_foreach_support(device: torch.device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list[Tensor], device: torch.device) -> bool:
    """True if foreach ops support these tensors."""
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in (Tensor, torch.Parameter) for t in tensors
    )
