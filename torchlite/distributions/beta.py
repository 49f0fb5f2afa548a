"""The beta distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    r"""The beta distribution on the unit interval, with concentrations :math:`\alpha` and :math:`\beta`.

    .. math::

        p(x) = \frac{\Gamma(\alpha + \beta)}{\Gamma(\alpha) \, \Gamma(\beta)} \, x^{\alpha - 1} (1 - x)^{\beta - 1},
        \quad x \in [0, 1]

    Args:
        concentration1: Concentration :math:`\alpha`, positive. A number or a tensor.
        concentration0: Concentration :math:`\beta`, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Beta(torch.tensor([1.0]), torch.tensor([3.0])).mean
        tensor([0.2500])

    See also:
        `Dirichlet`, `Kumaraswamy`.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _broadcast: dict[str, int] = {}

    def __init__(self, concentration1, concentration0, validate_args=None) -> None:
        both = torch.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new._dirichlet = self._dirichlet.expand(batch_shape)

    @property
    def concentration1(self) -> torch.Tensor:
        r"""The concentration :math:`\alpha`: the exponent of :math:`x`, plus 1."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> torch.Tensor:
        r"""The concentration :math:`\beta`: the exponent of :math:`1 - x`, plus 1."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\alpha / (\alpha + \beta)`."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value, :math:`(\alpha - 1) / (\alpha + \beta - 2)` where both concentrations exceed 1."""
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\alpha \beta / ((\alpha + \beta)^2 (\alpha + \beta + 1))`."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()) -> torch.Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(torch.stack([value, 1.0 - value], -1))

    def entropy(self) -> torch.Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return (self.concentration1, self.concentration0)

    def _log_normalizer(self, x, y):
        return torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y)
