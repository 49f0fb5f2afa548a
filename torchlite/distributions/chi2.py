"""The chi-squared distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution with `df` degrees of freedom: Gamma(df / 2, 1 / 2), that of a sum of squared
    standard normals.

    >>> import torchlite as torch
    >>> torch.distributions.Chi2(torch.tensor([3.0])).variance
    tensor([6.])
    """

    arg_constraints = {"df": constraints.positive}
    _broadcast = Gamma._broadcast

    def __init__(self, df, validate_args=None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> torch.Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
