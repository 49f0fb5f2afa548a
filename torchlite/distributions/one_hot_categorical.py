"""One-hot categorical distributions."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    r"""The categorical distribution of one-hot vectors: a 1 at index :math:`i` with probability :math:`p_i`.

    .. math::

        P(X = x) = \prod_{i=1}^K p_i^{x_i}, \quad x_i \in \{0, 1\}, \quad \sum_{i=1}^K x_i = 1

    The parameter is ``probs`` or ``logits``, and exactly one of them; it is normalized, as by `Categorical`. Samples
    have the parameter's dtype.

    Args:
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
        >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])

    See also:
        `Categorical`, `OneHotCategoricalStraightThrough`, `RelaxedOneHotCategorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _broadcast: dict[str, int] = {}

    def __init__(self, probs=None, logits=None, validate_args=None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new._categorical = self._categorical.expand(batch_shape)

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self):
        return self._categorical._param

    @property
    def probs(self) -> torch.Tensor:
        """The probabilities :math:`p_i`, of shape ``(..., K)``."""
        return self._categorical.probs

    @property
    def logits(self) -> torch.Tensor:
        """The logarithms of the probabilities, of shape ``(..., K)``."""
        return self._categorical.logits

    @property
    def mean(self) -> torch.Tensor:
        """The mean :math:`p_i`."""
        return self._categorical.probs

    @property
    def mode(self) -> torch.Tensor:
        """The most probable one-hot vector; the first of several."""
        return torch.nn.functional.one_hot(self.probs.argmax(dim=-1), num_classes=self._event_shape[0]).to(self.probs)

    @property
    def variance(self) -> torch.Tensor:
        """The variance :math:`p_i (1 - p_i)`."""
        return self._categorical.probs * (1 - self._categorical.probs)

    @property
    def param_shape(self):
        """The shape of the parameter that was given, ``(..., K)``."""
        return self._categorical.param_shape

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        indices = self._categorical.sample(torch.Size(sample_shape))
        return torch.nn.functional.one_hot(indices, self._event_shape[0]).to(self._categorical.probs)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> torch.Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> torch.Tensor:
        n = self.event_shape[0]
        values = torch.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n, *(1,) * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    r"""The one-hot categorical distribution whose samples have the gradient of the probabilities.

    The distribution is that of `OneHotCategorical`. `rsample` returns one-hot vectors, and its backward pass treats
    them as the probabilities: the straight-through estimator, which is biased.

    .. math::

        P(X = x) = \prod_{i=1}^K p_i^{x_i}, \quad x_i \in \{0, 1\}, \quad \sum_{i=1}^K x_i = 1

    Args:
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
        >>> logits = torch.zeros(2, requires_grad=True)
        >>> sample = torch.distributions.OneHotCategoricalStraightThrough(logits=logits).rsample()
        >>> (sample * torch.tensor([1.0, 3.0])).sum().backward()
        >>> logits.grad
        tensor([-0.5000,  0.5000])

    References:
        Y. Bengio, N. Léonard and A. Courville, "Estimating or propagating gradients through stochastic neurons for
        conditional computation", 2013.

    See also:
        `RelaxedOneHotCategorical`.
    """

    has_rsample = True

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        probs = self._categorical.probs  # saved, so that their gradient is shared
        return self.sample(sample_shape) + (probs - probs.detach())
