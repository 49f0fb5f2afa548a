"""The exponential distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    r"""The exponential distribution, with rate :math:`\lambda`.

    .. math::

        p(x) = \lambda \exp(-\lambda x), \quad x \ge 0

    Args:
        rate: Rate :math:`\lambda`, positive: the inverse of the mean. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``rate``.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Exponential(2.0).mean
        tensor(0.5000)

    See also:
        `Gamma`, `Weibull`, `Poisson`.
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _broadcast = {"rate": 0}

    def __init__(self, rate, validate_args=None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`1 / \lambda`."""
        return self.rate.reciprocal()

    @property
    def mode(self) -> torch.Tensor:
        """The most probable value: 0."""
        return torch.zeros_like(self.rate)

    @property
    def stddev(self) -> torch.Tensor:
        r"""The standard deviation :math:`1 / \lambda`."""
        return self.rate.reciprocal()

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`1 / \lambda^2`."""
        return self.rate.pow(-2)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        return self.rate.new(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - torch.exp(-self.rate * value)

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        return -torch.log1p(-value) / self.rate

    def entropy(self) -> torch.Tensor:
        return 1.0 - torch.log(self.rate)

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -torch.log(-x)
