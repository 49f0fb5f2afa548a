"""LU and LDL decompositions, and the solution of linear systems from them."""

from __future__ import annotations

from .._dispatch import NONDIFF, Out, Overlap, composite, memory_layout, op
from .._dispatch.shape_and_value_checks import unwrap_batched
from .._dispatch.shapes import broadcast_shapes, wrap_dim
from .._types.dtypes import int32, int64
from ._gradient_helpers import make_missing_derivative_formula, to_named_tuple
from ._linalg_common import (
    LinAlgError,
    adjoint,
    batch_shape,
    check_float,
    check_kernel_float,
    check_matrix,
    check_square,
    find_first_failure,
    identity,
    min_matrix_dim,
    right_solve_adjoint_upper,
    strictly_lower_part,
)

# --- LU -------------------------------------------------------------------------------------------


def _square_lu_vjp(F, gl, gu, lower, upper):
    """The gradient of P^T A for square L and U, which depend on nothing else."""
    inner = F.add(strictly_lower_part(F, F.matmul(adjoint(F, lower), gl)), F.triu(F.matmul(gu, adjoint(F, upper)), 0))
    return right_solve_adjoint_upper(F, F._triangular_core(adjoint(F, lower), inner, True, True), upper)


def _lu_vjp(F, g, out0, out1):
    packed, g = out0, g[0]
    m, n = packed.shape[-2:]
    k = min(m, n)
    gl, gu = strictly_lower_part(F, F.narrow(g, -1, 0, k)), F.triu(F.narrow(g, -2, 0, k), 0)
    lower = F.narrow(packed, -1, 0, k)
    upper = F.triu(F.narrow(packed, -2, 0, k), 0)
    square_l = F.add(strictly_lower_part(F, F.narrow(lower, -2, 0, k)), identity(F, packed, k))
    square_u = F.narrow(upper, -1, 0, k)
    gl_top, gu_left = F.narrow(gl, -2, 0, k), F.narrow(gu, -1, 0, k)
    if m > n:
        below = right_solve_adjoint_upper(F, F.narrow(gl, -2, k, m - k), square_u)
        gu_left = F.sub(gu_left, F.triu(F.matmul(adjoint(F, F.narrow(lower, -2, k, m - k)), below), 0))
    elif n > m:
        beside = F._triangular_core(adjoint(F, square_l), F.narrow(gu, -1, k, n - k), True, True)
        gl_top = F.sub(gl_top, F.matmul(beside, adjoint(F, F.narrow(upper, -1, k, n - k))))
    result = _square_lu_vjp(F, gl_top, gu_left, square_l, square_u)
    if m > n:
        result = F.cat([result, below], -2)
    elif n > m:
        result = F.cat([result, beside], -1)
    return F.matmul(F._permutation_matrix(out1, m, F.dtype_of(packed)), result)


op(
    "_lu_core(Tensor input)",
    where="",
    outputs=("LU", "pivots", "info"),
    nondiff=(1, 2),
    vjp={"input": _lu_vjp},
    shape_fn=lambda input: [
        (input.shape, input.dtype),
        ((*batch_shape(input), min_matrix_dim(input)), int32),
        (batch_shape(input), int32),
    ],
)
op(
    "_pivots_to_permutation(Tensor pivots, size)",
    where="",
    tags=NONDIFF,
    shape_fn=lambda pivots, size: ((*pivots.shape[:-1], size), int64),
)
op(
    "_permutation_matrix(Tensor pivots, size, dtype)",
    where="",
    tags=NONDIFF,
    shape_fn=lambda pivots, size, dtype: ((*pivots.shape[:-1], size, size), dtype),
)


def _lu_with_checks(F, name, A, pivot):
    if A.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    check_kernel_float("lu_cpu", A)
    if not pivot:
        raise RuntimeError(f"linalg.{name.rpartition('.')[2]}: LU without pivoting is not implemented on the CPU")
    return F._lu_core(A)


@composite(
    "linalg_lu_factor_ex(Tensor A, *, pivot=True, check_errors=False)",
    where="linalg",
    outputs=("LU", "pivots", "info"),
    layout=memory_layout.f_contiguous_outputs(0),
    out=Out("same"),
    node_name="LinalgLuFactorExBackward0(A)",
)
def linalg_lu_factor_ex(F, A, pivot, check_errors):
    """Computes LU decompositions in LAPACK's packed form, and reports singular matrices.

    `info` is 0 for success, else the position of the first zero on the diagonal of U, counted from 1.

    Args:
        A: The matrices, of shape ``(*, m, n)``.
        pivot: Whether rows are exchanged. ``False`` is for CUDA alone. Default: ``True``.
        check_errors: Whether a failure raises an error. Default: ``False``, `info` reports it.

    Returns:
        A named tuple ``(LU, pivots, info)``; `pivots` (int32) counts rows from 1.

    Example:
        >>> torch.linalg.lu_factor_ex(torch.zeros(1, 1)).info
        tensor(1, dtype=torch.int32)

    See also:
        `torch.linalg.lu_factor`.
    """
    packed, pivots, info = _lu_with_checks(F, "torch.lu_factor", A, pivot)
    if check_errors:
        _check_lu("torch.linalg.lu_factor_ex", info)
    return to_named_tuple("linalg_lu_factor_ex", (packed, pivots, info))


def _check_lu(name, info):
    failed = find_first_failure(info)
    if failed:
        raise RuntimeError(
            f"{name}: {failed[1]}U[{failed[2]},{failed[2]}] is zero and using it on lu_solve would result in a "
            "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) "
            "or linalg.lu_factor_ex(A, pivot)"
        )


@composite(
    "linalg_lu_factor(Tensor A, *, pivot=True)",
    where="linalg",
    outputs=("LU", "pivots"),
    layout=memory_layout.f_contiguous_outputs(0),
    out=Out("same"),
    node_name="LinalgLuFactorExBackward0(A)",
)
def linalg_lu_factor(F, A, pivot):
    """Computes LU decompositions with row exchanges in LAPACK's packed form.

    `LU` has U on and above the diagonal, and L without its unit diagonal below.

    Args:
        A: The matrices, of shape ``(*, m, n)``.
        pivot: Whether rows are exchanged. ``False`` is for CUDA alone. Default: ``True``.

    Returns:
        A named tuple ``(LU, pivots)``; row ``i`` was exchanged with row ``pivots[i] - 1``.

    Raises:
        RuntimeError: U has a zero on its diagonal.

    Example:
        >>> torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [2.0, 0.0]])).pivots
        tensor([2, 2], dtype=torch.int32)

    See also:
        `torch.linalg.lu_solve`, `torch.lu_unpack`.
    """
    packed, pivots, info = _lu_with_checks(F, "torch.lu_factor", A, pivot)
    _check_lu("torch.linalg.lu_factor", info)
    return to_named_tuple("linalg_lu_factor", (packed, pivots))


@composite(
    "linalg_lu(Tensor A, *, pivot=True)",
    where="linalg",
    outputs=("P", "L", "U"),
    layout=memory_layout.contiguous,
    out=Out("same"),
    node_name="LinalgLuBackward0(A)",
)
def linalg_lu(F, A, pivot):
    """Computes LU decompositions with row exchanges.

    .. math::

        A = P L U

    :math:`P` is a permutation, :math:`L` unit lower triangular and :math:`U` upper triangular.

    Args:
        A: The matrices, of shape ``(*, m, n)``.
        pivot: Whether rows are exchanged. ``False`` is for CUDA alone. Default: ``True``.

    Returns:
        A named tuple ``(P, L, U)``, of shapes ``(*, m, m)``, ``(*, m, k)`` and ``(*, k, n)`` with
        ``k = min(m, n)``.

    Example:
        >>> torch.linalg.lu(torch.tensor([[0.0, 1.0], [2.0, 0.0]])).U
        tensor([[2., 0.],
                [0., 1.]])

    See also:
        `torch.linalg.lu_factor`.
    """
    packed, pivots, _ = _lu_with_checks(F, "linalg.lu", A, pivot)
    return to_named_tuple("linalg_lu", F.lu_unpack(packed, pivots))


@composite(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, unpack_data=True, unpack_pivots=True)",
    where="torch",
    outputs=("P", "L", "U"),
    layout=memory_layout.contiguous,
    node_name="LuUnpackBackward0(LU_data)",
)
def lu_unpack(F, LU_data, LU_pivots, unpack_data, unpack_pivots):
    """Unpacks the result of `torch.linalg.lu_factor` into three matrices.

    Args:
        LU_data: The packed factors, of shape ``(*, m, n)``.
        LU_pivots: The row exchanges, int32.
        unpack_data: Whether to return L and U. Default: ``True``.
        unpack_pivots: Whether to return P. Default: ``True``.

    Returns:
        A named tuple ``(P, L, U)``; what is not requested is empty.

    Example:
        >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[0.0, 1.0], [2.0, 0.0]]))
        >>> torch.lu_unpack(LU, pivots).P
        tensor([[0., 1.],
                [1., 0.]])

    See also:
        `torch.linalg.lu`.
    """
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    if LU_data.ndim < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(LU_data.shape)} instead"
        )
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    if unpack_pivots and tuple(LU_pivots.shape) != (*LU_data.shape[:-2], k):
        raise RuntimeError(
            f"torch.lu_unpack: Expected LU_pivots to have shape {[*LU_data.shape[:-2], k]}, but got pivots with shape "
            f"{list(LU_pivots.shape)} instead"
        )
    empty = LU_data.new_empty((0,))
    permutation = F._permutation_matrix(LU_pivots, m, LU_data.dtype) if unpack_pivots else empty
    if not unpack_data:
        return to_named_tuple("lu_unpack", (permutation, empty, empty))
    lower = LU_data[..., :k].tril(-1) + identity(F, LU_data, max(m, k))[:, :k]
    return to_named_tuple("lu_unpack", (permutation, lower, LU_data[..., :k, :].triu()))


@composite(
    "lu(Tensor A, pivot=True, get_infos=False)",
    layout=memory_layout.f_contiguous_outputs(0),
    node_name="LinalgLuFactorExBackward0(A)",
)
def lu(F, A, pivot, get_infos):
    """Computes LU decompositions in packed form. Deprecated: use `torch.linalg.lu_factor`.

    Args:
        A: The matrices, of shape ``(*, m, n)``.
        pivot: Whether rows are exchanged. ``False`` is for CUDA alone. Default: ``True``.
        get_infos: Whether to return `info` too, in place of an error for singular matrices. Default: ``False``.

    Returns:
        ``(LU, pivots)`` or ``(LU, pivots, info)``.

    Example:
        >>> LU, pivots = torch.lu(torch.tensor([[2.0]]))
        >>> LU
        tensor([[2.]])

    See also:
        `torch.linalg.lu_factor`.
    """
    packed, pivots, info = _lu_with_checks(F, "torch.lu_factor", A, pivot)
    if get_infos:
        return to_named_tuple("linalg_lu_factor_ex", (packed, pivots, info))
    return packed, pivots


@composite(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, left=True, adjoint=False)",
    where="linalg",
    layout=memory_layout.solve_left,
    node_name="LinalgLuSolveBackward0(LU, B)",
)
def linalg_lu_solve(F, LU, pivots, B, left, adjoint):
    r"""Solves linear systems from the LU decompositions of their matrices.

    Args:
        LU: The packed factors, of shape ``(*, n, n)``.
        pivots: The row exchanges, int32.
        B: The right-hand sides, of shape ``(*, n, k)``; batch dimensions broadcast.
        left: Whether the system is :math:`A X = B`, else :math:`X A = B`. Default: ``True``.
        adjoint: Whether :math:`A^{\mathsf{H}}` replaces :math:`A`. Default: ``False``.

    Returns:
        The solutions, of the shape of `B`.

    Example:
        >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(torch.tensor([[2.0]])), torch.tensor([[4.0]]))
        tensor([[2.]])

    See also:
        `torch.linalg.lu_factor`.
    """
    name = "torch.linalg.lu_solve"
    check_square(name, LU, "LU")
    check_matrix(name, B, "B")
    if pivots.dtype is not int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if LU.dtype is not B.dtype:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {LU.dtype.scalar_name} "
            f"and B of type {B.dtype.scalar_name} instead"
        )
    n = LU.shape[-1]
    if pivots.shape[-1:] != (n,):
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.shape != LU.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if B.shape[-2 if left else -1] != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.lu_solve: Incompatible shapes of A and B for the equation {equation} ({n}x{n} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )
    permutation = F._permutation_matrix(pivots, n, LU.dtype)
    if not left:
        return F.linalg_lu_solve(LU, pivots, B.mH, left=True, adjoint=not adjoint).mH
    if adjoint:
        half = F._triangular_core(LU.triu().mH, B, False, False)
        return permutation @ F._triangular_core(LU.mH, half, True, True)
    return F._triangular_core(LU.triu(), F._triangular_core(LU, permutation.mT @ B, False, True), True, False)


@composite(
    "lu_solve(Tensor input, Tensor LU_data, Tensor LU_pivots)",
    layout=memory_layout.f_contiguous,
    overlap=Overlap(operands="partial"),
    node_name="LinalgLuSolveBackward0(LU_data, input)",
)
def lu_solve(F, input, LU_data, LU_pivots):
    """Solves linear systems from LU decompositions. Deprecated: use `torch.linalg.lu_solve`.

    Args:
        input: The right-hand sides, of shape ``(*, n, k)``.
        LU_data: The packed factors.
        LU_pivots: The row exchanges.

    Example:
        >>> torch.lu_solve(torch.tensor([[4.0]]), *torch.linalg.lu_factor(torch.tensor([[2.0]])))
        tensor([[2.]])

    See also:
        `torch.linalg.lu_solve`.
    """
    return F.linalg_lu_solve(LU_data, LU_pivots, input)


# --- LDL ------------------------------------------------------------------------------------------


op(
    "_ldl_factor_core(Tensor input, hermitian)",
    where="",
    outputs=("LD", "pivots", "info"),
    nondiff=(1, 2),
    vjp={"input": make_missing_derivative_formula("linalg_ldl_factor_ex")},
    shape_fn=lambda input: [(input.shape, input.dtype), (tuple(input.shape[:-1]), int32), (batch_shape(input), int32)],
    node_name="NotImplemented",
)


def _ldl_solve_vjp(F, g, LD, pivots, hermitian):
    if hermitian:
        return F._ldl_solve_core(LD, pivots, g, True)
    return F.conj(F._ldl_solve_core(LD, pivots, F.conj(g), False))


op(
    "_ldl_solve_core(Tensor LD, Tensor pivots, Tensor B, hermitian)",
    where="",
    vjp={"B": _ldl_solve_vjp},
    shape_fn=lambda LD, pivots, B: (B.shape, B.dtype),
)


@composite(
    "linalg_ldl_factor_ex(Tensor input, *, hermitian=False, check_errors=False)",
    where="linalg",
    outputs=("LD", "pivots", "info"),
    layout=memory_layout.f_contiguous_outputs(0),
)
def linalg_ldl_factor_ex(F, A, hermitian, check_errors):
    """Computes LDL decompositions in LAPACK's packed form, and reports failures.

    `info` is 0 for success, else the position of the first zero on the diagonal of D, counted from 1.

    Args:
        input: The matrices, of shape ``(*, n, n)``.
        hermitian: Whether the matrices are Hermitian, else symmetric. Default: ``False``.
        check_errors: Whether a failure raises an error. Default: ``False``, `info` reports it.

    Returns:
        A named tuple ``(LD, pivots, info)``.

    Example:
        >>> torch.linalg.ldl_factor_ex(torch.tensor([[2.0, 0.0], [1.0, 1.0]])).info
        tensor(0, dtype=torch.int32)

    See also:
        `torch.linalg.ldl_factor`.
    """
    name = "torch.linalg.ldl_factor_ex"
    check_square(name, A)
    check_float(name, A, low_precision=True)
    check_kernel_float("ldl_factor_kernel_cpu", A)
    packed, pivots, info = F._ldl_factor_core(A, hermitian)
    if check_errors:
        _check_ldl(name, info)
    return to_named_tuple("linalg_ldl_factor_ex", (packed, pivots, info))


def _check_ldl(name, info):
    failed = find_first_failure(info)
    if failed:
        raise LinAlgError(
            f"{name}: {failed[1]}D[{failed[2]},{failed[2]}] is exactly zero. The factorization has been completed, "
            "but solving with it would divide by zero."
        )


@composite(
    "linalg_ldl_factor(Tensor input, *, hermitian=False)",
    where="linalg",
    outputs=("LD", "pivots"),
    layout=memory_layout.f_contiguous_outputs(0),
)
def linalg_ldl_factor(F, A, hermitian):
    """Computes LDL decompositions of symmetric or Hermitian matrices (Bunch and Kaufman, 1977).

    The packed form is that of LAPACK's ``sytrf``. The function is not differentiable.

    Args:
        input: The matrices, of shape ``(*, n, n)``; the lower triangle is read.
        hermitian: Whether the matrices are Hermitian, else symmetric. Default: ``False``.

    Returns:
        A named tuple ``(LD, pivots)``.

    Example:
        >>> torch.linalg.ldl_factor(torch.tensor([[2.0, 0.0], [1.0, 1.0]])).LD
        tensor([[2.0000, 0.0000],
                [0.5000, 0.5000]])

    See also:
        `torch.linalg.ldl_solve`.
    """
    packed, pivots, info = F.linalg_ldl_factor_ex(A, hermitian=hermitian)
    _check_ldl("torch.linalg.ldl_factor", info)
    return to_named_tuple("linalg_ldl_factor", (packed, pivots))


def _check_pivots(matrices: list, n: int) -> None:
    """RuntimeError for pivots of no factorisation: kernels exchange the rows that they name, negative ones in pairs."""
    asked = "Did you properly pass the result of ldl_factor?"
    for pivots in matrices:
        if any(abs(p) > n for p in pivots):
            raise RuntimeError(f"Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). {asked}")
        if 0 in pivots:
            raise RuntimeError(f"Pivots given to ldl_solve must all satisfy |pivot| >= 1. {asked}")
        k = 0
        while k < len(pivots):
            if pivots[k] < 0 and not any(p < 0 for p in pivots[k + 1 : k + 2]):
                raise RuntimeError(f"Negative pivots given to ldl_solve must come in pairs. {asked}")
            k += 1 + (pivots[k] < 0)


@composite(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, hermitian=False)",
    where="linalg",
    layout=memory_layout.f_contiguous,
)
def linalg_ldl_solve(F, LD, pivots, B, hermitian):
    """Solves linear systems from the LDL decompositions of their matrices.

    Args:
        LD: The packed factors, of shape ``(*, n, n)``.
        pivots: The row exchanges, int32.
        B: The right-hand sides, of shape ``(*, n, k)``.
        hermitian: Whether the matrices are Hermitian, else symmetric. Default: ``False``.

    Example:
        >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[2.0]]))
        >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[4.0]]))
        tensor([[2.]])

    See also:
        `torch.linalg.ldl_factor`.
    """
    name = "torch.linalg.ldl_solve"
    check_square(name, LD)
    rows = B.shape[wrap_dim(-2, B.ndim)]
    if LD.dtype is not B.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {B.dtype.scalar_name} and A of type "
            f"{LD.dtype.scalar_name} instead."
        )
    n = LD.shape[-1]
    if rows != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {rows} by "
            f"{B.shape[-1]}"
        )
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.dtype.category != 1:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype.scalar_name}")
    broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    if not pivots.is_meta:
        rows = pivots.detach()
        rows = unwrap_batched(rows.flatten(0, -2) if rows.ndim > 1 else rows.reshape(1, -1))
        _check_pivots((rows if rows.ndim == 2 else rows.flatten(0, -2)).tolist(), LD.shape[-1])
    return F._ldl_solve_core(LD, pivots, B, hermitian)
