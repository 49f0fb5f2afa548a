"""Fake tensors: shapes, dtypes and devices without elements."""

from .fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    is_fake,
)

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode",
    "UnsupportedFakeTensorException", "is_fake",
]  # fmt: skip
