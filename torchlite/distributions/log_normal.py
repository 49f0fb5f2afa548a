"""The log-normal distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    r"""The log-normal distribution: that of :math:`\exp(X)` for a normal variable :math:`X`.

    .. math::

        p(x) = \frac{1}{x \sigma \sqrt{2 \pi}} \exp\left( -\frac{(\log x - \mu)^2}{2 \sigma^2} \right), \quad x > 0

    Args:
        loc: Mean :math:`\mu` of the logarithm, real. A number or a tensor.
        scale: Standard deviation :math:`\sigma` of the logarithm, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.LogNormal(torch.tensor([0.0]), torch.tensor([1.0])).mode
        tensor([0.3679])

    See also:
        `Normal`, `LogisticNormal`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal
    _broadcast: dict[str, int] = {}

    def __init__(self, loc, scale, validate_args=None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> torch.Tensor:
        r"""The mean :math:`\mu` of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> torch.Tensor:
        r"""The standard deviation :math:`\sigma` of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\exp(\mu + \sigma^2 / 2)`."""
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\exp(\mu - \sigma^2)`."""
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`(\exp(\sigma^2) - 1) \exp(2 \mu + \sigma^2)`."""
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> torch.Tensor:
        return self.base_dist.entropy() + self.loc
