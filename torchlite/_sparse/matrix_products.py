"""Products and bases shared by functions of sparse and dense matrices, such as `svd_lowrank`."""

from __future__ import annotations

import torchlite as torch
from torchlite import Tensor

from .matmul_ops import sparse_mm


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """A @ B, where A is dense, sparse, or None for the identity.

    >>> matmul(None, torchlite.ones(2))
    tensor([1., 1.])
    """
    if A is None:
        return B
    return sparse_mm(A, B) if A.is_sparse else torch.matmul(A, B)


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """The bilinear form X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """The quadratic form S^T A S."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """Return an orthogonal basis of the column space of A."""
    return torch.linalg.qr(A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a symmetric matrix, the smallest first (the largest with `largest`)."""
    values, vectors = torch.linalg.eigh(A, UPLO="U")
    return (values.flip(-1), vectors.flip(-1)) if largest else (values, vectors)
