"""Fisher's F distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    r"""The F distribution, with :math:`d_1` and :math:`d_2` degrees of freedom.

    .. math::

        p(x) = \frac{\Gamma\left( \frac{d_1 + d_2}{2} \right)}{\Gamma\left( \frac{d_1}{2} \right)
        \Gamma\left( \frac{d_2}{2} \right)} \left( \frac{d_1}{d_2} \right)^{d_1 / 2} x^{d_1 / 2 - 1}
        \left( 1 + \frac{d_1}{d_2} x \right)^{-(d_1 + d_2) / 2}, \quad x > 0

    It is the distribution of :math:`(A / d_1) / (B / d_2)` for independent chi-squared variables :math:`A` and
    :math:`B` with :math:`d_1` and :math:`d_2` degrees of freedom.

    Args:
        df1: Degrees of freedom :math:`d_1` of the numerator, positive. A number or a tensor.
        df2: Degrees of freedom :math:`d_2` of the denominator, positive. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameters, broadcast together.
        - Event shape: ``()``.

    Raises:
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.FisherSnedecor(torch.tensor([2.0]), torch.tensor([4.0])).mean
        tensor([2.])

    See also:
        `Chi2`, `StudentT`.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _broadcast = {"df1": 0, "df2": 0}

    def __init__(self, df1, df2, validate_args=None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new._gamma1 = self._gamma1.expand(batch_shape)
        new._gamma2 = self._gamma2.expand(batch_shape)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`d_2 / (d_2 - 2)`; NaN for :math:`d_2 \le 2`."""
        df2 = self.df2.masked_fill(self.df2 <= 2, torch.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`(d_1 - 2) \, d_2 / (d_1 (d_2 + 2))`; NaN for :math:`d_1 \le 2`."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, torch.nan)

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`2 d_2^2 (d_1 + d_2 - 2) / (d_1 (d_2 - 2)^2 (d_2 - 4))`; NaN for :math:`d_2 \le 4`."""
        df2 = self.df2.masked_fill(self.df2 <= 4, torch.nan)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        shape = self._extended_shape(sample_shape)
        # Gamma(df / 2, df) is half of chi2 / df.
        upper = self._gamma1.rsample(sample_shape).view(shape)
        lower = self._gamma2.rsample(sample_shape).view(shape)
        tiny = torch.finfo(lower.dtype).tiny
        lower.detach().clamp_(min=tiny)
        ratio = upper / lower
        ratio.detach().clamp_(min=tiny)
        return ratio

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        constant = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        density = half1 * ratio.log() + (half1 - 1) * torch.log(value)
        return constant + density - (half1 + half2) * torch.log1p(ratio * value)
