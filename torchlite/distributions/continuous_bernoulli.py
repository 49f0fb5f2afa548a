"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math

import torchlite as torch
from torchlite.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._probs_or_logits import ProbsOrLogitsMixin
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogitsMixin, ExponentialFamily):
    r"""The continuous Bernoulli distribution on the unit interval.

    .. math::

        p(x) = C(p) \, p^x (1 - p)^{1 - x}, \quad x \in [0, 1], \qquad
        C(p) = \frac{\log(1 - p) - \log p}{1 - 2 p}

    :math:`C(1/2)` is 2. The formulas divide 0 by 0 at :math:`p = 1/2`. For :math:`p` between ``lims`` they are replaced
    by Taylor expansions about :math:`1/2`. The parameter is ``probs`` or ``logits``, and exactly one of them.

    Args:
        probs: Parameter :math:`p`, in :math:`[0, 1]`; it is clamped away from 0 and 1. A number or a tensor.
        logits: Log-odds :math:`\log(p / (1 - p))`, real. A number or a tensor.
        lims: Bounds of :math:`p` between which the Taylor expansions are used. Default: ``(0.499, 0.501)``.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameter.
        - Event shape: ``()``.

    Raises:
        ValueError: Both or none of ``probs`` and ``logits`` are given.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.ContinuousBernoulli(torch.tensor(0.5)).mean
        tensor(0.5000)

    References:
        G. Loaiza-Ganem and J. P. Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational
        autoencoders", 2019.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _broadcast = {"probs": 0, "logits": 0}

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None) -> None:
        batch_shape = self._take_numbers(probs, logits)
        if probs is not None:
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self._param = self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        super()._expand_rest(new, batch_shape)
        new._lims = self._lims

    @lazy_property
    def probs(self) -> torch.Tensor:
        """The parameter p, clamped away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self):
        return torch.max(torch.le(self.probs, self._lims[0]), torch.gt(self.probs, self._lims[1]))

    def _cut_probs(self):
        """The probabilities, with a safe value where the expansion is used."""
        return torch.where(self._outside_unstable_region(), self.probs, torch.full_like(self.probs, self._lims[0]))

    def _expanded(self, exact, expansion):
        return torch.where(self._outside_unstable_region(), exact, expansion)

    def _cont_bern_log_norm(self):
        """log of the constant 2 atanh(1 - 2p) / (1 - 2p) = (log(1 - p) - log p) / (1 - 2p)."""
        cut = self._cut_probs()
        low = cut <= 0.5
        # log |1 - 2p|, with an argument in the domain on both sides
        below = torch.log1p(-2.0 * torch.where(low, cut, torch.zeros_like(cut)))
        above = torch.log(2.0 * torch.where(low, torch.ones_like(cut), cut) - 1.0)
        exact = torch.log(torch.abs(torch.log1p(-cut) - torch.log(cut))) - torch.where(low, below, above)
        square = torch.pow(self.probs - 0.5, 2)
        return self._expanded(exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`p / (2 p - 1) + 1 / (\log(1 - p) - \log p)`; :math:`1/2` for :math:`p = 1/2`."""
        cut = self._cut_probs()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (torch.log1p(-cut) - torch.log(cut))
        x = self.probs - 0.5
        return self._expanded(exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * torch.pow(x, 2)) * x)

    @property
    def stddev(self) -> torch.Tensor:
        """The standard deviation: the square root of `variance`."""
        return torch.sqrt(self.variance)

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`-p (1 - p) / (1 - 2 p)^2 + 1 / (\log(1 - p) - \log p)^2`; :math:`1/12` for
        :math:`p = 1/2`.
        """
        cut = self._cut_probs()
        exact = cut * (cut - 1.0) / torch.pow(1.0 - 2.0 * cut, 2)
        exact = exact + 1.0 / torch.pow(torch.log1p(-cut) - torch.log(cut), 2)
        square = torch.pow(self.probs - 0.5, 2)
        return self._expanded(exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * square) * square)

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        exact = (torch.pow(cut, value) * torch.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = self._expanded(exact, value)
        inside = torch.where(torch.ge(value, 1.0), torch.ones_like(inside), inside)
        return torch.where(torch.le(value, 0.0), torch.zeros_like(inside), inside)

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        cut = self._cut_probs()
        log_rest = torch.log1p(-cut)
        exact = (torch.log1p(-cut + value * (2.0 * cut - 1.0)) - log_rest) / (torch.log(cut) - log_rest)
        return self._expanded(exact, value)

    def entropy(self) -> torch.Tensor:
        log_rest = torch.log1p(-self.probs)
        return self.mean * (log_rest - torch.log(self.probs)) - self._cont_bern_log_norm() - log_rest

    @property
    def _natural_params(self):
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x):
        """log((exp(x) - 1) / x)."""
        outside = torch.max(torch.le(x, self._lims[0] - 0.5), torch.gt(x, self._lims[1] - 0.5))
        cut = torch.where(outside, x, torch.full_like(x, self._lims[0] - 0.5))
        exact = torch.log(torch.abs(torch.special.expm1(cut))) - torch.log(torch.abs(cut))
        expansion = 0.5 * x + torch.pow(x, 2) / 24.0 - torch.pow(x, 4) / 2880.0
        return torch.where(outside, exact, expansion)
