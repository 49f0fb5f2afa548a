"""Distribution, the base class of all distributions."""

from __future__ import annotations

import warnings
from typing import Any

import torchlite as torch

from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution over tensors, the base class of all distributions.

    A batch of distributions has a `batch_shape`, and one draw from each has an `event_shape`. Gradients flow through
    `rsample` to the parameters. Subclasses declare `arg_constraints` and `support`. Unless ``validate_args=False``,
    parameters and values are checked against them. A subclass that lists its batched parameters in ``_broadcast``
    inherits `expand`.

    Args:
        batch_shape: Shape over which the parameters are batched. Default: ``()``.
        event_shape: Shape of one draw. Default: ``()``.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - ``sample(shape)`` and ``rsample(shape)``: ``shape + batch_shape + event_shape``.
        - ``log_prob(value)``: the shape of ``value`` broadcast with ``batch_shape + event_shape``, without the event's
          dimensions.

    Raises:
        ValueError: A parameter violates its constraint, or a value is outside of the support, and arguments are
            validated.

    Example:
        >>> normal = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> normal.batch_shape, normal.event_shape, normal.log_prob(torch.zeros(2, 3)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    # The parameters that `expand` repeats, each with how many dimensions of its end belong to the event.
    _broadcast: dict[str, int]

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions validate their arguments by default.

        Args:
            value: The new default, for distributions that get ``validate_args=None``.

        Raises:
            ValueError: ``value`` is not a bool.
        """
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=torch.Size(), event_shape=torch.Size(), validate_args=None) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        """ValueError for a parameter that violates its constraint. Lazy parameters that were not given are not
        computed.
        """
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for param, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if param not in self.__dict__ and isinstance(getattr(type(self), param), lazy_property):
                continue
            value = getattr(self, param)
            valid = constraint.check(value)
            if not valid.all():
                raise ValueError(
                    f"Expected parameter {param} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n"
                    f"{value}"
                )

    def expand(self, batch_shape, _instance=None):
        """Return the same distribution for a batch of another shape; its parameters are expanded views.

        Args:
            batch_shape: The new batch shape, to which the present one broadcasts.

        Returns:
            A distribution of the same class with the new `batch_shape`.

        Raises:
            NotImplementedError: The class defines ``__init__`` and neither ``expand`` nor ``_broadcast``.
        """
        names = getattr(type(self), "_broadcast", None)
        if names is None:
            raise NotImplementedError
        owner = next(cls for cls in type(self).__mro__ if "_broadcast" in vars(cls))
        new = self._get_checked_instance(owner, _instance)
        batch_shape = torch.Size(batch_shape)
        for name, events in names.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                own = value.shape[value.dim() - events :] if events else ()
                setattr(new, name, value.expand(batch_shape + tuple(own)))
        self._expand_rest(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_rest(self, new, batch_shape) -> None:
        """Set the attributes of the expanded distribution `new` that are not parameters."""

    @property
    def batch_shape(self) -> torch.Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> torch.Size:
        """The shape of one draw."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter, by its name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that all draws satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> torch.Tensor:
        """The mean, of shape ``batch_shape + event_shape``."""
        raise NotImplementedError

    @property
    def mode(self) -> torch.Tensor:
        """The most probable value, of shape ``batch_shape + event_shape``."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> torch.Tensor:
        """The variance of each element, of shape ``batch_shape + event_shape``."""
        raise NotImplementedError

    @property
    def stddev(self) -> torch.Tensor:
        """The standard deviation of each element: the square root of `variance`."""
        return self.variance.sqrt()

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        """Draw samples without gradients.

        Args:
            sample_shape: Shape of the draws, in front of the batch dimensions. Default: ``()``, one draw.

        Returns:
            A tensor of shape ``sample_shape + batch_shape + event_shape``.
        """
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        """Draw samples with gradients to the parameters (reparameterized samples).

        Args:
            sample_shape: Shape of the draws, in front of the batch dimensions. Default: ``()``, one draw.

        Returns:
            A tensor of shape ``sample_shape + batch_shape + event_shape``.

        Raises:
            NotImplementedError: The class has no such samples: ``has_rsample`` is false.
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> torch.Tensor:
        """Return ``sample((n,))``, with a warning; deprecated.

        Args:
            n: Number of draws.

        Returns:
            A tensor of shape ``(n,) + batch_shape + event_shape``.
        """
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", category=FutureWarning, stacklevel=2
        )
        return self.sample(torch.Size((n,)))

    def log_prob(self, value) -> torch.Tensor:
        """Compute the logarithm of the density, or of the probability mass, at a value.

        Args:
            value: Tensor that broadcasts with ``batch_shape + event_shape``.

        Returns:
            The logarithms, one for each event.

        Raises:
            ValueError: The value has a wrong shape or is outside of the support, and arguments are validated.
        """
        raise NotImplementedError

    def cdf(self, value) -> torch.Tensor:
        r"""Compute the cumulative distribution function :math:`F(x) = P(X \le x)`.

        Args:
            value: Tensor that broadcasts with ``batch_shape + event_shape``.

        Returns:
            The probabilities, one for each event.

        Raises:
            NotImplementedError: The class does not define this function.
        """
        raise NotImplementedError

    def icdf(self, value) -> torch.Tensor:
        """Compute the quantile function, the inverse of `cdf`.

        Args:
            value: Probabilities, in a tensor that broadcasts with ``batch_shape + event_shape``.

        Returns:
            The quantiles.

        Raises:
            NotImplementedError: The class does not define this function.
        """
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> torch.Tensor:
        """Return all values of a discrete distribution along a new first dimension.

        Args:
            expand: Whether to expand the values over the batch dimensions; else those have size 1. Default: ``True``.

        Returns:
            A tensor of shape ``(count,) + batch_shape + event_shape``.

        Raises:
            NotImplementedError: The support is not finite: ``has_enumerate_support`` is false.
        """
        raise NotImplementedError

    def entropy(self) -> torch.Tensor:
        """Compute the entropy in nats, of shape `batch_shape`."""
        raise NotImplementedError

    def perplexity(self) -> torch.Tensor:
        """Compute the perplexity, exp of the entropy, of shape `batch_shape`."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape: torch.types._size = torch.Size()) -> torch.Size:
        """Return the shape of `sample(sample_shape)`."""
        if not isinstance(sample_shape, torch.Size):
            sample_shape = torch.Size(sample_shape)
        return torch.Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value) -> None:
        """ValueError unless `value` is a tensor of a fitting shape within the support."""
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.dim() - len(self._event_shape)
        if value.shape[max(start, 0) :] != self._event_shape or start < 0:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for have, want in zip(reversed(value.shape), reversed(expected), strict=False):
            if have != 1 and want != 1 and have != want:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        assert support is not None, "support is None"
        valid = support.check(value)
        if not valid.all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        """Return an empty object for `expand` to fill. NotImplementedError for a subclass that defines `__init__` but
        not `expand`: the attributes that its __init__ sets would be missing.
        """
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must "
                "also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        shown = [name for name in self.arg_constraints if name in self.__dict__]
        words = []
        for name in shown:
            value = self.__dict__[name]
            words.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{self.__class__.__name__}({', '.join(words)})"
