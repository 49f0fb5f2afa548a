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
    """The log-odds of `RelaxedBernoulli`: a logistic variate about the log-odds, over the temperature (C. J. Maddison,
    A. Mnih and Y. W. Teh, "The concrete distribution", 2017, appendix C).
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
    """A continuous relaxation of Bernoulli on (0, 1), whose samples can be differentiated: the lower the `temperature`,
    the nearer they are to 0 and 1.

    >>> import torchlite as torch
    >>> torch.distributions.RelaxedBernoulli(torch.tensor([2.2]), torch.tensor([0.1, 0.9])).batch_shape
    torch.Size([2])
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
        """The temperature of the relaxation."""
        return self.base_dist.temperature

    @property
    def logits(self) -> torch.Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> torch.Tensor:
        return self.base_dist.probs
