"""Invertible transformations with log |det Jacobian|, for TransformedDistribution and constrained parameters."""

from __future__ import annotations

import math
from numbers import Number

import torchlite as torch
from torchlite._settings.adopted_classes import adopt_classes
from torchlite._settings.module_dir import make_module_dir
from torchlite.nn.functional import pad, softplus

from . import _transform_base, constraints
from ._transform_base import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    StackTransform,
    Transform,
    _ParameterFreeTransform,
    identity_transform,
)
from .utils import broadcast_all, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "Transform",
    "identity_transform",
]


_InverseTransform = _transform_base._InverseTransform


class ReshapeTransform(Transform):
    """Reshapes events of one shape to another shape.

    Args:
        in_shape: Shape of an event of the input.
        out_shape: Shape of an event of the output, with as many elements.
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Raises:
        ValueError: The shapes have different numbers of elements.

    Example:
        >>> torch.distributions.ReshapeTransform((4,), (2, 2))(torch.zeros(3, 4)).shape
        torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size: int = 0) -> None:
        self.in_shape = torch.Size(in_shape)
        self.out_shape = torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        """The real tensors with events of ``in_shape``."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        """The real tensors with events of ``out_shape``."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return torch.zeros(x.shape[: x.dim() - len(self.in_shape)], dtype=x.dtype, layout=x.layout, device=x.device)

    @staticmethod
    def _exchanged(shape, old, new):
        if len(shape) < len(old):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._exchanged(shape, self.out_shape, self.in_shape)


class ExpTransform(_ParameterFreeTransform):
    r"""Transforms real numbers to positive ones by :math:`y = \exp(x)`.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.ExpTransform()(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """Transforms positive numbers by :math:`y = x^a`.

    Args:
        exponent: Exponent :math:`a`, not 0. A number or a tensor.
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.PowerTransform(2.0)(torch.tensor([1.0, 3.0]))
        tensor([1., 9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self):
        """The sign of the exponent."""
        return self.exponent.sign()

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all().item())

    __hash__ = Transform.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return torch.broadcast_shapes(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


def _clipped_sigmoid(x):
    """The logistic function, clamped away from 0 and 1 by the resolution of the dtype."""
    limits = torch.finfo(x.dtype)
    return torch.clamp(torch.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_ParameterFreeTransform):
    r"""Transforms real numbers to the unit interval by :math:`y = 1 / (1 + \exp(-x))`.

    The output is clamped away from 0 and 1 by the resolution of the dtype.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.SigmoidTransform()(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        limits = torch.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        # y' = y (1 - y), whose factors are exp(-softplus(-x)) and exp(-softplus(x)).
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_ParameterFreeTransform):
    r"""Transforms real numbers to positive ones by :math:`y = \log(1 + \exp(x))`.

    For :math:`x > 20` the output is :math:`x` itself.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.SoftplusTransform()(torch.tensor([0.0, 30.0]))
        tensor([ 0.6931, 30.0000])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(_ParameterFreeTransform):
    r"""Transforms real numbers to the interval from -1 to 1 by :math:`y = \tanh(x)`.

    The inverse is inexact where :math:`|y|` is near 1. A cache avoids that for values that the transform has computed.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.TanhTransform()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        # 1 - tanh(x)**2 = 4 / (exp(x) + exp(-x))**2
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_ParameterFreeTransform):
    """Transforms real numbers by :math:`y = |x|`; the inverse returns the nonnegative number.

    It is not bijective and has no `log_abs_det_jacobian`.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.AbsTransform()(torch.tensor([-2.0, 1.0]))
        tensor([2., 1.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """Transforms real numbers by :math:`y = a + b x`.

    Args:
        loc: Summand :math:`a`. A number or a tensor.
        scale: Factor :math:`b`, not 0. A number or a tensor.
        event_dim: Number of trailing dimensions that are one event, over which the log Jacobian is summed. Default: 0.
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.AffineTransform(1.0, 2.0)(torch.tensor([0.0, 3.0]))
        tensor([1., 7.])
    """

    bijective = True

    def __init__(self, loc, scale, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        """The number of trailing dimensions that are one event."""
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The real tensors with events of `event_dim` dimensions."""
        return constraints.real if self.event_dim == 0 else constraints.independent(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The real tensors with events of `event_dim` dimensions."""
        return constraints.real if self.event_dim == 0 else constraints.independent(constraints.real, self.event_dim)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    @staticmethod
    def _same(a, b) -> bool:
        if isinstance(a, Number) and isinstance(b, Number):
            return a == b
        return bool((a == b).all().item())

    def __eq__(self, other):
        return (
            isinstance(other, AffineTransform)
            and self._same(self.loc, other.loc)
            and self._same(self.scale, other.scale)
        )

    __hash__ = Transform.__hash__

    @property
    def sign(self):
        """The sign of ``scale``."""
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)  # type: ignore[operator]
        return self.scale.sign()

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        shape, scale = x.shape, self.scale
        if isinstance(scale, Number):
            result = torch.full_like(x, math.log(abs(scale)))  # type: ignore[arg-type]
        else:
            result = torch.abs(scale).log()
        if self.event_dim:
            result = result.view(result.size()[: -self.event_dim] + (-1,)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape):
        return torch.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CorrCholeskyTransform(Transform):
    r"""Transforms real vectors to Cholesky factors of correlation matrices.

    .. math::

        L_{ij} = z_{ij} \sqrt{1 - \sum_{k < j} L_{ik}^2} \;\; (j < i), \qquad
        L_{ii} = \sqrt{1 - \sum_{k < i} L_{ik}^2}

    The :math:`n (n - 1) / 2` entries of the vector, mapped by tanh, are the canonical partial correlations
    :math:`z_{ij}` below the diagonal, row by row.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.CorrCholeskyTransform()(torch.tensor([0.0]))
        tensor([[1., 0.],
                [0., 1.]])

    References:
        D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and extended
        onion method", 2009.

        Stan reference manual, "Cholesky factors of correlation matrices".
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        x = torch.tanh(x)
        eps = torch.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r * r).sqrt().cumprod(-1)  # the square root of a row's rest after each entry
        r = r + torch.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        rest = 1 - torch.cumsum(y * y, dim=-1)
        rest = pad(rest[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2  # atanh, which the logarithms compute more exactly near 1

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        """Compute the logarithm of the Jacobian determinant.

        `intermediates` has no effect: the forward call saves nothing.

        Args:
            x: The vectors.
            y: The factors, ``t(x)``.
            intermediates: Has no effect: the forward call saves nothing. Default: ``None``.

        Returns:
            The logarithms, of the shape of ``x`` without its last dimension.
        """
        # dL/dz of an entry of row i is the square root of the rest before it; dz/dx is 1 - tanh(x)**2.
        rest = 1 - (y * y).cumsum(dim=-1)
        logs = tril_matrix_to_vec(rest, diag=-2).log().sum(-1) / 2
        return logs - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class SoftmaxTransform(_ParameterFreeTransform):
    """Transforms real vectors to the simplex by softmax along the last dimension.

    It is not bijective, since vectors that differ by a constant have the same output. The inverse is the logarithm.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.SoftmaxTransform()(torch.zeros(4))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])

    See also:
        `StickBreakingTransform`.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_ParameterFreeTransform):
    r"""Transforms real vectors of :math:`n` entries to the simplex with :math:`n + 1` entries, by breaking a stick.

    .. math::

        s_i = \sigma(x_i - \log(n + 1 - i)), \qquad
        y_i = s_i \prod_{j < i} (1 - s_j), \qquad
        y_{n + 1} = \prod_{j=1}^n (1 - s_j)

    :math:`\sigma` is the logistic function, and :math:`s_i` the share of the rest of the stick that entry :math:`i`
    takes. For :math:`x = 0` all entries are equal.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.StickBreakingTransform()(torch.zeros(3))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])

    References:
        Stan reference manual, "Unit simplex".

    See also:
        `SoftmaxTransform`, `LogisticNormal`.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _log_to_come(x):
        """log of n, n - 1 ... 1 along the last dimension."""
        return (x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)).log()

    def _call(self, x):
        share = _clipped_sigmoid(x - self._log_to_come(x))
        left = (1 - share).cumprod(-1)
        return pad(share, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y):
        first = y[..., :-1]
        # The rest of the stick must not be rounded to zero.
        left = torch.clamp(1 - first.cumsum(-1), min=torch.finfo(y.dtype).tiny)
        return first.log() - left.log() + self._log_to_come(first)

    def log_abs_det_jacobian(self, x, y):
        # dy_i/dx_i = y_i (1 - share_i), and 1 - share = exp(-x) share for the logistic function.
        x = x - self._log_to_come(x)
        return (-x + torch.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_ParameterFreeTransform):
    """Transforms real square matrices to lower triangular ones with a positive diagonal.

    The diagonal is mapped by exp, the entries below it are kept, and those above it are set to 0.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.LowerCholeskyTransform()(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
        tensor([[1., 0.],
                [3., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_ParameterFreeTransform):
    r"""Transforms real square matrices to positive definite ones, :math:`L L^{\mathsf{T}}`.

    :math:`L` is the output of `LowerCholeskyTransform`.

    Args:
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> torch.distributions.PositiveDefiniteTransform()(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
        tensor([[ 1.,  3.],
                [ 3., 10.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """Transforms by the cumulative distribution function of a continuous distribution, :math:`y = F(x)`.

    Draws of the distribution become uniform on the unit interval. The inverse is the quantile function.

    Args:
        distribution: A distribution with `cdf`, `icdf` and `log_prob`.
        cache_size: Number of cached results, 0 or 1; see `Transform`. Default: 0.

    Example:
        >>> D = torch.distributions
        >>> D.CumulativeDistributionTransform(D.Normal(0.0, 1.0))(torch.tensor(0.0))
        tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        """The support of the distribution."""
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)


adopt_classes(globals())

__dir__ = make_module_dir(globals())
