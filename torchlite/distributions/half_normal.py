"""The half-normal distribution."""

from __future__ import annotations

import math

import torchlite as torch

from ._folded_distribution import FoldedDistribution
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(FoldedDistribution):
    r"""The half-normal distribution, with scale :math:`\sigma`: that of :math:`|X|` for a normal variable :math:`X` of
    mean 0.

    .. math::

        p(x) = \frac{\sqrt{2}}{\sigma \sqrt{\pi}} \exp\left( -\frac{x^2}{2 \sigma^2} \right), \quad x \ge 0

    Args:
        scale: Standard deviation :math:`\sigma` of the normal distribution, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``scale``.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.HalfNormal(1.0).mean
        tensor(0.7979)

    See also:
        `Normal`, `HalfCauchy`.
    """

    _unfolded = Normal

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\sigma \sqrt{2 / \pi}`."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\sigma^2 (1 - 2 / \pi)`."""
        return self.scale.pow(2) * (1 - 2 / math.pi)
