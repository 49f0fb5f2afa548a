"""Distances between vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlite.nn import functional as F

from .module import Module

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    r"""Computes the p-norm of the difference of two tensors along the last dimension.

    .. math::

        d = \left( \sum_i |x_{1, i} - x_{2, i} + \epsilon|^p \right)^{1/p}

    Args:
        p: Exponent of the norm. Default: 2.
        eps: Added to each difference. Default: 1e-6.
        keepdim: Whether to keep the last dimension, with size 1. Default: ``False``.

    Shape:
        - Inputs: ``(N, D)`` or ``(D)``; they broadcast.
        - Output: ``(N)`` or ``()``; with ``keepdim`` ``(N, 1)`` or ``(1)``.

    Example:
        >>> torch.nn.PairwiseDistance(eps=0)(torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 4.0]]))
        tensor([5.])

    See also:
        `torch.nn.functional.pairwise_distance`, `torch.cdist`, `CosineSimilarity`.
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    r"""Computes the cosine of the angle between two tensors along a dimension.

    .. math::

        s = \frac{x_1 \cdot x_2}{\max(\lVert x_1 \rVert_2, \epsilon) \, \max(\lVert x_2 \rVert_2, \epsilon)}

    Args:
        dim: Dimension of the vectors. Default: 1.
        eps: Lower limit of each norm. Default: 1e-8.

    Shape:
        - Inputs: ``(*, D, *)``, with D at ``dim``; they broadcast.
        - Output: ``(*, *)``, without ``dim``.

    Example:
        >>> torch.nn.CosineSimilarity()(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([0.6000])

    See also:
        `torch.nn.functional.cosine_similarity`, `CosineEmbeddingLoss`, `PairwiseDistance`.
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
