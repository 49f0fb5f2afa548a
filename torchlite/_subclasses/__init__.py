"""Tensors that compilers trace with: nothing here makes one."""

from .fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    is_fake,
)

__all__ = [
    "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "is_fake",
]  # fmt: skip
