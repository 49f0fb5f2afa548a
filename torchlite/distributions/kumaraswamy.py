"""The Kumaraswamy distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moments(a, b, n):
    """E[X**n] = b B(1 + n / a, b)."""
    first = 1 + n / a
    return b * torch.exp(torch.lgamma(first) + torch.lgamma(b) - torch.lgamma(first + b))


class Kumaraswamy(TransformedDistribution):
    r"""The Kumaraswamy distribution on the unit interval, with concentrations :math:`a` and :math:`b`.

    .. math::

        p(x) = a b \, x^{a - 1} (1 - x^a)^{b - 1}, \quad x \in [0, 1]

    Its distribution function is :math:`F(x) = 1 - (1 - x^a)^b`.

    Args:
        concentration1: Concentration :math:`a`, positive. A number or a tensor.
        concentration0: Concentration :math:`b`, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Kumaraswamy(torch.tensor([1.0]), torch.tensor([1.0])).mean
        tensor([0.5000])

    References:
        P. Kumaraswamy, "A generalized probability density function for double-bounded random processes", 1980.

    See also:
        `Beta`.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _broadcast = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1, concentration0, validate_args=None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            torch.full_like(self.concentration0, 0),
            torch.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )
        # x = (1 - u**(1 / b))**(1 / a)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`b \, B(1 + 1 / a, b)`, with the beta function :math:`B`."""
        return _moments(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> torch.Tensor:
        r"""The mode :math:`((a - 1) / (a b - 1))^{1 / a}` of concentrations of at least 1.

        It is NaN where a concentration is less than 1, or both are 1. PyTorch's formula gives NaN for all.
        """
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return mode.masked_fill((b < 1) | (a < 1), torch.nan)

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`b \, B(1 + 2 / a, b) - m^2`, with the mean :math:`m`."""
        a, b = self.concentration1, self.concentration0
        return _moments(a, b, 2) - torch.pow(_moments(a, b, 1), 2)

    def entropy(self) -> torch.Tensor:
        rest1, rest0 = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = torch.digamma(self.concentration0 + 1) + euler_constant
        return rest0 + rest1 * harmonic - torch.log(self.concentration1) - torch.log(self.concentration0)
