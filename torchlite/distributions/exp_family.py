"""Exponential families: densities h(x) exp(<T(x), theta> - A(theta))."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    r"""A distribution of an exponential family, the base class of those with natural parameters.

    .. math::

        p(x) = h(x) \exp\left( \langle T(x), \theta \rangle - A(\theta) \right)

    Subclasses define the natural parameters :math:`\theta` (``_natural_params``), the log-normalizer :math:`A`
    (``_log_normalizer``) and :math:`E[\log h(x)]` (``_mean_carrier_measure``). The entropy follows from them:

    .. math::

        H = A(\theta) - \langle \theta, \nabla A(\theta) \rangle - E[\log h(x)]

    Args:
        batch_shape: Shape over which the parameters are batched. Default: ``()``.
        event_shape: Shape of one draw. Default: ``()``.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Example:
        >>> poisson = torch.distributions.Poisson(torch.tensor(2.0))
        >>> isinstance(poisson, torch.distributions.ExponentialFamily)
        True
        >>> torch.distributions.Exponential(torch.tensor(2.0)).entropy()
        tensor(0.3069)

    References:
        F. Nielsen and R. Nock, "Entropies and cross-entropies of exponential families", 2010.
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
        """Compute the entropy from the gradient of the log-normalizer; the result is differentiable."""
        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        gradients = torch.autograd.grad(normalizer.sum(), parameters, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for parameter, gradient in zip(parameters, gradients, strict=True):
            result = result - (parameter * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
