"""Base of distributions with `probs` or `logits` parameters."""

from __future__ import annotations

import torchlite as torch

from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


class ProbsOrLogitsMixin:
    """Parameters given as probabilities or as log-odds; the other ones are computed on first read."""

    _is_binary = True

    @staticmethod
    def _check_either(probs, logits) -> None:
        """ValueError unless exactly one of the two is given."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")

    def _take_numbers(self, probs, logits) -> torch.Size:
        """Set the given parameter, a number or a tensor; returns the batch shape."""
        self._check_either(probs, logits)
        name, given = ("probs", probs) if probs is not None else ("logits", logits)
        (self._param,) = broadcast_all(given)
        setattr(self, name, self._param)
        return self._param.size()

    def _take_vectors(self, probs, logits) -> None:
        """Set the given parameter, normalised along its last dimension."""
        self._check_either(probs, logits)
        name, given = ("probs", probs) if probs is not None else ("logits", logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self._param = self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self._param = self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)

    def _expand_rest(self, new, batch_shape) -> None:
        new._param = new.__dict__["probs" if self._param is self.__dict__.get("probs") else "logits"]

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> torch.Tensor:
        """The log-odds, or the logarithms of probabilities."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> torch.Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> torch.Size:
        """The shape of the parameter that was given."""
        return self._param.size()


def stack_values(values, batch_shape, expand):
    """Numbers along a new first dimension, before dimensions of 1 or (`expand`) of the batch."""
    values = values.view((-1,) + (1,) * len(batch_shape))
    return values.expand((-1, *batch_shape)) if expand else values
