"""The logistic-normal distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .independent import Independent
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    r"""A distribution on the simplex: `StickBreakingTransform` of independent normal variables.

    .. math::

        x = t(z), \quad z_i \sim \mathcal{N}(\mu_i, \sigma_i^2), \qquad
        \log p(x) = \sum_{i=1}^K \log p(z_i) - \log \left| \det \frac{\partial t}{\partial z} \right|

    :math:`t` is `StickBreakingTransform`. An event has one entry more than there are normal variables.

    Args:
        loc: Means :math:`\mu`, real. A number (one variable) or a tensor of shape ``(..., K)``.
        scale: Standard deviations :math:`\sigma`, positive. A number or a tensor of shape ``(..., K)``.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together, without the last dimension.
        - Event shape: ``(K + 1,)``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.LogisticNormal(torch.zeros(3), torch.ones(3)).event_shape
        torch.Size([4])

    References:
        J. Atchison and S. M. Shen, "Logistic-normal distributions: some properties and uses", 1980.

    See also:
        `Dirichlet`, `StickBreakingTransform`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent
    _broadcast: dict[str, int] = {}

    def __init__(self, loc, scale, validate_args=None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> torch.Tensor:
        r"""The means :math:`\mu` of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> torch.Tensor:
        r"""The standard deviations :math:`\sigma` of the normal variables."""
        return self.base_dist.base_dist.scale
