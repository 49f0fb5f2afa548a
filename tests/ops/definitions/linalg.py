"""Decompositions, solvers, norms. Results that are unique only up to signs or phases are brought into a form that does
not depend on them.
"""

from tests.ops.op_db import A, S, constant, row


def U(*shape):
    """Well-conditioned square matrices."""
    return A(shape, kind="unit")


def C(*shape, kind=""):
    return A(shape, dtype="complex128", kind=kind)


def CU(*shape):
    return C(*shape, kind="unit")


def hermitian(a):
    return (a + a.mH) / 2


def positive(a):
    return a @ a.mH + 1.5 * a.new_ones(a.shape[-1]).diag()


def sizes(result):
    """Sizes of the entries of the singular vectors that have a singular value."""
    u, s, v = result
    k = s.shape[-1]
    return u[..., :k].abs(), s, v.abs() if v.shape[-2] == k else v[..., :k, :].abs()


# --- Cholesky -------------------------------------------------------------------------------------

row(
    "linalg_cholesky",
    S((3, 3)),
    S((2, 3, 3), upper=True),
    S(C(3, 3)),
    oracle=lambda torch, a, upper=False: torch.linalg.cholesky(positive(a), upper=upper),
    covers=("_cholesky_core",),
)
row(
    "linalg_cholesky_ex",
    S((3, 3)),
    S(C(2, 3, 3), upper=True),
    oracle=lambda torch, a, upper=False: torch.linalg.cholesky_ex(positive(a), upper=upper),
)
row("cholesky", S((3, 3)), S((2, 3, 3), True), oracle=lambda torch, a, upper=False: torch.cholesky(positive(a), upper))
row("cholesky_solve", S((3, 2), U(3, 3)), S((2, 3, 2), U(3, 3), True), S(C(3, 2), CU(3, 3)))
row(
    "cholesky_inverse",
    S(U(3, 3)),
    S(U(2, 3, 3), True),
    S(CU(3, 3)),
    oracle=lambda torch, a, upper=False: torch.cholesky_inverse(torch.linalg.cholesky(positive(a), upper=upper), upper),
)

# --- QR -------------------------------------------------------------------------------------------

row("linalg_qr", S((4, 3)), S((3, 3), "complete"), S((2, 3, 4)), S(C(4, 3)), S(C(3, 4)), covers=("_qr_core",), tol=1e-6)
row("qr", S((4, 3)), S((3, 3), False))
row("geqrf", S((4, 3)), S((2, 3, 4)), S(C(3, 3)), S(A((3, 3), kind="unit")), grad=False)
row(
    "linalg_householder_product",
    S(A((4, 3), -1, 1), A((3,), 0.5, 1)),
    S(A((2, 3, 3), -1, 1), A((2, 2), 0.5, 1)),
    S(C(4, 2), C(2)),
    S(A((4, 3), -1, 1), A((2,), 0.5, 1)),
    covers=("_householder_product_core",),
    tol=1e-6,
)
row(
    "ormqr",
    S((4, 3), (3,), (4, 2)),
    S((4, 3), (3,), (2, 4), False, True),
    S(C(3, 3), C(3), C(3, 2), True, True),
    S(C(3, 3), C(3), C(2, 3), False, False),
    tol=1e-6,
)

# --- LU -------------------------------------------------------------------------------------------

row("linalg_lu_factor", S((3, 3)), S((2, 4, 3)), S((3, 4)), S(C(3, 3)), covers=("_lu_core",), tol=1e-6)
row("linalg_lu_factor_ex", S((3, 3)))
row(
    "linalg_lu",
    S((3, 3)),
    S((2, 4, 3)),
    S((3, 4)),
    S(C(3, 3)),
    covers=("_permutation_matrix", "_pivots_to_permutation"),
    tol=1e-6,
)
row(
    "lu",
    S((3, 3)),
    S((2, 4, 3), True, True),
    oracle=lambda torch, a, *more: tuple(torch.lu(a, True, *more[1:])),
    tol=1e-6,
)


def _factored(torch, a):
    return torch.linalg.lu_factor(a)


row(
    "lu_unpack",
    S((3, 4)),
    S((2, 4, 3)),
    S((3, 3), True, False),
    constant(S((3, 3), False, True)),
    oracle=lambda torch, a, *more: torch.lu_unpack(*_factored(torch, a), *more),
    tol=1e-6,
)
row(
    "linalg_lu_solve",
    S(U(3, 3), (3, 2)),
    S(U(2, 3, 3), (4, 3), left=False),
    S(CU(3, 3), C(3, 2), adjoint=True),
    S(CU(3, 3), C(2, 3), left=False, adjoint=True),
    oracle=lambda torch, a, b, **how: torch.linalg.lu_solve(*_factored(torch, a), b, **how),
    tol=1e-6,
)
row("lu_solve", S((3, 2), U(3, 3)), oracle=lambda torch, b, a: torch.lu_solve(b, *_factored(torch, a)))

# --- LDL ------------------------------------------------------------------------------------------

row(
    "linalg_ldl_factor",
    S((4, 4)),
    S((2, 5, 5)),
    oracle=lambda torch, a: torch.linalg.ldl_factor(hermitian(a)),
    grad=False,
    tol=1e-6,
)
row(
    "linalg_ldl_factor_ex",
    S((4, 4)),
    S(C(4, 4), hermitian=True),
    S(C(4, 4)),
    grad=False,
    tol=1e-6,
    covers=("_ldl_factor_core",),
    oracle=lambda torch, a, hermitian=False: torch.linalg.ldl_factor_ex(
        a + (a.mH if hermitian else a.mT), hermitian=hermitian
    ),
)


def _ldl_solve(torch, b, hermitian=False):
    """With the factors of a fixed matrix, which are not differentiable: computed on the CPU, because pivots are
    inspected.
    """
    a = torch.arange(16.0, dtype=torch.float64).reshape(4, 4).sin().to(b.dtype)
    a = a * (1 + 1j) if b.is_complex() else a
    packed, pivots = torch.linalg.ldl_factor(a + (a.mH if hermitian else a.mT), hermitian=hermitian)
    return torch.linalg.ldl_solve(packed.to(b.device), pivots.to(b.device), b, hermitian=hermitian)


row(
    "linalg_ldl_solve",
    S((4, 2)),
    S((2, 4, 2)),
    S(C(4, 2), hermitian=True),
    S(C(4, 2)),
    oracle=_ldl_solve,
    covers=("_ldl_solve_core",),
    tol=1e-6,
)

# --- eigenvalues and singular values --------------------------------------------------------------

row(
    "linalg_eigh",
    S((3, 3)),
    S((2, 3, 3), "U"),
    S(C(3, 3)),
    oracle=lambda torch, a, *uplo: torch.linalg.eigh(hermitian(a), *uplo),
    free=lambda r: (r[0], r[1].abs()),
    covers=("_eigh_core",),
    tol=1e-6,
)
row(
    "linalg_eigvalsh",
    S((3, 3)),
    S(C(2, 3, 3), "U"),
    oracle=lambda torch, a, *uplo: torch.linalg.eigvalsh(hermitian(a), *uplo),
    covers=("_eigvalsh_core",),
)


def _ordered(values):
    """Sums of powers: independent of the order of eigenvalues."""
    return values.sum(-1), (values * values).sum(-1)


row(
    "linalg_eig",
    S(U(3, 3)),
    S(CU(2, 3, 3)),
    free=lambda r: (*_ordered(r[0]), r[1].abs().sum((-1, -2))),
    covers=("_eig_core",),
    tol=1e-6,
)
row("linalg_eigvals", S(U(3, 3)), S(CU(2, 3, 3)), free=_ordered, covers=("_eigvals_core",), tol=1e-6)
row(
    "linalg_svd",
    S((4, 3)),
    S((3, 4), False),
    S((2, 3, 3)),
    S(C(4, 3), False),
    S(C(3, 3)),
    S(C(2, 4), False),
    free=sizes,
    covers=("_svd_core",),
    tol=1e-6,
)
row("linalg_svdvals", S((4, 3)), S(C(2, 3, 4)), covers=("_svdvals_core",))
row("svd", S((4, 3)), S((3, 4)), S((3, 3), True, False), free=lambda r: (r[0].abs(), r[1], r[2].abs()), tol=1e-6)


def _low_rank(torch, name, a, **how):
    u, s, v = getattr(torch, name)(a[..., :, :2] @ a[..., :2, :], **how)
    return s, (u * s.unsqueeze(-2)) @ v.mT


row(
    "svd_lowrank",
    S((5, 5), q=2),
    oracle=lambda torch, a, q: _low_rank(torch, "svd_lowrank", a, q=q),
    grad=False,
    meta=False,
    tol=1e-5,
)
row(
    "pca_lowrank",
    S((5, 5), q=2),
    oracle=lambda torch, a, q: _low_rank(torch, "pca_lowrank", a, q=q),
    grad=False,
    meta=False,
    tol=1e-5,
)

# --- solvers --------------------------------------------------------------------------------------

row(
    "linalg_solve_triangular",
    S(U(3, 3), (3, 2), upper=True),
    S(U(2, 3, 3), (4, 3), upper=False, left=False),
    S((3, 3), (3, 2), upper=True, unitriangular=True),
    S(CU(3, 3), C(2, 3, 2), upper=False),
    covers=("_triangular_core",),
    tol=1e-6,
)
row("triangular_solve", S((3, 2), U(3, 3)), S((2, 3, 2), U(3, 3), False, True), S(C(3, 2), CU(3, 3), True, True))
row("linalg_inv", S(U(3, 3)), S(CU(2, 3, 3)), S((0, 0)), covers=("_inv_core",))
row("linalg_inv_ex", S(U(3, 3)), S(U(2, 3, 3)))
row(
    "linalg_solve",
    S(U(3, 3), (3, 2)),
    S(U(2, 3, 3), (2, 3)),
    S(U(3, 3), (2, 3), left=False),
    S(CU(2, 3, 3), C(3, 2)),
    S(U(3, 3), (3,)),
    covers=("_solve_core",),
    tol=1e-6,
)
row("linalg_solve_ex", S(U(3, 3), (3, 2)))
row("linalg_tensorinv", S((4, 2, 2), 1), S((2, 3, 6), 2), tol=1e-5)
row("linalg_tensorsolve", S((2, 3, 6), (2, 3)), S((2, 6, 3), (2, 3), (1,)), tol=1e-5)
row(
    "linalg_pinv",
    S((4, 3)),
    S((2, 3, 4)),
    S(C(3, 4)),
    S(C(4, 3), rtol=1e-3),
    S(A((3, 3), kind="spd"), hermitian=True),
    covers=("_pinv_core",),
    tol=1e-6,
    oracle=lambda torch, a, **how: torch.linalg.pinv(hermitian(a) if "hermitian" in how else a, **how),
)
row("pinverse", S((4, 3)), S((3, 3), 0.1))
row(
    "linalg_lstsq",
    S((4, 3), (4, 2)),
    S((4, 3), (4, 2), driver="gelsd"),
    S((3, 4), (3, 2)),
    S((2, 4, 3), (2, 4)),
    S(C(4, 3), C(4, 2), driver="gels"),
    meta=False,
    covers=("_lstsq_core", "_lstsq_rank"),
    tol=1e-6,
)
row("linalg_det", S((3, 3)), S((2, 2, 2)), S(C(3, 3)), S((0, 0)), covers=("_det_core", "_conj_cofactor_matrix"))
row("linalg_slogdet", S((3, 3)), S(C(2, 3, 3)), covers=("_slogdet_core",))
row("slogdet", S((3, 3)))
row("det", S((2, 3, 3)))
row("inverse", S(U(2, 3, 3)))
row("logdet", S(A((3, 3), kind="spd")), S(C(3, 3)))
row("matrix_exp", S((3, 3)), S(C(2, 3, 3)), S(A((3, 3), -9, 9)), tol=1e-6)
row("matrix_power", S((3, 3), 3), S((3, 3), 1), S(U(2, 3, 3), -2), S(C(3, 3), 5), S((3, 3), 0))

# --- norms and distances --------------------------------------------------------------------------

_INF = float("inf")
row(
    "linalg_vector_norm",
    S((3, 4)),
    S((3, 4), 3, 1),
    S((3, 4), 1, 0, True),
    S((3, 4), _INF, 1),
    S((3, 4), -_INF),
    S((3, 4), 0.5, 0),
    S((3, 4), 0),
    S(C(3, 4)),
    S(C(3, 4), 3, 0),
    S(C(3, 4), 1),
    S(()),
    S((3,), -1),
    S((0,)),
    covers=("_vector_norm_core",),
)
row(
    "linalg_matrix_norm",
    S((3, 4)),
    S((2, 3, 4), "nuc"),
    S((2, 3, 4), 1, (0, 2), True),
    S((3, 4), -1),
    S((3, 4), _INF),
    S((3, 4), -_INF),
    S((3, 4), 2),
    S((3, 4), -2),
    S(C(3, 4), 2),
    S(C(3, 4), 1),
)
row(
    "linalg_norm",
    S((3, 4)),
    S((3,), 3),
    S((3, 4), 2),
    S((2, 3, 4), "fro", (1, 2)),
    S((2, 3, 4), 1, 1),
    S((2, 3, 4), None, (0, 1), True),
)
row("norm", S((3, 4)), S((3, 4), 1, 1), S((3, 4), "nuc"), S((3, 4), "fro", 0, True), S(C(3, 4), 2))
row("renorm", S((3, 4), 2, 0, 1.0), S((2, 3, 4), 1, 2, 3.0), S(C(3, 4), 2, 1, 1.0))
row("linalg_cond", S(U(3, 3)), S((4, 3), 2), S((3, 4), -2), S(U(2, 3, 3), "fro"), S(U(3, 3), 1), S(CU(3, 3), "nuc"))
row(
    "linalg_matrix_rank",
    S((4, 3)),
    S(A((3, 3), 1, 1)),
    S((2, 3, 3), 1.0),
    S(A((3, 3), kind="spd"), hermitian=True),
    S((3, 3), atol=2.0, rtol=0.1),
    S((0, 3)),
    grad=False,
)
row(
    "cdist",
    S((3, 4), (5, 4)),
    S((2, 3, 4), (5, 4), 1.0),
    S((3, 4), (5, 4), 3.0),
    S((3, 4), (5, 4), _INF),
    S((3, 4), (5, 4), 0.0),
    S((30, 4), (5, 4)),
    S((3, 4), (5, 4), 1.5),
    covers=("_cdist_core",),
)
row("pdist", S((4, 3)), S((4, 3), 1.0), S((4, 3), _INF), S((1, 3)), meta=False)
row(
    "cov",
    S((3, 5)),
    S((5,)),
    S((3, 4), correction=0, fweights=A((4,), 1, 4, dtype="int64"), aweights=A((4,), 0.5, 2)),
    S(C(3, 5)),
    meta=False,
)
row("corrcoef", S((3, 5)), S((5,)))
row("linalg_vander", S((4,)), S((2, 3), N=5), S(A((3,), dtype="int64", low=1, high=5)))
row("linalg_diagonal", S((3, 4)), S((2, 3, 3), offset=1), S((2, 3, 3), dim1=0, dim2=1))
row("dist", S((3, 4), (4,)), S((3,), (3,), 3), S(C(3), C(3), 1), S((2, 2), (2, 2), _INF))
row("frobenius_norm", S((3, 4), [0, 1]), S((3, 4), [1], True))
row("nuclear_norm", S((3, 4)), S((2, 3, 4), (1, 2), True))
row("norm_except_dim", S((3, 4), 2, 0), S((3, 4, 2), 1, 1), S((3, 4), 2, -1))
