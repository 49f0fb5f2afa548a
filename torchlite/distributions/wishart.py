"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from numbers import Number

import torchlite as torch

from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _cholesky_factor, _given_matrices
from .utils import lazy_property

__all__ = ["Wishart"]

_log_2 = math.log(2)


def _mvdigamma(x, p: int):
    """The derivative of the multivariate log-gamma function."""
    assert x.gt((p - 1) / 2).all(), "Wrong domain for multivariate digamma function."
    steps = torch.arange(p, dtype=x.dtype, device=x.device)
    return torch.digamma(x.unsqueeze(-1) - (steps / 2).expand(x.shape + (-1,))).sum(-1)


def _clamp_above_eps(x):
    """Clamp squares away from 0, so that the matrix has full rank."""
    return x.clamp(min=torch.finfo(x.dtype).eps)


class Wishart(ExponentialFamily):
    r"""The Wishart distribution of positive definite matrices, with :math:`\nu` degrees of freedom.

    .. math::

        p(X) = \frac{(\det X)^{(\nu - n - 1) / 2} \exp\left( -\frac{1}{2} \operatorname{tr}(V^{-1} X) \right)}
        {2^{\nu n / 2} (\det V)^{\nu / 2} \, \Gamma_n(\nu / 2)}

    The support is the symmetric positive definite :math:`n \times n` matrices; :math:`\Gamma_n` is the multivariate
    gamma function. For an integer :math:`\nu` it is the distribution of the sum of :math:`z z^{\mathsf{T}}` over
    :math:`\nu` independent normal vectors :math:`z` of mean 0 and covariance :math:`V`. Exactly one of
    ``covariance_matrix``, ``precision_matrix`` and ``scale_tril`` is given.

    Args:
        df: Degrees of freedom :math:`\nu`, above :math:`n - 1`. A number or a tensor.
        covariance_matrix: Scale matrix :math:`V`, positive definite, of shape ``(..., n, n)``.
        precision_matrix: Inverse :math:`V^{-1}`, positive definite, of shape ``(..., n, n)``.
        scale_tril: Cholesky factor :math:`L` with :math:`V = L L^{\mathsf{T}}`: lower triangular with a positive
            diagonal, of shape ``(..., n, n)``.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``df`` and of the matrix's leading dimensions, broadcast together.
        - Event shape: ``(n, n)``.

    Raises:
        AssertionError: Not exactly one of the three matrices is given.
        ValueError: The matrix has less than two dimensions, or ``df`` is not above ``n - 1``.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.Wishart(torch.tensor([2.0]), covariance_matrix=torch.eye(2)).mean
        tensor([[[2., 0.],
                 [0., 2.]]])

    References:
        W. B. Smith and R. R. Hocking, "Algorithm AS 53: Wishart variate generator", 1972 (Bartlett's decomposition,
        which samples use).

    See also:
        `Chi2`, `LKJCholesky`, `MultivariateNormal`.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _broadcast = {"df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    @property
    def arg_constraints(self):
        """The constraints of the parameters; ``df`` is above :math:`n - 1`."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None) -> None:
        given = _given_matrices(covariance_matrix, precision_matrix, scale_tril)
        assert len(given) == 1, "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Number):
            batch_shape = torch.Size(matrix.shape[:-2])
            self.df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)  # type: ignore[arg-type]
        else:
            batch_shape = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        self._unbroadcasted_scale_tril = _cholesky_factor(name, matrix)
        self._set_squares()

    def _set_squares(self) -> None:
        """The distribution of the squares of the diagonal in Bartlett's decomposition."""
        self._batch_dims = [-(x + 1) for x in range(len(self._batch_shape))]
        n = self._event_shape[-1]
        row = torch.arange(n, dtype=self._unbroadcasted_scale_tril.dtype, device=self._unbroadcasted_scale_tril.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - row.expand(self._batch_shape + (-1,)))

    def _expand_rest(self, new, batch_shape) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        new._batch_shape, new._event_shape = batch_shape, self._event_shape
        new._set_squares()

    @lazy_property
    def scale_tril(self) -> torch.Tensor:
        """The Cholesky factor of :math:`V`, of shape ``(..., n, n)``."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> torch.Tensor:
        """The scale matrix :math:`V`, of shape ``(..., n, n)``."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.transpose(-2, -1)).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> torch.Tensor:
        """The inverse of :math:`V`, of shape ``(..., n, n)``."""
        n = self._event_shape[-1]
        eye = torch.eye(n, device=self._unbroadcasted_scale_tril.device, dtype=self._unbroadcasted_scale_tril.dtype)
        inverse = torch.cholesky_solve(eye, self._unbroadcasted_scale_tril)
        return inverse.expand(self._batch_shape + self._event_shape)

    @property
    def mean(self) -> torch.Tensor:
        r"""The mean :math:`\nu V`."""
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> torch.Tensor:
        r"""The most probable value :math:`(\nu - n - 1) V`; NaN for :math:`\nu \le n + 1`."""
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, torch.nan)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> torch.Tensor:
        r"""The variance :math:`\nu (V_{ij}^2 + V_{ii} V_{jj})` of element :math:`(i, j)`."""
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        products = torch.einsum("...i,...j->...ij", diagonal, diagonal)
        return self.df.view(self._batch_shape + (1, 1)) * (v.pow(2) + products)

    def _bartlett_sampling(self, sample_shape: torch.types._size = torch.Size()):
        n = self._event_shape[-1]
        noise = _clamp_above_eps(self._dist_chi2.rsample(sample_shape).sqrt()).diag_embed(dim1=-2, dim2=-1)
        i, j = torch.tril_indices(n, n, offset=-1, device=noise.device)
        noise[..., i, j] = torch.randn(
            torch.Size(sample_shape) + self._batch_shape + (n * (n - 1) // 2,), dtype=noise.dtype, device=noise.device
        )
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.transpose(-2, -1)

    def _over_batch(self, flags):
        """Flags of samples, each the largest of its batch."""
        return flags.amax(self._batch_dims) if self._batch_shape else flags

    def rsample(self, sample_shape: torch.types._size = torch.Size(), max_try_correction=None):
        """Draw samples with gradients to the parameters; singular ones are drawn again.

        PyTorch's first check reports regular samples as singular, with a warning, and draws them again. This function
        does the same, since its stream of random numbers equals PyTorch's.

        Args:
            sample_shape: Shape of the draws, in front of the batch dimensions. Default: ``()``, one draw.
            max_try_correction: How often singular samples are drawn again at most. Default: ``None``, 10 times.

        Returns:
            A tensor of shape ``sample_shape + batch_shape + event_shape``.
        """
        tries = 10 if max_try_correction is None else max_try_correction
        sample = self._bartlett_sampling(torch.Size(sample_shape))
        again = self._over_batch(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(tries):
                drawn = self._bartlett_sampling(again[again].shape)
                sample = sample.index_put((again,), drawn)
                singular = self._over_batch(~self.support.check(drawn))
                again = again.masked_scatter(again, singular)
                if not again.any():
                    break
        return sample

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, n = self.df, self._event_shape[-1]
        half_log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        trace = torch.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return (
            -nu * (n * _log_2 / 2 + half_log_det)
            - torch.mvlgamma(nu / 2, p=n)
            + (nu - n - 1) / 2 * torch.linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> torch.Tensor:
        nu, n = self.df, self._event_shape[-1]
        half_log_det = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return (
            (n + 1) * (n * _log_2 / 2 + half_log_det)
            + torch.mvlgamma(nu / 2, p=n)
            - (nu - n - 1) / 2 * _mvdigamma(nu / 2, p=n)
            + nu * n / 2
        )

    @property
    def _natural_params(self):
        return (-self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2)

    def _log_normalizer(self, x, y):
        n = self._event_shape[-1]
        half_df = y + (n + 1) / 2
        return half_df * (-torch.linalg.slogdet(-2 * x).logabsdet + _log_2 * n) + torch.mvlgamma(half_df, p=n)
