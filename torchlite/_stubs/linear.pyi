# Made by tools/make_stubs.py from the op records: do not edit.
"""Functions and methods of ops: linear."""

import builtins as _b
from collections.abc import Sequence
from typing import Any, Self

from . import results
from .aliases import DType, Ints, Number
from .tensor import Tensor

class LinearMethods:
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """Computes ``beta * input + alpha * (batch1 @ batch2).sum(0)``."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """Computes ``beta * input + alpha * (mat1 @ mat2)``."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """Computes ``beta * input + alpha * (mat @ vec)``."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """Computes ``beta * input + alpha * outer(vec1, vec2)``."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
        """Computes ``beta * input + alpha * (batch1 @ batch2)``."""
    def bmm(self, mat2: Tensor) -> Tensor:
        """Computes the products of two batches of matrices."""
    def cholesky(self, upper: _b.bool = False) -> Tensor:
        """Computes the Cholesky factors of matrices. Deprecated: use `torch.linalg.cholesky`."""
    def cholesky_inverse(self, upper: _b.bool = False) -> Tensor:
        """Computes the inverses of matrices from their Cholesky factors."""
    def cholesky_solve(self, L: Tensor, upper: _b.bool = False) -> Tensor:
        """Solves linear systems from the Cholesky factors of their matrices."""
    def corrcoef(self) -> Tensor:
        """Computes the Pearson correlation coefficients of variables."""
    def cov(
        self, *, correction: _b.float = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        """Computes the covariance matrix of variables."""
    def cross(self, other: Tensor, dim: _b.int | None = None) -> Tensor:
        """Computes the cross products of vectors with three elements."""
    def det(self) -> Tensor:
        """Computes the determinants of square matrices; another name of `torch.linalg.det`.

        Args:
            input: The matrices, of shape ``(*, n, n)``.

        Example:
            >>> torch.det(torch.tensor([[2.0]]))
            tensor(2.)
        """
    def dist(self, other: Tensor, p: _b.float = 2) -> Tensor:
        """Computes the :math:`p`-norm of the difference of two tensors."""
    def dot(self, tensor: Tensor) -> Tensor:
        """Computes the sum of the products of two vectors' elements."""
    def geqrf(self) -> results.geqrf:
        """Computes the QR decompositions of matrices in LAPACK's packed form."""
    def ger(self, vec2: Tensor) -> Tensor:
        """Computes the products of each element of a vector with each of another."""
    def inner(self, other: Tensor) -> Tensor:
        """Computes the sums of products along the last dimension of each operand."""
    def inverse(self) -> Tensor:
        """Computes the inverses of square matrices; another name of `torch.linalg.inv`."""
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
        """Computes the least-squares inverse of `torch.stft` with the same arguments (Griffin and Lim, 1984)."""
    def kron(self, other: Tensor) -> Tensor:
        """Computes the Kronecker product: each element of the first tensor times all of the second, as blocks."""
    def logdet(self) -> Tensor:
        """Computes the logarithms of determinants: NaN for a negative one, ``-inf`` for zero."""
    def lu(self, pivot: _b.bool = True, get_infos: _b.bool = False) -> tuple[Tensor, ...]:
        """Computes LU decompositions in packed form. Deprecated: use `torch.linalg.lu_factor`."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """Solves linear systems from LU decompositions. Deprecated: use `torch.linalg.lu_solve`."""
    def matmul(self, other: Tensor) -> Tensor:
        """Computes the matrix product of the last two dimensions."""
    def matrix_exp(self) -> Tensor:
        """Computes the exponentials of square matrices."""
    def matrix_power(self, n: _b.int) -> Tensor:
        """Computes integer powers of square matrices by repeated squaring."""
    def mm(self, mat2: Tensor) -> Tensor:
        """Computes the product of two matrices."""
    def mv(self, vec: Tensor) -> Tensor:
        """Computes the product of a matrix and a vector."""
    def norm(
        self,
        p: _b.float | _b.str | None = "fro",
        dim: Ints | None = None,
        keepdim: _b.bool = False,
        dtype: DType | None = None,
    ) -> Tensor:
        """Computes a norm. Deprecated: use `torch.linalg.vector_norm` or `torch.linalg.matrix_norm`."""
    def orgqr(self, tau: Tensor) -> Tensor:
        r"""Computes the first columns of products of Householder reflectors."""
    def ormqr(self, tau: Tensor, other: Tensor, left: _b.bool = True, transpose: _b.bool = False) -> Tensor:
        r"""Multiplies matrices by the products :math:`Q` of Householder reflectors."""
    def outer(self, vec2: Tensor) -> Tensor:
        """Computes the products of each element of a vector with each of another."""
    def pinverse(self, rcond: _b.float | Tensor = 1e-15) -> Tensor:
        """Computes the pseudoinverses of matrices. For older programs; see `torch.linalg.pinv`.

        Args:
            rcond: The tolerance relative to the greatest singular value. Default: ``1e-15``.

        Example:
            >>> torch.pinverse(torch.tensor([[2.0]]))
            tensor([[0.5000]])
        """
    def qr(self, some: _b.bool = True) -> results.qr:
        """Computes the QR decompositions of matrices. Deprecated: use `torch.linalg.qr`."""
    def renorm(self, p: _b.float, dim: _b.int, maxnorm: _b.float) -> Tensor:
        """Scales slices along a dimension down to a maximal norm; shorter ones stay."""
    def slogdet(self) -> results.slogdet:
        """Computes the signs and logarithms of determinants; another name of `torch.linalg.slogdet`.

        Args:
            input: The matrices, of shape ``(*, n, n)``.

        Example:
            >>> torch.slogdet(torch.eye(2)).logabsdet
            tensor(0.)
        """
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
        """Computes the short-time Fourier transform: the transforms of overlapping frames of a signal."""
    def svd(self, some: _b.bool = True, compute_uv: _b.bool = True) -> results.svd:
        """Computes singular value decompositions. Deprecated: use `torch.linalg.svd`, which returns ``Vh``."""
    def triangular_solve(
        self, A: Tensor, upper: _b.bool = True, transpose: _b.bool = False, unitriangular: _b.bool = False
    ) -> results.triangular_solve:
        """Solves linear systems with triangular matrices. Deprecated: use `torch.linalg.solve_triangular`."""
    def vdot(self, other: Tensor) -> Tensor:
        """Computes the sum of the products of the first vector's conjugate and the second vector."""
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

def _convert_weight_to_int4pack(input: Tensor, innerKTiles: _b.int) -> Tensor:
    """Gives the shape of weights of four bits that are packed for the tensor cores of a GPU."""

def _convert_weight_to_int4pack_for_cpu(input: Tensor, innerKTiles: _b.int) -> Tensor:
    """Packs weights of four bits for `torch._weight_int4pack_mm_for_cpu`."""

def _dyn_quant_matmul_4bit(
    inp: Tensor, packed_weights: Tensor, block_size: _b.int, in_features: _b.int, out_features: _b.int
) -> Tensor:
    """Computes the product of floats, quantized to eight bits by the range of each row, with weights of four bits."""

def _dyn_quant_pack_4bit_weight(
    weights: Tensor,
    scales_zeros: Tensor,
    bias: Tensor | None,
    block_size: _b.int,
    in_features: _b.int,
    out_features: _b.int,
) -> Tensor:
    """Packs weights of four bits for `torch._dyn_quant_matmul_4bit`: their bytes, scales and biases as float32
    numbers in a row, as in PyTorch on x86.
    """

def _grouped_mm(
    input: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Computes products of groups of matrices."""

def _int_mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices of int8, in int32: (n, m), (m, p) -> (n, p). The first may be uint8.

    >>> torch._int_mm(torch.full((1, 2), 100, dtype=torch.int8), torch.full((2, 1), 100, dtype=torch.int8))
    tensor([[20000]], dtype=torch.int32)
    """

def _scaled_mm(
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: Any = None,
    use_fast_accum: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Computes a product of two matrices of float8, which are multiplied by scales before."""

def _scaled_mm_v2(
    input: Tensor,
    mat2: Tensor,
    scale_a: Sequence[Tensor],
    recipe_a: Any,
    swizzle_a: Any,
    scale_b: Sequence[Tensor],
    recipe_b: Any,
    swizzle_b: Any,
    bias: Tensor | None,
    out_dtype: Any,
    contraction_dim: Any = ...,
    use_fast_accum: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Computes a product of two matrices of float8, which are multiplied by scales before."""

def _weight_int4pack_mm(input: Tensor, mat2: Tensor, qGroupSize: _b.int, qScaleAndZeros: Tensor) -> Tensor:
    """Gives the shape of a product with weights of four bits that are packed for the tensor cores of a GPU."""

def _weight_int4pack_mm_for_cpu(input: Tensor, mat2: Tensor, qGroupSize: _b.int, qScaleAndZeros: Tensor) -> Tensor:
    """Computes the product of floats with packed weights of four bits."""

def _weight_int8pack_mm(input: Tensor, mat2: Tensor, scales: Tensor) -> Tensor:
    """Computes the product of floats with weights of eight bits: ``(input @ mat2.T) * scales``."""

def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """Computes ``beta * input + alpha * (batch1 @ batch2).sum(0)``."""

def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """Computes ``beta * input + alpha * (mat1 @ mat2)``."""

def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """Computes ``beta * input + alpha * (mat @ vec)``."""

def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """Computes ``beta * input + alpha * outer(vec1, vec2)``."""

def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: _b.float = 1, alpha: Number = 1, out: Tensor | None = None
) -> Tensor:
    """Computes ``beta * input + alpha * (batch1 @ batch2)``."""

def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the products of two batches of matrices."""

def cdist(
    x1: Tensor, x2: Tensor, p: _b.float = 2.0, compute_mode: _b.str = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Computes the distances between the rows of two matrices in a :math:`p`-norm."""

def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Computes the product of several matrices. Deprecated: use `torch.linalg.multi_dot`."""

def cholesky(input: Tensor, upper: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Computes the Cholesky factors of matrices. Deprecated: use `torch.linalg.cholesky`."""

def cholesky_inverse(input: Tensor, upper: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Computes the inverses of matrices from their Cholesky factors."""

def cholesky_solve(input: Tensor, L: Tensor, upper: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Solves linear systems from the Cholesky factors of their matrices."""

def corrcoef(input: Tensor) -> Tensor:
    """Computes the Pearson correlation coefficients of variables."""

def cov(
    input: Tensor, *, correction: _b.float = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Computes the covariance matrix of variables."""

def cross(input: Tensor, other: Tensor, dim: _b.int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Computes the cross products of vectors with three elements."""

def det(input: Tensor) -> Tensor:
    """Computes the determinants of square matrices; another name of `torch.linalg.det`.

    Args:
        input: The matrices, of shape ``(*, n, n)``.

    Example:
        >>> torch.det(torch.tensor([[2.0]]))
        tensor(2.)
    """

def dist(input: Tensor, other: Tensor, p: _b.float = 2) -> Tensor:
    """Computes the :math:`p`-norm of the difference of two tensors."""

def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the sum of the products of two vectors' elements."""

def einsum(equation: _b.str, *operands: Tensor | Sequence[Tensor]) -> Tensor:
    """Computes sums of products of tensors in Einstein's notation."""

def frobenius_norm(input: Tensor, dim: Ints, keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Computes the Frobenius norm. For older programs; see `torch.linalg.matrix_norm`.

    Args:
        dim: The dimensions; an empty list means all.

    Example:
        >>> torch.frobenius_norm(torch.tensor([[3.0, 4.0]]), (0, 1))
        tensor(5.)
    """

def geqrf(input: Tensor, *, out: Sequence[Tensor] | None = None) -> results.geqrf:
    """Computes the QR decompositions of matrices in LAPACK's packed form."""

def ger(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the products of each element of a vector with each of another."""

def inner(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the sums of products along the last dimension of each operand."""

def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the inverses of square matrices; another name of `torch.linalg.inv`."""

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
) -> Tensor:
    """Computes the least-squares inverse of `torch.stft` with the same arguments (Griffin and Lim, 1984)."""

def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the Kronecker product: each element of the first tensor times all of the second, as blocks."""

def logdet(input: Tensor) -> Tensor:
    """Computes the logarithms of determinants: NaN for a negative one, ``-inf`` for zero."""

def lu(
    A: Tensor, pivot: _b.bool = True, get_infos: _b.bool = False, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Computes LU decompositions in packed form. Deprecated: use `torch.linalg.lu_factor`."""

def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Solves linear systems from LU decompositions. Deprecated: use `torch.linalg.lu_solve`."""

def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: _b.bool = True,
    unpack_pivots: _b.bool = True,
    *,
    out: Sequence[Tensor] | None = None,
) -> results.lu_unpack:
    """Unpacks the result of `torch.linalg.lu_factor` into three matrices."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the matrix product of the last two dimensions."""

def matrix_exp(input: Tensor) -> Tensor:
    """Computes the exponentials of square matrices."""

def matrix_power(input: Tensor, n: _b.int, *, out: Tensor | None = None) -> Tensor:
    """Computes integer powers of square matrices by repeated squaring."""

def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the product of two matrices."""

def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the product of a matrix and a vector."""

def norm(
    input: Tensor,
    p: _b.float | _b.str | None = "fro",
    dim: Ints | None = None,
    keepdim: _b.bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """Computes a norm. Deprecated: use `torch.linalg.vector_norm` or `torch.linalg.matrix_norm`."""

def norm_except_dim(v: Tensor, pow: _b.int = 2, dim: _b.int = 0) -> Tensor:
    """Computes norms over all dimensions but one, as weight normalization divides by."""

def nuclear_norm(input: Tensor, dim: Ints = ..., keepdim: _b.bool = False, *, out: Tensor | None = None) -> Tensor:
    """Computes the sum of the singular values. For older programs; see `torch.linalg.matrix_norm`.

    Args:
        dim: The two dimensions of the matrices. Default: the last two.

    Example:
        >>> torch.nuclear_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(7.)
    """

def orgqr(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    r"""Computes the first columns of products of Householder reflectors."""

def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: _b.bool = True,
    transpose: _b.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    r"""Multiplies matrices by the products :math:`Q` of Householder reflectors."""

def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the products of each element of a vector with each of another."""

def pca_lowrank(
    A: Tensor, q: _b.int | None = None, center: _b.bool = True, niter: _b.int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Computes principal components by a randomized singular value decomposition."""

def pdist(input: Tensor, p: _b.float = 2.0) -> Tensor:
    """Computes the distances between all pairs of rows of a matrix in a :math:`p`-norm."""

def pinverse(input: Tensor, rcond: _b.float | Tensor = 1e-15) -> Tensor:
    """Computes the pseudoinverses of matrices. For older programs; see `torch.linalg.pinv`.

    Args:
        rcond: The tolerance relative to the greatest singular value. Default: ``1e-15``.

    Example:
        >>> torch.pinverse(torch.tensor([[2.0]]))
        tensor([[0.5000]])
    """

def qr(input: Tensor, some: _b.bool = True, *, out: Sequence[Tensor] | None = None) -> results.qr:
    """Computes the QR decompositions of matrices. Deprecated: use `torch.linalg.qr`."""

def renorm(input: Tensor, p: _b.float, dim: _b.int, maxnorm: _b.float, *, out: Tensor | None = None) -> Tensor:
    """Scales slices along a dimension down to a maximal norm; shorter ones stay."""

def slogdet(input: Tensor, *, out: Sequence[Tensor] | None = None) -> results.slogdet:
    """Computes the signs and logarithms of determinants; another name of `torch.linalg.slogdet`.

    Args:
        input: The matrices, of shape ``(*, n, n)``.

    Example:
        >>> torch.slogdet(torch.eye(2)).logabsdet
        tensor(0.)
    """

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
    """Computes the short-time Fourier transform: the transforms of overlapping frames of a signal."""

def svd(
    input: Tensor, some: _b.bool = True, compute_uv: _b.bool = True, *, out: Sequence[Tensor] | None = None
) -> results.svd:
    """Computes singular value decompositions. Deprecated: use `torch.linalg.svd`, which returns ``Vh``."""

def svd_lowrank(A: Tensor, q: _b.int = 6, niter: _b.int = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Computes approximate singular value decompositions of low rank by a randomized method."""

def tensordot(
    a: Tensor, b: Tensor, dims: _b.int | Sequence[Sequence[_b.int]] | Tensor = 2, *, out: Tensor | None = None
) -> Tensor:
    """Computes sums of products over dimensions of two tensors."""

def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: _b.bool = True,
    transpose: _b.bool = False,
    unitriangular: _b.bool = False,
    *,
    out: Sequence[Tensor] | None = None,
) -> results.triangular_solve:
    """Solves linear systems with triangular matrices. Deprecated: use `torch.linalg.solve_triangular`."""

def vdot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes the sum of the products of the first vector's conjugate and the second vector."""

def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: _b.float = 1, alpha: Number = 1) -> Tensor:
    """In-place version of `addmv`: writes the result into the tensor and returns it."""
