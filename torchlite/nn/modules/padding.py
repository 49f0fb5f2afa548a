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
    """Pads the last dimension of the input with a constant.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right)``. A negative number
            removes elements.
        value: The constant.

    Shape:
        - Input: ``(*, W)``.
        - Output: ``(*, W_out)``. ``W_out = W + left + right``.

    Example:
        >>> torch.nn.ConstantPad1d((1, 2), 7.0)(torch.tensor([[1.0, 2.0]]))
        tensor([[7., 1., 2., 7., 7.]])

    See also:
        `torch.nn.functional.pad`, `ZeroPad1d`, `CircularPad1d`, `ReflectionPad1d`, `ReplicationPad1d`.
    """

    _tl_expand = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions of the input with a constant.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right, top, bottom)``. A
            negative number removes elements.
        value: The constant.

    Shape:
        - Input: ``(*, H, W)``.
        - Output: ``(*, H_out, W_out)``. ``H_out = H + top + bottom`` and ``W_out = W + left + right``.

    Example:
        >>> torch.nn.ConstantPad2d((1, 2, 2, 0), 3.5)(torch.zeros(1, 2, 4, 4)).shape
        torch.Size([1, 2, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ZeroPad2d`, `CircularPad2d`, `ReflectionPad2d`, `ReplicationPad2d`.
    """

    _tl_expand = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions of the input with a constant.

    Args:
        padding: Number of elements added at each end: an int for all ends, or
            ``(left, right, top, bottom, front, back)``. A negative number removes elements.
        value: The constant.

    Shape:
        - Input: ``(*, D, H, W)``.
        - Output: ``(*, D_out, H_out, W_out)``. ``D_out = D + front + back``, ``H_out = H + top + bottom`` and
          ``W_out = W + left + right``.

    Example:
        >>> torch.nn.ConstantPad3d((1, 2, 2, 0, 0, 0), 3.5)(torch.zeros(1, 2, 4, 4, 4)).shape
        torch.Size([1, 2, 4, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ZeroPad3d`, `CircularPad3d`, `ReflectionPad3d`, `ReplicationPad3d`.
    """

    _tl_expand = staticmethod(_sextuple)


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Ints) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd, ConstantPad1d):
    """Pads the last dimension of the input with zeros.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right)``. A negative number
            removes elements.

    Shape:
        - Input: ``(*, W)``.
        - Output: ``(*, W_out)``. ``W_out = W + left + right``.

    Example:
        >>> torch.nn.ZeroPad1d((1, 2))(torch.tensor([[1.0, 2.0]]))
        tensor([[0., 1., 2., 0., 0.]])

    See also:
        `torch.nn.functional.pad`, `ConstantPad1d`, `CircularPad1d`, `ReflectionPad1d`, `ReplicationPad1d`.
    """


class ZeroPad2d(_ZeroPadNd, ConstantPad2d):
    """Pads the last two dimensions of the input with zeros.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right, top, bottom)``. A
            negative number removes elements.

    Shape:
        - Input: ``(*, H, W)``.
        - Output: ``(*, H_out, W_out)``. ``H_out = H + top + bottom`` and ``W_out = W + left + right``.

    Example:
        >>> torch.nn.ZeroPad2d((1, 2, 2, 0))(torch.zeros(1, 2, 4, 4)).shape
        torch.Size([1, 2, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ConstantPad2d`, `CircularPad2d`, `ReflectionPad2d`, `ReplicationPad2d`.
    """


class ZeroPad3d(_ZeroPadNd, ConstantPad3d):
    """Pads the last three dimensions of the input with zeros.

    Args:
        padding: Number of elements added at each end: an int for all ends, or
            ``(left, right, top, bottom, front, back)``. A negative number removes elements.

    Shape:
        - Input: ``(*, D, H, W)``.
        - Output: ``(*, D_out, H_out, W_out)``. ``D_out = D + front + back``, ``H_out = H + top + bottom`` and
          ``W_out = W + left + right``.

    Example:
        >>> torch.nn.ZeroPad3d((1, 2, 2, 0, 0, 0))(torch.zeros(1, 2, 4, 4, 4)).shape
        torch.Size([1, 2, 4, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ConstantPad3d`, `CircularPad3d`, `ReflectionPad3d`, `ReplicationPad3d`.
    """


class _CircularPadNd(_PadNd):
    def _check_input_dim(self, input):
        unbatched = len(self.padding) // 2 + 1
        if input.dim() not in (unbatched, unbatched + 1):
            raise ValueError(f"expected {unbatched}D or {unbatched + 1}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension of the input with the elements of the opposite end.

    The input continues periodically. The padding of an end is at most the size of its dimension.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right)``. A negative number
            removes elements.

    Shape:
        - Input: ``(N, C, W)``, or ``(C, W)`` without a batch.
        - Output: ``(N, C, W_out)``, or ``(C, W_out)``. ``W_out = W + left + right``.

    Raises:
        ValueError: The input has neither 2 nor 3 dimensions.
        RuntimeError: The padding is larger than the size of its dimension.

    Example:
        >>> torch.nn.CircularPad1d((1, 2))(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[3., 1., 2., 3., 1., 2.]])

    See also:
        `torch.nn.functional.pad`, `ConstantPad1d`, `ZeroPad1d`, `ReflectionPad1d`, `ReplicationPad1d`.
    """

    _tl_expand = staticmethod(_pair)


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions of the input with the elements of the opposite end.

    The input continues periodically. The padding of an end is at most the size of its dimension.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right, top, bottom)``. A
            negative number removes elements.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: ``(N, C, H_out, W_out)``, or ``(C, H_out, W_out)``. ``H_out = H + top + bottom`` and
          ``W_out = W + left + right``.

    Raises:
        ValueError: The input has neither 3 nor 4 dimensions.
        RuntimeError: The padding is larger than the size of its dimension.

    Example:
        >>> torch.nn.CircularPad2d((1, 2, 2, 0))(torch.zeros(1, 2, 4, 4)).shape
        torch.Size([1, 2, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ConstantPad2d`, `ZeroPad2d`, `ReflectionPad2d`, `ReplicationPad2d`.
    """

    _tl_expand = staticmethod(_quadruple)


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions of the input with the elements of the opposite end.

    The input continues periodically. The padding of an end is at most the size of its dimension.

    Args:
        padding: Number of elements added at each end: an int for all ends, or
            ``(left, right, top, bottom, front, back)``. A negative number removes elements.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: ``(N, C, D_out, H_out, W_out)``, or ``(C, D_out, H_out, W_out)``. ``D_out = D + front + back``,
          ``H_out = H + top + bottom`` and ``W_out = W + left + right``.

    Raises:
        ValueError: The input has neither 4 nor 5 dimensions.
        RuntimeError: The padding is larger than the size of its dimension.

    Example:
        >>> torch.nn.CircularPad3d((1, 2, 2, 0, 0, 0))(torch.zeros(1, 2, 4, 4, 4)).shape
        torch.Size([1, 2, 4, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ConstantPad3d`, `ZeroPad3d`, `ReflectionPad3d`, `ReplicationPad3d`.
    """

    _tl_expand = staticmethod(_sextuple)


class _ReflectionPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "reflect")


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension of the input with its mirror image at each edge.

    The element at the edge is not repeated. The padding of an end is less than the size of its dimension.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right)``. A negative number
            removes elements.

    Shape:
        - Input: ``(N, C, W)``, or ``(C, W)`` without a batch.
        - Output: ``(N, C, W_out)``, or ``(C, W_out)``. ``W_out = W + left + right``.

    Raises:
        RuntimeError: The padding is not less than the size of its dimension.
        NotImplementedError: The input has neither 2 nor 3 dimensions.

    Example:
        >>> torch.nn.ReflectionPad1d((2, 1))(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[3., 2., 1., 2., 3., 2.]])

    See also:
        `torch.nn.functional.pad`, `ConstantPad1d`, `ZeroPad1d`, `CircularPad1d`, `ReplicationPad1d`.
    """

    _tl_expand = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions of the input with its mirror image at each edge.

    The element at the edge is not repeated. The padding of an end is less than the size of its dimension.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right, top, bottom)``. A
            negative number removes elements.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: ``(N, C, H_out, W_out)``, or ``(C, H_out, W_out)``. ``H_out = H + top + bottom`` and
          ``W_out = W + left + right``.

    Raises:
        RuntimeError: The padding is not less than the size of its dimension.
        NotImplementedError: The input has neither 3 nor 4 dimensions.

    Example:
        >>> torch.nn.ReflectionPad2d((1, 2, 2, 0))(torch.zeros(1, 2, 4, 4)).shape
        torch.Size([1, 2, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ConstantPad2d`, `ZeroPad2d`, `CircularPad2d`, `ReplicationPad2d`.
    """

    _tl_expand = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions of the input with its mirror image at each edge.

    The element at the edge is not repeated. The padding of an end is less than the size of its dimension.

    Args:
        padding: Number of elements added at each end: an int for all ends, or
            ``(left, right, top, bottom, front, back)``. A negative number removes elements.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: ``(N, C, D_out, H_out, W_out)``, or ``(C, D_out, H_out, W_out)``. ``D_out = D + front + back``,
          ``H_out = H + top + bottom`` and ``W_out = W + left + right``.

    Raises:
        RuntimeError: The padding is not less than the size of its dimension.
        NotImplementedError: The input has neither 4 nor 5 dimensions.

    Example:
        >>> torch.nn.ReflectionPad3d((1, 2, 2, 0, 0, 0))(torch.zeros(1, 2, 4, 4, 4)).shape
        torch.Size([1, 2, 4, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ConstantPad3d`, `ZeroPad3d`, `CircularPad3d`, `ReplicationPad3d`.
    """

    _tl_expand = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "replicate")


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension of the input with the elements at its edges.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right)``. A negative number
            removes elements.

    Shape:
        - Input: ``(N, C, W)``, or ``(C, W)`` without a batch.
        - Output: ``(N, C, W_out)``, or ``(C, W_out)``. ``W_out = W + left + right``.

    Raises:
        NotImplementedError: The input has neither 2 nor 3 dimensions.

    Example:
        >>> torch.nn.ReplicationPad1d((2, 1))(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[1., 1., 1., 2., 3., 3.]])

    See also:
        `torch.nn.functional.pad`, `ConstantPad1d`, `ZeroPad1d`, `CircularPad1d`, `ReflectionPad1d`.
    """

    _tl_expand = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions of the input with the elements at its edges.

    Args:
        padding: Number of elements added at each end: an int for all ends, or ``(left, right, top, bottom)``. A
            negative number removes elements.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)`` without a batch.
        - Output: ``(N, C, H_out, W_out)``, or ``(C, H_out, W_out)``. ``H_out = H + top + bottom`` and
          ``W_out = W + left + right``.

    Raises:
        NotImplementedError: The input has neither 3 nor 4 dimensions.

    Example:
        >>> torch.nn.ReplicationPad2d((1, 2, 2, 0))(torch.zeros(1, 2, 4, 4)).shape
        torch.Size([1, 2, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ConstantPad2d`, `ZeroPad2d`, `CircularPad2d`, `ReflectionPad2d`.
    """

    _tl_expand = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions of the input with the elements at its edges.

    Args:
        padding: Number of elements added at each end: an int for all ends, or
            ``(left, right, top, bottom, front, back)``. A negative number removes elements.

    Shape:
        - Input: ``(N, C, D, H, W)``, or ``(C, D, H, W)`` without a batch.
        - Output: ``(N, C, D_out, H_out, W_out)``, or ``(C, D_out, H_out, W_out)``. ``D_out = D + front + back``,
          ``H_out = H + top + bottom`` and ``W_out = W + left + right``.

    Raises:
        NotImplementedError: The input has neither 4 nor 5 dimensions.

    Example:
        >>> torch.nn.ReplicationPad3d((1, 2, 2, 0, 0, 0))(torch.zeros(1, 2, 4, 4, 4)).shape
        torch.Size([1, 2, 4, 6, 7])

    See also:
        `torch.nn.functional.pad`, `ConstantPad3d`, `ZeroPad3d`, `CircularPad3d`, `ReflectionPad3d`.
    """

    _tl_expand = staticmethod(_sextuple)
