"""The multivariate normal distribution with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W, D):
    """The Cholesky factor of the capacitance I + W^T D^-1 W, of `W` (..., n, m) and the diagonal `D` (..., n)."""
    capacitance = torch.matmul((W / D.unsqueeze(-1)).mT, W)
    return torch.linalg.cholesky(capacitance + torch.eye(W.size(-1), dtype=W.dtype, device=W.device))


def _batch_lowrank_logdet(W, D, capacitance_tril):
    """log det(W W^T + D) = log det(capacitance) + log det(D), by the matrix determinant lemma."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W, D, x, capacitance_tril):
    """x^T (W W^T + D)^-1 x = x^T D^-1 x less the length of W^T D^-1 x over the capacitance, by Woodbury's identity."""
    projected = _batch_mv((W / D.unsqueeze(-1)).mT, x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Distribution):
    r"""The multivariate normal distribution whose covariance is a low-rank matrix plus a diagonal one.

    .. math::

        p(x) = \frac{1}{\sqrt{(2 \pi)^n \det \Sigma}}
        \exp\left( -\frac{1}{2} (x - \mu)^{\mathsf{T}} \Sigma^{-1} (x - \mu) \right), \quad
        \Sigma = W W^{\mathsf{T}} + \operatorname{diag}(d), \quad x \in \mathbb{R}^n

    `log_prob`, `entropy` and `rsample` factor an :math:`m \times m` matrix instead of :math:`\Sigma`, by Woodbury's
    identity and the matrix determinant lemma.

    Args:
        loc: Mean :math:`\mu`, a real tensor of shape ``(..., n)``.
        cov_factor: Factor :math:`W` of the low-rank part, a real tensor of shape ``(..., n, m)``.
        cov_diag: Diagonal :math:`d`, a tensor of positive numbers of shape ``(..., n)``.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: the leading dimensions of the parameters, broadcast together.
        - Event shape: ``(n,)``.

    Raises:
        ValueError: The parameters' shapes do not fit each other.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> D = torch.distributions
        >>> normal = D.LowRankMultivariateNormal(torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2))
        >>> normal.covariance_matrix
        tensor([[2., 0.],
                [0., 1.]])

    See also:
        `MultivariateNormal`.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _broadcast = {"loc": 1, "cov_factor": 2, "cov_diag": 1}

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril

    def _square(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\mu`."""
        return self.loc

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\mu`."""
        return self.loc

    @lazy_property
    def variance(self) -> torch.Tensor:
        r"""The variance of each element: the diagonal of :math:`\Sigma`."""
        by_entry = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return by_entry.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> torch.Tensor:
        """The covariance's Cholesky factor: with R = D^(1/2), W W^T + D = R (R^-1 W (R^-1 W)^T + I) R."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = torch.matmul(scaled, scaled.mT).contiguous()
        n = self._event_shape[0]
        inner = inner + torch.eye(n, dtype=inner.dtype, device=inner.device)
        return self._square(root * torch.linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> torch.Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._square(torch.matmul(factor, factor.mT) + torch.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> torch.Tensor:
        """The covariance's inverse: D^-1 - D^-1 W (capacitance)^-1 W^T D^-1."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        solved = torch.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        inverse = torch.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - torch.matmul(solved.mT, solved)
        return self._square(inverse)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        shape = self._extended_shape(sample_shape)
        columns = shape[:-1] + self.cov_factor.shape[-1:]
        low = _standard_normal(columns, dtype=self.loc.dtype, device=self.loc.device)
        each = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, low) + self._unbroadcasted_cov_diag.sqrt() * each

    def _log_det(self):
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc, self._capacitance_tril
        )
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> torch.Tensor:
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape)
