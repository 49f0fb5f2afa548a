"""Building blocks of sparse matrix products: sums of rows of a dense matrix, and products sampled at given indices."""

from torchlite._dispatch import NONDIFF, op

from .._types.dtypes import float32, int32, int64


def _widen_half(F, tensor):
    """Half precision in float32, which it is added up in."""
    dtype = F.dtype_of(tensor)
    return F.to(tensor, float32) if dtype.is_floating_point and dtype.itemsize < 4 else tensor


def _row_numbers(F, starts):
    count = starts.shape[0] - 1
    return F._repeat_interleave_indices(F.sub(F.narrow(starts, 0, 1, count), F.narrow(starts, 0, 0, count)))


def _multiply_element_rows(F, columns, values, dense):
    """Each element's value times its row of the dense matrix."""
    return F.mul(_widen_half(F, F.index_select(dense, 0, columns)), F.unsqueeze(_widen_half(F, values), 1))


def _csr_mm(F, columns, starts, values, dense):
    product = _multiply_element_rows(F, columns, values, dense)
    out = F._new_zeros(product, (starts.shape[0] - 1, dense.shape[1]))
    return F.to(F.index_add(out, 0, _row_numbers(F, starts), product), F.dtype_of(dense))


def _csr_mm_extremes(F, columns, starts, values, dense, largest):
    product, rows, count = _multiply_element_rows(F, columns, values, dense), _row_numbers(F, starts), values.shape[0]
    shape, index = (starts.shape[0] - 1, dense.shape[1]), F.expand(F.unsqueeze(rows, 1), tuple(product.shape))
    how = "amax" if largest else "amin"
    best = F.scatter_reduce(F._new_zeros(product, shape), 0, index, product, how, include_self=False)
    there = F.logical_or(F.eq(product, F.index_select(best, 0, rows)), F.isnan(product))
    place = F.expand(F.unsqueeze(F._new_arange(rows, 0, count, 1, int64), 1), tuple(product.shape))
    none = F._new_full(place, shape, count)
    return F.scatter_reduce(none, 0, index, F.masked_fill(place, F.logical_not(there), count), "amin")


def _sampled_mm(F, rows, columns, left, right):
    one, two = F.index_select(left, 0, rows), F.index_select(right, 0, columns)
    return F.to(F.sum(F.mul(_widen_half(F, one), _widen_half(F, two)), 1), F.dtype_of(left))


def _stable_argsort_rows(F, rows, size):
    ordered, order = F.sort(F.to(rows, int32) if size < 1 << 31 else rows, 0, False, True)
    return order, F.searchsorted(ordered, F._new_arange(ordered, 0, size + 1, 1, F.dtype_of(ordered)))


def _csr_mm_dense_grad(F, g, columns, starts, values, dense):
    """The transposed sparse matrix times the gradient."""
    order, begins = F._stable_argsort_rows(columns, dense.shape[0])
    rows = F.index_select(_row_numbers(F, starts), 0, order)
    return F._csr_mm(rows, begins, F.conj(F.index_select(values, 0, order)), g)


def _sampled_mm_grad(F, g, rows, columns, left, right):
    """The gradient of `left`: the samples' gradients, as a sparse matrix, times `right`."""
    order, begins = F._stable_argsort_rows(rows, left.shape[0])
    return F._csr_mm(F.index_select(columns, 0, order), begins, F.index_select(g, 0, order), F.conj(right))


# The columns come first, since the first tensor decides whether the arrays are large.
# A sparse matrix (m, k) times a dense one (k, n): the elements of row i are those from `starts[i]` to `starts[i + 1]`,
# each with a column and a value.
op(
    "_csr_mm(Tensor columns, Tensor starts, Tensor values, Tensor dense)",
    where="",
    composite=_csr_mm,
    shape_fn=lambda starts, dense: ((starts.shape[0] - 1, dense.shape[1]), dense.dtype),
    vjp={
        "values": lambda F, g, columns, starts, dense: F._sampled_mm(
            _row_numbers(F, starts), columns, g, F.conj(dense)
        ),
        "dense": _csr_mm_dense_grad,
    },
)
# The order in which row numbers below `size` are sorted, equal ones as they were, and where each row starts then.
op(
    "_stable_argsort_rows(Tensor rows, size)",
    where="",
    tags=NONDIFF,
    outputs=("order", "starts"),
    composite=_stable_argsort_rows,
    shape_fn=lambda rows, size: [(rows.shape, int64), ((size + 1,), int64)],
)
# Of each row and column of that product the first of the elements with the largest term, or the smallest; a NaN's is
# that. The number of elements where a row has none: (m, n), int64.
op(
    "_csr_mm_extremes(Tensor columns, Tensor starts, Tensor values, Tensor dense, largest)",
    where="",
    tags=NONDIFF,
    composite=_csr_mm_extremes,
    shape_fn=lambda starts, dense: ((starts.shape[0] - 1, dense.shape[1]), int64),
)
# Elements of `left @ right.T`, each of a row and a column: (count,).
op(
    "_sampled_mm(Tensor rows, Tensor columns, Tensor left, Tensor right)",
    where="",
    composite=_sampled_mm,
    shape_fn=lambda rows, left: (rows.shape, left.dtype),
    vjp={
        "left": _sampled_mm_grad,
        "right": lambda F, g, rows, columns, left, right: _sampled_mm_grad(F, g, columns, rows, right, left),
    },
)
