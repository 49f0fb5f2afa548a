"""Constraints: regions of parameters and values, with `check(value)`, `event_dim` and `is_discrete`.

`check` returns a bool for each event: the last `event_dim` dimensions of the value are one event. Constraints without
parameters (`real`, `positive`, `simplex` ...) are instances; the others are classes: `interval(0, 1)`.
"""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "independent",
    "integer_interval",
    "interval",
    "half_open_interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "MixtureSameFamilyConstraint",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_semidefinite",
    "positive_definite",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region over which a variable is valid, the base class of all constraints.

    `event_dim` is the number of trailing dimensions that are one event, and `is_discrete` tells whether the region is
    discrete. Constraints without parameters, such as `positive` and `simplex`, are instances. The others are classes:
    ``interval(0, 1)``.

    Example:
        >>> torch.distributions.constraints.positive.check(torch.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value):
        """Check whether each event satisfies the constraint.

        Args:
            value: Tensor of values; its last `event_dim` dimensions are one event.

        Returns:
            A bool tensor, of the shape of ``value`` without the event's dimensions.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__[1:] + "()"


class _BoundedConstraint(Constraint):
    """A constraint by bounds, which its repr shows."""

    def __repr__(self) -> str:
        bounds = [f"{name}={getattr(self, name)}" for name in ("lower_bound", "upper_bound") if name in self.__dict__]
        return f"{self.__class__.__name__[1:]}({', '.join(bounds)})"


class _Dependent(Constraint):
    """A placeholder for a constraint that depends on other variables.

    `check` raises ValueError. Calling the instance `dependent` returns a copy with properties set. A property that is
    not set raises NotImplementedError.

    Args:
        is_discrete: Whether the region is discrete, if that is known.
        event_dim: Number of dimensions of an event, if that is known.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.dependent(is_discrete=False, event_dim=0).event_dim
        0
    """

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self):
        """Whether the region is discrete; NotImplementedError if that is not known."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        """The number of dimensions of an event; NotImplementedError if that is not known."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """Return a copy with properties set: `constraints.dependent(is_discrete=False, event_dim=0)`."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint) -> bool:
    """Return whether a constraint depends on other variables.

    Args:
        constraint: A `Constraint`.

    Returns:
        True for `dependent` and for a `dependent_property` of a class, else False.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.is_dependent(constraints.dependent), constraints.is_dependent(constraints.real)
        (True, False)
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A decorator for a property that is a constraint, such as the support of a distribution.

    On an instance the property is the constraint that the method returns. On the class it is a dependent constraint,
    with the properties that are known without an instance.

    Args:
        fn: The method. Default: ``None``; the decorator then takes it: ``@dependent_property(event_dim=0)``.
        is_discrete: Whether the region is discrete, if that is known.
        event_dim: Number of dimensions of an event, if that is known.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> class Uniform:
        ...     def __init__(self, low, high):
        ...         self.low, self.high = low, high
        ...     @constraints.dependent_property(is_discrete=False, event_dim=0)
        ...     def support(self):
        ...         return constraints.interval(self.low, self.high)
        >>> Uniform(0, 1).support, Uniform.support.event_dim
        (Interval(lower_bound=0, upper_bound=1), 0)
    """

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented) -> None:
        property.__init__(self, fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn):  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _ConstraintWrapper(Constraint):
    """Base of constraints that wrap another one."""

    base_constraint: Constraint

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete


class _IndependentConstraint(_ConstraintWrapper):
    """A constraint whose last batch dimensions are event dimensions: all elements of an event satisfy the base
    constraint.

    Args:
        base_constraint: The constraint of the elements.
        reinterpreted_batch_ndims: Number of batch dimensions that become event dimensions.

    Raises:
        AssertionError: ``base_constraint`` is no `Constraint`, or ``reinterpreted_batch_ndims`` is not a nonnegative
            int.
        ValueError: A checked value has too few dimensions.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.independent(constraints.positive, 1).check(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint, reinterpreted_batch_ndims) -> None:
        assert isinstance(base_constraint, Constraint), (
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
        )
        assert isinstance(reinterpreted_batch_ndims, int), (
            f"reinterpreted_batch_ndims must be an int, got {type(reinterpreted_batch_ndims).__name__}"
        )
        assert reinterpreted_batch_ndims >= 0, (
            f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
        )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def event_dim(self):
        """The base constraint's `event_dim` plus the number of reinterpreted dimensions."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        kept = result.shape[: result.dim() - self.reinterpreted_batch_ndims]
        return result.reshape(kept + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_ConstraintWrapper):
    """The support of a mixture: a value satisfies it if it is in the supports of all components.

    Args:
        base_constraint: The support of the components, whose last batch dimension enumerates them.

    Raises:
        AssertionError: ``base_constraint`` is no `Constraint`.
        ValueError: A checked value has too few dimensions.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> components = constraints.greater_than(torch.tensor([0.0, 1.0]))
        >>> constraints.MixtureSameFamilyConstraint(components).check(torch.tensor([0.5, 2.0]))
        tensor([False,  True])
    """

    def __init__(self, base_constraint) -> None:
        assert isinstance(base_constraint, Constraint), (
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
        )
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def event_dim(self):
        """The base constraint's `event_dim`."""
        return self.base_constraint.event_dim

    def check(self, value):
        events = self.base_constraint.event_dim
        by_component = self.base_constraint.check(value.unsqueeze(-1 - events))
        if value.dim() < events:
            raise ValueError(f"Expected value.dim() >= {events} but got {value.dim()}")
        kept = value.shape[: value.dim() - events]
        return by_component.reshape(kept + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    """The values 0 and 1.

    Example:
        >>> torch.distributions.constraints.boolean.check(torch.tensor([0.0, 0.5, 1.0]))
        tensor([ True, False,  True])
    """

    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors of zeros and a single one.

    Example:
        >>> torch.distributions.constraints.one_hot.check(torch.tensor([[0.0, 1.0], [1.0, 1.0]]))
        tensor([ True, False])
    """

    is_discrete = True
    event_dim = 1

    def check(self, value):
        is_boolean = (value == 0) | (value == 1)
        return is_boolean.all(-1) & value.sum(-1).eq(1)


class _IntegerInterval(_BoundedConstraint):
    """The integers from ``lower_bound`` to ``upper_bound``, both included.

    Args:
        lower_bound: The least value. A number or a tensor.
        upper_bound: The greatest value. A number or a tensor.

    Example:
        >>> torch.distributions.constraints.integer_interval(0, 2).check(torch.tensor([0.0, 1.5, 2.0, 3.0]))
        tensor([ True, False,  True, False])
    """

    is_discrete = True

    def __init__(self, lower_bound, upper_bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__()

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_BoundedConstraint):
    """Integers up to `upper_bound`."""

    is_discrete = True

    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_BoundedConstraint):
    """Integers from `lower_bound` on."""

    is_discrete = True

    def __init__(self, lower_bound) -> None:
        self.lower_bound = lower_bound
        super().__init__()

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """All numbers but NaN."""

    def check(self, value):
        return value == value


class _GreaterThan(_BoundedConstraint):
    """The numbers greater than ``lower_bound``.

    Args:
        lower_bound: The bound, which is excluded. A number or a tensor.

    Example:
        >>> torch.distributions.constraints.greater_than(1.0).check(torch.tensor([1.0, 2.0]))
        tensor([False,  True])
    """

    def __init__(self, lower_bound) -> None:
        self.lower_bound = lower_bound
        super().__init__()

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_BoundedConstraint):
    """The numbers greater than or equal to ``lower_bound``.

    Args:
        lower_bound: The bound, which is included. A number or a tensor.

    Example:
        >>> torch.distributions.constraints.greater_than_eq(1.0).check(torch.tensor([0.0, 1.0]))
        tensor([False,  True])
    """

    def __init__(self, lower_bound) -> None:
        self.lower_bound = lower_bound
        super().__init__()

    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_BoundedConstraint):
    """The numbers less than ``upper_bound``.

    Args:
        upper_bound: The bound, which is excluded. A number or a tensor.

    Example:
        >>> torch.distributions.constraints.less_than(1.0).check(torch.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, value):
        return value < self.upper_bound


class _Interval(_BoundedConstraint):
    """The numbers from ``lower_bound`` to ``upper_bound``, both included.

    Args:
        lower_bound: The lower bound. A number or a tensor.
        upper_bound: The upper bound. A number or a tensor.

    Example:
        >>> torch.distributions.constraints.interval(0.0, 1.0).check(torch.tensor([-0.5, 0.5, 1.0]))
        tensor([False,  True,  True])
    """

    def __init__(self, lower_bound, upper_bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__()

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_BoundedConstraint):
    """The numbers from ``lower_bound``, included, to ``upper_bound``, excluded.

    Args:
        lower_bound: The lower bound, which is included. A number or a tensor.
        upper_bound: The upper bound, which is excluded. A number or a tensor.

    Example:
        >>> torch.distributions.constraints.half_open_interval(0.0, 1.0).check(torch.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    def __init__(self, lower_bound, upper_bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__()

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers with sum 1, up to a rounding of 1e-6.

    Example:
        >>> torch.distributions.constraints.simplex.check(torch.tensor([[0.25, 0.75], [0.5, 0.75]]))
        tensor([ True, False])
    """

    event_dim = 1

    def check(self, value):
        return torch.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of nonnegative numbers with a sum of at most ``upper_bound``.

    Args:
        upper_bound: The greatest sum. A number or a tensor.

    Example:
        >>> torch.distributions.constraints.multinomial(3).check(torch.tensor([[1, 2], [2, 2]]))
        tensor([ True, False])
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


class _MatrixConstraint(Constraint):
    event_dim = 2

    @staticmethod
    def _all_entries(same):
        return same.reshape(same.shape[:-2] + (-1,)).all(-1)


class _LowerTriangular(_MatrixConstraint):
    """Matrices with zeros above the diagonal."""

    def check(self, value):
        return self._all_entries(value.tril() == value)


class _LowerCholesky(_MatrixConstraint):
    """Lower triangular matrices with a positive diagonal: Cholesky factors of positive definite matrices."""

    def check(self, value):
        lower = self._all_entries(value.tril() == value)
        return lower & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_MatrixConstraint):
    """Lower triangular matrices with a positive diagonal and rows of length 1: Cholesky factors of correlation
    matrices.
    """

    def check(self, value):
        tolerance = torch.finfo(value.dtype).eps * value.size(-1) * 10  # ten roundings a summand
        lengths = torch.linalg.norm(value.detach(), dim=-1)
        return _LowerCholesky().check(value) & (lengths - 1.0).abs().le(tolerance).all(dim=-1)


class _Square(_MatrixConstraint):
    """Square matrices."""

    def check(self, value):
        return torch.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices, up to a rounding of 1e-6."""

    def check(self, value):
        is_square = super().check(value)
        if not is_square.all():
            return is_square
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value):
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        return torch.linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value):
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        return torch.linalg.cholesky_ex(value).info.eq(0)


class _SequenceConstraint(Constraint):
    """Several constraints, each for a part of the value along `dim`."""

    cseq: list[Constraint]

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)


class _Cat(_SequenceConstraint):
    """Constraints for consecutive parts of a value along a dimension.

    ``cseq[i]`` constrains the next ``lengths[i]`` entries.

    Args:
        cseq: Constraints, one for each part.
        dim: Dimension along which the value is divided. Default: 0.
        lengths: Number of entries of each part. Default: ``None``, 1 each.

    Raises:
        AssertionError: An item of ``cseq`` is no `Constraint`, ``lengths`` has another length, or a checked value has
            no dimension ``dim``.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> parts = constraints.cat([constraints.positive, constraints.less_than(0.0)], lengths=[1, 2])
        >>> parts.check(torch.tensor([1.0, -1.0, 1.0]))
        tensor([ True,  True, False])
    """

    def __init__(self, cseq, dim=0, lengths=None) -> None:
        cseq = list(cseq)
        assert all(isinstance(c, Constraint) for c in cseq), "All elements of cseq must be Constraint instances"
        self.cseq = cseq
        self.lengths = [1] * len(cseq) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.cseq), (
            f"lengths must have same length as cseq, got {len(self.lengths)} and {len(self.cseq)}"
        )
        self.dim = dim
        super().__init__()

    @property
    def event_dim(self):
        """The largest `event_dim` of the constraints."""
        return max(c.event_dim for c in self.cseq)

    def check(self, value):
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for value with {value.dim()} dimensions"
        )
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return torch.cat(checks, self.dim)


class _Stack(_SequenceConstraint):
    """Constraints for the slices of a value along a dimension.

    ``cseq[i]`` constrains the slice at index ``i``.

    Args:
        cseq: Constraints, one for each slice.
        dim: Dimension along which the value is divided. Default: 0.

    Raises:
        AssertionError: An item of ``cseq`` is no `Constraint`, or a checked value has no dimension ``dim``.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.stack([constraints.positive, constraints.real]).check(torch.tensor([[1.0, -1.0], [1.0, -1.0]]))
        tensor([[ True, False],
                [ True,  True]])
    """

    def __init__(self, cseq, dim=0) -> None:
        cseq = list(cseq)
        assert all(isinstance(c, Constraint) for c in cseq), "All elements of cseq must be Constraint instances"
        self.cseq = cseq
        self.dim = dim
        super().__init__()

    @property
    def event_dim(self):
        """The largest `event_dim` of the constraints, and 1 more if the slices are along an event dimension."""
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value):
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for value with {value.dim()} dimensions"
        )
        parts = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        return torch.stack([c.check(v) for c, v in zip(self.cseq, parts, strict=False)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack


__dir__ = make_module_dir(globals())
