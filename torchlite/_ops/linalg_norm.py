"""Norms of vectors and matrices, distances, condition number and rank, diagonals."""

from .._dispatch import INPLACE, REGISTRY, Out, Overlap, composite, memory_layout, op
from .._dispatch.out_variants import write_out
from .._dispatch.public_functions import torch
from .._dispatch.shapes import broadcast_shapes, reduced_shape, wrap_dims
from .._types.dtypes import FLOAT, int64, promote_types
from ._dtype_checks import refuse_floats
from ._gradient_helpers import keep_dims
from ._linalg_common import (
    CASTABLE_OUT,
    check_float,
    check_matrix,
    check_square,
    check_tolerance,
    is_low,
    swap_last_dims,
)
from .node_graphs import (
    condition_number_graph,
    distances_graph,
    has_distances_by_product,
    matrix_norm_graph,
    norm_except_dim_graph,
)

INFINITY = float("inf")


# --- vector norms ---------------------------------------------------------------------------------


def _safe_divide(F, x, y):
    """x / y, and 0 where y is 0."""
    zero = F.eq(y, 0)
    return F.where(zero, F._zeros_like(x), F.div(x, F.where(zero, F._ones_like(y), y)))


def _power_of_size(F, size, exponent):
    """size ** exponent, and 0 where size is 0 (exponents may be negative)."""
    if exponent == 0:
        return F._ones_like(size)
    zero = F.eq(size, 0)
    return F.where(zero, F._zeros_like(size), F.pow(F.where(zero, F._ones_like(size), size), exponent))


def _norm_slope(F, size, norm, ord):
    """The derivative of a norm with respect to the magnitudes |x|; a subgradient (0) where it has none."""
    if ord == 1:
        return F._ones_like(size)
    if ord in (INFINITY, -INFINITY):
        chosen = F.to(F.eq(size, norm), F.dtype_of(size))
        return chosen
    return _power_of_size(F, _safe_divide(F, size, F.expand(norm, tuple(size.shape))), ord - 1)


def _vector_norm_vjp(F, g, input, out, ord, dim, keepdim, input_dtype):
    shape = tuple(input.shape)
    if ord == 0:
        return None
    g, out = keep_dims(F, g, shape, dim, keepdim), keep_dims(F, out, shape, dim, keepdim)
    if ord == 2:
        scale = _safe_divide(F, g, out)
        return F.mul(input, F.to(scale, input_dtype))
    size = F.abs(input)
    if ord in (INFINITY, -INFINITY) and F.dtype_of(input).is_complex:  # the norm's kernel may round moduli otherwise
        out = (F.amax if ord > 0 else F.amin)(size, dim if dim is not None else (), True)
    slope = _norm_slope(F, size, out, ord)
    if ord in (INFINITY, -INFINITY):
        slope = F.div(slope, F.sum(slope, dim, True))
    return F.mul(F.sgn(input), F.to(F.mul(slope, g), input_dtype))


op(
    "_vector_norm_core(Tensor input, ord, dim, keepdim)",
    where="",
    vjp={"input": _vector_norm_vjp},
    shape_fn=lambda input, dim, keepdim: (
        reduced_shape(input.shape, dim, keepdim) if dim else input.shape,
        input.dtype.to_real(),
    ),
    node_name="LinalgVectorNormBackward0",
)


def _check_norm(name, x, dtype):
    if x.dtype.category < 2:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}")
    if dtype is not None:
        if dtype.category < 2:
            raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype.scalar_name}")
        if x.dtype.is_complex != dtype.is_complex:
            kinds = ("complex", "real") if x.dtype.is_complex else ("real", "complex")
            raise RuntimeError(f"{name}: dtype should be {kinds[0]} for {kinds[0]} inputs, but got {dtype.scalar_name}")
        if promote_types(x.dtype, dtype) is not dtype:
            raise RuntimeError(
                f"{name}: the dtype of the input ({x.dtype.scalar_name}) should be convertible without narrowing to "
                f"the specified dtype ({dtype.scalar_name})"
            )


def _vector_norm(F, name, x, ord, dim, keepdim, dtype):
    _check_norm(name, x, dtype)
    if isinstance(ord, str):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {type(ord).__name__}")
    dims = wrap_dims(dim, x.ndim)
    if not x.ndim:
        dims = ()
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    ord = float(ord)
    if ord < 0 or ord == INFINITY:
        shown = (
            int(ord)
            if abs(ord) != INFINITY and ord == int(ord)
            else "inf"
            if ord == INFINITY
            else "-inf"
            if ord == -INFINITY
            else ord
        )
        if not x.numel() and (dim is None or len(dims) == x.ndim):
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {shown} norm on an empty tensor because the operation does "
                "not have an identity"
            )
        for d in dims:
            if x.shape[d] == 0:
                raise RuntimeError(
                    f"linalg.vector_norm cannot compute the {shown} norm on the dimension {d}because this dimension "
                    "is empty and the operation does not have an identity"
                )
    if dtype is not None and dtype is not x.dtype:
        x = x.to(dtype)
    return F._vector_norm_core(x, ord, dims, bool(keepdim))


@composite(
    "linalg_vector_norm(Tensor input, ord=2, dim=None, keepdim=False, *, dtype=None)",
    where="linalg",
    out=Out("same"),
    node_name="LinalgVectorNormBackward0(input)",
)
def linalg_vector_norm(F, x, ord, dim, keepdim, dtype):
    r"""Computes vector norms.

    .. math::

        \lVert x \rVert_p = \left( \sum_i |x_i|^p \right)^{1 / p}

    The order ``inf`` is the greatest absolute value, ``-inf`` the least one, and 0 the number of elements that are
    not zero.

    Args:
        ord: The order :math:`p`. Default: 2.
        dim: The dimension, or a tuple of them, of the vectors. Default: all elements.
        dtype: The dtype to which the input is converted first. Default: the input's.

    Returns:
        A real tensor.

    Raises:
        RuntimeError: The dtype is an integer.

    Example:
        >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]))
        tensor(5.)

    See also:
        `torch.linalg.matrix_norm`, `torch.linalg.norm`.
    """
    return _vector_norm(F, "linalg.vector_norm", x, ord, dim, keepdim, dtype)


# --- matrix norms ---------------------------------------------------------------------------------


def _matrix_norm(F, name, A, ord, dim, keepdim, dtype):
    check_matrix(name, A)
    _check_norm(name, A, dtype)
    if dtype is not None:
        A = A.to(dtype)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    dims = tuple(d % A.ndim if -A.ndim <= d < A.ndim else wrap_dims(d, A.ndim)[0] for d in dim)
    if dims[0] == dims[1]:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    if isinstance(ord, complex):
        raise RuntimeError("linalg.matrix_norm: Expected a non-complex scalar as the order of norm.")
    if isinstance(ord, str):
        if ord == "fro":
            return F._vector_norm_core(A, 2.0, dims, bool(keepdim))
        if ord != "nuc":
            raise RuntimeError(f"{name}: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, INFINITY):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if ord == "nuc" or abs(ord) == 2:
        check_float("linalg.matrix_norm", A)
        result = _spectral_norm(F, A, ord, dims)
    else:
        along, over = dims if abs(ord) == 1 else dims[::-1]
        sums = F._vector_norm_core(A, 1.0, (along,), True)
        result = _largest_or_smallest_magnitude(F, sums, ord, over, True).squeeze(dims)
    if keepdim:
        for d in sorted(dims):
            result = result.unsqueeze(d)
    return result


def _spectral_norm(F, A, ord, dims):
    values = F.linalg_svdvals(A.movedim(dims, (-2, -1)))
    if ord == "nuc":
        return values.sum(-1)
    return _largest_or_smallest_magnitude(F, values, ord, -1, False)


def _largest_or_smallest_magnitude(F, x, ord, dim, keepdim):
    """The largest magnitude (0 for empty input) or, for a negative order, the smallest."""
    if ord < 0:
        return F.amin(x, dim, keepdim)
    return F.amax(x, dim, keepdim) if x.shape[dim] else F.sum(x, dim, keepdim)


@composite(
    "linalg_matrix_norm(Tensor input, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None)",
    where="linalg",
    out=Out("same", "linalg.{short} expected out tensor dtype {want} but got: {got}"),
    node_name=matrix_norm_graph,
)
def linalg_matrix_norm(F, A, ord, dim, keepdim, dtype):
    """Computes matrix norms.

    Args:
        input: The matrices, with at least two dimensions.
        ord: ``"fro"`` (Frobenius), ``"nuc"`` (sum of the singular values), 2 and -2 (greatest and least singular
            value), 1 and -1 (greatest and least column sum of absolute values), ``inf`` and ``-inf`` (the same of
            rows). Default: ``"fro"``.
        dim: The two dimensions of the matrices. Default: the last two.
        dtype: The dtype to which the input is converted first. Default: the input's.

    Returns:
        A real tensor.

    Example:
        >>> torch.linalg.matrix_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5.)

    See also:
        `torch.linalg.vector_norm`.
    """
    return _matrix_norm(F, "linalg.matrix_norm", A, ord, tuple(dim), keepdim, dtype)


@composite(
    "linalg_norm(Tensor input, ord=None, dim=None, keepdim=False, *, dtype=None)",
    where="linalg",
    out=Out("same", "linalg.{short} expected out tensor dtype {want} but got: {got}"),
)
def linalg_norm(F, A, ord, dim, keepdim, dtype):
    """Computes a vector or a matrix norm.

    It is a matrix norm where `dim` has two dimensions, or where `ord` is given without `dim` and the input has two;
    else a vector norm.

    Args:
        ord: The order; see `torch.linalg.vector_norm` and `torch.linalg.matrix_norm`. Default: the 2-norm of the
            elements.
        dim: One dimension or two. Default: all elements.
        dtype: The dtype to which the input is converted first. Default: the input's.

    Returns:
        A real tensor.

    Example:
        >>> torch.linalg.norm(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 1)
        tensor(6.)

    See also:
        `numpy.linalg.norm`.
    """
    if dim is not None and not hasattr(dim, "__index__"):
        dim = tuple(dim)
        if len(dim) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    elif dim is not None:
        dim = (dim,)
    elif ord is not None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    if ord is None:
        return _vector_norm(F, "linalg.vector_norm", A, 2.0, dim, keepdim, dtype)
    if isinstance(ord, str) or (len(dim) == 2 if dim is not None else A.ndim == 2):
        return _matrix_norm(F, "linalg.matrix_norm", A, ord, (0, 1) if dim is None else dim, keepdim, dtype)
    return _vector_norm(F, "linalg.vector_norm", A, ord, dim, keepdim, dtype)


@composite(
    "norm(Tensor input, p='fro', dim=None, keepdim=False, out=None, dtype=None)",
    layout=memory_layout.contiguous,
    overlap=Overlap("allowed", "partial"),
    keywords_from=1,
)
def norm(F, input, p, dim, keepdim, out, dtype):
    """Computes a norm. Deprecated: use `torch.linalg.vector_norm` or `torch.linalg.matrix_norm`.

    Args:
        p: The order: a number, ``"fro"`` or ``"nuc"``. Default: ``"fro"``.
        dim: The dimension, or several. Default: all elements.
        dtype: The dtype to which the input is converted first. Default: the input's.

    Example:
        >>> torch.norm(torch.tensor([3.0, 4.0]))
        tensor(5.)

    See also:
        `torch.linalg.vector_norm`, `torch.linalg.matrix_norm`.
    """
    if p is None or p == "fro":
        result = _vector_norm(F, "linalg.vector_norm", input, 2.0, dim, keepdim, dtype)
    elif p == "nuc":
        pair = (0, 1) if dim is None else tuple(dim)
        result = _matrix_norm(F, "linalg.matrix_norm", input, "nuc", pair, keepdim, dtype)
    elif isinstance(p, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    else:
        result = _vector_norm(F, "linalg.vector_norm", input, p, dim, keepdim, dtype)
    return result if out is None else write_out(REGISTRY["linalg_vector_norm"], result, out)


@composite(
    "renorm(Tensor input, p, dim, maxnorm)",
    tags=INPLACE,
    layout=memory_layout.contiguous,
    out=Out("same"),
    node_name="RenormBackward0(input)",
)
def renorm(F, input, p, dim, maxnorm):
    """Scales slices along a dimension down to a maximal norm; shorter ones stay.

    Args:
        p: The order of the norm.
        maxnorm: The maximal norm.

    Example:
        >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    if input.dtype.category < FLOAT:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {input.dtype.scalar_name}"
        )
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    dim = wrap_dims(dim, input.ndim)[0]
    size = F._vector_norm_core(input, float(p), tuple(d for d in range(input.ndim) if d != dim), True)
    return input * F.where(size > maxnorm, maxnorm / (size + 1e-7), F._ones_like(size))


# --- condition, rank ------------------------------------------------------------------------------


@composite("linalg_cond(Tensor input, p=None)", where="linalg", out=CASTABLE_OUT, node_name=condition_number_graph)
def linalg_cond(F, A, p):
    r"""Computes the condition numbers of matrices.

    .. math::

        \kappa_p(A) = \lVert A \rVert_p \lVert A^{-1} \rVert_p

    Args:
        input: The matrices, square except for ``p`` 2 and -2.
        p: ``"fro"`` (Frobenius), ``"nuc"`` (sum of the singular values), 2 and -2 (greatest and least singular
            value), 1 and -1 (greatest and least column sum of absolute values), ``inf`` and ``-inf`` (the same of
            rows). Default: 2.

    Returns:
        A real tensor; infinity for a singular matrix.

    Example:
        >>> torch.linalg.cond(torch.tensor([[4.0, 0.0], [0.0, 2.0]]))
        tensor(2.)
    """
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        if 0 in A.shape[-2:]:
            return A.new_zeros(tuple(A.shape[:-2]), dtype=A.dtype.to_real())
        values = F.linalg_svdvals(A)
        return values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    if p not in ("fro", "nuc", 1, -1, INFINITY, -INFINITY):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not isinstance(p, str) and not A.numel():
        return A.new_zeros(tuple(A.shape[:-2]), dtype=A.dtype.to_real())
    check_square(f"linalg.cond(ord={p})", A)
    inverse, info = F.linalg_inv_ex(A)
    if p == "nuc":  # there are no singular values of what is no number
        singular = (info != 0).unsqueeze(-1).unsqueeze(-1)
        inverse = F.where(singular, F._zeros_like(inverse), inverse)
        size = F.nuclear_norm(A)
        return size * F.where(info != 0, F._full_like(size, INFINITY), F.nuclear_norm(inverse))
    result = _matrix_norm(F, "linalg.matrix_norm", A, p, (-2, -1), False, None) * _matrix_norm(
        F, "linalg.matrix_norm", inverse, p, (-2, -1), False, None
    )
    return F.where(info != 0, F._full_like(result, INFINITY), result)


@composite(
    "linalg_matrix_rank(Tensor input, tol=None, *, atol=None, rtol=None, hermitian=False)",
    where="linalg",
    out=CASTABLE_OUT,
)
def linalg_matrix_rank(F, A, tol, atol, rtol, hermitian):
    """Computes the ranks of matrices.

    The rank is the number of singular values above ``max(atol, rtol * largest)``.

    Args:
        input: The matrices, of shape ``(*, m, n)``.
        tol: An absolute tolerance in place of the other two; for older programs.
        atol: The absolute tolerance. Default: 0.
        rtol: The tolerance relative to the greatest singular value. Default: ``max(m, n)`` times the machine
            epsilon, or 0 if `atol` is positive.
        hermitian: Whether the matrices are Hermitian; their eigenvalues take the place of singular values. Default:
            ``False``.

    Returns:
        An int64 tensor of shape ``(*,)``.

    Example:
        >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if A.dtype.category < 2 or is_low(A.dtype):
        raise RuntimeError("This function doesn't handle types other than float and double")
    if tol is not None and (atol is not None or rtol is not None):
        raise TypeError("linalg_matrix_rank(): `tol` is given in place of `atol` and `rtol`, and not beside them")
    for name, limit in (("tol", tol), ("atol", atol), ("rtol", rtol)):
        check_tolerance("torch.linalg.matrix_rank", name, limit)
    if tol is not None:
        atol, rtol = tol, 0.0
    if rtol is None:
        import numpy as np

        default = float(np.finfo(A.dtype.np).eps) * max(A.shape[-2:])
        rtol = (
            default
            if atol is None
            else 0.0
            if isinstance(atol, (int, float)) and atol > 0
            else (
                default
                if isinstance(atol, (int, float))
                else F.where(atol > 0, F._zeros_like(atol), F._full_like(atol, default))
            )
        )
    A = A.detach()
    values = F.linalg_eigvalsh(A).abs() if hermitian else F.linalg_svdvals(A)
    if not values.shape[-1]:
        return values.new_zeros(tuple(values.shape[:-1]), dtype=int64)
    limit = F.amax(values, -1) * rtol
    limit = (
        limit.clamp(min=atol)
        if isinstance(atol, (int, float))
        else limit
        if atol is None
        else F.maximum(limit, atol.to(limit.dtype))
    )
    return (values > limit.unsqueeze(-1)).sum(-1)


# --- distances ------------------------------------------------------------------------------------


def _cdist_vjp(F, g, x1, x2, out, p, needs):
    if p == 0:
        return (F._zeros_like(x1) if needs[0] else None), (F._zeros_like(x2) if needs[1] else None)
    if p == 2:
        ratio = _safe_divide(F, g, out)
        # A part that all rows share would cancel, digits with it.
        centre = F.div(F.sum(x2, -2, True), max(x2.shape[-2], 1))
        x1, x2 = F.sub(x1, centre), F.sub(x2, centre)
        one = F.sub(F.mul(x1, F.sum(ratio, -1, True)), F.matmul(ratio, x2)) if needs[0] else None
        flipped = swap_last_dims(F, ratio)
        two = F.sub(F.mul(x2, F.sum(flipped, -1, True)), F.matmul(flipped, x1)) if needs[1] else None
        return one, two
    difference = F.sub(F.unsqueeze(x1, -2), F.unsqueeze(x2, -3))
    slope = _norm_slope(F, F.abs(difference), F.unsqueeze(out, -1), p)
    terms = F.mul(F.mul(F.sign(difference), slope), F.unsqueeze(g, -1))
    return (F.sum(terms, -2) if needs[0] else None), (F.neg(F.sum(terms, -3)) if needs[1] else None)


op(
    "_cdist_core(Tensor x1, Tensor x2, p)",
    where="",
    vjp={("x1", "x2"): _cdist_vjp},
    shape_fn=lambda x1, x2: ((*broadcast_shapes(x1.shape[:-2], x2.shape[:-2]), x1.shape[-2], x2.shape[-2]), x1.dtype),
    node_name="CdistBackward0",
)

_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@composite(
    "cdist(Tensor x1, Tensor x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary')",
    where="torch",
    out=Out(supported=False),
    keywords_from=2,
    node_name=distances_graph,
)
def cdist(F, x1, x2, p, compute_mode):
    """Computes the distances between the rows of two matrices in a :math:`p`-norm.

    Args:
        x1: The first rows, of shape ``(*, n, d)``.
        x2: The second rows, of shape ``(*, m, d)``; batch dimensions broadcast.
        p: The order of the norm, at least 0. Default: 2.
        compute_mode: Whether the Euclidean distance is computed by a matrix product: ``"use_mm_for_euclid_dist"``,
            ``"donot_use_mm_for_euclid_dist"``, or by the sizes (default).

    Returns:
        A tensor of shape ``(*, n, m)``.

    Example:
        >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([[5.]])

    See also:
        `torch.pdist`, `torch.nn.PairwiseDistance`.
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dtype.category != 2:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_name}")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if not isinstance(p, (int, float)) and not hasattr(p, "__float__") or isinstance(p, complex):
        raise TypeError(f"cdist(): argument 'p' (position 3) must be float, not {type(p).__name__}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name}")
    if not has_distances_by_product(p, compute_mode, max(x1.shape[-2], x2.shape[-2])):
        _refuse_half(x1, "cdist")
    return F._cdist_core(x1, x2, float(p))


def _refuse_half(input, kernel):
    if input.dtype.itemsize == 2:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")


@composite("pdist(Tensor input, p=2.0)", where="torch", alias="nn.functional.pdist", node_name="PdistBackward0(input)")
def pdist(F, input, p):
    """Computes the distances between all pairs of rows of a matrix in a :math:`p`-norm.

    Args:
        input: The rows, of shape ``(n, d)``.
        p: The order of the norm, at least 0. Default: 2.

    Returns:
        A tensor of shape ``(n * (n - 1) / 2,)``: the pairs ``(0, 1)``, ``(0, 2)`` and so on.

    Example:
        >>> torch.pdist(torch.tensor([[0.0], [1.0], [3.0]]))
        tensor([1., 3., 2.])

    See also:
        `torch.cdist`, `scipy.spatial.distance.pdist`.
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if input.dtype.category != 2:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    _refuse_half(input, "pdist")
    rows, columns = torch.triu_indices(input.shape[0], input.shape[0], 1, device=input.device)
    distances = F._cdist_core(input, input, float(p))
    return F.index_select(F.reshape(distances, (-1,)), 0, rows * input.shape[0] + columns)


# --- diagonals, and matrices of powers -----------------------------------------------------------------


@composite("linalg_vander(Tensor x, *, N=None)", where="linalg")
def linalg_vander(F, x, N):
    """Computes Vandermonde matrices: ``out[..., i, j] = x[..., i] ** j``.

    Args:
        x: The vectors, of shape ``(*, n)``.
        N: The number of columns. Default: ``n``.

    Returns:
        A tensor of shape ``(*, n, N)``.

    Example:
        >>> torch.linalg.vander(torch.tensor([2, 3]), N=3)
        tensor([[1, 2, 4],
                [1, 3, 9]])

    See also:
        `torch.vander`, whose powers descend.
    """
    refuse_floats(N)
    if x.dtype.name == "bool" or (x.dtype.category == 2 and x.dtype.np.itemsize < 4):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {x.dtype.scalar_name}"
        )
    if not x.ndim:
        x = x.unsqueeze(-1)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    shape = (*x.shape, count - 1)
    powers = F.cumprod(x.unsqueeze(-1).expand(shape), -1)
    return F.cat([x.new_ones((*x.shape, 1)), powers], -1)


@composite("linalg_diagonal(Tensor A, *, offset=0, dim1=-2, dim2=-1)", where="linalg")
def linalg_diagonal(F, A, offset, dim1, dim2):
    """Returns the diagonals of matrices, as a view with the diagonal as the last dimension.

    Args:
        A: The matrices.
        offset: The diagonal, counted from the main one upwards. Default: 0.
        dim1, dim2: The dimensions of the matrices. Default: the last two.

    Example:
        >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])

    See also:
        `torch.diagonal`.
    """
    return F.diagonal(A, offset, dim1, dim2)


# --- older names ----------------------------------------------------------------------------------


@composite("dist(Tensor input, Tensor other, p=2)", node_name="DistBackward0(input, other)")
def dist(F, input, other, p):
    """Computes the :math:`p`-norm of the difference of two tensors.

    Args:
        other: The second tensor, which broadcasts with `input`.
        p: The order of the norm. Default: 2.

    Returns:
        A 0-d tensor.

    Example:
        >>> torch.dist(torch.tensor([1.0, 1.0]), torch.tensor([4.0, 5.0]))
        tensor(5.)
    """
    return _vector_norm(F, "linalg.vector_norm", input - other, p, None, False, None)


@composite(
    "frobenius_norm(Tensor input, dim, keepdim=False)", where="torch", out=Out("same"), node_name="NormBackward1(input)"
)
def frobenius_norm(F, input, dim, keepdim):
    """Computes the Frobenius norm. For older programs; see `torch.linalg.matrix_norm`.

    Args:
        dim: The dimensions; an empty list means all.

    Example:
        >>> torch.frobenius_norm(torch.tensor([[3.0, 4.0]]), (0, 1))
        tensor(5.)
    """
    return _vector_norm(F, "linalg.vector_norm", input, 2.0, dim, keepdim, None)


@composite(
    "nuclear_norm(Tensor input, dim=(-2, -1), keepdim=False)",
    where="torch",
    out=Out("same", "linalg.matrix_norm expected out tensor dtype {want} but got: {got}"),
    node_name=matrix_norm_graph,
)
def nuclear_norm(F, input, dim, keepdim):
    """Computes the sum of the singular values. For older programs; see `torch.linalg.matrix_norm`.

    Args:
        dim: The two dimensions of the matrices. Default: the last two.

    Example:
        >>> torch.nuclear_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(7.)
    """
    if isinstance(dim, bool):  # the form (input, keepdim)
        dim, keepdim = (-2, -1), dim
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    return _matrix_norm(F, "linalg.matrix_norm", input, "nuc", tuple(dim), keepdim, None)


@composite("norm_except_dim(Tensor v, pow=2, dim=0)", where="torch", node_name=norm_except_dim_graph)
def norm_except_dim(F, v, pow, dim):
    """Computes norms over all dimensions but one, as weight normalization divides by.

    Args:
        v: The tensor.
        pow: The order of the norm. Default: 2.
        dim: The dimension that stays. -1 means none. Default: 0.

    Returns:
        A tensor in which all dimensions but `dim` have size 1; a 0-d tensor for -1.

    Example:
        >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [6.0, 8.0]]))
        tensor([[ 5.],
                [10.]])

    See also:
        `torch.nn.utils.parametrizations.weight_norm`.
    """
    refuse_floats(pow, dim)
    if dim == -1:
        return _vector_norm(F, "linalg.vector_norm", v, pow, None, False, None)
    return F._vector_norm_core(v, float(pow), tuple(d for d in range(v.ndim) if d != dim % v.ndim), True)
