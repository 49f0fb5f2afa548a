"""The Laplace distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    r"""The Laplace distribution, with location :math:`\mu` and scale :math:`b`.

    .. math::

        p(x) = \frac{1}{2 b} \exp\left( -\frac{|x - \mu|}{b} \right), \quad x \in \mathbb{R}

    Args:
        loc: Location :math:`\mu`, real: the mean and the median. A number or a tensor.
        scale: Scale :math:`b`, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Laplace(0.0, 1.0).log_prob(torch.tensor(1.0))
        tensor(-1.6931)
        >>> torch.distributions.Laplace(0.0, 0.5).variance
        tensor(0.5000)

    See also:
        `Exponential`, `Normal`.
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
        r"""The mean :math:`\mu`."""
        return self.loc

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\mu`."""
        return self.loc

    @property
    def stddev(self) -> torch.Tensor:
        r"""The standard deviation :math:`\sqrt{2} \, b`."""
        return (2**0.5) * self.scale

    @property
    def variance(self) -> torch.Tensor:
        """The variance :math:`2 b^2`."""
        return 2 * self.scale.pow(2)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        # A uniform above -1: its sign chooses the side, its magnitude the tail probability.
        u = self.loc.new(self._extended_shape(sample_shape)).uniform_(torch.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs())

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * torch.expm1(-away.abs() / self.scale)

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        away = value - 0.5
        return self.loc - self.scale * away.sign() * torch.log1p(-2 * away.abs())

    def entropy(self) -> torch.Tensor:
        return 1 + torch.log(2 * self.scale)
