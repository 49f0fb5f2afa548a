"""Factorisations: Cholesky, QR, LU, LDL.

Each is a core record (`where=""`) with a kernel and formula for checked matrices, and public functions over it. The
formulas are the well-known adjoints: Giles, "Collected matrix derivative results" (2008), and Walter and Lehmann (2010)
for QR.
"""

from __future__ import annotations

import numpy as np

from .._dispatch import NONDIFF, Out, Overlap, composite, memory_layout, op
from .._dispatch.shape_and_value_checks import unwrap_batched
from .._types.dtypes import int32, int64
from ._gradient_helpers import make_missing_derivative_formula, make_not_implemented_formula, to_named_tuple
from ._linalg_common import (
    CASTABLE_OUT,
    LinAlgError,
    adjoint,
    as_column,
    as_row,
    check_float,
    check_kernel_float,
    check_matrix,
    check_square,
    find_first_failure,
    hermitian_part,
    identity,
    lower_half,
    right_solve_adjoint_upper,
    right_solve_lower,
    strictly_lower_part,
    zero_if_none,
)


def _batch_shape(a):
    return tuple(a.shape[:-2])


def _min_matrix_dim(a):
    return min(a.shape[-2], a.shape[-1])


# --- Cholesky -------------------------------------------------------------------------------------


def _cholesky_vjp(F, g, out0):
    inner = lower_half(F, F.matmul(adjoint(F, out0), g[0]))
    return hermitian_part(F, right_solve_lower(F, F._triangular_core(adjoint(F, out0), inner, True, False), out0))


op(
    "_cholesky_core(Tensor input)",
    where="",
    outputs=("L", "info"),
    nondiff=(1,),
    vjp={"input": _cholesky_vjp},
    shape_fn=lambda input: [(input.shape, input.dtype), (_batch_shape(input), int32)],
)


def _cholesky(F, name, A, upper):
    check_square(name, A)
    check_float(name, A, low_precision=True)
    check_kernel_float("cholesky_cpu", A)
    lower, info = F._cholesky_core(A.mH if upper else A)
    return lower, info


def _check_definite(name, info):
    failed = find_first_failure(info)
    if failed:
        raise LinAlgError(
            f"{name}: {failed[1]}The factorization could not be completed because the input is not positive-definite "
            f"(the leading minor of order {failed[2]} is not positive-definite)."
        )


@composite(
    "linalg_cholesky_ex(Tensor input, *, upper=False, check_errors=False)",
    where="linalg",
    outputs=("L", "info"),
    layout=memory_layout.f_contiguous_outputs(0),
)
def linalg_cholesky_ex(F, A, upper, check_errors):
    """The Cholesky factor and info: 0, or the order of the first leading minor that is not positive-definite. See
    `linalg.cholesky`.

    >>> torch.linalg.cholesky_ex(-torch.eye(2)).info
    tensor(1, dtype=torch.int32)
    """
    lower, info = _cholesky(F, "linalg.cholesky", A, upper)
    if check_errors:
        _check_definite("linalg.cholesky_ex", info)
    return to_named_tuple("linalg_cholesky_ex", (F.conj(lower.mT) if upper else lower, info))


@composite("linalg_cholesky(Tensor input, *, upper=False)", where="linalg", layout=memory_layout.f_contiguous)
def linalg_cholesky(F, A, upper):
    """L with A = L L^H for Hermitian positive-definite (..., n, n) matrices; with `upper`, U with A = U^H U.
    LinAlgError for others.

    >>> torch.linalg.cholesky(torch.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    lower, info = _cholesky(F, "linalg.cholesky", A, upper)
    _check_definite("linalg.cholesky", info)
    return F.conj(lower.mT) if upper else lower


@composite(
    "cholesky(Tensor input, upper=False)", layout=memory_layout.f_contiguous, overlap=Overlap(operands="partial")
)
def cholesky(F, input, upper):
    """See `linalg.cholesky`."""
    check_square("cholesky", input)
    check_kernel_float("cholesky_cpu", input)
    lower, info = _cholesky(F, "cholesky", input, upper)
    _check_definite("cholesky", info)
    return F.conj(lower.mT) if upper else lower


@composite(
    "cholesky_solve(Tensor input, Tensor L, upper=False)",
    layout=memory_layout.f_contiguous,
    out=CASTABLE_OUT,
    overlap=Overlap(operands="partial"),
)
def cholesky_solve(F, input, L, upper):
    """X with A X = input, given A's Cholesky factor `L` (lower, or upper with `upper`). Batch dimensions broadcast.

    >>> torch.cholesky_solve(torch.tensor([[8.], [4.]]), torch.tensor([[2., 0.], [0., 2.]]))
    tensor([[2.],
            [1.]])
    """
    for name, x in (("b", input), ("u", L)):
        if x.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {x.ndim} dimensions instead")
    check_square("", L)
    if input.shape[-2] != L.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.shape[-1]} by {L.shape[-1]} but each "
            f"b matrix is {input.shape[-2]} by {input.shape[-1]}"
        )
    if input.dtype is not L.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {input.dtype.scalar_name} and A of type "
            f"{L.dtype.scalar_name} instead."
        )
    lower = L.mH.tril() if upper else L.tril()
    return F._triangular_core(lower.mH, F._triangular_core(lower, input, False, False), True, False)


def _check_regular(input):
    """LinAlgError for a factor with a zero on its diagonal."""
    if input.device.type == "meta" or not input.numel():
        return
    zero = np.array(unwrap_batched(input.detach().diagonal(0, -2, -1).eq(0)).cpu().tolist())
    if not zero.any():
        return
    batch = int(np.argwhere(zero.any(-1).reshape(-1))[0, 0])
    place = int(np.argmax(zero.reshape(-1, zero.shape[-1])[batch]))
    where = f" (Batch element {batch}):" if zero.ndim > 1 else ""
    raise LinAlgError(
        f"cholesky_inverse:{where} The diagonal element {place + 1} is zero, the inversion could not be completed "
        "because the input matrix is singular."
    )


@composite(
    "cholesky_inverse(Tensor input, upper=False)",
    layout=memory_layout.f_contiguous,
    overlap=Overlap(operands="partial"),
)
def cholesky_inverse(F, input, upper):
    """The inverse of A, given its Cholesky factor (lower, or upper with `upper`).

    >>> torch.cholesky_inverse(torch.tensor([[2.]]))
    tensor([[0.2500]])
    """
    check_square("cholesky_inverse", input)
    check_kernel_float("cholesky_inverse_out_cpu", input)
    _check_regular(input)
    lower = input.mH.tril() if upper else input.tril()
    half = F._triangular_core(lower, F.expand(identity(F, input, input.shape[-1]), input.shape), False, False)
    return half.mH @ half


# --- QR -------------------------------------------------------------------------------------------


def _tall_qr_vjp(F, gq, gr, q, r):
    """The adjoint of QR for square or tall matrices: (gQ + Q H) R^-H, where H is Hermitian."""
    inner = F.triu(F.sub(F.matmul(gr, adjoint(F, r)), F.matmul(adjoint(F, q), gq)), 0)
    both = F.add(inner, adjoint(F, inner))
    both = F.sub(both, F.mul(both, F.mul(identity(F, both, both.shape[-1]), 0.5)))
    return right_solve_adjoint_upper(F, F.add(gq, F.matmul(q, both)), r)


def _qr_vjp(F, g, input_shape, out0, out1, mode):
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to require gradients"
        )
    m, n = input_shape[-2:]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    gq, gr = zero_if_none(F, g[0], out0), zero_if_none(F, g[1], out1)
    if m >= n:
        return _tall_qr_vjp(F, gq, gr, out0, out1)
    right = F.matmul(out0, F.narrow(out1, -1, m, n - m))
    gr_left, gr_right = F.narrow(gr, -1, 0, m), F.narrow(gr, -1, m, n - m)
    gq = F.add(gq, F.matmul(right, adjoint(F, gr_right)))
    return F.cat([_tall_qr_vjp(F, gq, gr_left, out0, F.narrow(out1, -1, 0, m)), F.matmul(out0, gr_right)], -1)


def _qr_rule(input, mode):
    m, n = input.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    return [
        ((0,) if mode == "r" else (*_batch_shape(input), m, k), input.dtype),
        ((*_batch_shape(input), k, n), input.dtype),
    ]


op(
    "_qr_core(Tensor input, mode)",
    where="",
    outputs=("Q", "R"),
    shape_fn=_qr_rule,
    vjp={"input": _qr_vjp},
    node_name="LinalgQrBackward0",
)


@composite(
    "linalg_qr(Tensor A, mode='reduced')",
    where="linalg",
    outputs=("Q", "R"),
    layout=memory_layout.f_contiguous,
    out=Out("same"),
)
def linalg_qr(F, A, mode):
    """A = Q R with orthonormal columns in Q and R upper triangular. `mode`: "reduced" (Q is m x min(m, n)), "complete"
    (m x m), or "r" (Q is left out, empty).

    >>> torch.linalg.qr(torch.tensor([[2., 0.], [0., 3.]])).R.abs()
    tensor([[2., 0.],
            [0., 3.]])
    """
    check_matrix("linalg.qr", A)
    check_float("linalg.qr", A, low_precision=True)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    check_kernel_float("geqrf_cpu", A)
    return to_named_tuple("linalg_qr", F._qr_core(A, mode))


@composite("qr(Tensor input, some=True)", outputs=("Q", "R"), layout=memory_layout.f_contiguous, out=Out("same"))
def qr(F, input, some):
    """See `linalg.qr`: mode "reduced" with `some`, else "complete"."""
    return to_named_tuple("qr", F.linalg_qr(input, "reduced" if some else "complete"))


def _geqrf_rule(input):
    if len(input.shape) < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_kernel_float("geqrf_cpu", input)
    return [(input.shape, input.dtype), ((*_batch_shape(input), _min_matrix_dim(input)), input.dtype)]


op(
    "geqrf(Tensor input)",
    outputs=("a", "tau"),
    vjp={"input": make_not_implemented_formula("geqrf")},
    shape_fn=_geqrf_rule,
    doc="""R, the Householder vectors below it, and their scales `tau`: the packed form that
    `linalg.householder_product` and `ormqr` take.

    >>> torch.geqrf(torch.tensor([[3., 0.], [4., 1.]])).a[0].abs()
    tensor([5.0000, 0.8000])
    """,
    layout=memory_layout.f_contiguous_outputs(0),
)


def _reflector_vector(F, A, i):
    """Column i of the packed form as a unit lower trapezoidal vector (..., m, 1)."""
    place = F._new_arange(A, 0, A.shape[-2], 1, int64)
    return (A[..., :, i] * (place > i).to(A.dtype) + (place == i).to(A.dtype)).unsqueeze(-1)


def _reflectors(F, A, tau):
    """With the reflectors' vectors as columns of V (m, k) and D = diag(tau) their product is I - V D M^-1 V^H, where
    M = I + triu(V^H V, 1) D (Puglisi, "Modification of the Householder method based on the compact WY representation",
    1992). V, the part of V^H V, M, and M^-1 V^H without its columns behind A's."""
    m, k = A.shape[-2], tau.shape[-1]
    v = F.add(F.tril(F.narrow(A, -1, 0, k), -1), F.narrow(identity(F, A, m), -1, 0, k))
    inner = F.triu(F.matmul(adjoint(F, v), v), 1)
    mixed = F.add(identity(F, A, k), F.mul(inner, as_row(F, tau)))
    solved = F._triangular_core(mixed, adjoint(F, F.narrow(v, -2, 0, A.shape[-1])), True, True)
    return v, inner, mixed, solved


def _householder(F, A, tau):
    _, _, _, solved = parts = _reflectors(F, A, tau)
    eye = F.narrow(identity(F, A, A.shape[-2]), -1, 0, A.shape[-1])
    return F.sub(eye, F.matmul(parts[0], F.mul(as_column(F, tau), solved)))


def _householder_vjp(F, g, input, tau):
    m, n, k = input.shape[-2], input.shape[-1], tau.shape[-1]
    v, inner, mixed, solved = _reflectors(F, input, tau)
    scaled = F.neg(F.matmul(adjoint(F, v), g))
    g_solved = F.mul(F.conj(as_column(F, tau)), scaled)
    back = F._triangular_core(adjoint(F, mixed), g_solved, False, True)
    g_mixed = F.neg(F.matmul(back, adjoint(F, solved)))
    g_inner = F.triu(F.mul(g_mixed, F.conj(as_row(F, tau))), 1)
    g_v = F.matmul(v, F.add(g_inner, adjoint(F, g_inner)))
    g_v = F.sub(g_v, F.matmul(g, adjoint(F, F.mul(as_column(F, tau), solved))))
    below = F._new_zeros(g_v, (*g_v.shape[:-2], m - n, k))
    g_v = F.tril(F.add(g_v, F.cat([adjoint(F, back), below], -2)), -1)
    beside = F._new_zeros(g_v, (*g_v.shape[:-1], n - k))
    g_tau = F.add(F.sum(F.mul(scaled, F.conj(solved)), -1), F.sum(F.mul(g_mixed, F.conj(inner)), -2))
    return F.cat([g_v, beside], -1), g_tau


op(
    "_householder_product_core(Tensor input, Tensor tau)",
    where="",
    composite=_householder,
    vjp={("input", "tau"): _householder_vjp},
    shape_fn=lambda input, tau: (input.shape, input.dtype),
    node_name="LinalgHouseholderProductBackward0",
)


@composite(
    "linalg_householder_product(Tensor input, Tensor tau)",
    where="linalg",
    alias="torch.orgqr Tensor.orgqr",
    layout=memory_layout.f_contiguous,
    out=CASTABLE_OUT,
)
def linalg_householder_product(F, A, tau):
    """The first n columns of the product of the Householder reflectors I - tau_i v_i v_i^H whose vectors stand below
    the diagonal of A (..., m, n), m >= n.
    """
    name = "torch.linalg.householder_product"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if A.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if A.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {A.ndim}"
        )
    if A.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected batch of tau to be equal to {tuple(A.shape[:-2])}, but got {tuple(tau.shape[:-1])}"
        )
    if tau.dtype is not A.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.scalar_name} does not match input dtype {A.dtype.scalar_name}"
        )
    check_kernel_float("orgqr_cpu", A)
    return F._householder_product_core(A, tau)


@composite(
    "ormqr(Tensor input, Tensor tau, Tensor other, left=True, transpose=False)",
    layout=memory_layout.f_contiguous,
    out=Out(
        "same",
        "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{want} and result has "
        "dtype {got}",
    ),
    overlap=Overlap(operands="partial"),
)
def ormqr(F, input, tau, other, left, transpose):
    """Q other (or other Q, with left=False; Q^H for Q, with `transpose`), where Q is the m x m product of the
    reflectors packed in `input` and `tau`.
    """
    if input.ndim < 2 or other.ndim < 2:
        raise RuntimeError(f"torch.ormqr: {'input' if input.ndim < 2 else 'other'} must have at least 2 dimensions.")
    for name, x, less in (("tau", tau, 1), ("other", other, 0)):
        if x.ndim != input.ndim - less:
            wanted = "one dimension less than input" if less else "the same number of dimensions as input"
            raise RuntimeError(
                f"torch.ormqr: Expected {name} to have {wanted}, but got {name}.ndim equal to {x.ndim} and input.ndim "
                f"is equal to {input.ndim}"
            )
        if x.dtype is not input.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype"
                f"{input.dtype.scalar_name} and {name} has dtype {x.dtype.scalar_name}"
            )
    for name, batch in (("tau", tau.shape[:-1]), ("other", other.shape[:-2])):
        if tuple(batch) != tuple(input.shape[:-2]):
            raise RuntimeError(
                f"torch.ormqr: Expected batch dimensions of {name} to be equal to input.shape[:-2], but got "
                f"{list(batch)}"
            )
    if other.shape[-2 if left else -1] != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]")
    if tau.shape[-1] != min(other.shape[-2 if left else -1], input.shape[-1]):
        side = -2 if left else -1
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    count = tau.shape[-1]
    forward = left == transpose
    result = other
    for i in range(count) if forward else range(count - 1, -1, -1):
        v, scale = _reflector_vector(F, input, i), tau[..., i, None, None]
        scale = scale.conj() if transpose else scale
        result = result - scale * (v @ (v.mH @ result)) if left else result - scale * ((result @ v) @ v.mH)
    return result if count else F.clone(result)


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
        ((*_batch_shape(input), _min_matrix_dim(input)), int32),
        (_batch_shape(input), int32),
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
)
def linalg_lu_factor_ex(F, A, pivot, check_errors):
    """Packed LU, LAPACK's pivots (int32, counted from 1), and info: 0, or the place of the first zero on U's diagonal.
    See `linalg.lu_factor`.
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
)
def linalg_lu_factor(F, A, pivot):
    """L (below the diagonal, its own diagonal of ones left out) and U (above) in one (..., m, n) tensor, and the row
    exchanges (int32, counted from 1).

    RuntimeError for a zero on U's diagonal. The result goes to `linalg.lu_solve` and `lu_unpack`.

    >>> torch.linalg.lu_factor(torch.tensor([[1., 2.], [2., 0.]])).pivots
    tensor([2, 2], dtype=torch.int32)
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
)
def linalg_lu(F, A, pivot):
    """P, L, U with A = P L U: a permutation, a unit lower and an upper triangular matrix, the latter two (..., m, k)
    and (..., k, n) with k = min(m, n).

    >>> torch.linalg.lu(torch.tensor([[0., 1.], [2., 0.]])).U
    tensor([[2., 0.],
            [0., 1.]])
    """
    packed, pivots, _ = _lu_with_checks(F, "linalg.lu", A, pivot)
    return to_named_tuple("linalg_lu", F.lu_unpack(packed, pivots))


@composite(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, unpack_data=True, unpack_pivots=True)",
    where="torch",
    outputs=("P", "L", "U"),
    layout=memory_layout.contiguous,
)
def lu_unpack(F, LU_data, LU_pivots, unpack_data, unpack_pivots):
    """P, L, U from the packed form of `linalg.lu_factor`; parts that are not requested are empty."""
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    empty = LU_data.new_empty((0,))
    permutation = F._permutation_matrix(LU_pivots, m, LU_data.dtype) if unpack_pivots else empty
    if not unpack_data:
        return to_named_tuple("lu_unpack", (permutation, empty, empty))
    lower = LU_data[..., :k].tril(-1) + identity(F, LU_data, max(m, k))[:, :k]
    return to_named_tuple("lu_unpack", (permutation, lower, LU_data[..., :k, :].triu()))


@composite("lu(Tensor A, pivot=True, get_infos=False)", layout=memory_layout.f_contiguous_outputs(0))
def lu(F, A, pivot, get_infos):
    """(LU, pivots) or, with `get_infos`, (LU, pivots, info), singular or not. For older programs; see
    `linalg.lu_factor`.
    """
    packed, pivots, info = _lu_with_checks(F, "torch.lu_factor", A, pivot)
    if get_infos:
        return to_named_tuple("linalg_lu_factor_ex", (packed, pivots, info))
    return packed, pivots


@composite(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, left=True, adjoint=False)",
    where="linalg",
    layout=memory_layout.solve_left,
)
def linalg_lu_solve(F, LU, pivots, B, left, adjoint):
    """X with A X = B (X A = B with left=False; A^H for A with `adjoint`), from `linalg.lu_factor(A)`. Batch dimensions
    broadcast.

    >>> torch.linalg.lu_solve(*torch.linalg.lu_factor(torch.tensor([[2.]])), torch.tensor([[4.]]))
    tensor([[2.]])
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
)
def lu_solve(F, input, LU_data, LU_pivots):
    """See `linalg.lu_solve`, whose arguments come in another order."""
    return F.linalg_lu_solve(LU_data, LU_pivots, input)


# --- LDL ------------------------------------------------------------------------------------------


op(
    "_ldl_factor_core(Tensor input, hermitian)",
    where="",
    outputs=("LD", "pivots", "info"),
    nondiff=(1, 2),
    vjp={"input": make_missing_derivative_formula("linalg_ldl_factor_ex")},
    shape_fn=lambda input: [(input.shape, input.dtype), (tuple(input.shape[:-1]), int32), (_batch_shape(input), int32)],
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
    """See `linalg.ldl_factor`; info is 0, or the place of the first zero on D's diagonal."""
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
    """Bunch-Kaufman factors of symmetric (or Hermitian) matrices, of which the lower triangle is read, packed as
    LAPACK's sytrf does. Not differentiable.

    >>> torch.linalg.ldl_factor(torch.tensor([[2., 0.], [1., 1.]])).LD
    tensor([[2.0000, 0.0000],
            [0.5000, 0.5000]])
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
    """X with A X = B, from `linalg.ldl_factor(A)`."""
    name = "torch.linalg.ldl_solve"
    check_square(name, LD, "LD")
    if B.ndim < 2:
        raise RuntimeError(f"{name}: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead")
    if LD.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected B to have dtype {LD.dtype.scalar_name} but got {B.dtype.scalar_name} instead"
        )
    if not pivots.is_meta:
        rows = pivots.detach()
        rows = unwrap_batched(rows.flatten(0, -2) if rows.ndim > 1 else rows.reshape(1, -1))
        _check_pivots((rows if rows.ndim == 2 else rows.flatten(0, -2)).tolist(), LD.shape[-1])
    return F._ldl_solve_core(LD.detach(), pivots, B, hermitian)
