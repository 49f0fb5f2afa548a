"""Unfold (im2col) and Fold (its transpose)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlite.nn import functional as F

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import Ints


__all__ = ["Fold", "Unfold"]


class Fold(Module):
    r"""Adds up blocks at their positions in an image (col2im).

    Elements of overlapping blocks are summed, so `Fold` is the transpose of `Unfold` and not its inverse. The number
    of blocks is

    .. math::

        L = \prod_d \left( \left\lfloor \frac{\text{size}_d + 2 \, \text{padding}_d - \text{dilation}_d
        (\text{kernel\_size}_d - 1) - 1}{\text{stride}_d} \right\rfloor + 1 \right)

    with the sizes of ``output_size``.

    Args:
        output_size: Sizes of the image: an int, or a tuple ``(height, width)``.
        kernel_size: Size of a block: an int, or a tuple ``(height, width)``.
        dilation: Distance between two elements of a block. Default: 1.
        padding: Number of zeros at each end of each spatial dimension of the image. Default: 0.
        stride: Step between two blocks. Default: 1.

    Shape:
        - Input: ``(N, C * prod(kernel_size), L)``, or without N.
        - Output: ``(N, C, output_size[0], output_size[1])``, or without N.

    Raises:
        RuntimeError: The sizes of the input do not match the arguments.

    Example:
        >>> fold = torch.nn.Fold(output_size=(4, 5), kernel_size=(2, 2))
        >>> fold(torch.zeros(1, 3 * 2 * 2, 12)).shape
        torch.Size([1, 3, 4, 5])

    See also:
        `torch.nn.functional.fold`, `Unfold`.
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    r"""Extracts the blocks of an image that slide over it, as columns (im2col).

    The number of blocks is

    .. math::

        L = \prod_d \left( \left\lfloor \frac{\text{size}_d + 2 \, \text{padding}_d - \text{dilation}_d
        (\text{kernel\_size}_d - 1) - 1}{\text{stride}_d} \right\rfloor + 1 \right)

    with the sizes of the input. A convolution is the product of its weights and these columns.

    Args:
        kernel_size: Size of a block: an int, or a tuple ``(height, width)``.
        dilation: Distance between two elements of a block. Default: 1.
        padding: Number of zeros at each end of each spatial dimension of the image. Default: 0.
        stride: Step between two blocks. Default: 1.

    Shape:
        - Input: ``(N, C, H, W)``, or ``(C, H, W)``.
        - Output: ``(N, C * prod(kernel_size), L)``, or without N.

    Raises:
        RuntimeError: The input has neither 3 nor 4 dimensions, or no block fits into it.

    Example:
        >>> unfold = torch.nn.Unfold(kernel_size=(2, 3))
        >>> unfold(torch.zeros(2, 5, 3, 4)).shape
        torch.Size([2, 30, 4])

    See also:
        `torch.nn.functional.unfold`, `Fold`, `Conv2d`.
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
