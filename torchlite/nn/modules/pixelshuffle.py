"""PixelShuffle and its inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlite.nn import functional as F

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    r"""Moves groups of channels into blocks of pixels: an image of fewer channels and more pixels.

    .. math::

        y_{c, \; r h + i, \; r w + j} = x_{c r^2 + r i + j, \; h, \; w}, \qquad 0 \le i, j < r

    Args:
        upscale_factor: The factor :math:`r` of height and width.

    Shape:
        - Input: ``(*, C * r ** 2, H, W)``.
        - Output: ``(*, C, H * r, W * r)``.

    Raises:
        RuntimeError: The number of channels is not divisible by ``upscale_factor ** 2``.

    Example:
        >>> torch.nn.PixelShuffle(2)(torch.tensor([1.0, 2.0, 3.0, 4.0]).view(4, 1, 1))
        tensor([[[1., 2.],
                 [3., 4.]]])

    References:
        - W. Shi et al. Real-time single image and video super-resolution using an efficient sub-pixel convolutional
          neural network. 2016.

    See also:
        `torch.nn.functional.pixel_shuffle`, `PixelUnshuffle`, `Upsample`.
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    r"""Moves blocks of pixels into channels; the inverse of `PixelShuffle`.

    .. math::

        y_{c r^2 + r i + j, \; h, \; w} = x_{c, \; r h + i, \; r w + j}, \qquad 0 \le i, j < r

    Args:
        downscale_factor: The divisor :math:`r` of height and width.

    Shape:
        - Input: ``(*, C, H * r, W * r)``.
        - Output: ``(*, C * r ** 2, H, W)``.

    Raises:
        RuntimeError: Height or width is not divisible by ``downscale_factor``.

    Example:
        >>> torch.nn.PixelUnshuffle(3)(torch.zeros(1, 1, 12, 12)).shape
        torch.Size([1, 9, 4, 4])

    References:
        - W. Shi et al. Real-time single image and video super-resolution using an efficient sub-pixel convolutional
          neural network. 2016.

    See also:
        `torch.nn.functional.pixel_unshuffle`, `PixelShuffle`.
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
