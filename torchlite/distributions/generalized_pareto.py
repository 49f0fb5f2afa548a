"""The generalised Pareto distribution."""

from __future__ import annotations

import math

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    r"""The generalized Pareto distribution, with location :math:`\mu`, scale :math:`\sigma` and concentration
    :math:`\xi`.

    .. math::

        p(x) = \frac{1}{\sigma} \left( 1 + \xi z \right)^{-1 / \xi - 1}, \quad z = \frac{x - \mu}{\sigma} \ge 0

    For :math:`\xi = 0` it is the shifted exponential distribution :math:`p(x) = \exp(-z) / \sigma`. The support is
    :math:`x \ge \mu`, and for :math:`\xi < 0` also :math:`x \le \mu - \sigma / \xi`.

    Args:
        loc: Location :math:`\mu`, real. A number or a tensor.
        scale: Scale :math:`\sigma`, positive. A number or a tensor.
        concentration: Concentration (shape) :math:`\xi`, real. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
        tensor(2.)

    References:
        J. Pickands, "Statistical inference using extreme order statistics", 1975.

    See also:
        `Pareto`, `Exponential`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _broadcast = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc, scale, concentration, validate_args=None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def _is_exponential(self):
        return torch.isclose(self.concentration, torch.zeros_like(self.concentration))

    def _safe_concentration(self, exponential):
        return torch.where(exponential, torch.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        return self.icdf(torch.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def _z(self, x):
        return (x - self.loc) / self.scale

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z, exponential = self._z(value), self._is_exponential()
        c = self._safe_concentration(exponential)
        power = -(1.0 + 1.0 / c) * torch.log1p(c * z)
        return torch.where(exponential, -z, power) - torch.log(self.scale)

    def log_survival_function(self, value):
        r"""Compute the logarithm of the survival function, :math:`\log P(X > x)`.

        Args:
            value: Tensor that broadcasts with the batch shape.

        Returns:
            The logarithms, one for each event.
        """
        if self._validate_args:
            self._validate_sample(value)
        z, exponential = self._z(value), self._is_exponential()
        c = self._safe_concentration(exponential)
        return torch.where(exponential, -z, -torch.log1p(c * z) / c)

    def log_cdf(self, value):
        r"""Compute the logarithm of the cumulative distribution function, :math:`\log P(X \le x)`.

        Args:
            value: Tensor that broadcasts with the batch shape.

        Returns:
            The logarithms, one for each event.
        """
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        exponential = self._is_exponential()
        c = self._safe_concentration(exponential)
        log_rest = torch.log1p(-value)
        return self.loc + self.scale * torch.where(exponential, -log_rest, torch.expm1(-c * log_rest) / c)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\mu + \sigma / (1 - \xi)`; NaN for :math:`\xi \ge 1`."""
        finite = self.loc + self.scale / (1 - self.concentration)
        return torch.where(self.concentration < 1, finite, torch.full_like(finite, math.nan))

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\sigma^2 / ((1 - \xi)^2 (1 - 2 \xi))`; NaN for :math:`\xi \ge 1/2`."""
        c = self.concentration
        finite = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return torch.where(c < 0.5, finite, torch.full_like(finite, math.nan))

    def entropy(self) -> torch.Tensor:
        return (torch.log(self.scale) + self.concentration + 1).expand(self._batch_shape)

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\mu`, as PyTorch defines it; for :math:`\xi < -1` the density has its maximum
        at the upper end.
        """
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """The interval from ``loc`` to infinity, or to ``loc - scale / concentration`` for a negative concentration."""
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, torch.where(self.concentration < 0, end, torch.full_like(end, math.inf)))
