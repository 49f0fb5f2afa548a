"""Cholesky and QR decompositions.

Each is a core record (`where=""`) with a kernel and formula for checked matrices, and public functions over it. The
formulas are the well-known adjoints: Giles, "Collected matrix derivative results" (2008), and Walter and Lehmann (2010)
for QR.
"""

from __future__ import annotations

import numpy as np

from .._dispatch import Out, Overlap, composite, memory_layout, op
from .._dispatch.shape_and_value_checks import unwrap_batched
from .._types.dtypes import int32, int64
from ._gradient_helpers import make_not_implemented_formula, to_named_tuple
from ._linalg_common import (
    CASTABLE_OUT,
    LinAlgError,
    adjoint,
    as_column,
    as_row,
    batch_shape,
    check_float,
    check_kernel_float,
    check_matrix,
    check_square,
    find_first_failure,
    hermitian_part,
    identity,
    lower_half,
    min_matrix_dim,
    right_solve_adjoint_upper,
    right_solve_lower,
    zero_if_none,
)

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
    shape_fn=lambda input: [(input.shape, input.dtype), (batch_shape(input), int32)],
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
    node_name="LinalgCholeskyExBackward0(input)",
)
def linalg_cholesky_ex(F, A, upper, check_errors):
    """Computes the Cholesky factors of Hermitian positive-definite matrices, and reports failures.

    `info` is 0 for success, else the order of the first leading minor that is not positive-definite.

    Args:
        input: The matrices, of shape ``(*, n, n)``.
        upper: Whether the factor is upper triangular. Default: ``False``.
        check_errors: Whether a failure raises an error. Default: ``False``, `info` reports it.

    Returns:
        A named tuple ``(L, info)``; `info` is int32, of shape ``(*,)``.

    Example:
        >>> torch.linalg.cholesky_ex(-torch.eye(2)).info
        tensor(1, dtype=torch.int32)

    See also:
        `torch.linalg.cholesky`.
    """
    lower, info = _cholesky(F, "linalg.cholesky", A, upper)
    if check_errors:
        _check_definite("linalg.cholesky_ex", info)
    return to_named_tuple("linalg_cholesky_ex", (F.conj(lower.mT) if upper else lower, info))


@composite(
    "linalg_cholesky(Tensor input, *, upper=False)",
    where="linalg",
    layout=memory_layout.f_contiguous,
    node_name="LinalgCholeskyExBackward0(input)",
)
def linalg_cholesky(F, A, upper):
    r"""Computes the Cholesky factors of Hermitian positive-definite matrices.

    .. math::

        A = L L^{\mathsf{H}}

    Args:
        input: The matrices, of shape ``(*, n, n)``; one triangle is read.
        upper: Whether to return :math:`U = L^{\mathsf{H}}` in place of :math:`L`. Default: ``False``.

    Returns:
        A tensor of the input's shape.

    Raises:
        LinAlgError: A matrix is not positive-definite.

    Example:
        >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])

    See also:
        `torch.linalg.cholesky_ex`, `torch.cholesky_solve`.
    """
    lower, info = _cholesky(F, "linalg.cholesky", A, upper)
    _check_definite("linalg.cholesky", info)
    return F.conj(lower.mT) if upper else lower


@composite(
    "cholesky(Tensor input, upper=False)",
    layout=memory_layout.f_contiguous,
    overlap=Overlap(operands="partial"),
    node_name="CholeskyBackward0(input)",
)
def cholesky(F, input, upper):
    """Computes the Cholesky factors of matrices. Deprecated: use `torch.linalg.cholesky`.

    Args:
        input: The matrices, of shape ``(*, n, n)``.
        upper: Whether the factor is upper triangular. Default: ``False``.

    Example:
        >>> torch.cholesky(torch.tensor([[4.0]]))
        tensor([[2.]])

    See also:
        `torch.linalg.cholesky`.
    """
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
    node_name="CholeskySolveBackward0(input, L)",
)
def cholesky_solve(F, input, L, upper):
    """Solves linear systems from the Cholesky factors of their matrices.

    Args:
        input: The right-hand sides, of shape ``(*, n, k)``.
        L: The Cholesky factors, of shape ``(*, n, n)``; batch dimensions broadcast.
        upper: Whether the factor is upper triangular. Default: ``False``.

    Returns:
        The solutions, of shape ``(*, n, k)``.

    Example:
        >>> torch.cholesky_solve(torch.tensor([[8.0], [4.0]]), torch.tensor([[2.0, 0.0], [0.0, 2.0]]))
        tensor([[2.],
                [1.]])

    See also:
        `torch.linalg.cholesky`.
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
    node_name="CholeskyInverseBackward0(input)",
)
def cholesky_inverse(F, input, upper):
    """Computes the inverses of matrices from their Cholesky factors.

    Args:
        input: The Cholesky factors, of shape ``(*, n, n)``.
        upper: Whether the factor is upper triangular. Default: ``False``.

    Example:
        >>> torch.cholesky_inverse(torch.tensor([[2.0]]))
        tensor([[0.2500]])

    See also:
        `torch.linalg.cholesky`.
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
        ((0,) if mode == "r" else (*batch_shape(input), m, k), input.dtype),
        ((*batch_shape(input), k, n), input.dtype),
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
    """Computes the QR decompositions of matrices.

    .. math::

        A = Q R

    The columns of :math:`Q` are orthonormal, and :math:`R` is upper triangular.

    Args:
        A: The matrices, of shape ``(*, m, n)``.
        mode: ``"reduced"``: :math:`Q` has ``min(m, n)`` columns. ``"complete"``: it has ``m``. ``"r"``: it is
            empty. Default: ``"reduced"``.

    Returns:
        A named tuple ``(Q, R)``.

    Raises:
        RuntimeError: The mode is unknown.

    Example:
        >>> torch.linalg.qr(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).R.abs()
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
    """Computes the QR decompositions of matrices. Deprecated: use `torch.linalg.qr`.

    Args:
        some: Whether the mode is ``"reduced"``, else ``"complete"``. Default: ``True``.

    Returns:
        A named tuple ``(Q, R)``.

    Example:
        >>> torch.qr(torch.tensor([[2.0], [0.0]])).R.abs()
        tensor([[2.]])

    See also:
        `torch.linalg.qr`.
    """
    return to_named_tuple("qr", F.linalg_qr(input, "reduced" if some else "complete"))


def _geqrf_rule(input):
    if len(input.shape) < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_kernel_float("geqrf_cpu", input)
    return [(input.shape, input.dtype), ((*batch_shape(input), min_matrix_dim(input)), input.dtype)]


op(
    "geqrf(Tensor input)",
    outputs=("a", "tau"),
    vjp={"input": make_not_implemented_formula("geqrf")},
    shape_fn=_geqrf_rule,
    doc="""Computes the QR decompositions of matrices in LAPACK's packed form.

    The upper triangle of `a` is :math:`R`. The columns below it are the vectors of Householder reflectors, whose
    scales are `tau`.

    Args:
        input: The matrices, of shape ``(*, m, n)``.

    Returns:
        A named tuple ``(a, tau)``, of shapes ``(*, m, n)`` and ``(*, min(m, n))``.

    Example:
        >>> torch.geqrf(torch.tensor([[3.0, 0.0], [4.0, 1.0]])).a[0].abs()
        tensor([5.0000, 0.8000])

    See also:
        `torch.linalg.householder_product`, `torch.ormqr`.
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
    r"""Computes the first columns of products of Householder reflectors.

    .. math::

        Q = H_1 \cdots H_k, \quad H_i = I - \tau_i v_i v_i^{\mathsf{H}}

    Args:
        input: The vectors :math:`v_i`, below the diagonal of matrices of shape ``(*, m, n)``, with ``m >= n``.
        tau: The scales, of shape ``(*, k)``, with ``k <= n``.

    Returns:
        The first ``n`` columns of the products, of shape ``(*, m, n)``.

    Example:
        >>> a, tau = torch.geqrf(torch.tensor([[3.0], [4.0]]))
        >>> torch.linalg.householder_product(a, tau).abs()
        tensor([[0.6000],
                [0.8000]])

    See also:
        `torch.geqrf`.
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
    node_name="OrmqrBackward0(input, tau, other)",
)
def ormqr(F, input, tau, other, left, transpose):
    r"""Multiplies matrices by the products :math:`Q` of Householder reflectors.

    Args:
        input: The vectors of the reflectors, of shape ``(*, m, k)``.
        tau: Their scales.
        other: The matrices that are multiplied.
        left: Whether :math:`Q` is the left factor. Default: ``True``.
        transpose: Whether :math:`Q^{\mathsf{H}}` replaces :math:`Q`. Default: ``False``.

    Returns:
        A tensor of the shape of `other`.

    Example:
        >>> a, tau = torch.geqrf(torch.tensor([[3.0], [4.0]]))
        >>> torch.ormqr(a, tau, torch.tensor([[3.0], [4.0]]), transpose=True).abs().round()
        tensor([[5.],
                [0.]])

    See also:
        `torch.geqrf`.
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
