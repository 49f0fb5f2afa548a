"""The negative binomial distribution."""

from __future__ import annotations

import torchlite as torch
from torchlite.nn.functional import logsigmoid

from . import constraints
from ._probs_or_logits import ProbsOrLogitsMixin
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogitsMixin, Distribution):
    r"""The negative binomial distribution: the number of successes before :math:`r` failures.

    .. math::

        P(X = k) = \frac{\Gamma(k + r)}{k! \, \Gamma(r)} \, (1 - p)^r p^k, \quad k \in \{0, 1, 2, \ldots\}

    The success probability is :math:`p`. It is the distribution of a Poisson variable whose rate has the distribution
    ``Gamma(total_count, (1 - p) / p)``, so :math:`r` need not be an integer. Exactly one of ``probs`` and ``logits`` is
    given.

    Args:
        total_count: Number of failures :math:`r`, nonnegative. A number or a tensor.
        probs: Success probability :math:`p`, in :math:`[0, 1)`. A number or a tensor.
        logits: Log-odds :math:`\log(p / (1 - p))`, real. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: Both or none of ``probs`` and ``logits`` are given.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.NegativeBinomial(1.0, torch.tensor(0.5)).log_prob(torch.tensor(1.0)).exp()
        tensor(0.2500)

    See also:
        `Binomial`, `Geometric`, `Poisson`.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _broadcast = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(self, total_count, probs=None, logits=None, validate_args=None) -> None:
        self._check_either(probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self._param = self.probs
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self._param = self.logits
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> torch.Tensor:
        """The mean :math:`r p / (1 - p)`."""
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\lfloor (r - 1) \, p / (1 - p) \rfloor`, at least 0."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> torch.Tensor:
        """The variance :math:`r p / (1 - p)^2`."""
        return self.mean / torch.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        return Gamma(concentration=self.total_count, rate=torch.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        chances = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = torch.lgamma(self.total_count + value) - torch.lgamma(1.0 + value) - torch.lgamma(self.total_count)
        return chances + ways.masked_fill(self.total_count + value == 0.0, 0.0)
