# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.linalg."""

import builtins as _b
from collections.abc import Sequence
from typing import Any

from . import results
from .aliases import DType, Ints, Number
from .tensor import Tensor

def cholesky(input: Tensor, *, upper: _b.bool = False, out: Tensor | None = None) -> Tensor:
    """L with A = L L^H for Hermitian positive-definite (..., n, n) matrices; with `upper`, U with A = U^H U.
    LinAlgError for others.

    >>> torch.linalg.cholesky(torch.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """

def cholesky_ex(
    input: Tensor, *, upper: _b.bool = False, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_cholesky_ex:
    """The Cholesky factor and info: 0, or the order of the first leading minor that is not positive-definite. See
    `linalg.cholesky`.

    >>> torch.linalg.cholesky_ex(-torch.eye(2)).info
    tensor(1, dtype=torch.int32)
    """

def cond(input: Tensor, p: Number | _b.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number: the norm of A times the norm of its inverse (p = "fro", "nuc", 1, -1, inf, -inf), or the
    ratio of the extreme singular values (2, -2).

    >>> torch.linalg.cond(torch.tensor([[4., 0.], [0., 2.]]))
    tensor(2.)
    """

def cross(input: Tensor, other: Tensor, *, dim: _b.int | None = -1, out: Tensor | None = None) -> Tensor:
    """The cross product of vectors of length 3 along `dim`; other dimensions broadcast.

    >>> torch.linalg.cross(torch.tensor([1., 0., 0.]), torch.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """

def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of square (..., n, n) matrices.

    >>> torch.linalg.det(torch.tensor([[2., 1.], [0., 3.]]))
    tensor(6.)
    """

def diagonal(
    A: Tensor, *, offset: _b.int = 0, dim1: _b.int = -2, dim2: _b.int = -1, out: Tensor | None = None
) -> Tensor:
    """The diagonals of matrices, a view: `torch.diagonal` of the last two dimensions."""

def eig(input: Tensor, *, out: Sequence[Tensor] | None = None) -> results.linalg_eig:
    """Complex eigenvalues, in no order, and eigenvectors of length 1 (columns) of square (..., n, n) matrices.

    >>> torch.linalg.eig(torch.tensor([[0., -1.], [1., 0.]])).eigenvalues.real
    tensor([0., 0.])
    """

def eigh(input: Tensor, UPLO: _b.str = "L", *, out: Sequence[Tensor] | None = None) -> results.linalg_eigh:
    """Real eigenvalues in ascending order and orthonormal eigenvectors (columns) of Hermitian (..., n, n) matrices, of
    which one triangle is read.

    The gradient of the vectors is finite only for distinct eigenvalues.

    >>> torch.linalg.eigh(torch.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """

def eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of `linalg.eig`."""

def eigvalsh(input: Tensor, UPLO: _b.str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of `linalg.eigh`."""

def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of the product of the Householder reflectors I - tau_i v_i v_i^H whose vectors stand below
    the diagonal of A (..., m, n), m >= n.
    """

def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square (..., n, n) matrices. LinAlgError for a singular one.

    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """

def inv_ex(A: Tensor, *, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None) -> results.linalg_inv_ex:
    """The inverse and info: 0, or the place of the first zero pivot. See `linalg.inv`.

    >>> torch.linalg.inv_ex(torch.zeros(1, 1)).info
    tensor(1, dtype=torch.int32)
    """

def ldl_factor(
    input: Tensor, *, hermitian: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_ldl_factor:
    """Bunch-Kaufman factors of symmetric (or Hermitian) matrices, of which the lower triangle is read, packed as
    LAPACK's sytrf does. Not differentiable.

    >>> torch.linalg.ldl_factor(torch.tensor([[2., 0.], [1., 1.]])).LD
    tensor([[2.0000, 0.0000],
            [0.5000, 0.5000]])
    """

def ldl_factor_ex(
    input: Tensor, *, hermitian: _b.bool = False, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_ldl_factor_ex:
    """See `linalg.ldl_factor`; info is 0, or the place of the first zero on D's diagonal."""

def ldl_solve(
    LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    """X with A X = B, from `linalg.ldl_factor(A)`."""

def lstsq(
    input: Tensor,
    b: Tensor,
    rcond: _b.float | Tensor | None = None,
    *,
    driver: _b.str | None = None,
    out: Sequence[Tensor] | None = None,
) -> results.linalg_lstsq:
    """X of least norm that minimises |A X - B|: (solution, residuals, rank, singular_values) for A (..., m, n) and B
    (..., m, k) or (..., m).
    """

def lu(A: Tensor, *, pivot: _b.bool = True, out: Sequence[Tensor] | None = None) -> results.linalg_lu:
    """P, L, U with A = P L U: a permutation, a unit lower and an upper triangular matrix, the latter two (..., m, k)
    and (..., k, n) with k = min(m, n).

    >>> torch.linalg.lu(torch.tensor([[0., 1.], [2., 0.]])).U
    tensor([[2., 0.],
            [0., 1.]])
    """

def lu_factor(A: Tensor, *, pivot: _b.bool = True, out: Sequence[Tensor] | None = None) -> results.linalg_lu_factor:
    """L (below the diagonal, its own diagonal of ones left out) and U (above) in one (..., m, n) tensor, and the row
    exchanges (int32, counted from 1).

    RuntimeError for a zero on U's diagonal. The result goes to `linalg.lu_solve` and `lu_unpack`.

    >>> torch.linalg.lu_factor(torch.tensor([[1., 2.], [2., 0.]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """

def lu_factor_ex(
    A: Tensor, *, pivot: _b.bool = True, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_lu_factor_ex:
    """Packed LU, LAPACK's pivots (int32, counted from 1), and info: 0, or the place of the first zero on U's diagonal.
    See `linalg.lu_factor`.
    """

def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: _b.bool = True, adjoint: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    """X with A X = B (X A = B with left=False; A^H for A with `adjoint`), from `linalg.lu_factor(A)`. Batch dimensions
    broadcast.

    >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(torch.tensor([[2.]])), torch.tensor([[4.]]))
    tensor([[2.]])
    """

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product of the last two dimensions, batch dimensions broadcast; a 1-d operand is a row (first) or
    column (second) whose dimension goes.

    RuntimeError for operands that do not fit or are of different dtypes.

    >>> torch.matmul(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """

def matrix_exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponential of square (..., n, n) matrices, by scaling and squaring with a Pade approximant (Higham,
    2005).

    >>> torch.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

def matrix_norm(
    input: Tensor,
    ord: Number | _b.str = "fro",
    dim: Sequence[_b.int] = ...,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The norm of the matrices in the two dimensions `dim`: "fro", "nuc" (sum of singular values), 2 and -2 (greatest,
    least singular value), 1 and -1 (column sums of sizes), inf and -inf (row sums).

    >>> torch.linalg.matrix_norm(torch.tensor([[3., 0.], [0., 4.]]))
    tensor(5.)
    """

def matrix_power(input: Tensor, n: _b.int, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th power of square (..., m, m) matrices, by repeated squaring; the identity for 0, powers of the inverse
    for negative `n`.

    >>> torch.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """

def matrix_rank(
    input: Tensor,
    tol: _b.float | Tensor | None = None,
    *,
    atol: _b.float | Tensor | None = None,
    rtol: _b.float | Tensor | None = None,
    hermitian: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Number of singular values (magnitudes of eigenvalues with `hermitian`) above max(atol, rtol * largest): int64.
    `tol` replaces both tolerances by an absolute one.
    """

def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices in the order that costs least. The first may be a vector (a row) and the last
    too (a column).

    >>> torch.linalg.multi_dot([torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 1)])
    tensor([[6.]])
    """

def norm(
    input: Tensor,
    ord: Number | _b.str | None = None,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A vector norm (`dim` one dimension, or nothing given: of all elements) or a matrix norm (`dim` two dimensions, or
    a 2-d tensor and `ord` given).
    """

def pinv(
    input: Tensor,
    rcond: _b.float | Tensor | None = None,
    *,
    atol: _b.float | Tensor | None = None,
    rtol: _b.float | Tensor | None = None,
    hermitian: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """The pseudoinverse (..., n, m) of (..., m, n) matrices. Singular values up to max(atol, rtol * the greatest) count
    as zero.
    """

def qr(A: Tensor, mode: _b.str = "reduced", *, out: Sequence[Tensor] | None = None) -> results.linalg_qr:
    """A = Q R with orthonormal columns in Q and R upper triangular. `mode`: "reduced" (Q is m x min(m, n)), "complete"
    (m x m), or "r" (Q is left out, empty).

    >>> torch.linalg.qr(torch.tensor([[2., 0.], [0., 3.]])).R.abs()
    tensor([[2., 0.],
            [0., 3.]])
    """

def slogdet(A: Tensor, *, out: Sequence[Tensor] | None = None) -> results.linalg_slogdet:
    """The sign (a phase, for complex ones) of the determinant and the logarithm of its absolute value, for square (...,
    n, n) matrices.

    >>> torch.linalg.slogdet(torch.tensor([[1., 0.], [0., -1.]])).sign
    tensor(-1.)
    """

def solve(A: Tensor, B: Tensor, *, left: _b.bool = True, out: Tensor | None = None) -> Tensor:
    """X with A X = B (X A = B with left=False) for square (..., n, n) A; B is (..., n, k) or one vector a matrix.
    LinAlgError when A is singular.

    >>> torch.linalg.solve(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([2., 4.]))
    tensor([1., 1.])
    """

def solve_ex(
    A: Tensor, B: Tensor, *, left: _b.bool = True, check_errors: _b.bool = False, out: Sequence[Tensor] | None = None
) -> results.linalg_solve_ex:
    """The solution and info: 0, or the place of the first zero pivot. See `linalg.solve`."""

def solve_triangular(
    A: Tensor, B: Tensor, *, upper: Any, left: _b.bool = True, unitriangular: _b.bool = False, out: Tensor | None = None
) -> Tensor:
    """X with A X = B (X A = B with left=False) for triangular (..., n, n) A, of which only that triangle is read. Batch
    dimensions broadcast.

    With `unitriangular` the diagonal counts as ones. A zero on the diagonal gives infinities.

    >>> torch.linalg.solve_triangular(torch.tensor([[2., 0.], [1., 1.]]), torch.tensor([[2.], [3.]]), upper=False)
    tensor([[1.],
            [2.]])
    """

def svd(
    A: Tensor, full_matrices: _b.bool = True, *, driver: _b.str | None = None, out: Sequence[Tensor] | None = None
) -> results.linalg_svd:
    """A = U diag(S) Vh: singular values in descending order and their vectors. With full_matrices=False only the first
    min(m, n) vectors.

    `driver` is for CUDA. The gradient of the vectors is finite only for distinct singular values. LinAlgError for
    NaN or infinity.

    >>> torch.linalg.svd(torch.tensor([[0., 2.], [1., 0.]])).S
    tensor([2., 1.])
    """

def svdvals(A: Tensor, *, driver: _b.str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values of `linalg.svd`.

    >>> torch.linalg.svdvals(torch.tensor([[3., 0.], [0., -2.]]))
    tensor([3., 2.])
    """

def tensorinv(input: Tensor, ind: _b.int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `tensordot(A, X, dims=A.ndim - ind)`. The product of A's first `ind` sizes must equal the product
    of its others.

    >>> torch.linalg.tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
    torch.Size([6, 2, 3])
    """

def tensorsolve(input: Tensor, other: Tensor, dims: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B. `dims` of A are moved to its end first.

    >>> torch.linalg.tensorsolve(2 * torch.eye(4).reshape(2, 2, 4), torch.ones(2, 2))
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """

def vander(x: Tensor, *, N: _b.int | None = None, out: Tensor | None = None) -> Tensor:
    """The Vandermonde matrices of vectors (..., n): the powers 0 .. N-1 (N = n unless given) of every element, (..., n,
    N).

    >>> torch.linalg.vander(torch.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """

def vecdot(x: Tensor, y: Tensor, *, dim: _b.int = -1, out: Tensor | None = None) -> Tensor:
    """The sum of conj(x) * y along `dim`; other dimensions broadcast."""

def vector_norm(
    input: Tensor,
    ord: Number | _b.str = 2,
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """(sum |x|^ord)^(1/ord) over `dim` (all unless given). `ord` may be inf, -inf (greatest and least size) and 0 (how
    many are not zero).

    The result is real. RuntimeError for integers.

    >>> torch.linalg.vector_norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
