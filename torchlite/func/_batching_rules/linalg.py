"""Batching rules of linear algebra: the ops take batches of matrices themselves."""

from .rule_helpers import leading_batch_rule, logical_ndim, pad_ndim, rule, run_below_level

for _name in (
    "_cholesky_core", "_qr_core", "geqrf", "_lu_core", "_pivots_to_permutation", "_permutation_matrix",
    "_ldl_factor_core", "_lstsq_core",
    "_cdist_core", "_triangular_core", "_inv_core", "_solve_core", "_pinv_core", "_lstsq_rank", "_det_core",
    "_slogdet_core", "matrix_exp", "_eigh_core", "_eigvalsh_core", "_eig_core", "_eigvals_core", "_svd_core",
    "_svdvals_core",
):  # fmt: skip
    rule(_name, kind="front")(leading_batch_rule)


@rule("_ldl_solve_core", kind="front")
def _ldl_solve(level, op, values):
    """Align pivots, which have one dimension less than the matrices."""
    factors, pivots, right, hermitian = values
    ndim = max(logical_ndim(factors), logical_ndim(right))
    made = [pad_ndim(level, factors, ndim), pad_ndim(level, pivots, ndim - 1), pad_ndim(level, right, ndim)]
    return level.wrap(run_below_level(op, [*made, hermitian]))


@rule("_householder_product_core", kind="front")
def _householder(level, op, values):
    """Align factors, which have one dimension less than the matrices."""
    return level.wrap(run_below_level(op, [pad_ndim(level, v, 0) for v in values]))
