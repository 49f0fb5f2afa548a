"""The Poisson distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    r"""The Poisson distribution of counts, with rate :math:`\lambda`.

    .. math::

        P(X = k) = \frac{\lambda^k \exp(-\lambda)}{k!}, \quad k \in \{0, 1, 2, \ldots\}

    Args:
        rate: Rate :math:`\lambda`, nonnegative: the mean. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``rate``.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Poisson(torch.tensor(1.0)).log_prob(torch.tensor(0.0))
        tensor(-1.)

    See also:
        `NegativeBinomial`, `Exponential`, `torch.poisson`.
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _broadcast = {"rate": 0}

    def __init__(self, rate, validate_args=None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\lambda`."""
        return self.rate

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\lfloor \lambda \rfloor`."""
        return self.rate.floor()

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\lambda`."""
        return self.rate

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        with torch.no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (torch.log(self.rate),)

    def _log_normalizer(self, x):
        return torch.exp(x)
