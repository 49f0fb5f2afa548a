"""The inverse gamma distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    r"""The inverse gamma distribution, with shape :math:`\alpha` and rate :math:`\beta`.

    .. math::

        p(x) = \frac{\beta^\alpha}{\Gamma(\alpha)} \, x^{-\alpha - 1} \exp\left( -\frac{\beta}{x} \right), \quad x > 0

    It is the distribution of :math:`1 / X` for a variable :math:`X` of ``Gamma(concentration, rate)``.

    Args:
        concentration: Shape :math:`\alpha`, positive. A number or a tensor.
        rate: Rate :math:`\beta` of the gamma distribution, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.InverseGamma(torch.tensor([3.0]), torch.tensor([4.0])).mean
        tensor([2.])

    See also:
        `Gamma`.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma
    _broadcast: dict[str, int] = {}

    def __init__(self, concentration, rate, validate_args=None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(exponent=-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def concentration(self) -> torch.Tensor:
        r"""The shape :math:`\alpha` of the gamma distribution."""
        return self.base_dist.concentration

    @property
    def rate(self) -> torch.Tensor:
        r"""The rate :math:`\beta` of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\beta / (\alpha - 1)`; infinite for :math:`\alpha \le 1`."""
        finite = self.rate / (self.concentration - 1)
        return torch.where(self.concentration > 1, finite, torch.inf)

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\beta / (\alpha + 1)`."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\beta^2 / ((\alpha - 1)^2 (\alpha - 2))`; infinite for :math:`\alpha \le 2`."""
        c = self.concentration
        finite = self.rate.square() / ((c - 1).square() * (c - 2))
        return torch.where(c > 2, finite, torch.inf)

    def entropy(self) -> torch.Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()
