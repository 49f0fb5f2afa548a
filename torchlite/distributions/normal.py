"""The normal distribution."""

from __future__ import annotations

import math

import torchlite as torch

from . import constraints
from .exp_family import ExponentialFamily
from .utils import _standard_normal, broadcast_all

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    r"""The normal (Gaussian) distribution, with mean :math:`\mu` and standard deviation :math:`\sigma`.

    .. math::

        p(x) = \frac{1}{\sigma \sqrt{2 \pi}} \exp\left( -\frac{(x - \mu)^2}{2 \sigma^2} \right), \quad x \in \mathbb{R}

    Args:
        loc: Mean :math:`\mu`, real. A number or a tensor.
        scale: Standard deviation :math:`\sigma`, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> normal = torch.distributions.Normal(torch.tensor([0.0]), torch.tensor([1.0]))
        >>> _ = torch.manual_seed(0)
        >>> normal.sample()
        tensor([1.5410])
        >>> normal.log_prob(torch.tensor([0.0]))
        tensor([-0.9189])

    See also:
        `MultivariateNormal`, `LogNormal`, `HalfNormal`, `StudentT`, `torch.normal`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
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
        r"""The standard deviation :math:`\sigma`."""
        return self.scale

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\sigma^2`."""
        return self.stddev.pow(2)

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        eps = _standard_normal(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + eps * self.scale

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_scale = self.scale.log()
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - log_scale - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + torch.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> torch.Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)

    @property
    def _natural_params(self):
        return (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal())

    def _log_normalizer(self, x, y):
        return -0.25 * x.pow(2) / y + 0.5 * torch.log(-math.pi / y)
