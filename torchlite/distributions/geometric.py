"""The geometric distribution."""

from __future__ import annotations

import torchlite as torch
from torchlite.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._probs_or_logits import ProbsOrLogitsMixin
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsOrLogitsMixin, Distribution):
    r"""The geometric distribution: the number of failures before the first success, with success probability :math:`p`.

    .. math::

        P(X = k) = (1 - p)^k \, p, \quad k \in \{0, 1, 2, \ldots\}

    The parameter is ``probs`` or ``logits``, and exactly one of them. `torch.Tensor.geometric_` counts the success too.

    Args:
        probs: Probability :math:`p`, in :math:`(0, 1]`. A number or a tensor.
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
        >>> torch.distributions.Geometric(torch.tensor(0.5)).log_prob(torch.tensor(1.0)).exp()
        tensor(0.2500)

    See also:
        `NegativeBinomial`, `Bernoulli`.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _broadcast = {"probs": 0, "logits": 0}

    def __init__(self, probs=None, logits=None, validate_args=None) -> None:
        super().__init__(self._take_numbers(probs, logits), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            if not (valid := value > 0).all():
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to be positive but found invalid values:\n{value[~valid]}"
                )

    @property
    def mean(self) -> torch.Tensor:
        """The mean :math:`1 / p - 1`."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> torch.Tensor:
        """The most probable value: 0."""
        return torch.zeros_like(self.probs)

    @property
    def variance(self) -> torch.Tensor:
        """The variance :math:`(1 - p) / p^2`."""
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        with torch.no_grad():
            u = self.probs.new(self._extended_shape(sample_shape))
            u = u.uniform_(torch.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # A certain success: 0 * log(0) is 0.
        failing = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> torch.Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
