"""ChannelShuffle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlite.nn import functional as F

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    r"""Divides the channels into groups and interleaves the groups.

    .. math::

        y_{g + G k} = x_{k + K g}, \qquad 0 \le g < G, \quad 0 \le k < K = C / G

    It lets the next grouped convolution see channels of all groups.

    Args:
        groups: Number of groups :math:`G`; a divisor of the number of channels.

    Shape:
        - Input: ``(N, C, *)`` with at least 3 dimensions.
        - Output: the shape of the input.

    Raises:
        RuntimeError: The input has fewer than 3 dimensions, or ``groups`` does not divide C.

    Example:
        >>> torch.nn.ChannelShuffle(2)(torch.tensor([0.0, 1.0, 2.0, 3.0]).view(1, 4, 1)).flatten()
        tensor([0., 2., 1., 3.])

    References:
        - X. Zhang, X. Zhou, M. Lin, J. Sun. ShuffleNet: an extremely efficient convolutional neural network for mobile
          devices. 2017.

    See also:
        `torch.nn.functional.channel_shuffle`, `Conv2d`.
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
