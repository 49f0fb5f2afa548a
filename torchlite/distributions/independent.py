"""Reinterpretation of batch dimensions as event dimensions."""

from __future__ import annotations

from typing import Generic, TypeVar

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .utils import _sum_rightmost

__all__ = ["Independent"]

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    r"""A distribution with batch dimensions of another one as event dimensions.

    .. math::

        \log p(x) = \sum_i \log p_i(x_i)

    The last ``reinterpreted_batch_ndims`` batch dimensions of the base distribution become event dimensions, over which
    `log_prob` and `entropy` are summed. The support is that of the base distribution for each element.

    Args:
        base_distribution: The distribution of the elements.
        reinterpreted_batch_ndims: Number of batch dimensions that become event dimensions.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of the base distribution without its last ``reinterpreted_batch_ndims`` dimensions.
        - Event shape: those dimensions, followed by the base distribution's event shape.

    Raises:
        ValueError: The base distribution has fewer batch dimensions.

    Example:
        >>> D = torch.distributions
        >>> diagonal = D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1)
        >>> diagonal.batch_shape, diagonal.event_shape
        (torch.Size([2]), torch.Size([3]))
        >>> diagonal.log_prob(torch.zeros(2, 3)).shape
        torch.Size([2])
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _broadcast: dict[str, int] = {}

    def __init__(self, base_distribution: D, reinterpreted_batch_ndims: int, validate_args=None) -> None:
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        self.base_dist: D = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        taken = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand(batch_shape + taken)
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims

    @property
    def has_rsample(self):
        """Whether the base distribution has `rsample`."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self):
        """Whether `enumerate_support` is defined: that of the base distribution, and false with reinterpreted
        dimensions.
        """
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        """The base distribution's support, for each element of the event."""
        support = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            support = constraints.independent(support, self.reinterpreted_batch_ndims)
        return support

    @property
    def mean(self) -> torch.Tensor:
        """The mean of the base distribution."""
        return self.base_dist.mean

    @property
    def mode(self) -> torch.Tensor:
        """The most probable value of the base distribution."""
        return self.base_dist.mode

    @property
    def variance(self) -> torch.Tensor:
        """The variance of the base distribution."""
        return self.base_dist.variance

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> torch.Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> torch.Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
