"""The Bernoulli distribution."""

from __future__ import annotations

import torchlite as torch
from torchlite.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._probs_or_logits import ProbsOrLogitsMixin, stack_values
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogitsMixin, ExponentialFamily):
    r"""The Bernoulli distribution: 1 with probability :math:`p`, else 0.

    .. math::

        P(X = k) = p^k (1 - p)^{1 - k}, \quad k \in \{0, 1\}

    The parameter is ``probs`` or ``logits``, and exactly one of them.

    Args:
        probs: Probability :math:`p`, in :math:`[0, 1]`. A number or a tensor.
        logits: Log-odds :math:`\log(p / (1 - p))`, real. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameter.
        - Event shape: ``()``.

    Raises:
        ValueError: Both or none of ``probs`` and ``logits`` are given.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Bernoulli(torch.tensor([0.25])).log_prob(torch.tensor([1.0])).exp()
        tensor([0.2500])

    See also:
        `Binomial`, `ContinuousBernoulli`, `RelaxedBernoulli`.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _broadcast = {"probs": 0, "logits": 0}

    def __init__(self, probs=None, logits=None, validate_args=None) -> None:
        super().__init__(self._take_numbers(probs, logits), validate_args=validate_args)

    @property
    def mean(self) -> torch.Tensor:
        """The mean :math:`p`."""
        return self.probs

    @property
    def mode(self) -> torch.Tensor:
        """The most probable value: 1 where :math:`p > 1/2`, 0 where :math:`p < 1/2`, NaN where both are equally
        probable.
        """
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, torch.nan)

    @property
    def variance(self) -> torch.Tensor:
        """The variance :math:`p (1 - p)`."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> torch.Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> torch.Tensor:
        values = torch.arange(2, dtype=self._param.dtype, device=self._param.device)
        return stack_values(values, self._batch_shape, expand)

    @property
    def _natural_params(self):
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x):
        return torch.log1p(torch.exp(x))
