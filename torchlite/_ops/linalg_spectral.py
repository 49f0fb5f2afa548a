"""Eigenvalues and singular values.

The formulas are the well-known adjoints: Giles, "Collected matrix derivative results" (2008), and Wan and Zhang (2019)
for complex singular vectors.
"""

from __future__ import annotations

from .._dispatch import NONDIFF, Out, composite, memory_layout, op
from .._dispatch.shape_and_value_checks import is_tracked_by_autograd
from .._types.dtypes import complex64, complex128, float32, float64
from ._gradient_helpers import to_named_tuple
from ._linalg_common import (
    adjoint,
    as_column,
    as_row,
    check_float,
    check_kernel_float,
    check_matrix,
    check_square,
    diagonal_mask,
    diagonal_matrix,
    multiply_matrices,
    run_until_converged,
    sum_two,
)

_COMPLEX = {float32: complex64, float64: complex128}


def _batch_shape(a):
    return tuple(a.shape[:-2])


# --- eigenvalues ----------------------------------------------------------------------------------


def _eigenvalue_gaps(F, values, like):
    """values[j] - values[i], with ones on the diagonal."""
    gaps = F.sub(as_row(F, values), as_column(F, values))
    return F.where(diagonal_mask(F, values, values.shape[-1]), F._ones_like(gaps), gaps)


def _eigh_vjp(F, g, out0, out1, input_dtype):
    values, vectors = out0, out1
    inverse = adjoint(F, vectors)
    inner = None
    if g[1] is not None:  # unitary vectors move by skew-Hermitian factors alone
        inner = F.matmul(inverse, g[1])
        inner = F.mul(F.sub(inner, adjoint(F, inner)), 0.5)
        inner = F.div(inner, F.to(_eigenvalue_gaps(F, values, vectors), input_dtype))
        inner = F.where(diagonal_mask(F, values, values.shape[-1]), F._zeros_like(inner), inner)
    if g[0] is not None:
        own = F.to(g[0], input_dtype)
        if inner is None:
            return F.matmul(F.mul(vectors, as_row(F, own)), inverse)
        inner = F.add(inner, diagonal_matrix(F, own))
    return multiply_matrices(F, vectors, inner, inverse)


op(
    "_eigh_core(Tensor input, UPLO)",
    where="",
    outputs=("eigenvalues", "eigenvectors"),
    vjp={"input": _eigh_vjp},
    shape_fn=lambda input: [(tuple(input.shape[:-1]), input.dtype.to_real()), (input.shape, input.dtype)],
    node_name="LinalgEighBackward0",
)
op(
    "_eigvalsh_core(Tensor input, UPLO)",
    where="",
    tags=NONDIFF,
    shape_fn=lambda input: (tuple(input.shape[:-1]), input.dtype.to_real()),
)


def _check_eigh(A, UPLO):
    check_square("linalg.eigh", A)
    if str(UPLO).upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_kernel_float("linalg_eigh_cpu", A)
    return str(UPLO).upper()


@composite(
    "linalg_eigh(Tensor input, UPLO='L')",
    where="linalg",
    outputs=("eigenvalues", "eigenvectors"),
    layout=memory_layout.f_contiguous_outputs(1),
)
def linalg_eigh(F, A, UPLO):
    r"""Computes the eigenvalues and eigenvectors of Hermitian matrices.

    .. math::

        A = Q \, \mathrm{diag}(\Lambda) \, Q^{\mathsf{H}}

    Eigenvectors are unique up to a phase. Their gradient is finite only for distinct eigenvalues.

    Args:
        input: The matrices, of shape ``(*, n, n)``.
        UPLO: The triangle that is read: ``"L"`` (default) or ``"U"``.

    Returns:
        A named tuple ``(eigenvalues, eigenvectors)``: real eigenvalues in ascending order, and orthonormal columns.

    Example:
        >>> torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])

    See also:
        `torch.linalg.eig`, `torch.linalg.svd`.
    """
    UPLO = _check_eigh(A, UPLO)
    return to_named_tuple("linalg_eigh", run_until_converged("linalg.eigh", F._eigh_core, A, UPLO))


@composite("linalg_eigvalsh(Tensor input, UPLO='L')", where="linalg")
def linalg_eigvalsh(F, A, UPLO):
    """Computes the eigenvalues of Hermitian matrices, in ascending order.

    Args:
        input: The matrices, of shape ``(*, n, n)``.
        UPLO: The triangle that is read: ``"L"`` (default) or ``"U"``.

    Returns:
        A real tensor of shape ``(*, n)``.

    Example:
        >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])

    See also:
        `torch.linalg.eigh`.
    """
    UPLO = _check_eigh(A, UPLO)
    if is_tracked_by_autograd(A):
        return run_until_converged("linalg.eigh", F._eigh_core, A, UPLO)[0]
    return run_until_converged("linalg.eigh", F._eigvalsh_core, A, UPLO)


def _eig_vjp(F, g, out0, out1, input_dtype):
    values, vectors = out0, out1
    inverse_h = adjoint(F, vectors)
    inner = None
    if g[1] is not None:
        along = F.matmul(inverse_h, g[1])
        own = F.to(F.real(F.diagonal(along, 0, -2, -1)), F.dtype_of(along))
        inner = F.sub(along, F.mul(F.matmul(inverse_h, vectors), as_row(F, own)))
        inner = F.div(inner, F.conj(_eigenvalue_gaps(F, values, vectors)))
        inner = F.where(diagonal_mask(F, values, values.shape[-1]), F._zeros_like(inner), inner)
    if g[0] is not None:
        inner = sum_two(F, inner, diagonal_matrix(F, g[0]))
    result = F._solve_core(inverse_h, F.matmul(inner, inverse_h))[0]
    return result if input_dtype.is_complex else F.real(result)


def _eig_rule(input):
    kind = _COMPLEX.get(input.dtype, input.dtype)
    return [(tuple(input.shape[:-1]), kind), (input.shape, kind)]


op(
    "_eig_core(Tensor input)",
    where="",
    outputs=("eigenvalues", "eigenvectors"),
    vjp={"input": _eig_vjp},
    shape_fn=_eig_rule,
    node_name="LinalgEigBackward0",
)
op("_eigvals_core(Tensor input)", where="", tags=NONDIFF, shape_fn=lambda input: _eig_rule(input)[0])


def _check_eig(name, A):
    check_square(name, A)
    if A.dtype.category < 2:
        raise RuntimeError(f"Unknown Complex ScalarType for {A.dtype.scalar_name}")
    check_kernel_float("linalg_eig_out_cpu", A)


@composite(
    "linalg_eig(Tensor input)",
    where="linalg",
    outputs=("eigenvalues", "eigenvectors"),
    layout=memory_layout.f_contiguous_outputs(1),
)
def linalg_eig(F, A):
    """Computes the eigenvalues and eigenvectors of square matrices.

    Args:
        input: The matrices, of shape ``(*, n, n)``.

    Returns:
        A named tuple ``(eigenvalues, eigenvectors)``, both complex: eigenvalues in no particular order, and columns
        of norm 1.

    Example:
        >>> torch.linalg.eig(torch.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues.real
        tensor([0., 0.])

    See also:
        `torch.linalg.eigh` for Hermitian matrices.
    """
    _check_eig("linalg.eig", A)
    return to_named_tuple("linalg_eig", run_until_converged("linalg.eig", F._eig_core, A))


@composite(
    "linalg_eigvals(Tensor input)",
    where="linalg",
    out=Out(
        message="torch.linalg.eigvals: Expected eigenvalues to be safely castable from {want} dtype, but got "
        "eigenvalues with dtype {got}"
    ),
)
def linalg_eigvals(F, A):
    """Computes the eigenvalues of square matrices, in no particular order.

    Args:
        input: The matrices, of shape ``(*, n, n)``.

    Returns:
        A complex tensor of shape ``(*, n)``.

    Example:
        >>> torch.linalg.eigvals(torch.tensor([[2.0]]))
        tensor([2.+0.j])

    See also:
        `torch.linalg.eig`.
    """
    _check_eig("linalg.eigvals", A)
    if is_tracked_by_autograd(A):
        return run_until_converged("linalg.eig", F._eig_core, A)[0]
    return run_until_converged("linalg.eig", F._eigvals_core, A)


# --- singular values ------------------------------------------------------------------------------


def _skew_part(F, a):
    return F.sub(a, adjoint(F, a))


def _svd_vjp(F, g, out0, out1, out2, input_shape, input_dtype):
    s, k = out1, out1.shape[-1]
    u, vh = F.narrow(out0, -1, 0, k), F.narrow(out2, -2, 0, k)
    gu = None if g[0] is None else F.narrow(g[0], -1, 0, k)
    gvh = None if g[2] is None else F.narrow(g[2], -2, 0, k)
    own = None if g[1] is None else diagonal_matrix(F, F.to(g[1], input_dtype))
    if gu is None and gvh is None:
        return multiply_matrices(F, u, own, vh)
    wide = F.to(s, input_dtype)
    # s_j^2 - s_i^2 as two factors, whose product may overflow.
    gaps, sums = F.to(_eigenvalue_gaps(F, s, s), input_dtype), F.to(_singular_value_sums(F, s), input_dtype)
    inner = own
    skew_u = skew_v = None
    if gu is not None:
        skew_u = _skew_part(F, F.matmul(adjoint(F, u), gu))
        inner = sum_two(F, inner, F.mul(F.div(skew_u, gaps), F.div(as_row(F, wide), sums)))
    if gvh is not None:
        skew_v = _skew_part(F, F.matmul(vh, adjoint(F, gvh)))
        inner = sum_two(F, inner, F.mul(F.div(skew_v, gaps), F.div(as_column(F, wide), sums)))
    if input_dtype.is_complex:
        inner = _svd_phase(F, inner, skew_u, skew_v, wide)
    elif own is None:
        inner = F.where(diagonal_mask(F, s, k), F._zeros_like(inner), inner)
    return _svd_outer(F, inner, gu, gvh, u, vh, wide, input_shape)


def _singular_value_sums(F, s):
    """s[j] + s[i], with ones on the diagonal."""
    sums = F.add(as_row(F, s), as_column(F, s))
    return F.where(diagonal_mask(F, s, s.shape[-1]), F._ones_like(sums), sums)


def _svd_phase(F, inner, skew_u, skew_v, wide):
    """The diagonals of the skew parts hold the phase; the derivative divides them by 2 s where U carries it, and V's
    adds nothing twice.
    """
    k = wide.shape[-1]
    eye = diagonal_mask(F, F.real(wide), k)
    for skew, scale in ((skew_u, as_row(F, wide)), (skew_v, as_column(F, wide))):
        if skew is not None:
            inner = F.sub(inner, F.where(eye, F.mul(skew, scale), F._zeros_like(inner)))
    if skew_u is not None:
        inner = F.add(inner, F.where(eye, F.div(skew_u, F.mul(as_row(F, wide), 2)), F._zeros_like(inner)))
    return inner


def _svd_outer(F, inner, gu, gvh, u, vh, wide, shape):
    """U inner Vh, plus the component outside the spaces of U and V."""
    m, n = shape[-2:]
    k = wide.shape[-1]
    if m > k and gu is not None:
        scaled = F.div(gu, as_row(F, wide))
        left = F.add(F.matmul(u, inner), F.sub(scaled, F.matmul(u, F.matmul(adjoint(F, u), scaled))))
        return F.matmul(left, vh)
    if n > k and gvh is not None:
        scaled = F.div(gvh, as_column(F, wide))
        right = F.add(F.matmul(inner, vh), F.sub(scaled, F.matmul(F.matmul(scaled, adjoint(F, vh)), vh)))
        return F.matmul(u, right)
    return multiply_matrices(F, u, inner, vh)


def _svd_rule(input, full_matrices):
    m, n = input.shape[-2:]
    k, real = min(m, n), input.dtype.to_real()
    return [
        ((*_batch_shape(input), m, m if full_matrices else k), input.dtype),
        ((*_batch_shape(input), k), real),
        ((*_batch_shape(input), n if full_matrices else k, n), input.dtype),
    ]


op(
    "_svd_core(Tensor input, full_matrices)",
    where="",
    outputs=("U", "S", "Vh"),
    vjp={"input": _svd_vjp},
    shape_fn=_svd_rule,
    node_name="LinalgSvdBackward0",
)
op("_svdvals_core(Tensor input)", where="", tags=NONDIFF, shape_fn=lambda input: _svd_rule(input, False)[1])


def _check_driver(A, driver) -> None:
    """Drivers are cuSOLVER's; each computes the same decomposition."""
    if driver is None:
        return
    if A.device.type != "cuda":
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    if driver not in ("gesvd", "gesvdj", "gesvda"):
        raise RuntimeError(f"torch.linalg.svd: unknown svd driver {driver} in svd_cusolver computation.")


def _check_svd(A):
    check_matrix("linalg.svd", A)
    check_float("linalg.svd", A, low_precision=True)
    check_kernel_float("linalg_svd_cpu", A)


@composite(
    "linalg_svd(Tensor A, full_matrices=True, *, driver=None)",
    where="linalg",
    outputs=("U", "S", "Vh"),
    layout=memory_layout.f_contiguous_outputs(0, 2),
    out=Out("same"),
)
def linalg_svd(F, A, full_matrices, driver):
    r"""Computes the singular value decompositions of matrices.

    .. math::

        A = U \, \mathrm{diag}(S) \, V^{\mathsf{H}}

    The gradient of the singular vectors is finite only for distinct singular values.

    Args:
        A: The matrices, of shape ``(*, m, n)``.
        full_matrices: Whether `U` and `Vh` are square, else they have ``min(m, n)`` vectors. Default: ``True``.
        driver: The method of cuSOLVER on a CUDA device. Default: chosen by the shape.

    Returns:
        A named tuple ``(U, S, Vh)``; the singular values `S` are in descending order.

    Raises:
        LinAlgError: A matrix has NaN or infinity.

    Example:
        >>> torch.linalg.svd(torch.tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])

    See also:
        `torch.linalg.svdvals`, `torch.svd_lowrank`.
    """
    _check_svd(A)
    _check_driver(A, driver)
    return to_named_tuple("linalg_svd", run_until_converged("linalg.svd", F._svd_core, A, full_matrices))


@composite("linalg_svdvals(Tensor A, *, driver=None)", where="linalg", out=Out("same"))
def linalg_svdvals(F, A, driver):
    """Computes the singular values of matrices, in descending order.

    Args:
        A: The matrices, of shape ``(*, m, n)``.
        driver: The method of cuSOLVER on a CUDA device. Default: chosen by the shape.

    Returns:
        A real tensor of shape ``(*, min(m, n))``.

    Example:
        >>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, -2.0]]))
        tensor([3., 2.])

    See also:
        `torch.linalg.svd`.
    """
    _check_svd(A)
    _check_driver(A, driver)
    if is_tracked_by_autograd(A):
        return run_until_converged("linalg.svd", F._svd_core, A, False)[1]
    return run_until_converged("linalg.svd", F._svdvals_core, A)


@composite(
    "svd(Tensor input, some=True, compute_uv=True)",
    outputs=("U", "S", "V"),
    layout=memory_layout.f_contiguous_outputs(0),
    out=Out("same"),
)
def svd(F, input, some, compute_uv):
    """Computes singular value decompositions. Deprecated: use `torch.linalg.svd`, which returns ``Vh``.

    Args:
        input: The matrices, of shape ``(*, m, n)``.
        some: Whether `U` and `V` have ``min(m, n)`` columns, else they are square. Default: ``True``.
        compute_uv: Whether `U` and `V` are computed, else they are zeros. Default: ``True``.

    Returns:
        A named tuple ``(U, S, V)``.

    Example:
        >>> torch.svd(torch.tensor([[3.0, 0.0], [0.0, 2.0]])).S
        tensor([3., 2.])

    See also:
        `torch.linalg.svd`.
    """
    if input.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input.ndim} dimensions instead"
        )
    if not compute_uv:
        m, n = input.shape[-2:]
        u, v = (input.new_zeros((*input.shape[:-2], size, size)) for size in (m, n))
        return to_named_tuple("svd", (u, F.linalg_svdvals(input), v))
    u, s, vh = F.linalg_svd(input, not some)
    return to_named_tuple("svd", (u, s, vh.mH))


def _range_finder(F, A, q, niter, M):
    """Orthonormal columns that nearly span A's range: Halko, Martinsson and Tropp (2009), algorithm 4.4."""
    A = A if M is None else A - M
    test = F.randn((A.shape[-1], q), dtype=A.dtype, device=A.device)
    basis = F.linalg_qr(A @ test).Q
    for _ in range(niter):
        basis = F.linalg_qr(A.mH @ basis).Q
        basis = F.linalg_qr(A @ basis).Q
    return basis


@composite("svd_lowrank(Tensor A, q=6, niter=2, Tensor? M=None)", where="torch", out=Out(supported=False))
def svd_lowrank(F, A, q, niter, M):
    """Computes approximate singular value decompositions of low rank by a randomized method.

    The method is algorithm 5.1 of Halko, Martinsson and Tropp (2009).

    Args:
        A: The matrices, of shape ``(*, m, n)``.
        q: The rank. Default: 6.
        niter: The number of subspace iterations. Default: 2.
        M: A tensor that is subtracted from `A`; it broadcasts. Default: none.

    Returns:
        A tuple ``(U, S, V)``, of shapes ``(*, m, q)``, ``(*, q)`` and ``(*, n, q)``.

    Example:
        >>> U, S, V = torch.svd_lowrank(torch.eye(4), q=2)
        >>> U.shape, S.shape, V.shape
        (torch.Size([4, 2]), torch.Size([2]), torch.Size([4, 2]))

    See also:
        `torch.pca_lowrank`, `torch.linalg.svd`.
    """
    q = 6 if q is None else q
    m, n = A.shape[-2:]
    M = None if M is None else M.broadcast_to(A.shape)
    flipped = m < n
    if flipped:
        A, M = A.mH, None if M is None else M.mH
    basis = _range_finder(F, A, q, niter, M)
    small = basis.mH @ (A if M is None else A - M)
    u, s, vh = F.linalg_svd(small, False)
    u, v = basis @ u, vh.mH
    return (v, s, u) if flipped else (u, s, v)


@composite("pca_lowrank(Tensor A, q=None, center=True, niter=2)", where="torch", out=Out(supported=False))
def pca_lowrank(F, A, q, center, niter):
    """Computes principal components by a randomized singular value decomposition.

    Args:
        A: The observations, of shape ``(*, m, n)``: an observation a row.
        q: The number of components. Default: ``min(6, m, n)``.
        center: Whether the means of the columns are subtracted first. Default: ``True``.
        niter: The number of subspace iterations. Default: 2.

    Returns:
        A tuple ``(U, S, V)``; the columns of `V` are the principal directions.

    Example:
        >>> U, S, V = torch.pca_lowrank(torch.tensor([[0.0, 0.0], [2.0, 2.0]]), q=1)
        >>> V.abs()
        tensor([[0.7071],
                [0.7071]])

    See also:
        `torch.svd_lowrank`.
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return F.svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter, None)
