"""Distributions of transformed variables."""

from __future__ import annotations

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    r"""The distribution of a transformed random variable, :math:`Y = t(X)`.

    .. math::

        \log p_Y(y) = \log p_X(x) - \log \left| \det \frac{\partial y}{\partial x} \right|, \quad x = t^{-1}(y)

    The support is the codomain of the last transform, or that of the base distribution without transforms. The base
    distribution is expanded to the batch shape of the transforms' parameters. A transform of vectors or matrices takes
    batch dimensions of the base as event dimensions.

    Args:
        base_distribution: The distribution of :math:`X`.
        transforms: A `Transform`, or a list of them; the first is applied first.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape and event shape: together the shape of a transformed draw. The event has the dimensions of the
          base distribution's event and of the transforms' codomain.

    Raises:
        ValueError: ``transforms`` is neither a `Transform` nor a list of them, or the base distribution has too few
            dimensions.

    Example:
        >>> D = torch.distributions
        >>> logistic = D.TransformedDistribution(
        ...     D.Uniform(0.0, 1.0), [D.SigmoidTransform().inv, D.AffineTransform(loc=1.0, scale=2.0)]
        ... )
        >>> logistic.cdf(torch.tensor(1.0))
        tensor(0.5000)

    See also:
        `Transform`, `Independent`.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _broadcast: dict[str, int] = {}

    def __init__(self, base_distribution, transforms, validate_args=None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        whole = ComposeTransform(self.transforms)
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got "
                f"{base_shape}."
            )
        # The base is expanded to the batch shape of the transforms' parameters, and its event to the dimensions of the
        # first transform's domain.
        shape = whole.forward_shape(base_shape)
        expected_shape = whole.inverse_shape(shape)
        if base_shape != expected_shape:
            base_batch_shape = expected_shape[: len(expected_shape) - len(base_distribution.event_shape)]
            base_distribution = base_distribution.expand(base_batch_shape)
        more = whole.domain.event_dim - len(base_distribution.event_shape)
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        # Event dimensions of the base that the transforms do not change.
        grown = whole.codomain.event_dim - whole.domain.event_dim
        event_dim = max(whole.codomain.event_dim, len(base_distribution.event_shape) + grown)
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        shape = batch_shape + self.event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        """The codomain of the last transform, or the base distribution's support without transforms."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        if len(self.event_shape) > support.event_dim:
            support = constraints.independent(support, len(self.event_shape) - support.event_dim)
        return support

    @property
    def has_rsample(self):
        """Whether the base distribution has `rsample`."""
        return self.base_dist.has_rsample

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        with torch.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        log_prob = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            log_prob = log_prob - _sum_rightmost(
                transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim
            )
            y = x
        return log_prob + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value):
        """Return F(x) or 1 - F(x), as the composed transform increases or decreases."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))
