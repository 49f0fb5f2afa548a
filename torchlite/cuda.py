"""CUDA devices: whether there are any. Their backend is an extra of its own."""
from __future__ import annotations

from ._accelerator import Accelerator

_cuda = Accelerator("cuda")

is_available, device_count, why_not = _cuda.is_available, _cuda.device_count, _cuda.why_not

__all__ = ["device_count", "is_available", "why_not"]
