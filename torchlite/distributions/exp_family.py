"""Exponential families: densities h(x) exp(<T(x), theta> - A(theta))."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution of an exponential family; subclasses define its natural parameters and log-normaliser.

    The entropy follows from them (F. Nielsen and R. Nock, "Entropies and cross-entropies of exponential families",
    2010): A(theta) - <theta, grad A(theta)> - E[log h(x)].
    """

    @property
    def _natural_params(self) -> tuple[torch.Tensor, ...]:
        """theta, one tensor for each statistic."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params) -> torch.Tensor:
        """A(theta)."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        """E[log h(x)]."""
        raise NotImplementedError

    def entropy(self) -> torch.Tensor:
        """The entropy by the gradient of the log-normaliser; it can be differentiated in turn."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        gradients = torch.autograd.grad(normalizer.sum(), parameters, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for parameter, gradient in zip(parameters, gradients, strict=True):
            result = result - (parameter * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
