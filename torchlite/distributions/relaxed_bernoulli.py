"""The relaxed Bernoulli distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from ._probs_or_logits import ProbsOrLogitsMixin
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogitsMixin, Distribution):
    r"""The distribution of the log-odds of `RelaxedBernoulli`.

    .. math::

        y = \frac{1}{T} \left( \log \frac{p}{1 - p} + \log \frac{u}{1 - u} \right), \quad u \sim \mathcal{U}(0, 1)

    It is a logistic distribution of location :math:`\log(p / (1 - p)) / T` and scale :math:`1 / T`, over the real
    numbers.

    Args:
        temperature: Temperature :math:`T`, a tensor of positive numbers.
        probs: Probability :math:`p`, in :math:`[0, 1]`. A number or a tensor.
        logits: Log-odds :math:`\log(p / (1 - p))`, real. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``probs`` or ``logits``.
        - Event shape: ``()``.

    Raises:
        ValueError: Both or none of ``probs`` and ``logits`` are given.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> from torchlite.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
        >>> LogitRelaxedBernoulli(torch.tensor(1.0), torch.tensor(0.5)).log_prob(torch.tensor(0.0)).exp()
        tensor(0.2500)

    References:
        C. J. Maddison, A. Mnih and Y. W. Teh, "The concrete distribution: a continuous relaxation of discrete random
        variables", 2017, appendix C.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _broadcast = {"probs": 0, "logits": 0}

    def __init__(self, temperature, probs=None, logits=None, validate_args=None) -> None:
        self.temperature = temperature
        super().__init__(self._take_numbers(probs, logits), validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        super()._expand_rest(new, batch_shape)
        new.temperature = self.temperature

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(torch.rand(shape, dtype=probs.dtype, device=probs.device))
        noise = uniform.log() - (-uniform).log1p()
        return (noise + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value.mul(self.temperature)
        return self.temperature.log() + away - 2 * away.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    r"""A continuous relaxation of the Bernoulli distribution on the unit interval, with differentiable samples.

    .. math::

        p(x) = \frac{T \alpha \, x^{-T - 1} (1 - x)^{-T - 1}}{\left( \alpha \, x^{-T} + (1 - x)^{-T} \right)^2}, \quad
        \alpha = \frac{p}{1 - p}, \quad x \in [0, 1]

    The lower the temperature :math:`T`, the nearer are samples to 0 and 1. Exactly one of ``probs`` and ``logits`` is
    given.

    Args:
        temperature: Temperature :math:`T`, a tensor of positive numbers.
        probs: Probability :math:`p`, in :math:`[0, 1]`. A number or a tensor.
        logits: Log-odds :math:`\log(p / (1 - p))`, real. A number or a tensor.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``probs`` or ``logits``.
        - Event shape: ``()``.

    Raises:
        ValueError: Both or none of ``probs`` and ``logits`` are given.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.RelaxedBernoulli(torch.tensor([2.2]), torch.tensor([0.1, 0.9])).batch_shape
        torch.Size([2])

    References:
        C. J. Maddison, A. Mnih and Y. W. Teh, "The concrete distribution: a continuous relaxation of discrete random
        variables", 2017.

    See also:
        `RelaxedOneHotCategorical`, `Bernoulli`.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli
    _broadcast: dict[str, int] = {}

    def __init__(self, temperature, probs=None, logits=None, validate_args=None) -> None:
        super().__init__(
            LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args
        )

    @property
    def temperature(self) -> torch.Tensor:
        """The temperature :math:`T`."""
        return self.base_dist.temperature

    @property
    def logits(self) -> torch.Tensor:
        r"""The log-odds :math:`\log(p / (1 - p))`."""
        return self.base_dist.logits

    @property
    def probs(self) -> torch.Tensor:
        """The probability :math:`p`."""
        return self.base_dist.probs
