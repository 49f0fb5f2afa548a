"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import torchlite as torch

from ._folded_distribution import FoldedDistribution
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(FoldedDistribution):
    """The distribution of |x| for a Cauchy variate x about 0 with `scale`, the half width at half maximum.

    >>> import torchlite as torch
    >>> torch.distributions.HalfCauchy(1.0).cdf(torch.tensor(1.0))
    tensor(0.5000)
    """

    _unfolded = Cauchy

    @property
    def mean(self) -> torch.Tensor:
        return torch.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self) -> torch.Tensor:
        return self.base_dist.variance

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return super().log_prob(torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))
