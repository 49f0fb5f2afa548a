"""The Gumbel distribution."""

from __future__ import annotations

import math

import torchlite as torch

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    r"""The Gumbel distribution of maxima, with location :math:`\mu` and scale :math:`\beta`.

    .. math::

        p(x) = \frac{1}{\beta} \exp\left( -z - \exp(-z) \right), \quad z = \frac{x - \mu}{\beta}, \quad x \in \mathbb{R}

    Args:
        loc: Location :math:`\mu`, real. A number or a tensor.
        scale: Scale :math:`\beta`, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Gumbel(torch.tensor([1.0]), torch.tensor([2.0])).mode
        tensor([1.])

    See also:
        `RelaxedOneHotCategorical`, `torch.nn.functional.gumbel_softmax`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _broadcast = {"loc": 0, "scale": 0}

    def __init__(self, loc, scale, validate_args=None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = torch.finfo(self.loc.dtype)
        base = Uniform(
            torch.full_like(self.loc, limits.tiny),
            torch.full_like(self.loc, 1 - limits.eps),
            validate_args=validate_args,
        )
        # x = loc - scale log(-log(u))
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-torch.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\mu + \gamma \beta`, with Euler's constant :math:`\gamma \approx 0.5772`."""
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\mu`."""
        return self.loc

    @property
    def stddev(self) -> torch.Tensor:
        r"""The standard deviation :math:`\pi \beta / \sqrt{6}`."""
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\pi^2 \beta^2 / 6`."""
        return self.stddev.pow(2)

    def entropy(self) -> torch.Tensor:
        return self.scale.log() + (1 + euler_constant)
