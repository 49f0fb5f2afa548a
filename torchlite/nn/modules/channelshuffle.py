"""ChannelShuffle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlite.nn import functional as F

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Divides the channels of (N, C, *) into groups and interleaves them (Zhang et al. 2017)."""

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
