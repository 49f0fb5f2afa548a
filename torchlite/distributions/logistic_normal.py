"""The logistic-normal distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .independent import Independent
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """A distribution over the simplex: `StickBreakingTransform` of independent normals of mean `loc` and standard
    deviation `scale`. An event has one entry more than there are normals.

    >>> import torchlite as torch
    >>> torch.distributions.LogisticNormal(torch.tensor([0.0] * 3), torch.tensor([1.0] * 3)).event_shape
    torch.Size([4])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent
    _broadcast: dict[str, int] = {}

    def __init__(self, loc, scale, validate_args=None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> torch.Tensor:
        """The normals' mean."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> torch.Tensor:
        """The normals' standard deviation."""
        return self.base_dist.base_dist.scale
