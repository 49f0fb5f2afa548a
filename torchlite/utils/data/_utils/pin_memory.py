"""Pinning of batches in page-locked memory, from which copies to a CUDA device are faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .... import Tensor


def pin_memory(data: Any, device: Any = None) -> Any:
    """Return a batch with its tensors in page-locked memory. Values that are not tensors, collections or objects with
    `pin_memory()` are unchanged.
    """
    if isinstance(data, Tensor) or (not isinstance(data, type) and hasattr(data, "pin_memory")):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return type(data)({key: pin_memory(item) for key, item in data.items()})  # type: ignore[call-arg]
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(item) for item in data))
    if isinstance(data, (tuple, list)):
        return type(data)(pin_memory(item) for item in data)
    return data
