"""Distributions of |x| for a variate x that is symmetric about 0."""

from __future__ import annotations

import math
from typing import Any

import torchlite as torch

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class FoldedDistribution(TransformedDistribution):
    """The distribution of |x| for a variate x of the class `_unfolded` about 0 with `scale`: twice its density for x >=
    0.
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any
    _unfolded: Any
    _broadcast: dict[str, int] = {}

    def __init__(self, scale, validate_args=None) -> None:
        super().__init__(self._unfolded(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> torch.Tensor:
        """The scale of x."""
        return self.base_dist.scale

    @property
    def mode(self) -> torch.Tensor:
        """The most probable value: 0."""
        return torch.zeros_like(self.scale)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return torch.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: torch.Tensor) -> torch.Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> torch.Tensor:
        return self.base_dist.entropy() - math.log(2)
