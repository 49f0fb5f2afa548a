"""Names of the loops of PyTorch's own compiler, which packages import. No objects of them exist."""

from __future__ import annotations

from typing import Any, NoReturn


class _Absent:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        type(self).create()

    @classmethod
    def create(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError("torchlite has no loops of PyTorch's own compiler")


class TensorBox(_Absent):
    """A tensor in these loops."""


class Pointwise(_Absent):
    """An elementwise loop."""
