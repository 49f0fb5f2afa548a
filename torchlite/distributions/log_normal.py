"""The log-normal distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) for a normal x of mean `loc` and standard deviation `scale`.

    >>> import torchlite as torch
    >>> torch.distributions.LogNormal(torch.tensor([0.0]), torch.tensor([1.0])).mode
    tensor([0.3679])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal
    _broadcast: dict[str, int] = {}

    def __init__(self, loc, scale, validate_args=None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> torch.Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> torch.Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> torch.Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> torch.Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> torch.Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> torch.Tensor:
        return self.base_dist.entropy() + self.loc
