"""Student's t distribution."""

from __future__ import annotations

import math

import torchlite as torch

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    r"""Student's t distribution, with :math:`\nu` degrees of freedom, location :math:`\mu` and scale :math:`\sigma`.

    .. math::

        p(x) = \frac{\Gamma\left( \frac{\nu + 1}{2} \right)}{\Gamma\left( \frac{\nu}{2} \right) \sigma \sqrt{\nu \pi}}
        \left( 1 + \frac{z^2}{\nu} \right)^{-(\nu + 1) / 2}, \quad z = \frac{x - \mu}{\sigma}, \quad x \in \mathbb{R}

    It is the distribution of :math:`\mu + \sigma Z / \sqrt{V / \nu}` for an independent standard normal variable
    :math:`Z` and chi-squared variable :math:`V` with :math:`\nu` degrees of freedom.

    Args:
        df: Degrees of freedom :math:`\nu`, positive. A number or a tensor.
        loc: Location :math:`\mu`, real. A number or a tensor. Default: 0.0.
        scale: Scale :math:`\sigma`, positive. A number or a tensor. Default: 1.0.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.StudentT(torch.tensor([4.0])).variance
        tensor([2.])

    See also:
        `Normal`, `Cauchy`, `Chi2`.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _broadcast = {"df": 0, "loc": 0, "scale": 0}

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\mu`; NaN for :math:`\nu \le 1`."""
        return self.loc.masked_fill(self.df <= 1, torch.nan)

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\mu`."""
        return self.loc

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\sigma^2 \nu / (\nu - 2)`; infinite for :math:`1 < \nu \le 2`, NaN for
        :math:`\nu \le 1`.
        """
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        variance = torch.where(self.df > 2, finite, torch.full_like(finite, math.inf))
        return variance.masked_fill(self.df <= 1, torch.nan)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * normal * torch.rsqrt(self._chi2.rsample(sample_shape) / self.df)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        constant = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + torch.lgamma(0.5 * self.df)
            - torch.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * torch.log1p(y**2.0 / self.df) - constant

    def entropy(self) -> torch.Tensor:
        log_beta = torch.lgamma(0.5 * self.df) + math.lgamma(0.5) - torch.lgamma(0.5 * (self.df + 1))
        digammas = torch.digamma(0.5 * (self.df + 1)) - torch.digamma(0.5 * self.df)
        return self.scale.log() + 0.5 * (self.df + 1) * digammas + 0.5 * self.df.log() + log_beta
