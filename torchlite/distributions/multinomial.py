"""The multinomial distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    r"""The multinomial distribution: how often each of :math:`K` categories occurs in :math:`n` draws.

    .. math::

        P(X = x) = \frac{n!}{x_1! \cdots x_K!} \prod_{i=1}^K p_i^{x_i}, \quad x_i \in \{0, 1, \ldots\}, \quad
        \sum_{i=1}^K x_i = n

    The parameters are ``total_count`` and one of ``probs`` and ``logits``, which are normalized. Validation accepts
    counts whose sum is at most ``total_count``. With ``validate_args=False``, `log_prob` takes counts of any sum.

    Args:
        total_count: Number of draws :math:`n`, a Python int. Default: 1.
        probs: Nonnegative weights with a positive sum, of shape ``(..., K)``. Each is divided by the sum.
        logits: Real numbers of shape ``(..., K)``; the probabilities are their softmax.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameter without its last dimension.
        - Event shape: ``(K,)``.

    Raises:
        NotImplementedError: ``total_count`` is not an int.
        ValueError: Both or none of ``probs`` and ``logits`` are given, or the given one is 0-dimensional.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> multinomial = torch.distributions.Multinomial(2, torch.tensor([0.5, 0.5]))
        >>> multinomial.log_prob(torch.tensor([1.0, 1.0])).exp()
        tensor(0.5000)

    See also:
        `Categorical`, `Binomial`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int
    _broadcast: dict[str, int] = {}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand(batch_shape + self.event_shape)

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        """Vectors of counts with a sum of at most ``total_count``."""
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> torch.Tensor:
        """The logarithms of the probabilities, of shape ``(..., K)``."""
        return self._categorical.logits

    @property
    def probs(self) -> torch.Tensor:
        """The probabilities :math:`p_i`, of shape ``(..., K)``."""
        return self._categorical.probs

    @property
    def param_shape(self):
        """The shape of the parameter that was given, ``(..., K)``."""
        return self._categorical.param_shape

    @property
    def mean(self) -> torch.Tensor:
        """The mean :math:`n p_i`."""
        return self.probs * self.total_count

    @property
    def variance(self) -> torch.Tensor:
        """The variance :math:`n p_i (1 - p_i)`."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        sample_shape = torch.Size(sample_shape)
        draws = self._categorical.sample(torch.Size((self.total_count,)) + sample_shape)
        draws = draws.movedim(0, -1)  # the draws of one count are the last dimension
        counts = draws.new(self._extended_shape(sample_shape)).zero_()
        counts.scatter_add_(-1, draws, torch.ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self) -> torch.Tensor:
        # n H(p) - log n! + E[sum log x_i!], whose x_i are binomial (Wikipedia, "Multinomial distribution").
        n = torch.tensor(self.total_count, device=self._categorical._param.device)
        values = self._binomial.enumerate_support(expand=False)[1:]
        expected = (torch.exp(self._binomial.log_prob(values)) * torch.lgamma(values + 1)).sum([0, -1])
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + expected

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        # An index of probability zero with count zero adds nothing.
        logits = logits.masked_fill((value == 0) & (logits == -torch.inf), 0)
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)
