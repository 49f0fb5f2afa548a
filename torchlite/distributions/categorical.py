"""The categorical distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from ._probs_or_logits import ProbsOrLogitsMixin, stack_values
from .distribution import Distribution

__all__ = ["Categorical"]


class Categorical(ProbsOrLogitsMixin, Distribution):
    """An index with the probabilities in the last dimension of `probs` (weights, which are normalised) or of
    exp(`logits`).

    >>> import torchlite as torch
    >>> torch.distributions.Categorical(torch.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
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
        return constraints.integer_interval(0, self._num_events - 1)

    def _undefined(self):
        shape = self._extended_shape()
        return torch.full(shape, torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self) -> torch.Tensor:
        return self._undefined()

    @property
    def mode(self) -> torch.Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> torch.Tensor:
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
