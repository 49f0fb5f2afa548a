"""The Cauchy distribution."""

from __future__ import annotations

import math

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    r"""The Cauchy (Lorentz) distribution, with median :math:`x_0` and half width at half maximum :math:`\gamma`.

    .. math::

        p(x) = \frac{1}{\pi \gamma \left( 1 + ((x - x_0) / \gamma)^2 \right)}, \quad x \in \mathbb{R}

    It is the distribution of the ratio of two independent normal variables of mean 0. It has no mean and no finite
    variance.

    Args:
        loc: Median :math:`x_0`, real. A number or a tensor.
        scale: Half width at half maximum :math:`\gamma`, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Cauchy(0.0, 1.0).cdf(torch.tensor(1.0))
        tensor(0.7500)

    See also:
        `HalfCauchy`, `StudentT`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _broadcast = {"loc": 0, "scale": 0}

    def __init__(self, loc, scale, validate_args=None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> torch.Tensor:
        """NaN: the integral of the mean does not converge."""
        return torch.full(self._extended_shape(), math.nan, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def mode(self) -> torch.Tensor:
        """The most probable value :math:`x_0`."""
        return self.loc

    @property
    def variance(self) -> torch.Tensor:
        """Infinity."""
        return torch.full(self._extended_shape(), math.inf, dtype=self.loc.dtype, device=self.loc.device)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        eps = self.loc.new(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> torch.Tensor:
        return math.log(4 * math.pi) + self.scale.log()
