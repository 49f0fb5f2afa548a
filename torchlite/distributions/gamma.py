"""The gamma distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


def _standard_gamma(concentration):
    """Draw gamma variates of rate 1 with an implicit gradient (see `torch._standard_gamma`)."""
    return torch._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    r"""The gamma distribution, with shape :math:`\alpha` and rate :math:`\beta`.

    .. math::

        p(x) = \frac{\beta^\alpha}{\Gamma(\alpha)} \, x^{\alpha - 1} \exp(-\beta x), \quad x \ge 0

    Samples have implicit gradients, and are clamped to the dtype's smallest positive normal number.

    Args:
        concentration: Shape :math:`\alpha`, positive. A number or a tensor.
        rate: Rate :math:`\beta`, positive: the inverse of the scale. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Gamma(torch.tensor(2.0), torch.tensor(4.0)).mean
        tensor(0.5000)

    References:
        M. Figurnov, S. Mohamed and A. Mnih, "Implicit reparameterization gradients", 2018.

    See also:
        `Chi2`, `InverseGamma`, `Exponential`.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _broadcast = {"concentration": 0, "rate": 0}

    def __init__(self, concentration, rate, validate_args=None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\alpha / \beta`."""
        return self.concentration / self.rate

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`(\alpha - 1) / \beta`, at least 0."""
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\alpha / \beta^2`."""
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        # Clamped away from 0, where log_prob would be infinite, without effect on the gradient.
        value.detach().clamp_(min=torch.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        value = torch.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            torch.xlogy(self.concentration, self.rate)
            + torch.xlogy(self.concentration - 1, value)
            - self.rate * value
            - torch.lgamma(self.concentration)
        )

    def entropy(self) -> torch.Tensor:
        c = self.concentration
        return c - torch.log(self.rate) + torch.lgamma(c) + (1.0 - c) * torch.digamma(c)

    @property
    def _natural_params(self):
        return (self.concentration - 1, -self.rate)

    def _log_normalizer(self, x, y):
        return torch.lgamma(x + 1) + (x + 1) * torch.log(-y.reciprocal())

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return torch.special.gammainc(self.concentration, self.rate * value)
