# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.linalg."""

import builtins as _b
from collections.abc import Sequence
from typing import Any

from . import results
from .aliases import DType, Ints, Number
from .tensor import Tensor

def cholesky(input: Tensor, *, upper: _b.bool = False, out: Tensor | None = None) -> Tensor:
    r"""Computes the Cholesky factors of Hermitian positive-definite matrices."""

def cholesky_ex(
    input: Tensor, *, upper: _b.bool = False, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_cholesky_ex:
    """Computes the Cholesky factors of Hermitian positive-definite matrices, and reports failures."""

def cond(input: Tensor, p: Number | _b.str | None = None, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the condition numbers of matrices."""

def cross(input: Tensor, other: Tensor, *, dim: _b.int | None = -1, out: Tensor | None = None) -> Tensor:
    """Computes the cross products of vectors with three elements."""

def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the determinants of square matrices."""

def diagonal(A: Tensor, *, offset: _b.int = 0, dim1: _b.int = -2, dim2: _b.int = -1) -> Tensor:
    """Returns the diagonals of matrices, as a view with the diagonal as the last dimension."""

def eig(input: Tensor, *, out: Sequence[Tensor] | None = None) -> results.linalg_eig:
    """Computes the eigenvalues and eigenvectors of square matrices."""

def eigh(input: Tensor, UPLO: _b.str = "L", *, out: Sequence[Tensor] | None = None) -> results.linalg_eigh:
    r"""Computes the eigenvalues and eigenvectors of Hermitian matrices."""

def eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the eigenvalues of square matrices, in no particular order."""

def eigvalsh(input: Tensor, UPLO: _b.str = "L", *, out: Tensor | None = None) -> Tensor:
    """Computes the eigenvalues of Hermitian matrices, in ascending order."""

def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the first columns of products of Householder reflectors."""

def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the inverses of square matrices."""

def inv_ex(A: Tensor, *, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None) -> results.linalg_inv_ex:
    """Computes the inverses of matrices, and reports singular ones."""

def ldl_factor(
    input: Tensor, *, hermitian: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_ldl_factor:
    """Computes LDL decompositions of symmetric or Hermitian matrices (Bunch and Kaufman, 1977)."""

def ldl_factor_ex(
    input: Tensor, *, hermitian: _b.bool = False, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_ldl_factor_ex:
    """Computes LDL decompositions in LAPACK's packed form, and reports failures."""

def ldl_solve(
    LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    """Solves linear systems from the LDL decompositions of their matrices."""

def lstsq(
    input: Tensor,
    b: Tensor,
    rcond: _b.float | Tensor | None = None,
    *,
    driver: _b.str | None = None,
    out: Sequence[Tensor] | None = None,
) -> results.linalg_lstsq:
    r"""Solves least-squares problems: the :math:`X` of least norm that minimizes :math:`\lVert A X - B \rVert_F`."""

def lu(A: Tensor, *, pivot: _b.bool = True, out: Sequence[Tensor] | None = None) -> results.linalg_lu:
    """Computes LU decompositions with row exchanges."""

def lu_factor(A: Tensor, *, pivot: _b.bool = True, out: Sequence[Tensor] | None = None) -> results.linalg_lu_factor:
    """Computes LU decompositions with row exchanges in LAPACK's packed form."""

def lu_factor_ex(
    A: Tensor, *, pivot: _b.bool = True, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_lu_factor_ex:
    """Computes LU decompositions in LAPACK's packed form, and reports singular matrices."""

def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: _b.bool = True, adjoint: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    r"""Solves linear systems from the LU decompositions of their matrices."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the matrix product of the last two dimensions."""

def matrix_exp(input: Tensor) -> Tensor:
    """Computes the exponentials of square matrices."""

def matrix_norm(
    input: Tensor,
    ord: Number | _b.str = "fro",
    dim: Sequence[_b.int] = ...,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Computes matrix norms."""

def matrix_power(input: Tensor, n: _b.int, *, out: Tensor | None = None) -> Tensor:
    """Computes integer powers of square matrices by repeated squaring."""

def matrix_rank(
    input: Tensor,
    tol: _b.float | Tensor | None = None,
    *,
    atol: _b.float | Tensor | None = None,
    rtol: _b.float | Tensor | None = None,
    hermitian: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the ranks of matrices."""

def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Computes the product of several matrices in the order of least cost."""

def norm(
    input: Tensor,
    ord: Number | _b.str | None = None,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Computes a vector or a matrix norm."""

def pinv(
    input: Tensor,
    rcond: _b.float | Tensor | None = None,
    *,
    atol: _b.float | Tensor | None = None,
    rtol: _b.float | Tensor | None = None,
    hermitian: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the Moore-Penrose pseudoinverses of matrices."""

def qr(A: Tensor, mode: _b.str = "reduced", *, out: Sequence[Tensor] | None = None) -> results.linalg_qr:
    """Computes the QR decompositions of matrices."""

def slogdet(A: Tensor, *, out: Sequence[Tensor] | None = None) -> results.linalg_slogdet:
    """Computes the signs of determinants and the logarithms of their absolute values."""

def solve(A: Tensor, B: Tensor, *, left: _b.bool = True, out: Tensor | None = None) -> Tensor:
    """Solves linear systems with square matrices: :math:`A X = B`."""

def solve_ex(
    A: Tensor, B: Tensor, *, left: _b.bool = True, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_solve_ex:
    """Solves linear systems, and reports singular matrices."""

def solve_triangular(
    A: Tensor, B: Tensor, *, upper: Any, left: _b.bool = True, unitriangular: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    """Solves linear systems with triangular matrices."""

def svd(
    A: Tensor, full_matrices: _b.bool = True, *, driver: _b.str | None = None, out: Sequence[Tensor] | None = None
) -> results.linalg_svd:
    r"""Computes the singular value decompositions of matrices."""

def svdvals(A: Tensor, *, driver: _b.str | None = None, out: Tensor | None = None) -> Tensor:
    """Computes the singular values of matrices, in descending order."""

def tensorinv(input: Tensor, ind: _b.int = 2, *, out: Tensor | None = None) -> Tensor:
    """Computes the inverse of a tensor as a linear map: ``tensordot(result, input, ind)`` is the identity."""

def tensorsolve(input: Tensor, other: Tensor, dims: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """Solves ``tensordot(input, X, X.ndim) = other`` for ``X``."""

def vander(x: Tensor, *, N: _b.int | None = None) -> Tensor:
    """Computes Vandermonde matrices: ``out[..., i, j] = x[..., i] ** j``."""

def vecdot(x: Tensor, y: Tensor, *, dim: _b.int = -1, out: Tensor | None = None) -> Tensor:
    """Computes the sums of ``conj(x) * y`` along a dimension."""

def vector_norm(
    input: Tensor,
    ord: Number | _b.str = 2,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    r"""Computes vector norms."""
