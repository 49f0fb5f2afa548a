"""The chi-squared distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    r"""The chi-squared distribution with :math:`k` degrees of freedom.

    .. math::

        p(x) = \frac{x^{k/2 - 1} \exp(-x / 2)}{2^{k/2} \, \Gamma(k / 2)}, \quad x \ge 0

    It is the distribution of the sum of the squares of :math:`k` independent standard normal variables, and
    ``Gamma(df / 2, 1 / 2)``.

    Args:
        df: Degrees of freedom :math:`k`, a positive number or tensor, not necessarily an integer.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``df``.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Chi2(torch.tensor([3.0])).variance
        tensor([6.])

    See also:
        `Gamma`, `FisherSnedecor`, `Wishart`.
    """

    arg_constraints = {"df": constraints.positive}
    _broadcast = Gamma._broadcast

    def __init__(self, df, validate_args=None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> torch.Tensor:
        """The degrees of freedom :math:`k`."""
        return self.concentration * 2
