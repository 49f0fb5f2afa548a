"""The binomial distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from ._probs_or_logits import ProbsOrLogitsMixin, stack_values
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Binomial"]


def _clamp_by_zero(x):
    """max(x, 0), with a gradient of 1/2 at 0."""
    return (x.abs() + x) / 2


class Binomial(ProbsOrLogitsMixin, Distribution):
    r"""The binomial distribution: the number of successes in :math:`n` trials of probability :math:`p`.

    .. math::

        P(X = k) = \binom{n}{k} \, p^k (1 - p)^{n - k}, \quad k \in \{0, 1, \ldots, n\}

    The parameters are ``total_count`` and one of ``probs`` and ``logits``. `entropy` and `enumerate_support` need the
    same ``total_count`` in all of the batch, else they raise NotImplementedError.

    Args:
        total_count: Number of trials :math:`n`, a nonnegative integer. A number or a tensor. Default: 1.
        probs: Probability :math:`p`, in :math:`[0, 1]`. A number or a tensor.
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
        >>> torch.distributions.Binomial(2, torch.tensor(0.5)).log_prob(torch.tensor(1.0)).exp()
        tensor(0.5000)

    See also:
        `Bernoulli`, `Multinomial`, `NegativeBinomial`.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _broadcast = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None) -> None:
        self._check_either(probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
            self._param = self.probs
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
            self._param = self.logits
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """The integers from 0 to ``total_count``."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> torch.Tensor:
        """The mean :math:`n p`."""
        return self.total_count * self.probs

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\lfloor (n + 1) p \rfloor`, at most :math:`n`."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> torch.Tensor:
        """The variance :math:`n p (1 - p)`."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        ways = torch.lgamma(self.total_count + 1)
        ways = ways - torch.lgamma(value + 1) - torch.lgamma(self.total_count - value + 1)
        # log(1 + exp(logits)), without overflow
        log_rest = _clamp_by_zero(self.logits) + torch.log1p(torch.exp(-torch.abs(self.logits)))
        return value * self.logits + ways - self.total_count * log_rest

    def _one_count(self, what: str) -> int:
        """The number of trials. NotImplementedError if it is not the same in all of the batch."""
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self) -> torch.Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> torch.Tensor:
        count = self._one_count("enumerate_support")
        values = torch.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        return stack_values(values, self._batch_shape, expand)
