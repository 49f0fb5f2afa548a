"""Linear algebra: every op takes batches of matrices."""

from __future__ import annotations

from .common import front, rank, rule, run, spread

for _name in (
    "cholesky_core", "qr_core", "geqrf", "lu_core", "pivots_to_permutation", "permutation_matrix", "ldl_core",
    "cdist_core", "triangular_core", "inv_core", "solve_core", "pinv_core", "lstsq_rank", "det_core",
    "slogdet_core", "matrix_exp", "eigh_core", "eigvalsh_core", "eig_core", "eigvals_core", "svd_core", "svdvals_core",
):  # fmt: skip
    rule(_name, kind="front")(front)


@rule("ldl_solve_core", kind="front")
def _ldl_solve(level, op, values):
    """The pivots have a dimension less than the matrices."""
    factors, pivots, right, hermitian = values
    ndim = max(rank(factors), rank(right))
    made = [spread(level, factors, ndim), spread(level, pivots, ndim - 1), spread(level, right, ndim)]
    return level.wrap(run(op, [*made, hermitian]))


@rule("householder_core", kind="front")
def _householder(level, op, values):
    """The factors have a dimension less than the matrices."""
    return level.wrap(run(op, [spread(level, v, 0) for v in values]))
