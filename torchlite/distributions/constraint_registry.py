"""Registries of transforms from unconstrained space to constraints: `biject_to` and `transform_to`.

`biject_to(constraint)` is a bijection with a known Jacobian, for Hamiltonian Monte Carlo and the like.
`transform_to(constraint)` need not be one (softmax for the simplex), for optimisers.
`@biject_to.register(MyConstraint)` adds an entry.
"""

from __future__ import annotations

from numbers import Number

from torchlite._settings.module_dir import make_module_dir

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A registry from classes of constraints to functions that return a transform for a constraint.

    Calling the registry with a constraint returns the transform, whose codomain is the constraint.

    Example:
        >>> D = torch.distributions
        >>> registry = D.constraint_registry.ConstraintRegistry()
        >>> @registry.register(D.constraints.positive)
        ... def _(constraint):
        ...     return D.ExpTransform()
        >>> registry(D.constraints.positive)
        ExpTransform()

    See also:
        `biject_to`, `transform_to`.
    """

    def __init__(self) -> None:
        self._registry: dict = {}
        super().__init__()

    def register(self, constraint, factory=None):
        """Register a function for a class of constraints; also a decorator.

        Args:
            constraint: A subclass of `constraints.Constraint`, or an instance of one, which stands for its class.
            factory: Function that takes a constraint and returns a `Transform`. Default: ``None``; the method then
                returns a decorator.

        Returns:
            ``factory``, or a decorator that registers its function.

        Raises:
            TypeError: ``constraint`` is neither.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint):
        """Return a transform whose codomain is the constraint.

        Args:
            constraint: A `constraints.Constraint`.

        Returns:
            A `Transform` from unconstrained numbers.

        Raises:
            NotImplementedError: No function is registered for the constraint's class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to = ConstraintRegistry()
biject_to.__doc__ = """Return a bijection from unconstrained numbers to a constraint.

The bijection has `log_abs_det_jacobian`, which Hamiltonian Monte Carlo and variational inference need.
``@biject_to.register(MyConstraint)`` adds an entry.

Args:
    constraint: A `constraints.Constraint`.

Returns:
    A bijective `Transform` whose codomain is the constraint.

Raises:
    NotImplementedError: No bijection is registered for the constraint's class.

Example:
    >>> D = torch.distributions
    >>> D.biject_to(D.constraints.unit_interval)
    SigmoidTransform()
    >>> D.biject_to(D.constraints.simplex)
    StickBreakingTransform()

See also:
    `transform_to`.
"""
transform_to = ConstraintRegistry()
transform_to.__doc__ = """Return a transform from unconstrained numbers to a constraint, for optimizers.

The transform need not be bijective, and may cost less than that of `biject_to`.
``@transform_to.register(MyConstraint)`` adds an entry.

Args:
    constraint: A `constraints.Constraint`.

Returns:
    A `Transform` whose codomain is the constraint.

Raises:
    NotImplementedError: No transform is registered for the constraint's class.

Example:
    >>> D = torch.distributions
    >>> D.transform_to(D.constraints.simplex)
    SoftmaxTransform()
    >>> scale = D.transform_to(D.constraints.positive)(torch.tensor(0.0, requires_grad=True))
    >>> scale
    tensor(1., grad_fn=<AddBackward0>)

See also:
    `biject_to`.
"""
# doctest looks for the docstrings of functions and classes, not of instances.
__test__ = {"biject_to": biject_to.__doc__, "transform_to": transform_to.__doc__}


def _register_both(*kinds):
    """A decorator: a factory for both tables."""

    def taken(factory):
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return taken


@_register_both(constraints.real)
def _transform_to_real(constraint):
    return transforms.identity_transform


@biject_to.register(constraints.independent)
def _biject_to_independent(constraint):
    base = biject_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def _transform_to_independent(constraint):
    base = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_register_both(constraints.positive, constraints.nonnegative, constraints.greater_than, constraints.greater_than_eq)
def _transform_to_greater_than(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_register_both(constraints.less_than)
def _transform_to_less_than(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_register_both(constraints.interval, constraints.half_open_interval)
def _transform_to_interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and low == 0 and isinstance(high, Number) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint):
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _transform_to_positive_definite(constraint):
    return transforms.PositiveDefiniteTransform()


@_register_both(constraints.corr_cholesky)
def _transform_to_corr_cholesky(constraint):
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.cat)
def _biject_to_cat(constraint):
    return transforms.CatTransform([biject_to(c) for c in constraint.cseq], constraint.dim, constraint.lengths)


@transform_to.register(constraints.cat)
def _transform_to_cat(constraint):
    return transforms.CatTransform([transform_to(c) for c in constraint.cseq], constraint.dim, constraint.lengths)


@biject_to.register(constraints.stack)
def _biject_to_stack(constraint):
    return transforms.StackTransform([biject_to(c) for c in constraint.cseq], constraint.dim)


@transform_to.register(constraints.stack)
def _transform_to_stack(constraint):
    return transforms.StackTransform([transform_to(c) for c in constraint.cseq], constraint.dim)


__dir__ = make_module_dir(globals())
