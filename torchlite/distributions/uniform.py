"""The uniform distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Distribution):
    r"""The uniform distribution on the interval :math:`[a, b)`.

    .. math::

        p(x) = \frac{1}{b - a}, \quad a \le x < b

    Args:
        low: Lower end :math:`a`, below ``high``. A number or a tensor.
        high: Upper end :math:`b`, above ``low``. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: ``low`` is not below ``high``, and arguments are validated.

    Example:
        >>> torch.distributions.Uniform(0.0, 2.0).cdf(torch.tensor(0.5))
        tensor(0.2500)

    See also:
        `Beta`, `torch.rand`.
    """

    has_rsample = True
    _broadcast = {"low": 0, "high": 0}

    def __init__(self, low, high, validate_args=None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self):
        """The constraints of the parameters: ``low`` is below ``high``."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """The interval from ``low`` to ``high``."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> torch.Tensor:
        """The mean :math:`(a + b) / 2`."""
        return (self.high + self.low) / 2

    @property
    def mode(self) -> torch.Tensor:
        """NaN: all values are equally probable."""
        return torch.nan * self.high

    @property
    def stddev(self) -> torch.Tensor:
        r"""The standard deviation :math:`(b - a) / \sqrt{12}`."""
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> torch.Tensor:
        """The variance :math:`(b - a)^2 / 12`."""
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        unit = torch.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + unit * (self.high - self.low)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return torch.log(inside) - torch.log(self.high - self.low)

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> torch.Tensor:
        return torch.log(self.high - self.low)
