"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import torchlite as torch

from ._folded_distribution import FoldedDistribution
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(FoldedDistribution):
    r"""The half-Cauchy distribution, with scale :math:`\gamma`: that of :math:`|X|` for a Cauchy variable :math:`X`.

    .. math::

        p(x) = \frac{2}{\pi \gamma \left( 1 + (x / \gamma)^2 \right)}, \quad x \ge 0

    Args:
        scale: Scale :math:`\gamma` of the Cauchy distribution, positive: the median. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``scale``.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.HalfCauchy(1.0).cdf(torch.tensor(1.0))
        tensor(0.5000)

    See also:
        `Cauchy`, `HalfNormal`.
    """

    _unfolded = Cauchy

    @property
    def mean(self) -> torch.Tensor:
        """Infinity."""
        return torch.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self) -> torch.Tensor:
        """Infinity."""
        return self.base_dist.variance

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return super().log_prob(torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))
