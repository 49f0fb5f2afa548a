"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math

import torchlite as torch

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    r"""The LKJ distribution of Cholesky factors of correlation matrices, with concentration :math:`\eta`.

    .. math::

        p(L) \propto \det(L L^{\mathsf{T}})^{\eta - 1} \, |J(L)|
        = \prod_{i=2}^n L_{ii}^{n - i + 2 (\eta - 1)}

    A draw :math:`L` is a lower triangular :math:`n \times n` matrix with a positive diagonal and rows of length 1. The
    correlation matrix :math:`L L^{\mathsf{T}}` then has a density proportional to its determinant to the power
    :math:`\eta - 1`. :math:`J` is the Jacobian of :math:`L \mapsto L L^{\mathsf{T}}`. A concentration of 1 is the
    uniform distribution of correlation matrices, and larger ones favour those near the identity. Samples have no
    gradients.

    Args:
        dim: Number of rows and columns :math:`n`, at least 2.
        concentration: Concentration :math:`\eta`, positive. A number or a tensor. Default: 1.0.
        validate_args: Whether to check parameters and values against their constraints. Default: ``None``, the setting
            of `Distribution.set_default_validate_args`.

    Shape:
        - Batch shape: that of ``concentration``.
        - Event shape: ``(dim, dim)``.

    Raises:
        ValueError: ``dim`` is below 2.
        ValueError: A parameter violates its constraint, and arguments are validated.

    Example:
        >>> torch.distributions.LKJCholesky(3, 0.5).sample().shape
        torch.Size([3, 3])

    References:
        D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and extended
        onion method", 2009.

    See also:
        `CorrCholeskyTransform`, `Wishart`.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _broadcast = {"concentration": 0}

    def __init__(self, dim, concentration=1.0, validate_args=None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        batch_shape = self.concentration.size()
        # A row's squared length below the diagonal is a beta variate (the onion method); the first row has none.
        like = {"dtype": self.concentration.dtype, "device": self.concentration.device}
        marginal = self.concentration + 0.5 * (self.dim - 2)
        row = torch.arange(self.dim - 1, **like)
        row = torch.cat([row.new_zeros((1,)), row])
        self._beta = Beta(row + 0.5, marginal.unsqueeze(-1) - 0.5 * row)
        super().__init__(batch_shape, torch.Size((dim, dim)), validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new.dim = self.dim
        new._beta = self._beta.expand(batch_shape + (self.dim,))

    def sample(self, sample_shape: torch.types._size = torch.Size()) -> torch.Tensor:
        squared = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = torch.randn(self._extended_shape(sample_shape), dtype=squared.dtype, device=squared.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # 0 / 0
        below = torch.sqrt(squared) * direction
        tiny = torch.finfo(below.dtype).tiny
        diagonal = torch.clamp(1 - torch.sum(below**2, dim=-1), min=tiny).sqrt()
        return below + torch.diag_embed(diagonal)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        # The density of L: the product of its diagonal's entries to powers, row by row, over the constant of page 1999
        # of the paper.
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        density = torch.sum(order * diagonal.log(), dim=-1)
        below = self.dim - 1
        alpha = self.concentration + 0.5 * below
        gammas = torch.mvlgamma(alpha - 0.5, below) - torch.lgamma(alpha) * below
        return density - (0.5 * below * math.log(math.pi) + gammas)
