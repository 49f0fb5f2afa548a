"""Mixtures of distributions of one family."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    r"""A mixture of distributions of one family.

    .. math::

        p(x) = \sum_{k=1}^K w_k \, p_k(x)

    The components :math:`p_k` are the last batch dimension of ``component_distribution``, and the weights :math:`w_k`
    are the probabilities of ``mixture_distribution``. The support is that of the components. Samples have no gradients.

    Args:
        mixture_distribution: A `Categorical` with :math:`K` categories.
        component_distribution: A distribution whose last batch dimension has size :math:`K`.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the components without its last dimension.
        - Event shape: that of the components.

    Raises:
        ValueError: An argument is of another class, or the batch shapes or the numbers of components differ.

    Example:
        >>> D = torch.distributions
        >>> components = D.Normal(torch.tensor([0.0, 2.0]), torch.ones(2))
        >>> mixture = D.MixtureSameFamily(D.Categorical(torch.ones(2)), components)
        >>> mixture.mean
        tensor(1.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False
    _broadcast: dict[str, int] = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        batch = mixture_distribution.batch_shape
        components = component_distribution.batch_shape[:-1]
        for one, other in zip(reversed(batch), reversed(components), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({batch}) is not compatible with "
                    f"`component_distribution.batch_shape`({components})"
                )
        count = mixture_distribution.logits.shape[-1]
        have = component_distribution.batch_shape[-1]
        if count is not None and have is not None and count != have:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({have})"
            )
        self._num_component = have
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(components, event_shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims

    @constraints.dependent_property
    def support(self):
        """The support of the components."""
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The `Categorical` distribution that chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weights(self):
        return self._pad_mixture_dimensions(self.mixture_distribution.probs)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\sum_k w_k \mu_k` of the components' means."""
        return torch.sum(self._weights() * self.component_distribution.mean, dim=-1 - self._event_ndims)

    @property
    def variance(self) -> torch.Tensor:
        """The variance by the law of total variance: the mean of the components' variances plus the variance of their
        means.
        """
        # Law of total variance: the mean of the variances, and the variance of the means.
        dim = -1 - self._event_ndims
        weights = self._weights()
        within = torch.sum(weights * self.component_distribution.variance, dim=dim)
        away = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return within + torch.sum(weights * away, dim=dim)

    def cdf(self, x: torch.Tensor) -> torch.Tensor:
        by_component = self.component_distribution.cdf(self._pad(x))
        return torch.sum(by_component * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(x)
        by_component = self.component_distribution.log_prob(self._pad(x))
        log_weights = torch.log_softmax(self.mixture_distribution.logits, dim=-1)
        return torch.logsumexp(by_component + log_weights, dim=-1)

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        with torch.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            of_all = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            wanted = list(of_all.shape)
            wanted[dim] = 1
            return torch.gather(of_all, dim, index.expand(wanted)).squeeze(dim)

    def _pad(self, x):
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x):
        """Return `x` with trailing dimensions of size one for the event."""
        return x.reshape(x.shape + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
