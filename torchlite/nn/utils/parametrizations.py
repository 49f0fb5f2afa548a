"""Ready-made parametrizations: orthogonal matrices, weight norm, spectral norm."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir
from torchlite.nn import functional as F
from torchlite.nn.modules.module import Module

from . import parametrize
from .weight_norm import _norm_except

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """X -> Q with orthonormal columns (or rows), by the exponential or the Cayley map of a skew matrix, or by
    Householder reflections.
    """

    def __init__(self, weight: Tensor, orthogonal_map: Any, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Tensor:
        rows, columns = X.size(-2), X.size(-1)
        transposed = rows < columns
        if transposed:
            X, rows, columns = X.mT, columns, rows
        if self.orthogonal_map is _OrthMaps.householder:
            lower = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (lower * lower).sum(dim=-2))
            Q = torch.linalg.householder_product(lower, tau)
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            A = X.tril()
            if rows != columns:  # square, with zeros to the right
                A = torch.cat([A, A.new_zeros((*A.shape[:-1], rows - columns))], dim=-1)
            A = A - A.mH
            if self.orthogonal_map is _OrthMaps.matrix_exp:
                Q = torch.matrix_exp(A)
            else:
                identity = torch.eye(rows, dtype=A.dtype, device=A.device)
                Q = torch.linalg.solve(identity - 0.5 * A, identity + 0.5 * A)
            if rows != columns:
                Q = Q[..., :columns]
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if transposed else Q

    def right_inverse(self, Q: Any) -> Any:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        transposed = Q.size(-2) < Q.size(-1)
        tall = Q.mT if transposed else Q
        rows, columns = tall.size(-2), tall.size(-1)
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            A, tau = torch.geqrf(tall)
            A.diagonal(dim1=-2, dim2=-1).sign_()
            A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return A.mT if transposed else A
        if rows == columns:
            self.base = (tall if _is_orthogonal(tall) else _make_orthogonal(tall)).contiguous().clone()
        else:
            columns_given = tall if _is_orthogonal(tall) else _make_orthogonal(tall)
            full = columns_given.new_empty((*tall.shape[:-1], rows - columns)).normal_()
            # The rest of an orthonormal basis: random directions, orthogonal to the given columns.
            full = full - columns_given @ (columns_given.mH @ full)
            full = full - columns_given @ (columns_given.mH @ full)
            rest, _ = torch.linalg.qr(full)
            self.base = torch.cat([columns_given, rest], dim=-1).contiguous()
        # At the identity of the map: reflections by zero vectors flip one axis each, which the sign of the diagonal
        # undoes.
        zero = torch.zeros_like(tall)
        zero.diagonal(dim1=-2, dim2=-1).fill_(-1.0 if self.orthogonal_map is _OrthMaps.householder else 0.0)
        return zero.mT if transposed else zero


def _is_orthogonal(Q, eps=None):
    columns = Q.size(-1)
    eye = torch.eye(columns, dtype=Q.dtype, device=Q.device)
    return torch.allclose(Q.mH @ Q, eye, atol=eps if eps is not None else 10.0 * Q.size(-2) * torch.finfo(Q.dtype).eps)


def _make_orthogonal(A):
    Q, R = torch.linalg.qr(A)
    return Q * R.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: Any = None, *, use_trivialization: bool = True
) -> Any:
    r"""Constrains a weight to an orthogonal matrix, by a parametrization.

    A matrix that is not square gets orthonormal rows or columns, whichever are fewer. Of a batch each matrix is
    constrained. With :math:`A` as the skew-symmetric matrix of the original's lower triangle, ``"matrix_exp"`` is
    :math:`\exp(A)` and ``"cayley"`` is :math:`(I - A / 2)^{-1} (I + A / 2)`. ``"householder"`` is a product of
    reflections.

    Args:
        module: The module, which is changed.
        name: Name of the weight, of at least 2 dimensions. Default: ``"weight"``.
        orthogonal_map: ``"matrix_exp"``, ``"cayley"`` or ``"householder"``. Default: ``"matrix_exp"`` for square or
            complex matrices, else ``"householder"``.
        use_trivialization: Whether the map is multiplied by a fixed orthogonal matrix, so that it begins at the given
            weight (made orthogonal) and the weight may be assigned. Default: ``True``.

    Returns:
        The module.

    Raises:
        ValueError: The module has no such tensor, it has fewer than 2 dimensions, or ``orthogonal_map`` is unknown or
            does not accept complex tensors.

    Example:
        >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(4, 2))
        >>> torch.allclose(layer.weight @ layer.weight.T, torch.eye(2), atol=1e-5)
        True

    References:
        - M. Lezcano-Casado. Trivializations for gradient-based optimization on manifolds. 2019.

    See also:
        `torch.nn.init.orthogonal_`.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, torch.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrize.register_parametrization(
        module, name, _Orthogonal(weight, chosen, use_trivialization=use_trivialization), unsafe=True
    )
    return module


class _WeightNorm(Module):
    def __init__(self, dim: int = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Tensor:
        return weight_v * (weight_g / _norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> Any:
        return _norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Any:
    r"""Splits a weight into magnitude and direction, by a parametrization.

    .. math::

        w = g \, \frac{v}{\|v\|}

    The parameters are ``parametrizations.{name}.original0``, which is :math:`g`, and ``original1``, which is :math:`v`.
    Checkpoints of the older `torch.nn.utils.weight_norm` can be loaded.

    Args:
        module: The module, which is changed.
        name: Name of the weight. Default: ``"weight"``.
        dim: Dimension whose indices have a magnitude each; ``None`` is one magnitude for the whole weight. Default: 0.

    Returns:
        The module.

    Raises:
        ValueError: The module has no such tensor.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
        >>> layer.parametrizations.weight.original0.shape, layer.parametrizations.weight.original1.shape
        (torch.Size([2, 1]), torch.Size([2, 3]))

    References:
        - T. Salimans, D. P. Kingma. Weight normalization: A simple reparameterization to accelerate training of deep
          neural networks. 2016.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_old_names(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        for old, new in (("g", "original0"), ("v", "original1")):
            key = f"{prefix}{name}_{old}"
            if key in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_old_names)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            height, width = matrix.size()
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=self.eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=self.eps))
            with torch.no_grad():
                self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, matrix, n_power_iterations):
        with torch.no_grad():
            for _ in range(n_power_iterations):
                self._u.copy_(F.normalize(torch.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(torch.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / torch.vdot(u, torch.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    r"""Divides a weight by its largest singular value, by a parametrization.

    The largest singular value is estimated as :math:`u^{\mathsf{T}} W v`. Each read in training mode improves :math:`u`
    and :math:`v` by power iterations. A vector is divided by its norm.

    Args:
        module: The module, which is changed.
        name: Name of the weight. Default: ``"weight"``.
        n_power_iterations: Number of power iterations of a read; at least 1. Default: 1.
        eps: Least norm by which vectors are divided. Default: 1e-12.
        dim: Dimension that becomes the rows of the matrix :math:`W`; all others are its columns. Default: 1 for
            transposed convolutions, else 0.

    Returns:
        The module.

    Raises:
        ValueError: The module has no such tensor, or ``n_power_iterations`` is less than 1.
        IndexError: ``dim`` is out of range.

    Example:
        >>> layer = torch.nn.Linear(2, 2)
        >>> _ = torch.nn.init.constant_(layer.weight, 3.0)  # the largest singular value is 6
        >>> torch.nn.utils.parametrizations.spectral_norm(layer).weight.detach()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])

    References:
        - T. Miyato, T. Kataoka, M. Koyama, Y. Yoshida. Spectral normalization for generative adversarial networks.
          2018.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, torch.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        transposed = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


__dir__ = make_module_dir(globals())
