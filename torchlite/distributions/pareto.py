"""The Pareto distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    r"""The Pareto distribution of type 1, with scale :math:`m` and exponent :math:`\alpha`.

    .. math::

        p(x) = \frac{\alpha \, m^\alpha}{x^{\alpha + 1}}, \quad x \ge m

    Args:
        scale: Scale :math:`m`, positive: the least value. A number or a tensor.
        alpha: Exponent :math:`\alpha`, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Pareto(torch.tensor([1.0]), torch.tensor([2.0])).mean
        tensor([2.])

    See also:
        `GeneralizedPareto`, `Exponential`.
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _broadcast = {"scale": 0, "alpha": 0}

    def __init__(self, scale, alpha, validate_args=None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\alpha m / (\alpha - 1)`; infinite for :math:`\alpha \le 1`."""
        a = self.alpha.clamp(min=1)  # infinite below
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> torch.Tensor:
        """The most probable value :math:`m`."""
        return self.scale

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`m^2 \alpha / ((\alpha - 1)^2 (\alpha - 2))`; infinite for :math:`\alpha \le 2`."""
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """The numbers from ``scale`` on."""
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> torch.Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
