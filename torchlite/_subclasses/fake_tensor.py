"""Fake tensors: shapes and dtypes without elements, on a device that need not be there. The device "meta" is what
torchlite has of that kind.
"""

from __future__ import annotations

from typing import Any

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


class UnsupportedFakeTensorException(RuntimeError):
    """What a fake tensor cannot do."""


class DynamicOutputShapeException(RuntimeError):
    """A shape that depends on elements."""


class FakeTensor:
    """A class for programs that ask whether a tensor is one: none is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("FakeTensor: torchlite has no fake tensors; use the device 'meta'")


class FakeTensorMode:
    """NotImplementedError when it is made: there are no fake tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("FakeTensorMode: torchlite has no fake tensors; use the device 'meta'")


def is_fake(x: Any) -> bool:
    """Whether something is a fake tensor: nothing is."""
    return False
