"""Padding layers: `padding` is one amount, or amounts before and after for each dimension, the last dimension first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlite.nn import functional as F

from .module import Module
from .utils import _ntuple, _pair, _quadruple

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import Ints


__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_sextuple = _ntuple(6)


class _PadNd(Module):
    __constants__ = ["padding"]
    _mode = "constant"
    _expand = staticmethod(_pair)

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = self._expand(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with `value`: (*, W) -> (*, W_out)."""


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`: (*, H, W) -> (*, H_out, W_out)."""

    _expand = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`: (*, D, H, W) -> (*, D_out, H_out, W_out)."""

    _expand = staticmethod(_sextuple)


class ZeroPad1d(ConstantPad1d):
    """Pads the last dimension with zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads the last two dimensions with zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads the last three dimensions with zeros."""

    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"
    _dims = 1

    def _check_input_dim(self, input):
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Pads (N, C, W) or (C, W) with the values of the other end."""


class CircularPad2d(_CircularPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values of the other end."""

    _dims = 2
    _expand = staticmethod(_quadruple)


class CircularPad3d(_CircularPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values of the other end."""

    _dims = 3
    _expand = staticmethod(_sextuple)


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads (N, C, W) or (C, W) with the values mirrored at the edge, which itself is not repeated."""


class ReflectionPad2d(_ReflectionPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values mirrored at the edges."""

    _expand = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values mirrored at the edges."""

    _expand = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads (N, C, W) or (C, W) with the value of the edge."""


class ReplicationPad2d(_ReplicationPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values of the edges."""

    _expand = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values of the edges."""

    _expand = staticmethod(_sextuple)
