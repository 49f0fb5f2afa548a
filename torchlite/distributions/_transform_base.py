"""The base class of transforms, and transforms made of others: inverses, compositions, parts. `transforms.py` has the
elementary transforms.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Sequence
from typing import Any

import torchlite as torch

from . import constraints
from .utils import _sum_rightmost, lazy_property


class Transform:
    """A transformation :math:`y = t(x)` with its inverse and the logarithm of its Jacobian determinant.

    Calling the transform computes :math:`y`, ``t.inv`` is the inverse, and ``t.log_abs_det_jacobian(x, y)`` the
    logarithm. ``domain`` and ``codomain`` are constraints, ``bijective`` is a bool, and ``sign`` is +1 or -1 for a
    monotone transform. Subclasses define ``_call``, ``_inverse`` and `log_abs_det_jacobian`.

    Args:
        cache_size: Number of cached results, 0 or 1. With 1, the last :math:`x` and :math:`y` are kept, and
            ``t.inv(y)`` returns the :math:`x` of the forward call, which serves inverses that are slow or inexact.
            Default: 0.

    Raises:
        ValueError: ``cache_size`` is neither 0 nor 1.

    Example:
        >>> t = torch.distributions.ExpTransform()
        >>> t(torch.tensor(0.0)), t.inv(torch.tensor(1.0)), t.log_abs_det_jacobian(torch.tensor(2.0), None)
        (tensor(1.), tensor(0.), tensor(2.))

    See also:
        `TransformedDistribution`, `biject_to`.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._inv: weakref.ref[Transform] | None = None
        if cache_size == 0:
            pass
        elif cache_size == 1:
            self._cached_x_y: tuple[Any, Any] = None, None
        else:
            raise ValueError("cache_size must be 0 or 1")
        super().__init__()

    def __getstate__(self):
        state = self.__dict__.copy()
        state["_inv"] = None  # a weak reference; the inverse is created again on demand
        return state

    @property
    def event_dim(self):
        """The number of dimensions of an event; ValueError if `domain` and `codomain` have different ones."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse transform; its `inv` is this transform."""
        found = None if self._inv is None else self._inv()
        if found is None:
            found = _InverseTransform(self)
            self._inv = weakref.ref(found)
        return found

    @property
    def sign(self):
        """+1 if the transform is increasing, -1 if decreasing; NotImplementedError if it is not monotone."""
        raise NotImplementedError

    def with_cache(self, cache_size=1):
        """Return the transform with a cache of another size.

        Args:
            cache_size: The new size, 0 or 1. Default: 1.

        Returns:
            The transform itself if its cache has that size, else a new one.
        """
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return not self.__eq__(other)

    __hash__ = object.__hash__

    def __call__(self, x):
        """y of x."""
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        """x of y."""
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        r"""Compute :math:`\log |\det \partial y / \partial x|` for each event.

        Args:
            x: The input.
            y: The output, ``t(x)``.

        Returns:
            The logarithms, of the shape of ``x`` without the event's dimensions.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__ + "()"

    def forward_shape(self, shape):
        """Return the shape of the output for an input of a given shape.

        Args:
            shape: Shape of the input.

        Returns:
            Shape of the output.
        """
        return shape

    def inverse_shape(self, shape):
        """Return the shape of the input for an output of a given shape.

        Args:
            shape: Shape of the output.

        Returns:
            Shape of the input.
        """
        return shape


class _ParameterFreeTransform(Transform):
    """Transforms without parameters: all of a class are equal."""

    def __eq__(self, other):
        return isinstance(other, type(self))

    __hash__ = Transform.__hash__


class _InverseTransform(Transform):
    """The inverse of a transform, computed by the transform's methods."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Transform = transform  # type: ignore[assignment]

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The codomain of the transform that is inverted."""
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The domain of the transform that is inverted."""
        return self._inv.domain

    @property
    def bijective(self):
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size=1):
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    r"""A composition of transforms; the first part is applied first.

    .. math::

        y = t_n(\ldots t_2(t_1(x)) \ldots)

    Args:
        parts: Transforms.
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> D = torch.distributions
        >>> D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)])(torch.tensor(0.0))
        tensor(2.)
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def _widened(self, constraint, needed: int):
        """A constraint over an event of `needed` dimensions."""
        assert needed >= constraint.event_dim
        if needed > constraint.event_dim:
            constraint = constraints.independent(constraint, needed - constraint.event_dim)
        return constraint

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The domain of the first part, with the event dimensions that the parts need."""
        if not self.parts:
            return constraints.real
        # The event dimensions are the most that any part needs, counted before the first part.
        needed = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            needed = max(needed + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return self._widened(self.parts[0].domain, needed)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The codomain of the last part, with the event dimensions that the parts need."""
        if not self.parts:
            return constraints.real
        needed = self.parts[0].domain.event_dim
        for part in self.parts:
            needed = max(needed + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return self._widened(self.parts[-1].codomain, needed)

    @lazy_property
    def bijective(self):
        """Whether all parts are bijective."""
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self):
        """The product of the parts' signs."""
        return functools.reduce(operator.mul, (p.sign for p in self.parts), 1)

    @property
    def inv(self) -> Transform:
        """The composition of the parts' inverses in reverse order."""
        found = None if self._inv is None else self._inv()
        if found is None:
            found = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv = weakref.ref(found)
            found._inv = weakref.ref(self)
        return found

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return torch.zeros_like(x)
        steps = [x]  # x and the intermediate result of each part
        for part in self.parts[:-1]:
            steps.append(part(steps[-1]))
        steps.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, steps, steps[1:], strict=False):
            terms.append(_sum_rightmost(part.log_abs_det_jacobian(before, after), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(\n    " + ",\n    ".join(repr(p) for p in self.parts) + "\n)"


identity_transform = ComposeTransform([])
identity_transform.__doc__ = """The identity transform, :math:`y = x`, of real numbers.

Args:
    x: Tensor of real numbers.

Returns:
    ``x`` itself.

Example:
    >>> torch.distributions.identity_transform(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
"""
# doctest looks for the docstrings of functions and classes, not of instances.
__test__ = {"identity_transform": identity_transform.__doc__}


class IndependentTransform(Transform):
    """A transform whose last batch dimensions are event dimensions: the log Jacobians are summed over them.

    Args:
        base_transform: The transform of the elements.
        reinterpreted_batch_ndims: Number of batch dimensions that become event dimensions.
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Raises:
        ValueError: The input of a call has fewer dimensions than an event.

    Example:
        >>> D = torch.distributions
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> t = D.IndependentTransform(D.ExpTransform(), 1)
        >>> t.log_abs_det_jacobian(x, t(x))
        tensor([3., 7.])

    See also:
        `Independent`.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The base transform's domain, for each element of the event."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The base transform's codomain, for each element of the event."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        """Whether the base transform is bijective."""
        return self.base_transform.bijective

    @property
    def sign(self):
        """The base transform's sign."""
        return self.base_transform.sign

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


class _PiecewiseTransform(Transform):
    """Several transforms, each for a part of the tensor along `dim`."""

    transforms: list[Transform]

    @property
    def bijective(self):
        """Whether all transforms are bijective."""
        return all(t.bijective for t in self.transforms)


class CatTransform(_PiecewiseTransform):
    """Transforms for consecutive parts of a tensor along a dimension.

    ``tseq[i]`` transforms the next ``lengths[i]`` entries.

    Args:
        tseq: Transforms, one for each part.
        dim: Dimension along which the tensor is divided. Default: 0.
        lengths: Number of entries of each part. Default: ``None``, 1 each.
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Raises:
        AssertionError: An item of ``tseq`` is no `Transform`, ``lengths`` has another length, or the input of a call
            does not fit.

    Example:
        >>> D = torch.distributions
        >>> D.CatTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)], lengths=[1, 2])(torch.ones(3))
        tensor([2.7183, 2.0000, 2.0000])

    See also:
        `StackTransform`.
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        assert all(isinstance(t, Transform) for t in tseq), "All elements of tseq must be Transform instances"
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.transforms), (
            f"lengths must have same length as tseq, got {len(self.lengths)} and {len(self.transforms)}"
        )
        self.dim = dim

    @lazy_property
    def event_dim(self):
        """The largest `event_dim` of the transforms."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        """The number of entries along the dimension: the sum of ``lengths``."""
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, *tensors):
        """The transforms with their parts of each tensor."""
        for name, tensor in zip("xy", tensors, strict=False):
            assert -tensor.dim() <= self.dim < tensor.dim(), (
                f"dim {self.dim} out of range for {name} with {tensor.dim()} dimensions"
            )
            assert tensor.size(self.dim) == self.length, (
                f"{name}.size({self.dim}) = {tensor.size(self.dim)} must equal length {self.length}"
            )
        start = 0
        for transform, length in zip(self.transforms, self.lengths, strict=True):
            yield transform, *(t.narrow(self.dim, start, length) for t in tensors)
            start += length

    def _call(self, x):
        return torch.cat([t(part) for t, part in self._parts(x)], dim=self.dim)

    def _inverse(self, y):
        return torch.cat([t.inv(part) for t, part in self._parts(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        logs = []
        for transform, before, after in self._parts(x, y):
            log = transform.log_abs_det_jacobian(before, after)
            if transform.event_dim < self.event_dim:
                log = _sum_rightmost(log, self.event_dim - transform.event_dim)
            logs.append(log)
        # The dimension counted from the end, without event dimensions.
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return torch.cat(logs, dim=dim) if dim < 0 else sum(logs)

    @constraints.dependent_property
    def domain(self):
        """The transforms' domains, each for its part."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        """The transforms' codomains, each for its part."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_PiecewiseTransform):
    """Transforms for the slices of a tensor along a dimension.

    ``tseq[i]`` transforms the slice at index ``i``.

    Args:
        tseq: Transforms, one for each slice.
        dim: Dimension along which the tensor is divided. Default: 0.
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Raises:
        AssertionError: An item of ``tseq`` is no `Transform`, or the input of a call does not fit.

    Example:
        >>> D = torch.distributions
        >>> D.StackTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)], dim=1)(torch.ones(1, 2))
        tensor([[2.7183, 2.0000]])

    See also:
        `CatTransform`.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        assert all(isinstance(t, Transform) for t in tseq), "All elements of tseq must be Transform instances"
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slice(self, z):
        return [z.select(self.dim, i) for i in range(z.size(self.dim))]

    def _parts(self, *tensors):
        for name, tensor in zip("xy", tensors, strict=False):
            assert -tensor.dim() <= self.dim < tensor.dim(), (
                f"dim {self.dim} out of range for {name} with {tensor.dim()} dimensions"
            )
            assert tensor.size(self.dim) == len(self.transforms), (
                f"{name}.size({self.dim}) = {tensor.size(self.dim)} must equal len(transforms) {len(self.transforms)}"
            )
        return zip(self.transforms, *(self._slice(t) for t in tensors), strict=True)

    def _call(self, x):
        return torch.stack([t(part) for t, part in self._parts(x)], dim=self.dim)

    def _inverse(self, y):
        return torch.stack([t.inv(part) for t, part in self._parts(y)], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        parts = self._parts(x, y)
        return torch.stack([t.log_abs_det_jacobian(before, after) for t, before, after in parts], dim=self.dim)

    @constraints.dependent_property
    def domain(self):
        """The transforms' domains, each for its slice."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        """The transforms' codomains, each for its slice."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
