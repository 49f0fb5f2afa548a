"""Padding layers. `padding` is one int, or the amounts before and after each dimension, last dimension first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlite.nn import functional as F

from .module import Module
from .utils import _ntuple, _pair, _quadruple

if TYPE_CHECKING:
    from collections.abc import Callable

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
    padding: tuple[int, ...]
    # Makes a tuple of an argument: two amounts a dimension.
    _tl_expand: Callable[[Any], tuple[int, ...]]

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = self._tl_expand(padding)

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

    _tl_expand = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`: (*, H, W) -> (*, H_out, W_out)."""

    _tl_expand = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`: (*, D, H, W) -> (*, D_out, H_out, W_out)."""

    _tl_expand = staticmethod(_sextuple)


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Pads the last dimension with zeros."""


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Pads the last two dimensions with zeros."""


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Pads the last three dimensions with zeros."""


class _CircularPadNd(_PadNd):
    def _check_input_dim(self, input):
        unbatched = len(self.padding) // 2 + 1
        if input.dim() not in (unbatched, unbatched + 1):
            raise ValueError(f"expected {unbatched}D or {unbatched + 1}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Pads (N, C, W) or (C, W) with the values of the other end."""

    _tl_expand = staticmethod(_pair)


class CircularPad2d(_CircularPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values of the other end."""

    _tl_expand = staticmethod(_quadruple)


class CircularPad3d(_CircularPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values of the other end."""

    _tl_expand = staticmethod(_sextuple)


class _ReflectionPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class ReflectionPad1d(_ReflectionPadNd):
    """Pads (N, C, W) or (C, W) with the values mirrored at the edge, which itself is not repeated."""

    _tl_expand = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values mirrored at the edges."""

    _tl_expand = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values mirrored at the edges."""

    _tl_expand = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class ReplicationPad1d(_ReplicationPadNd):
    """Pads (N, C, W) or (C, W) with the value of the edge."""

    _tl_expand = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values of the edges."""

    _tl_expand = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values of the edges."""

    _tl_expand = staticmethod(_sextuple)
