"""The categorical distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from ._probs_or_logits import ProbsOrLogitsMixin, stack_values
from .distribution import Distribution

__all__ = ["Categorical"]


class Categorical(ProbsOrLogitsMixin, Distribution):
    r"""The categorical distribution: an index :math:`k` with probability :math:`p_k`.

    .. math::

        P(X = k) = p_k, \quad k \in \{0, 1, \ldots, K - 1\}

    The last dimension of the parameter, of size :math:`K`, has the probabilities. `probs` and `logits` are normalized:
    the attributes differ from what was given by a factor or a summand. Samples have dtype int64.

    Args:
        probs: Nonnegative weights with a positive sum, of shape ``(..., K)``. Each is divided by the sum.
        logits: Real numbers of shape ``(..., K)``; the probabilities are their softmax.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameter without its last dimension.
        - Event shape: ``()``.

    Raises:
        ValueError: Both or none of ``probs`` and ``logits`` are given, or the given one is 0-dimensional.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> weights = torch.distributions.Categorical(torch.tensor([1.0, 3.0]))
        >>> weights.probs
        tensor([0.2500, 0.7500])
        >>> weights.enumerate_support()
        tensor([0, 1])

    See also:
        `OneHotCategorical`, `Multinomial`, `torch.multinomial`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _broadcast = {"probs": 1, "logits": 1}

    def __init__(self, probs=None, logits=None, validate_args=None) -> None:
        self._take_vectors(probs, logits)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        super()._expand_rest(new, batch_shape)
        new._num_events = self._num_events

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """The integers from 0 to :math:`K - 1`."""
        return constraints.integer_interval(0, self._num_events - 1)

    def _undefined(self):
        shape = self._extended_shape()
        return torch.full(shape, torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self) -> torch.Tensor:
        """NaN: an index has no mean."""
        return self._undefined()

    @property
    def mode(self) -> torch.Tensor:
        """The most probable index; the first of several."""
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> torch.Tensor:
        """NaN: an index has no variance."""
        return self._undefined()

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        if not isinstance(sample_shape, torch.Size):
            sample_shape = torch.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = torch.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, logits = torch.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> torch.Tensor:
        # A probability of 0 adds 0 although its logarithm is infinite.
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> torch.Tensor:
        values = torch.arange(self._num_events, dtype=torch.long, device=self._param.device)
        return stack_values(values, self._batch_shape, expand)
