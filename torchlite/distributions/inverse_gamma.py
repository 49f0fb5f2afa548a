"""The inverse gamma distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x for an x of Gamma(concentration, rate).

    >>> import torchlite as torch
    >>> torch.distributions.InverseGamma(torch.tensor([3.0]), torch.tensor([4.0])).mean
    tensor([2.])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma
    _broadcast: dict[str, int] = {}

    def __init__(self, concentration, rate, validate_args=None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(exponent=-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def concentration(self) -> torch.Tensor:
        """The shape of the gamma variate."""
        return self.base_dist.concentration

    @property
    def rate(self) -> torch.Tensor:
        """The rate of the gamma variate."""
        return self.base_dist.rate

    @property
    def mean(self) -> torch.Tensor:
        finite = self.rate / (self.concentration - 1)
        return torch.where(self.concentration > 1, finite, torch.inf)

    @property
    def mode(self) -> torch.Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> torch.Tensor:
        c = self.concentration
        finite = self.rate.square() / ((c - 1).square() * (c - 2))
        return torch.where(c > 2, finite, torch.inf)

    def entropy(self) -> torch.Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()
