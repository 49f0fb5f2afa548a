"""Padding layers. `padding` is one int, or the amounts before and after each dimension, last dimension first."""

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


class _ConstantPadNd(Module):
    __constants__ = ["padding", "value"]
    padding: tuple[int, ...]

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with `value`: (*, W) -> (*, W_out)."""

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(value)
        self.padding = _pair(padding)


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`: (*, H, W) -> (*, H_out, W_out)."""

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(value)
        self.padding = _quadruple(padding)


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`: (*, D, H, W) -> (*, D_out, H_out, W_out)."""

    def __init__(self, padding: Ints, value: float) -> None:
        super().__init__(value)
        self.padding = _sextuple(padding)


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


def _check_dims(input, one):
    if input.dim() not in (one, one + 1):
        raise ValueError(f"expected {one}D or {one + 1}D input (got {input.dim()}D input)")


class _CircularPadNd(Module):
    __constants__ = ["padding"]
    padding: tuple[int, ...]

    def _check_input_dim(self, input):
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")

    def extra_repr(self) -> str:
        return f"{self.padding}"


class CircularPad1d(_CircularPadNd):
    """Pads (N, C, W) or (C, W) with the values of the other end."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _pair(padding)

    def _check_input_dim(self, input):
        _check_dims(input, 2)


class CircularPad2d(_CircularPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values of the other end."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _quadruple(padding)

    def _check_input_dim(self, input):
        _check_dims(input, 3)


class CircularPad3d(_CircularPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values of the other end."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _sextuple(padding)

    def _check_input_dim(self, input):
        _check_dims(input, 4)


class _ReflectionPadNd(Module):
    __constants__ = ["padding"]
    padding: tuple[int, ...]

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_ReflectionPadNd):
    """Pads (N, C, W) or (C, W) with the values mirrored at the edge, which itself is not repeated."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _pair(padding)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values mirrored at the edges."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _quadruple(padding)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values mirrored at the edges."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _sextuple(padding)


class _ReplicationPadNd(Module):
    __constants__ = ["padding"]
    padding: tuple[int, ...]

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReplicationPad1d(_ReplicationPadNd):
    """Pads (N, C, W) or (C, W) with the value of the edge."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _pair(padding)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads (N, C, H, W) or (C, H, W) with the values of the edges."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _quadruple(padding)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) with the values of the edges."""

    def __init__(self, padding: Ints) -> None:
        super().__init__()
        self.padding = _sextuple(padding)
