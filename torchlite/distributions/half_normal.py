"""The half-normal distribution."""

from __future__ import annotations

import math

import torchlite as torch

from ._folded_distribution import FoldedDistribution
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(FoldedDistribution):
    """The distribution of |x| for a normal x of mean 0 and standard deviation `scale`.

    >>> import torchlite as torch
    >>> torch.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    _unfolded = Normal

    @property
    def mean(self) -> torch.Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> torch.Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
