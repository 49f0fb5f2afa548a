# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions and methods of ops: linear."""

import builtins as _b
from collections.abc import Sequence
from typing import Self

from . import results
from .aliases import DType, Ints, Number
from .tensor import Tensor

class LinearMethods:
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * bmm(batch1, batch2).sum(0), `input` broadcast. With beta=0 `input` is not read."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * (mat1 @ mat2), `input` broadcast. With beta=0 `input` is not read."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * (mat @ vec), `input` broadcast. With beta=0 `input` is not read."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * outer(vec1, vec2), `input` broadcast. With beta=0 `input` is not read."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """beta * input + alpha * bmm(batch1, batch2), `input` broadcast. With beta=0 `input` is not read."""
    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of two batches of matrices, (b, n, m) and (b, m, p). RuntimeError for other ranks; nothing is
        broadcast.
        """
    def cholesky(self, upper: _b.bool = False) -> Tensor:
        """See `linalg.cholesky`."""
    def cholesky_inverse(self, upper: _b.bool = False) -> Tensor:
        """The inverse of A, given its Cholesky factor (lower, or upper with `upper`).

        >>> torch.cholesky_inverse(torch.tensor([[2.]]))
        tensor([[0.2500]])
        """
    def cholesky_solve(self, L: Tensor, upper: _b.bool = False) -> Tensor:
        """X with A X = input, given A's Cholesky factor `L` (lower, or upper with `upper`). Batch dimensions broadcast.

        >>> torch.cholesky_solve(torch.tensor([[8.], [4.]]), torch.tensor([[2., 0.], [0., 2.]]))
        tensor([[2.],
                [1.]])
        """
    def corrcoef(self) -> Tensor:
        """The correlation coefficients of variables (rows) over observations (columns)."""
    def cov(
        self, *, correction: _b.float = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        """The covariance matrix of variables (rows) over observations (columns); the variance, for one variable.
        `correction` is taken from the count.

        `fweights` say how often each observation counts (integers), `aweights` how much.

        >>> torch.cov(torch.tensor([[0., 2.], [2., 0.]]))
        tensor([[ 2., -2.],
                [-2.,  2.]])
        """
    def cross(self, other: Tensor, dim: _b.int | None = None) -> Tensor:
        """See `linalg.cross`; `dim` is the first of length 3 unless given."""
    def det(self) -> Tensor:
        """See `linalg.det`."""
    def dist(self, other: Tensor, p: _b.float = 2) -> Tensor:
        """The `p`-norm of `input - other`, broadcast against each other.

        >>> torch.dist(torch.tensor([1., 1.]), torch.tensor([4., 5.]))
        tensor(5.)
        """
    def dot(self, tensor: Tensor) -> Tensor:
        """The sum of the products of two vectors' elements.

        >>> torch.dot(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
        tensor(11.)
        """
    def geqrf(self) -> results.geqrf:
        """R, the Householder vectors below it, and their scales `tau`: the packed form that
        `linalg.householder_product` and `ormqr` take.

        >>> torch.geqrf(torch.tensor([[3., 0.], [4., 1.]])).a[0].abs()
        tensor([5.0000, 0.8000])
        """
    def ger(self, vec2: Tensor) -> Tensor:
        """Every product of an element of `input` (n) and one of `vec2` (m): (n, m).

        >>> torch.outer(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
        tensor([[3., 4.],
                [6., 8.]])
        """
    def inner(self, other: Tensor) -> Tensor:
        """The sums of products along the last dimension of each: shape input.shape[:-1] + other.shape[:-1]. A 0-d
        operand scales.

        >>> torch.inner(torch.tensor([1., 2.]), torch.tensor([[1., 0.], [0., 1.]]))
        tensor([1., 2.])
        """
    def inverse(self) -> Tensor:
        """See `linalg.inv`."""
    def istft(
        self,
        n_fft: _b.int,
        hop_length: _b.int | None = None,
        win_length: _b.int | None = None,
        window: Tensor | None = None,
        center: _b.bool = True,
        normalized: _b.bool = False,
        onesided: _b.bool | None = None,
        length: _b.int | None = None,
        return_complex: _b.bool = False,
    ) -> Tensor:
        """The least-squares inverse of `stft` with the same arguments (Griffin and Lim, 1984), `length` samples of it
        if given.

        RuntimeError where the overlapping windows leave a sample uncovered.
        """
    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product: every element of `input` times all of `other`, as blocks. The shorter shape is padded
        with leading ones.

        >>> torch.kron(torch.tensor([1., 2.]), torch.tensor([1., 1.]))
        tensor([1., 1., 2., 2.])
        """
    def logdet(self) -> Tensor:
        """The logarithm of the determinant: NaN where it is negative, -inf where it is zero.

        >>> torch.logdet(torch.eye(2))
        tensor(0.)
        """
    def lu(self, pivot: _b.bool = True, get_infos: _b.bool = False) -> tuple[Tensor, ...]:
        """(LU, pivots) or, with `get_infos`, (LU, pivots, info), singular or not. For older programs; see
        `linalg.lu_factor`.
        """
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """See `linalg.lu_solve`, whose arguments come in another order."""
    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product of the last two dimensions, batch dimensions broadcast; a 1-d operand is a row (first) or
        column (second) whose dimension goes.

        RuntimeError for operands that do not fit or are of different dtypes.

        >>> torch.matmul(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
        tensor([3., 7.])
        """
    def matrix_exp(self) -> Tensor:
        """The exponential of square (..., n, n) matrices, by scaling and squaring with a Pade approximant (Higham,
        2005).

        >>> torch.matrix_exp(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
        """
    def matrix_power(self, n: _b.int) -> Tensor:
        """The `n`-th power of square (..., m, m) matrices, by repeated squaring; the identity for 0, powers of the
        inverse for negative `n`.

        >>> torch.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
        """
    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices, (n, m) and (m, p). RuntimeError for other ranks; nothing is broadcast."""
    def mv(self, vec: Tensor) -> Tensor:
        """The product of a matrix (n, m) and a vector (m)."""
    def norm(
        self,
        p: _b.float | _b.str | None = "fro",
        dim: Ints | None = None,
        keepdim: _b.bool = False,
        dtype: DType | None = None,
    ) -> Tensor:
        """The `p`-norm of all elements or over `dim`. For older programs; see `linalg.vector_norm` and
        `linalg.matrix_norm`.
        """
    def orgqr(self, tau: Tensor) -> Tensor:
        """The first n columns of the product of the Householder reflectors I - tau_i v_i v_i^H whose vectors stand
        below the diagonal of A (..., m, n), m >= n.
        """
    def ormqr(self, tau: Tensor, other: Tensor, left: _b.bool = True, transpose: _b.bool = False) -> Tensor:
        """Q other (or other Q, with left=False; Q^H for Q, with `transpose`), where Q is the m x m product of the
        reflectors packed in `input` and `tau`.
        """
    def outer(self, vec2: Tensor) -> Tensor:
        """Every product of an element of `input` (n) and one of `vec2` (m): (n, m).

        >>> torch.outer(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
        tensor([[3., 4.],
                [6., 8.]])
        """
    def pinverse(self, rcond: _b.float | Tensor = 1e-15) -> Tensor:
        """See `linalg.pinv`."""
    def qr(self, some: _b.bool = True) -> results.qr:
        """See `linalg.qr`: mode "reduced" with `some`, else "complete"."""
    def renorm(self, p: _b.float, dim: _b.int, maxnorm: _b.float) -> Tensor:
        """`input` with each slice along `dim` whose `p`-norm exceeds `maxnorm` scaled down to it."""
    def slogdet(self) -> results.slogdet:
        """See `linalg.slogdet`."""
    def stft(
        self,
        n_fft: _b.int,
        hop_length: _b.int | None = None,
        win_length: _b.int | None = None,
        window: Tensor | None = None,
        center: _b.bool = True,
        pad_mode: _b.str = "reflect",
        normalized: _b.bool = False,
        onesided: _b.bool | None = None,
        return_complex: _b.bool | None = None,
        align_to_window: _b.bool | None = None,
    ) -> Tensor:
        """The transforms of overlapping windowed frames of a signal (L) or (B, L): (..., n_fft // 2 + 1, frames),
        complex.

        Frames of `n_fft` samples start every `hop_length` (n_fft // 4); `window` has `win_length` (n_fft) entries.
        With `center` frame t is centred on sample t * hop_length of the signal padded by `pad_mode`. `onesided` (the
        default for real signals) leaves out the conjugates. `normalized` scales by 1/sqrt(n_fft).
        """
    def svd(self, some: _b.bool = True, compute_uv: _b.bool = True) -> results.svd:
        """U, S, V with input = U diag(S) V^H. For older programs; `linalg.svd` returns V^H."""
    def triangular_solve(
        self, A: Tensor, upper: _b.bool = True, transpose: _b.bool = False, unitriangular: _b.bool = False
    ) -> results.triangular_solve:
        """(X, a copy of A) with A X = b. For older programs; see `linalg.solve_triangular`."""
    def vdot(self, other: Tensor) -> Tensor:
        """The sum of the products of the conjugate of `input`'s elements and `other`'s."""
    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Self:
        """In-place version of `addbmm`: writes the result into the tensor and returns it."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Self:
        """In-place version of `addmm`: writes the result into the tensor and returns it."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Self:
        """In-place version of `addmv`: writes the result into the tensor and returns it."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Self:
        """In-place version of `addr`: writes the result into the tensor and returns it."""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Self:
        """In-place version of `baddbmm`: writes the result into the tensor and returns it."""
    def renorm_(self, p: _b.float, dim: _b.int, maxnorm: _b.float) -> Self:
        """In-place version of `renorm`: writes the result into the tensor and returns it."""

def _addmm_activation(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: _b.float = 1,
    alpha: Number = 1,
    use_gelu: _b.bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """`torch.addmm` with a rectifier after it, or with `use_gelu` a GELU.

    >>> torch._addmm_activation(torch.tensor([1., -5.]), torch.ones(1, 2), torch.ones(2, 2))
    tensor([[3., 0.]])
    """

def _compute_linear_combination(input: Tensor, coefficients: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sums of the parts of `input` along its first dimension, one for each row of `coefficients`, which are their
    factors. `out` is added to.

    >>> torch._compute_linear_combination(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([[1., -1.]]))
    tensor([[-2., -2.]])
    """

def _int_mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices of int8, in int32: (n, m), (m, p) -> (n, p). The first may be uint8.

    >>> torch._int_mm(torch.full((1, 2), 100, dtype=torch.int8), torch.full((2, 1), 100, dtype=torch.int8))
    tensor([[20000]], dtype=torch.int32)
    """

def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2).sum(0), `input` broadcast. With beta=0 `input` is not read."""

def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), `input` broadcast. With beta=0 `input` is not read."""

def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * (mat @ vec), `input` broadcast. With beta=0 `input` is not read."""

def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2), `input` broadcast. With beta=0 `input` is not read."""

def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2), `input` broadcast. With beta=0 `input` is not read."""

def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of two batches of matrices, (b, n, m) and (b, m, p). RuntimeError for other ranks; nothing is
    broadcast.
    """

def cdist(
    x1: Tensor, x2: Tensor, p: _b.float = 2.0, compute_mode: _b.str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The `p`-norm distance of every row of `x1` (..., n, d) to every row of `x2` (..., m, d): (..., n, m). Batch
    dimensions broadcast.

    >>> torch.cdist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.]]))
    tensor([[5.]])
    """

def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """See `linalg.multi_dot`; of a single matrix a copy."""

def cholesky(input: Tensor, upper: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """See `linalg.cholesky`."""

def cholesky_inverse(input: Tensor, upper: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A, given its Cholesky factor (lower, or upper with `upper`).

    >>> torch.cholesky_inverse(torch.tensor([[2.]]))
    tensor([[0.2500]])
    """

def cholesky_solve(input: Tensor, L: Tensor, upper: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """X with A X = input, given A's Cholesky factor `L` (lower, or upper with `upper`). Batch dimensions broadcast.

    >>> torch.cholesky_solve(torch.tensor([[8.], [4.]]), torch.tensor([[2., 0.], [0., 2.]]))
    tensor([[2.],
            [1.]])
    """

def corrcoef(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The correlation coefficients of variables (rows) over observations (columns)."""

def cov(
    input: Tensor,
    *,
    correction: _b.float = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of variables (rows) over observations (columns); the variance, for one variable.
    `correction` is taken from the count.

    `fweights` say how often each observation counts (integers), `aweights` how much.

    >>> torch.cov(torch.tensor([[0., 2.], [2., 0.]]))
    tensor([[ 2., -2.],
            [-2.,  2.]])
    """

def cross(input: Tensor, other: Tensor, dim: _b.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """See `linalg.cross`; `dim` is the first of length 3 unless given."""

def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """See `linalg.det`."""

def dist(input: Tensor, other: Tensor, p: _b.float = 2, *, out: Tensor | None = None) -> Tensor:
    """The `p`-norm of `input - other`, broadcast against each other.

    >>> torch.dist(torch.tensor([1., 1.]), torch.tensor([4., 5.]))
    tensor(5.)
    """

def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of the products of two vectors' elements.

    >>> torch.dot(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor(11.)
    """

def einsum(equation: _b.str, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """Sums of products of operands by index labels: "ij,jk->ik" is the matrix product, "ii->i" the diagonal,
    "...ij->...ji" a transpose.

    Without "->" the output has the labels that come once, in alphabetical order. Also `einsum(x, [0, 1], y, [1, 2],
    [0, 2])`. Three to 32 operands are contracted in a greedy order, and more of them from the left.

    >>> torch.einsum("ij,j->i", torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """

def frobenius_norm(input: Tensor, dim: Ints, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """See `linalg.matrix_norm`: the 2-norm over the dimensions `dim` (all for an empty list)."""

def geqrf(input: Tensor, *, out: Sequence[Tensor] | None = None) -> results.geqrf:
    """R, the Householder vectors below it, and their scales `tau`: the packed form that
    `linalg.householder_product` and `ormqr` take.

    >>> torch.geqrf(torch.tensor([[3., 0.], [4., 1.]])).a[0].abs()
    tensor([5.0000, 0.8000])
    """

def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every product of an element of `input` (n) and one of `vec2` (m): (n, m).

    >>> torch.outer(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """

def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sums of products along the last dimension of each: shape input.shape[:-1] + other.shape[:-1]. A 0-d operand
    scales.

    >>> torch.inner(torch.tensor([1., 2.]), torch.tensor([[1., 0.], [0., 1.]]))
    tensor([1., 2.])
    """

def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """See `linalg.inv`."""

def istft(
    input: Tensor,
    n_fft: _b.int,
    hop_length: _b.int | None = None,
    win_length: _b.int | None = None,
    window: Tensor | None = None,
    center: _b.bool = True,
    normalized: _b.bool = False,
    onesided: _b.bool | None = None,
    length: _b.int | None = None,
    return_complex: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The least-squares inverse of `stft` with the same arguments (Griffin and Lim, 1984), `length` samples of it if
    given.

    RuntimeError where the overlapping windows leave a sample uncovered.
    """

def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: every element of `input` times all of `other`, as blocks. The shorter shape is padded with
    leading ones.

    >>> torch.kron(torch.tensor([1., 2.]), torch.tensor([1., 1.]))
    tensor([1., 1., 2., 2.])
    """

def logdet(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the determinant: NaN where it is negative, -inf where it is zero.

    >>> torch.logdet(torch.eye(2))
    tensor(0.)
    """

def lu(
    A: Tensor, pivot: _b.bool = True, get_infos: _b.bool = False, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """(LU, pivots) or, with `get_infos`, (LU, pivots, info), singular or not. For older programs; see
    `linalg.lu_factor`.
    """

def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """See `linalg.lu_solve`, whose arguments come in another order."""

def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: _b.bool = True,
    unpack_pivots: _b.bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> results.lu_unpack:
    """P, L, U from the packed form of `linalg.lu_factor`; parts that are not requested are empty."""

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

def matrix_power(input: Tensor, n: _b.int, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th power of square (..., m, m) matrices, by repeated squaring; the identity for 0, powers of the inverse
    for negative `n`.

    >>> torch.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """

def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices, (n, m) and (m, p). RuntimeError for other ranks; nothing is broadcast."""

def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix (n, m) and a vector (m)."""

def norm(
    input: Tensor,
    p: _b.float | _b.str | None = "fro",
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """The `p`-norm of all elements or over `dim`. For older programs; see `linalg.vector_norm` and
    `linalg.matrix_norm`.
    """

def norm_except_dim(v: Tensor, pow: _b.int = 2, dim: _b.int = 0, *, out: Tensor | None = None) -> Tensor:
    """The `pow`-norm over all dimensions but `dim`, which keeps size 1; over all for dim -1. The divisor of weight
    normalisation.
    """

def nuclear_norm(input: Tensor, dim: Ints = ..., keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """See `linalg.matrix_norm`: the sum of the singular values."""

def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of the product of the Householder reflectors I - tau_i v_i v_i^H whose vectors stand below
    the diagonal of A (..., m, n), m >= n.
    """

def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: _b.bool = True,
    transpose: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Q other (or other Q, with left=False; Q^H for Q, with `transpose`), where Q is the m x m product of the
    reflectors packed in `input` and `tau`.
    """

def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every product of an element of `input` (n) and one of `vec2` (m): (n, m).

    >>> torch.outer(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """

def pca_lowrank(
    A: Tensor, q: _b.int | None = None, center: _b.bool = True, niter: _b.int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of the principal components of the rows of A (..., m, n), `q` of them (min(6, m, n)), centred unless
    `center` is False.
    """

def pdist(input: Tensor, p: _b.float = 2.0, *, out: Tensor | None = None) -> Tensor:
    """The `p`-norm distances of every two rows of `input` (n, d), the pair (0, 1) first: n (n - 1) / 2 of them."""

def pinverse(input: Tensor, rcond: _b.float | Tensor = 1e-15, *, out: Tensor | None = None) -> Tensor:
    """See `linalg.pinv`."""

def qr(input: Tensor, some: _b.bool = True, *, out: Sequence[Tensor] | None = None) -> results.qr:
    """See `linalg.qr`: mode "reduced" with `some`, else "complete"."""

def renorm(input: Tensor, p: _b.float, dim: _b.int, maxnorm: _b.float, *, out: Tensor | None = None) -> Tensor:
    """`input` with each slice along `dim` whose `p`-norm exceeds `maxnorm` scaled down to it."""

def slogdet(input: Tensor, *, out: Sequence[Tensor] | None = None) -> results.slogdet:
    """See `linalg.slogdet`."""

def stft(
    input: Tensor,
    n_fft: _b.int,
    hop_length: _b.int | None = None,
    win_length: _b.int | None = None,
    window: Tensor | None = None,
    center: _b.bool = True,
    pad_mode: _b.str = "reflect",
    normalized: _b.bool = False,
    onesided: _b.bool | None = None,
    return_complex: _b.bool | None = None,
    align_to_window: _b.bool | None = None,
) -> Tensor:
    """The transforms of overlapping windowed frames of a signal (L) or (B, L): (..., n_fft // 2 + 1, frames), complex.

    Frames of `n_fft` samples start every `hop_length` (n_fft // 4); `window` has `win_length` (n_fft) entries. With
    `center` frame t is centred on sample t * hop_length of the signal padded by `pad_mode`. `onesided` (the default
    for real signals) leaves out the conjugates. `normalized` scales by 1/sqrt(n_fft).
    """

def svd(
    input: Tensor, some: _b.bool = True, compute_uv: _b.bool = True, *, out: Sequence[Tensor] | None = None
) -> results.svd:
    """U, S, V with input = U diag(S) V^H. For older programs; `linalg.svd` returns V^H."""

def svd_lowrank(A: Tensor, q: _b.int = 6, niter: _b.int = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of a randomised approximation of rank `q` to A - M, after `niter` subspace iterations (Halko,
    Martinsson and Tropp, 2009, algorithm 5.1).
    """

def tensordot(
    a: Tensor, b: Tensor, dims: _b.int | Sequence[Sequence[_b.int]] | Tensor = 2, *, out: Tensor | None = None
) -> Tensor:
    """The sum of products over the given dimensions of each: an int n (the last n of `a` and the first n of `b`) or two
    lists. The others stay, `a`'s first.

    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), 1).shape
    torch.Size([2, 4])
    """

def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: _b.bool = True,
    transpose: _b.bool = False,
    unitriangular: _b.bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> results.triangular_solve:
    """(X, a copy of A) with A X = b. For older programs; see `linalg.solve_triangular`."""

def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of the products of the conjugate of `input`'s elements and `other`'s."""

def addbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
    """In-place version of `addbmm`: writes the result into the tensor and returns it."""

def addmm_(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
    """In-place version of `addmm`: writes the result into the tensor and returns it."""

def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
    """In-place version of `addmv`: writes the result into the tensor and returns it."""

def addr_(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
    """In-place version of `addr`: writes the result into the tensor and returns it."""

def baddbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
    """In-place version of `baddbmm`: writes the result into the tensor and returns it."""

def renorm_(input: Tensor, p: _b.float, dim: _b.int, maxnorm: _b.float) -> Tensor:
    """In-place version of `renorm`: writes the result into the tensor and returns it."""
