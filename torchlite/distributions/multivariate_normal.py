"""The multivariate normal distribution."""

from __future__ import annotations

import math

import torchlite as torch

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat, bvec):
    """Matrices times vectors, over a batch."""
    return torch.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL, bx):
    """The squared Mahalanobis distance x^T (L L^T)^-1 x for factors `bL` (..., n, n) and vectors `bx` (..., n)."""
    if bL.dim() == 2:  # one factor: all vectors are columns of one solve
        columns = bx.reshape(-1, bx.size(-1)).mT
        return torch.linalg.solve_triangular(bL, columns, upper=False).pow(2).sum(0).reshape(bx.shape[:-1])
    return torch.linalg.solve_triangular(bL, bx.unsqueeze(-1), upper=False).squeeze(-1).pow(2).sum(-1)


def _precision_to_scale_tril(P):
    """The Cholesky factor of the inverse of P.

    With rows and columns reversed P has a factor F, so that P = U U^T with an upper U (F reversed), and the inverse of
    U^T is the lower factor of the inverse of P.
    """
    upper = torch.linalg.cholesky(torch.flip(P, (-2, -1)))
    transposed = torch.transpose(torch.flip(upper, (-2, -1)), -2, -1)
    eye = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return torch.linalg.solve_triangular(transposed, eye, upper=False)


def _given_matrices(covariance_matrix, precision_matrix, scale_tril):
    """Return the matrices that are not None, by their names."""
    matrices = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
    return {name: matrix for name, matrix in matrices.items() if matrix is not None}


def _cholesky_factor(name, matrix):
    """Return the covariance's Cholesky factor, from the matrix of this name."""
    if name == "scale_tril":
        return matrix
    return torch.linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)


class MultivariateNormal(Distribution):
    r"""The multivariate normal distribution, with mean :math:`\mu` and covariance :math:`\Sigma`.

    .. math::

        p(x) = \frac{1}{\sqrt{(2 \pi)^n \det \Sigma}}
        \exp\left( -\frac{1}{2} (x - \mu)^{\mathsf{T}} \Sigma^{-1} (x - \mu) \right), \quad x \in \mathbb{R}^n

    Exactly one of ``covariance_matrix``, ``precision_matrix`` and ``scale_tril`` is given. All computations use the
    Cholesky factor, so ``scale_tril`` costs least.

    Args:
        loc: Mean :math:`\mu`, a real tensor of shape ``(..., n)``.
        covariance_matrix: Covariance :math:`\Sigma`, positive definite, of shape ``(..., n, n)``.
        precision_matrix: Precision :math:`\Sigma^{-1}`, positive definite, of shape ``(..., n, n)``.
        scale_tril: Cholesky factor :math:`L` with :math:`\Sigma = L L^{\mathsf{T}}`: lower triangular with a positive
            diagonal, of shape ``(..., n, n)``.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: the leading dimensions of the parameters, broadcast together.
        - Event shape: ``(n,)``.

    Raises:
        ValueError: Not exactly one of the three matrices is given, or a parameter has too few dimensions.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> normal.log_prob(torch.zeros(2))
        tensor(-1.8379)

    See also:
        `Normal`, `LowRankMultivariateNormal`.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _broadcast = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = _given_matrices(covariance_matrix, precision_matrix, scale_tril)
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{what} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = _cholesky_factor(name, matrix)

    def _expand_rest(self, new, batch_shape) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    @lazy_property
    def scale_tril(self) -> torch.Tensor:
        """The Cholesky factor :math:`L` of the covariance, of shape ``(..., n, n)``."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> torch.Tensor:
        r"""The covariance :math:`\Sigma`, of shape ``(..., n, n)``."""
        factor = self._unbroadcasted_scale_tril
        return torch.matmul(factor, factor.mT).expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> torch.Tensor:
        """The inverse of the covariance, of shape ``(..., n, n)``."""
        inverse = torch.cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\mu`."""
        return self.loc

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`\mu`."""
        return self.loc

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance of each element: the diagonal of :math:`\Sigma`."""
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        eps = _standard_normal(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> torch.Tensor:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape)
