"""Inverses, linear systems, least squares, and functions of matrices."""

import math

from .._dispatch import NONDIFF, Out, composite, memory_layout, op
from .._dispatch.op_record import SCALAR_TYPE
from .._dispatch.shape_and_value_checks import all_true
from .._dispatch.shapes import broadcast_shapes
from .._types.dtypes import bool_, int32, int64
from ._gradient_helpers import to_named_tuple
from ._linalg_common import (
    CASTABLE_OUT,
    adjoint,
    check_fit,
    check_float,
    check_kernel_float,
    check_matrix,
    check_same_dtype,
    check_singular,
    check_solved,
    check_square,
    check_tolerance,
    identity,
    is_low,
    machine_epsilon,
    multiply_matrices,
    run_until_converged,
)
from .node_graphs import matrix_power_graph, tensorsolve_graph

# --- triangular systems ---------------------------------------------------------------------------


def _triangular_vjp(F, g, A, out, upper, unitriangular, needs):
    gb = F._triangular_core(adjoint(F, A), g, not upper, unitriangular)
    if not needs[0]:
        return None, gb
    ga = F.neg(F.matmul(gb, adjoint(F, out)))
    if upper:
        return F.triu(ga, 1 if unitriangular else 0), gb
    return F.tril(ga, -1 if unitriangular else 0), gb


def _product_rule(A, B):
    return (*broadcast_shapes(B.shape[:-2], A.shape[:-2]), *B.shape[-2:]), B.dtype


op(
    "_triangular_core(Tensor A, Tensor B, upper, unitriangular)",
    where="",
    shape_fn=lambda A, B, upper: _product_rule(A, B),
    vjp={("A", "B"): _triangular_vjp},
)


@composite(
    "linalg_solve_triangular(Tensor A, Tensor B, *, upper, left=True, unitriangular=False)",
    where="linalg",
    layout=memory_layout.f_contiguous,
    out=Out("same", SCALAR_TYPE),
    node_name="LinalgSolveTriangularBackward0(A, B)",
)
def linalg_solve_triangular(F, A, B, upper, left, unitriangular):
    """Solves linear systems with triangular matrices.

    .. math::

        A X = B

    A zero on the diagonal gives infinities.

    Args:
        A: The matrices, of shape ``(*, n, n)``; the other triangle is not read.
        B: The right-hand sides, of shape ``(*, n, k)``; batch dimensions broadcast.
        upper: Whether the matrices are upper triangular.
        left: Whether the system is :math:`A X = B`, else :math:`X A = B`. Default: ``True``.
        unitriangular: Whether the diagonal counts as ones. Default: ``False``.

    Example:
        >>> A, B = torch.tensor([[2.0, 0.0], [1.0, 1.0]]), torch.tensor([[2.0], [3.0]])
        >>> torch.linalg.solve_triangular(A, B, upper=False)
        tensor([[1.],
                [2.]])

    See also:
        `torch.linalg.solve`.
    """
    name = "linalg.solve_triangular"
    check_square(name, A)
    check_matrix(name, B, "B")
    check_fit(name, A, B, left)
    check_float(name, A)
    B = F.to(B, A.dtype)
    if left:
        return F._triangular_core(A, B, upper, unitriangular)
    return F._triangular_core(A.mT, B.mT, not upper, unitriangular).mT


@composite(
    "triangular_solve(Tensor b, Tensor A, upper=True, transpose=False, unitriangular=False)",
    outputs=("solution", "cloned_coefficient"),
    layout=memory_layout.f_contiguous,
    out=Out("same"),
    node_name="TriangularSolveBackward0(b, A)",
)
def triangular_solve(F, b, A, upper, transpose, unitriangular):
    """Solves linear systems with triangular matrices. Deprecated: use `torch.linalg.solve_triangular`.

    Args:
        b: The right-hand sides, of shape ``(*, n, k)``.
        A: The matrices, of shape ``(*, n, n)``.
        upper: Whether the matrices are upper triangular. Default: ``True``.
        transpose: Whether the transpose replaces the matrices. Default: ``False``.
        unitriangular: Whether the diagonal counts as ones. Default: ``False``.

    Returns:
        A named tuple ``(solution, cloned_coefficient)``.

    Example:
        >>> torch.triangular_solve(torch.tensor([[4.0]]), torch.tensor([[2.0]])).solution
        tensor([[2.]])

    See also:
        `torch.linalg.solve_triangular`.
    """
    for x, what in ((b, "b"), (A, "A")):
        if x.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {what} to have at least 2 dimensions, but it has {x.ndim} "
                "dimensions instead"
            )
    check_square("", A)
    if b.dtype is not A.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {b.dtype.scalar_name} and A of type "
            f"{A.dtype.scalar_name} instead."
        )
    matrix = A.mT if transpose else A
    solution = F._triangular_core(matrix, b, upper != transpose, unitriangular)
    return to_named_tuple("triangular_solve", (solution, F.clone(A.expand((*solution.shape[:-2], *A.shape[-2:])))))


# --- inverse and solve ----------------------------------------------------------------------------


def _inv_vjp(F, g, out0):
    inverse = adjoint(F, out0)
    return F.neg(multiply_matrices(F, inverse, g[0], inverse))


op(
    "_inv_core(Tensor input)",
    where="",
    outputs=("inverse", "info"),
    nondiff=(1,),
    vjp={"input": _inv_vjp},
    shape_fn=lambda input: [(input.shape, input.dtype), (tuple(input.shape[:-2]), int32)],
    node_name="LinalgInvExBackward0",
)


def _inv_with_checks(F, name, A):
    check_square(name, A)
    check_float(name, A)
    return F._inv_core(A)


@composite(
    "linalg_inv_ex(Tensor A, *, check_errors=False)",
    where="linalg",
    outputs=("inverse", "info"),
    layout=memory_layout.f_contiguous_outputs(0),
    out=Out("same"),
)
def linalg_inv_ex(F, A, check_errors):
    """Computes the inverses of matrices, and reports singular ones.

    `info` is 0 for success, else the position of the first zero pivot, counted from 1.

    Args:
        A: The matrices, of shape ``(*, n, n)``.
        check_errors: Whether a failure raises an error. Default: ``False``, `info` reports it.

    Returns:
        A named tuple ``(inverse, info)``.

    Example:
        >>> torch.linalg.inv_ex(torch.zeros(1, 1)).info
        tensor(1, dtype=torch.int32)

    See also:
        `torch.linalg.inv`.
    """
    inverse, info = _inv_with_checks(F, "linalg.inv", A)
    if check_errors:
        check_singular("linalg.inv_ex", info)
    return to_named_tuple("linalg_inv_ex", (inverse, info))


@composite("linalg_inv(Tensor A)", where="linalg", layout=memory_layout.f_contiguous, out=Out("same"))
def linalg_inv(F, A):
    """Computes the inverses of square matrices.

    Args:
        A: The matrices, of shape ``(*, n, n)``.

    Raises:
        LinAlgError: A matrix is singular.

    Example:
        >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])

    See also:
        `torch.linalg.solve`, which is faster and more precise where the inverse itself is not needed.
    """
    inverse, info = _inv_with_checks(F, "linalg.inv", A)
    check_singular("linalg.inv", info)
    return inverse


@composite("inverse(Tensor input)", layout=memory_layout.f_contiguous, out=Out("same"))
def inverse(F, input):
    """Computes the inverses of square matrices; another name of `torch.linalg.inv`.

    Args:
        input: The matrices, of shape ``(*, n, n)``.

    Raises:
        LinAlgError: A matrix is singular.

    Example:
        >>> torch.inverse(torch.tensor([[2.0]]))
        tensor([[0.5000]])
    """
    return F.linalg_inv(input)


def _solve_vjp(F, g, A, out0, needs):
    gb = F._solve_core(adjoint(F, A), g[0])[0]
    return F.neg(F.matmul(gb, adjoint(F, out0))) if needs[0] else None, gb


op(
    "_solve_core(Tensor A, Tensor B)",
    where="",
    outputs=("result", "info"),
    nondiff=(1,),
    vjp={("A", "B"): _solve_vjp},
    shape_fn=lambda A, B: [_product_rule(A, B), (tuple(A.shape[:-2]), int32)],
)


def _is_vectors(A, B):
    """True if B holds right-hand sides that are vectors, one a matrix of A."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


def _solve(F, name, A, B, left):
    check_square(name, A)
    check_float(name, A, low_precision=True)
    check_kernel_float("lu_cpu", A)
    check_same_dtype(name, A, B)
    vectors = _is_vectors(A, B)
    right = B.unsqueeze(-1) if vectors else B
    check_fit("linalg.solve", A, right, left)
    if vectors and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    if left:
        result, info = F._solve_core(A, right)
    else:
        result, info = F._solve_core(A.mT, right.mT)
        result = result.mT
    return result.squeeze(-1) if vectors else result, info


def _solution_strides(args, out, at):
    """Of a solution: column by column, or row by row if it is that of X A = B."""
    left = args[2]
    return (memory_layout.f_contiguous if left and at == 0 else memory_layout.contiguous).strides(args, out, at)


_solution_layout = memory_layout.StrideRule(_solution_strides)


@composite(
    "linalg_solve_ex(Tensor A, Tensor B, *, left=True, check_errors=False)",
    where="linalg",
    outputs=("result", "info"),
    layout=_solution_layout,
    out=Out("same"),
    node_name="LinalgSolveExBackward0(A, B)",
)
def linalg_solve_ex(F, A, B, left, check_errors):
    """Solves linear systems, and reports singular matrices.

    `info` is 0 for success, else the position of the first zero pivot, counted from 1.

    Args:
        A: The matrices, of shape ``(*, n, n)``.
        B: The right-hand sides, of shape ``(*, n, k)``, or ``(*, n)`` for one vector a matrix.
        left: Whether the system is :math:`A X = B`, else :math:`X A = B`. Default: ``True``.
        check_errors: Whether a failure raises an error. Default: ``False``, `info` reports it.

    Returns:
        A named tuple ``(result, info)``.

    Example:
        >>> torch.linalg.solve_ex(torch.tensor([[2.0]]), torch.tensor([[4.0]])).result
        tensor([[2.]])

    See also:
        `torch.linalg.solve`.
    """
    result, info = _solve(F, "linalg.solve", A, B, left)
    if check_errors:
        check_solved("torch.linalg.solve_ex", info)
    return to_named_tuple("linalg_solve_ex", (result, info))


@composite(
    "linalg_solve(Tensor A, Tensor B, *, left=True)",
    where="linalg",
    layout=_solution_layout,
    out=Out("same"),
    node_name="LinalgSolveExBackward0(A, B)",
)
def linalg_solve(F, A, B, left):
    """Solves linear systems with square matrices: :math:`A X = B`.

    Args:
        A: The matrices, of shape ``(*, n, n)``.
        B: The right-hand sides, of shape ``(*, n, k)``, or ``(*, n)`` for one vector a matrix.
        left: Whether the system is :math:`A X = B`, else :math:`X A = B`. Default: ``True``.

    Returns:
        The solutions, of the shape of `B`.

    Raises:
        LinAlgError: A matrix is singular.

    Example:
        >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 4.0]))
        tensor([1., 1.])

    See also:
        `torch.linalg.lstsq` for systems that are not square.
    """
    result, info = _solve(F, "linalg.solve", A, B, left)
    check_solved("torch.linalg.solve", info)
    return result


@composite(
    "linalg_tensorinv(Tensor input, ind=2)",
    where="linalg",
    out=CASTABLE_OUT,
    node_name="ReshapeAliasBackward0(LinalgInvExBackward0(ViewBackward0(input)))",
)
def linalg_tensorinv(F, A, ind):
    """Computes the inverse of a tensor as a linear map: ``tensordot(result, input, ind)`` is the identity.

    Args:
        input: The tensor; the product of its first `ind` sizes is the product of the others.
        ind: The number of dimensions of the map's range. Default: 2.

    Returns:
        A tensor of shape ``input.shape[ind:] + input.shape[:ind]``.

    Raises:
        RuntimeError: The products differ, or the map is singular.

    Example:
        >>> torch.linalg.tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
        torch.Size([6, 2, 3])

    See also:
        `torch.linalg.tensorsolve`.
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    rows, columns = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    m, n = math.prod(rows), math.prod(columns)
    if m != n:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {n} "
            f"!= {m}"
        )
    inverse, info = F.linalg_inv_ex(A.reshape(m, n))
    check_singular("inv", info)
    return inverse.reshape(columns + rows)


@composite(
    "linalg_tensorsolve(Tensor input, Tensor other, dims=None)",
    where="linalg",
    out=CASTABLE_OUT,
    node_name=tensorsolve_graph,
)
def linalg_tensorsolve(F, A, B, dims):
    """Solves ``tensordot(input, X, X.ndim) = other`` for ``X``.

    Args:
        input: The tensor of the linear map.
        other: The right-hand side.
        dims: Dimensions of `input` that are moved to its end first. Default: none.

    Returns:
        A tensor whose shape is that of the last dimensions of `input`.

    Example:
        >>> torch.linalg.tensorsolve(2 * torch.eye(4).reshape(2, 2, 4), torch.ones(2, 2))
        tensor([0.5000, 0.5000, 0.5000, 0.5000])

    See also:
        `torch.linalg.tensorinv`.
    """
    if dims:
        A = A.movedim(tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape[B.ndim :])
    if math.prod(shape) != B.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(shape)} != {B.numel()}"
        )
    return F.linalg_solve(A.reshape(B.numel(), math.prod(shape)), B.flatten()).reshape(shape)


# --- pseudoinverse, least squares -----------------------------------------------------------------


def _pinv_vjp(F, g, input, out):
    """Golub and Pereyra (1973): the rank is constant, so the derivative needs no singular vectors."""
    p, q, gh = out, adjoint(F, out), adjoint(F, g)
    m, n = input.shape[-2:]
    if m <= n:
        k = F.matmul(gh, p)
        kq = F.matmul(k, q)
        inside = F.sub(kq, F.matmul(input, F.matmul(p, kq)))
        outside = F.matmul(q, F.matmul(p, F.sub(gh, F.matmul(k, input))))
        return F.add(F.sub(inside, adjoint(F, F.matmul(p, k))), outside)
    k = F.matmul(p, gh)
    qk = F.matmul(q, k)
    inside = F.sub(qk, F.matmul(F.matmul(qk, p), input))
    outside = F.matmul(F.matmul(F.sub(gh, F.matmul(input, k)), p), q)
    return F.add(F.sub(inside, adjoint(F, F.matmul(k, p))), outside)


op(
    "_pinv_core(Tensor input, Tensor|Number rtol, Tensor|Number atol, hermitian)",
    where="",
    vjp={"input": _pinv_vjp},
    shape_fn=lambda input: ((*input.shape[:-2], input.shape[-1], input.shape[-2]), input.dtype),
    node_name="LinalgPinvBackward0",
)


def _pinv_tolerances(A, atol, rtol):
    """PyTorch's defaults: rtol = max(m, n) * eps unless an absolute tolerance was given."""
    if rtol is None:
        default = machine_epsilon(A) * max(A.shape[-2:])
        rtol = (
            default
            if atol is None
            else (atol <= 0) * default
            if not isinstance(atol, (int, float))
            else 0.0
            if atol > 0
            else default
        )
    return (0.0 if atol is None else atol), rtol


@composite(
    "linalg_pinv(Tensor input, rcond=None, *, atol=None, rtol=None, hermitian=False)",
    where="linalg",
    layout=memory_layout.contiguous,
    out=CASTABLE_OUT,
)
def linalg_pinv(F, A, rcond, atol, rtol, hermitian):
    """Computes the Moore-Penrose pseudoinverses of matrices.

    Singular values up to ``max(atol, rtol * largest)`` count as zero.

    Args:
        input: The matrices, of shape ``(*, m, n)``.
        rcond: An older name of `rtol`.
        atol: The absolute tolerance. Default: 0.
        rtol: The tolerance relative to the greatest singular value. Default: ``max(m, n)`` times the machine
            epsilon, or 0 if `atol` is positive.
        hermitian: Whether the matrices are Hermitian; their eigenvalues take the place of singular values. Default:
            ``False``.

    Returns:
        A tensor of shape ``(*, n, m)``.

    Example:
        >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0]]))
        tensor([[0.5000],
                [0.0000]])

    See also:
        `torch.linalg.lstsq`.
    """
    if A.dtype.category < 2 or is_low(A.dtype) or A.ndim < 2:
        sizes = ", ".join(map(str, A.shape))
        raise RuntimeError(
            f"linalg.pinv({A.dtype.scalar_name}{{[{sizes}]}}): expected a tensor with 2 or more dimensions of float, "
            "double, cfloat or cdouble types"
        )
    if hermitian and A.numel():
        check_square("linalg.eigh", A)
    if rcond is not None and rtol is None:
        rtol = rcond
    for name, limit in (("atol", atol), ("rtol", rtol)):
        check_tolerance("torch.linalg.pinv", name, limit)
    atol, rtol = _pinv_tolerances(A, atol, rtol)
    atol, rtol = (t.detach() if hasattr(t, "detach") else t for t in (atol, rtol))
    return run_until_converged("linalg.svd", F._pinv_core, A, rtol, atol, hermitian)


@composite("pinverse(Tensor input, rcond=1e-15)")
def pinverse(F, input, rcond):
    """Computes the pseudoinverses of matrices. For older programs; see `torch.linalg.pinv`.

    Args:
        rcond: The tolerance relative to the greatest singular value. Default: ``1e-15``.

    Example:
        >>> torch.pinverse(torch.tensor([[2.0]]))
        tensor([[0.5000]])
    """
    return F.linalg_pinv(input, rcond)


op("_lstsq_rank(Tensor input, rcond)", where="", tags=NONDIFF, shape_fn=lambda input: (tuple(input.shape[:-2]), int64))


def _lstsq_core(F, A, B, rcond):
    return F.matmul(F._pinv_core(A, rcond, 0.0, False), B), F._lstsq_rank(A, rcond)


# The solution of least norm and the effective rank, of matrices with equal batch dimensions.
op(
    "_lstsq_core(Tensor A, Tensor B, rcond)",
    where="",
    outputs=("solution", "rank"),
    composite=_lstsq_core,
    nondiff={1},
    shape_fn=lambda A, B: [((*A.shape[:-2], A.shape[-1], B.shape[-1]), A.dtype), (tuple(A.shape[:-2]), int64)],
    vjp={
        "A": lambda F, g, A, B, rcond: _pinv_vjp(
            F, F.matmul(g[0], adjoint(F, B)), A, F._pinv_core(A, rcond, 0.0, False)
        ),
        "B": lambda F, g, A, rcond: F.matmul(adjoint(F, F._pinv_core(A, rcond, 0.0, False)), g[0]),
    },
)

_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@composite(
    "linalg_lstsq(Tensor input, Tensor b, rcond=None, *, driver=None)",
    where="linalg",
    outputs=("solution", "residuals", "rank", "singular_values"),
    layout=memory_layout.f_contiguous_outputs(0),
    node_name="LinalgLstsqBackward0(input, b)",
)
def linalg_lstsq(F, A, B, rcond, driver):
    r"""Solves least-squares problems: the :math:`X` of least norm that minimizes :math:`\lVert A X - B \rVert_F`.

    On the CPU ``"gelsy"`` and ``"gels"`` compute with an orthogonal factorization, the others with the pseudoinverse.
    The driver decides which results are returned, as in PyTorch.

    Args:
        input: The matrices :math:`A`, of shape ``(*, m, n)``.
        b: The right-hand sides, of shape ``(*, m, k)`` or ``(*, m)``.
        rcond: The tolerance relative to the greatest singular value. Default: ``max(m, n)`` times the machine
            epsilon.
        driver: ``"gelsy"`` (default), ``"gels"``, ``"gelsd"`` or ``"gelss"``.

    Returns:
        A named tuple ``(solution, residuals, rank, singular_values)``. `residuals` are the squared errors of the
        columns where ``m > n``, the rank is full and the driver is not ``"gelsy"``. `rank` is empty for ``"gels"``,
        and `singular_values` for all but ``"gelsd"`` and ``"gelss"``.

    Example:
        >>> torch.linalg.lstsq(torch.tensor([[1.0], [1.0]]), torch.tensor([[1.0], [3.0]])).solution
        tensor([[2.0000]])

    See also:
        `torch.linalg.pinv`.
    """
    name = "torch.linalg.lstsq"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if A.ndim - B.ndim not in (0, 1) and A.ndim > B.ndim:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    vectors = _is_vectors(A, B)
    right = B.unsqueeze(-1) if vectors else B
    if A.shape[-2] != right.shape[-2]:
        place = "-1" if B.ndim < A.ndim else "-2"
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({place})")
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {A.dtype.scalar_name} "
            f"and other's dtype {B.dtype.scalar_name}"
        )
    driver = driver or "gelsy"
    if driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    m, n = A.shape[-2:]
    if rcond is None and is_low(A.dtype):
        raise RuntimeError("This function doesn't handle types other than float and double")
    check_kernel_float("linalg_lstsq_cpu", A)
    cut = machine_epsilon(A) * max(m, n) if rcond is None else rcond
    if driver in ("gelsy", "gels") and isinstance(cut, (int, float)):
        batch = broadcast_shapes(tuple(A.shape[:-2]), tuple(right.shape[:-2]))
        solution, rank = F._lstsq_core(A.expand(*batch, m, n), right.expand(*batch, m, right.shape[-1]), cut)
        rank = rank if batch == tuple(A.shape[:-2]) else F._lstsq_rank(A.detach(), cut)
    else:
        solution = F._pinv_core(A, cut, 0.0, False) @ right
        rank = F._lstsq_rank(A.detach(), cut)
    residuals = nothing = F.real(F.clone(A.flatten()[:0]))
    if m > n and driver != "gelsy" and (driver == "gels" or all_true(rank == n)):
        error = A @ solution - right
        residuals = F.real(error * error.conj()).sum(-2)
    values = F.linalg_svdvals(A.detach()) if driver in ("gelsd", "gelss") else nothing.detach()
    rank = A.new_empty((0,), dtype=int64) if driver == "gels" else rank
    return to_named_tuple("linalg_lstsq", (solution.squeeze(-1) if vectors else solution, residuals, rank, values))


# --- functions of matrices ------------------------------------------------------------------------


def _matrix_exp_vjp(F, g, input):
    """The upper right block of exp([[A^H, g], [0, A^H]]) is the derivative at A^H in the direction
    g (Mathias, 1996).
    """
    n, flipped = input.shape[-1], adjoint(F, input)
    upper = F.cat([flipped, g], -1)
    lower = F.cat([F._zeros_like(flipped), flipped], -1)
    whole = F.matrix_exp(F.cat([upper, lower], -2))
    return F.narrow(F.narrow(whole, -2, 0, n), -1, n, n)


def _matrix_exp_rule(input):
    check_square("linalg.matrix_exp", input)
    check_float("linalg.matrix_exp", input, low_precision=True)
    return input.shape, input.dtype


op(
    "matrix_exp(Tensor input)",
    alias="linalg.matrix_exp",
    shape_fn=_matrix_exp_rule,
    vjp={"input": _matrix_exp_vjp},
    doc="""Computes the exponentials of square matrices.

    The method is scaling and squaring with a Padé approximant (Higham, 2005).

    Args:
        input: The matrices, of shape ``(*, n, n)``.

    Example:
        >>> torch.matrix_exp(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """,
    node_name="LinalgMatrixExpBackward0",
)


@composite("matrix_power(Tensor input, n)", alias="linalg.matrix_power", out=Out("same"), node_name=matrix_power_graph)
def matrix_power(F, input, n):
    """Computes integer powers of square matrices by repeated squaring.

    Args:
        input: The matrices, of shape ``(*, m, m)``.
        n: The exponent. 0 gives the identity; a negative one takes powers of the inverse.

    Raises:
        LinAlgError: `n` is negative and a matrix is singular.

    Example:
        >>> torch.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    check_square("linalg.matrix_power", input)
    if n == 0:
        return F.where(F.to(F._ones_like(input), bool_), identity(F, input, input.shape[-1]), input)
    base = input if n > 0 else F.linalg_inv(input)
    n, result = abs(n), None
    if n == 1:
        return F.clone(base)
    while n:
        if n & 1:
            result = base if result is None else result @ base
        n >>= 1
        if n:
            base = base @ base
    return result
