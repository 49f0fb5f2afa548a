"""The Pareto distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """The Pareto distribution (of type 1): P(X > x) = (scale / x)**alpha from `scale` on.

    >>> import torchlite as torch
    >>> torch.distributions.Pareto(torch.tensor([1.0]), torch.tensor([2.0])).mean
    tensor([2.])
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _broadcast = {"scale": 0, "alpha": 0}

    def __init__(self, scale, alpha, validate_args=None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> torch.Tensor:
        a = self.alpha.clamp(min=1)  # infinite below
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> torch.Tensor:
        return self.scale

    @property
    def variance(self) -> torch.Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> torch.Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
