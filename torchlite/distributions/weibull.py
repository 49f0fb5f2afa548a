"""The Weibull distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    r"""The Weibull distribution, with scale :math:`\lambda` and concentration :math:`k`.

    .. math::

        p(x) = \frac{k}{\lambda} \left( \frac{x}{\lambda} \right)^{k - 1}
        \exp\left( -\left( \frac{x}{\lambda} \right)^k \right), \quad x > 0

    Args:
        scale: Scale :math:`\lambda`, positive. A number or a tensor.
        concentration: Concentration (shape) :math:`k`, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Weibull(torch.tensor([1.0]), torch.tensor([1.0])).mean
        tensor([1.])

    See also:
        `Exponential`, `Gumbel`.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _broadcast = {"scale": 0, "concentration": 0, "concentration_reciprocal": 0}

    def __init__(self, scale, concentration, validate_args=None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def _log_moment(self, n: int):
        """log E[(X / scale)**n]."""
        return torch.lgamma(1 + n * self.concentration_reciprocal)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\lambda \, \Gamma(1 + 1 / k)`."""
        return self.scale * torch.exp(self._log_moment(1))

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\lambda ((k - 1) / k)^{1 / k}`, for :math:`k \ge 1`."""
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\lambda^2 (\Gamma(1 + 2 / k) - \Gamma(1 + 1 / k)^2)`."""
        return self.scale.pow(2) * (torch.exp(self._log_moment(2)) - torch.exp(2 * self._log_moment(1)))

    def entropy(self) -> torch.Tensor:
        return (
            euler_constant * (1 - self.concentration_reciprocal)
            + torch.log(self.scale * self.concentration_reciprocal)
            + 1
        )
