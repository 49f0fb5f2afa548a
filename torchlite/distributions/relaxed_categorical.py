"""The relaxed one-hot categorical distribution."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    r"""The distribution of the logarithms of `RelaxedOneHotCategorical`.

    .. math::

        y = \operatorname{logsoftmax}\left( \frac{\log p + g}{T} \right), \quad g_i = -\log(-\log u_i), \quad
        u_i \sim \mathcal{U}(0, 1)

    The exponentials of an event sum to 1.

    Args:
        temperature: Temperature :math:`T`, a tensor of positive numbers.
        probs: Nonnegative weights with a positive sum, of shape ``(..., K)``. Each is divided by the sum.
        logits: Real numbers of shape ``(..., K)``; the probabilities are their softmax.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameter without its last dimension.
        - Event shape: ``(K,)``.

    Raises:
        ValueError: Both or none of ``probs`` and ``logits`` are given, or the given one is 0-dimensional.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> from torchlite.distributions.relaxed_categorical import ExpRelaxedCategorical
        >>> ExpRelaxedCategorical(torch.tensor(1.0), torch.ones(3)).rsample().exp().sum()
        tensor(1.0000)

    References:
        C. J. Maddison, A. Mnih and Y. W. Teh, "The concrete distribution: a continuous relaxation of discrete random
        variables", 2017.

        E. Jang, S. Gu and B. Poole, "Categorical reparameterization with Gumbel-softmax", 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # a submanifold of it: the logarithms' exponentials sum to 1
    has_rsample = True
    _broadcast: dict[str, int] = {}

    def __init__(self, temperature, probs=None, logits=None, validate_args=None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @property
    def param_shape(self):
        """The shape of the parameter that was given, ``(..., K)``."""
        return self._categorical.param_shape

    @property
    def logits(self) -> torch.Tensor:
        """The logarithms of the probabilities, of shape ``(..., K)``."""
        return self._categorical.logits

    @property
    def probs(self) -> torch.Tensor:
        """The probabilities :math:`p_i`, of shape ``(..., K)``."""
        return self._categorical.probs

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        gumbels = -((-(uniform.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        constant = torch.full_like(self.temperature, float(n)).lgamma() + self.temperature.log().mul(n - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + constant


class RelaxedOneHotCategorical(TransformedDistribution):
    r"""A continuous relaxation of the one-hot categorical distribution on the simplex, with differentiable samples.

    .. math::

        p(x) = \Gamma(K) \, T^{K - 1} \left( \sum_{i=1}^K p_i \, x_i^{-T} \right)^{-K}
        \prod_{i=1}^K p_i \, x_i^{-T - 1}, \quad x_i \ge 0, \quad \sum_{i=1}^K x_i = 1

    It is also called the concrete or Gumbel-softmax distribution. The lower the temperature :math:`T`, the nearer are
    samples to one-hot vectors. Exactly one of ``probs`` and ``logits`` is given.

    Args:
        temperature: Temperature :math:`T`, a tensor of positive numbers.
        probs: Nonnegative weights with a positive sum, of shape ``(..., K)``. Each is divided by the sum.
        logits: Real numbers of shape ``(..., K)``; the probabilities are their softmax.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the parameter without its last dimension.
        - Event shape: ``(K,)``.

    Raises:
        ValueError: Both or none of ``probs`` and ``logits`` are given, or the given one is 0-dimensional.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.RelaxedOneHotCategorical(torch.tensor([2.2]), torch.tensor([0.1, 0.9])).event_shape
        torch.Size([2])

    References:
        C. J. Maddison, A. Mnih and Y. W. Teh, "The concrete distribution: a continuous relaxation of discrete random
        variables", 2017.

        E. Jang, S. Gu and B. Poole, "Categorical reparameterization with Gumbel-softmax", 2017.

    See also:
        `OneHotCategoricalStraightThrough`, `torch.nn.functional.gumbel_softmax`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical
    _broadcast: dict[str, int] = {}

    def __init__(self, temperature, probs=None, logits=None, validate_args=None) -> None:
        super().__init__(
            ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args),
            ExpTransform(),
            validate_args=validate_args,
        )

    @property
    def temperature(self) -> torch.Tensor:
        """The temperature :math:`T`."""
        return self.base_dist.temperature

    @property
    def logits(self) -> torch.Tensor:
        """The logarithms of the probabilities, of shape ``(..., K)``."""
        return self.base_dist.logits

    @property
    def probs(self) -> torch.Tensor:
        """The probabilities :math:`p_i`, of shape ``(..., K)``."""
        return self.base_dist.probs
