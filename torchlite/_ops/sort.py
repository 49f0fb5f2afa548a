"""Sorting, selection by rank, search, and distinct elements."""

from torchlite._dispatch import MODE, NONDIFF, Out, Overlap, call, composite, memory_layout, op
from torchlite._dispatch.shapes import reduced_shape, wrap_dim

from .._types.dtypes import BOOL, COMPLEX, bool_, int32, int64
from ._gradient_helpers import make_not_implemented_formula, to_chosen

_PAIR = ("values", "indices")


def _same_pair_meta(input, **_):
    return [(input.shape, input.dtype), (input.shape, int64)]


op(
    "sort(Tensor input, dim=-1, descending=False, stable=False)",
    outputs=_PAIR,
    nondiff=(1,),
    shape_fn=lambda input, dim, descending, stable: (wrap_dim(dim, len(input.shape)), _same_pair_meta(input))[1],
    vjp={"input": lambda F, g, out1, input_shape, dim: to_chosen(F, g[0], out1, input_shape, dim)},
    doc="""The elements in order along `dim` and where they stood: `(values, indices)`, both of `input`'s shape. NaN
    counts as the greatest. Always
   stable.

    >>> torch.sort(torch.tensor([3, 1, 2])).indices
    tensor([1, 2, 0])
    """,
    layout=memory_layout.like_first,
    out=Out("same"),
)


@composite("argsort(Tensor input, dim=-1, descending=False, *, stable=False)", layout=memory_layout.like_first)
def argsort(F, input, dim, descending, stable):
    """The indices (int64) that sort `input` along `dim`."""
    return F.sort(input.detach(), dim, descending, stable)[1]


@composite("msort(Tensor input)", out=Out("same"))
def msort(F, input):
    """`input` sorted along its first dimension."""
    return F.sort(input, 0)[0]


def _topk_rule(input, k, dim, largest, sorted):
    dim = wrap_dim(dim, len(input.shape))
    if not 0 <= k <= (input.shape[dim] if input.shape else 1):
        raise RuntimeError("selected index k out of range")
    shape = (*input.shape[:dim], k, *input.shape[dim + 1 :]) if input.shape else () if k else (0,)
    return [(shape, input.dtype), (shape, int64)]


op(
    "topk(Tensor input, k, dim=-1, largest=True, sorted=True)",
    outputs=_PAIR,
    nondiff=(1,),
    shape_fn=_topk_rule,
    vjp={"input": lambda F, g, out1, input_shape, dim: to_chosen(F, g[0], out1, input_shape, dim)},
    doc="""The `k` largest (or smallest) elements along `dim`, in order, and their indices. RuntimeError when there are
    fewer than `k`.

    >>> torch.topk(torch.tensor([1., 3., 2.]), 2).values
    tensor([3., 2.])
    """,
    out=Out("same"),
)


def _kth_rule(input, k, dim, keepdim):
    if input.shape and not input.shape[wrap_dim(dim, len(input.shape))]:
        at = wrap_dim(dim, len(input.shape))
        raise IndexError(f"kthvalue(): Expected reduction dim {at} to have non-zero size.")
    shape = reduced_shape(input.shape, dim, keepdim) if input.shape else ()
    return [(shape, input.dtype), (shape, int64)]


op(
    "kthvalue(Tensor input, k, dim=-1, keepdim=False)",
    outputs=_PAIR,
    nondiff=(1,),
    shape_fn=_kth_rule,
    vjp={"input": lambda F, g, out1, input_shape, dim, keepdim: to_chosen(F, g[0], out1, input_shape, dim, keepdim)},
    doc="""The `k`-th smallest element (counted from 1) along `dim` and its index. RuntimeError when there is none.

    >>> torch.kthvalue(torch.tensor([3., 1., 2.]), 2).values
    tensor(2.)
    """,
    layout=memory_layout.contiguous,
    out=Out("same", ("output values must be of same type as input", "output indices must be of scalar type Long")),
    overlap=Overlap(operands="none"),
    refuses={("input", COMPLEX): "kthvalue_cpu", ("input", BOOL): "kthvalue_cpu"},
)


def _search_rule(sorted_sequence, input, out_int32, right, side, sorter):
    return getattr(input, "shape", ()), int32 if out_int32 else int64


op(
    "searchsorted(Tensor sorted_sequence, Tensor|Number input, *, out_int32=False, right=False, side=None, Tensor? "
    "sorter=None)",
    where="torch",
    tags=NONDIFF,
    shape_fn=_search_rule,
    doc="""Where each value of `input` would be inserted along the last dimension of `sorted_sequence` to keep it
    sorted: before equal ones, or after
   them with
    `right=True`. int64 (int32 with `out_int32`), shape of `input`.

    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6]))
    tensor([1, 3])
    """,
)


@composite("bucketize(Tensor|Number input, Tensor boundaries, *, out_int32=False, right=False)", where="torch")
def bucketize(F, input, boundaries, out_int32, right):
    """The index of the bucket between `boundaries` (1-d, sorted) that each value of `input` falls into.

    >>> torch.bucketize(torch.tensor([2, 9]), torch.tensor([1, 5]))
    tensor([1, 2])
    """
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return F.searchsorted(boundaries, input, out_int32=out_int32, right=right)


def _isin_rule(elements, test_elements, assume_unique, invert):
    return getattr(elements, "shape", ()), bool_


op(
    "isin(Tensor|Number elements, Tensor|Number test_elements, *, assume_unique=False, invert=False)",
    where="torch",
    tags=NONDIFF,
    shape_fn=_isin_rule,
    doc="""Whether each element is among `test_elements`: bool, shape of `elements`.

    >>> torch.isin(torch.tensor([1, 2]), torch.tensor([2, 3]))
    tensor([False,  True])
    """,
    out=Out("same"),
)

op("_unique_flat(Tensor input, return_inverse=False, return_counts=False)", where="", tags=NONDIFF, multi_output=True)
op("_unique_rows(Tensor input, dim)", where="", tags=NONDIFF, multi_output=True)
op("_unique_runs(Tensor input, dim=None)", where="", tags=NONDIFF, multi_output=True)


# Their derivative is an error, but their first results require a gradient.
_undifferentiated = {
    name: op(f"{name}(Tensor input)", where="", vjp={"input": make_not_implemented_formula(words)})
    for name, words in {
        "_unique2": "_unique2",
        "_unique_dim": "unique_dim",
        "_unique_consecutive": "unique_consecutive",
    }.items()
}


def _check_unique_dim(input, dim):
    """The dimension along which slices are compared. RuntimeError for slices of no elements."""
    dim = wrap_dim(dim, input.ndim)
    empty = [d for d, n in enumerate(input.shape) if n == 0]
    if dim in empty and len(empty) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    if empty and dim not in empty:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return dim


def _with_node(name, input, found):
    if MODE.grad and input.requires_grad:
        call.record_node(_undifferentiated[name], input._tl_kernels, [input], (found[0],))
    return found


def _select_requested_results(found, return_inverse, return_counts):
    chosen = (found[0],) + ((found[1],) if return_inverse else ()) + ((found[2],) if return_counts else ())
    return chosen if len(chosen) > 1 else chosen[0]


@composite(
    "unique(Tensor input, sorted=True, return_inverse=False, return_counts=False, dim=None)",
    out=Out(supported=False),
    keywords_from=1,
)
def unique(F, input, sorted, return_inverse, return_counts, dim):
    """The distinct elements (or slices along `dim`) in order; on request also the inverse indices and the counts.

    `sorted` has no effect: the elements are always in order.

    >>> torch.unique(torch.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    if dim is None:
        found = _with_node("_unique2", input, F._unique_flat(input, return_inverse, return_counts))
    else:
        found = _with_node("_unique_dim", input, F._unique_rows(input, _check_unique_dim(input, dim)))
    return _select_requested_results(found, return_inverse, return_counts)


@composite(
    "_unique_and_all(Tensor input, sorted=True, return_inverse=False, return_counts=False)",
    where="",
    alias="torch._unique2",
)
def _unique_and_all(F, input, sorted, return_inverse, return_counts):
    """The distinct elements, the inverse indices and the counts; the last two are empty if not requested."""
    values, *also = _with_node("_unique2", input, F._unique_flat(input, return_inverse, return_counts))
    empty = input.new_empty((0,), dtype=int64)
    return values, *(
        one if wanted else empty for one, wanted in zip(also, (return_inverse, return_counts), strict=True)
    )


@composite("_unique(Tensor input, sorted=True, return_inverse=False)", where="torch")
def _unique(F, input, sorted, return_inverse):
    """The distinct elements, and the inverse indices (empty if not requested).

    >>> torch._unique(torch.tensor([3, 1, 3]), return_inverse=True)
    (tensor([1, 3]), tensor([1, 0, 1]))
    """
    return F._unique_and_all(input, sorted, return_inverse)[:2]


@composite(
    "unique_consecutive(Tensor input, return_inverse=False, return_counts=False, dim=None)",
    out=Out(supported=False),
    keywords_from=1,
)
def unique_consecutive(F, input, return_inverse, return_counts, dim):
    """`input` without the elements (or slices along `dim`) that equal the one before.

    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    found = _with_node(
        "_unique_consecutive", input, F._unique_runs(input, None if dim is None else _check_unique_dim(input, dim))
    )
    return _select_requested_results(found, return_inverse, return_counts)


op("_nonzero_indices(Tensor input)", where="", tags=NONDIFF)


@composite(
    "nonzero(Tensor input, *, as_tuple=False)",
    layout=memory_layout.nonzero_indices,
    out=Out("same", "{name}: Expected out tensor to have scalar type {want} but got scalar type{got}"),
)
def nonzero(F, input, as_tuple):
    """The indices of the elements that are not zero: int64 of shape (count, input.ndim), or with `as_tuple` one vector
    a dimension.

    >>> torch.nonzero(torch.tensor([0, 5]))
    tensor([[1]])
    """
    if as_tuple:
        return F.unbind(F._nonzero_indices(input if input.ndim else input.reshape(1)), 1)
    return F._nonzero_indices(input)


@composite("argwhere(Tensor input)", layout=memory_layout.nonzero_indices)
def argwhere(F, input):
    """The indices of the elements that are not zero: int64 of shape (count, input.ndim)."""
    return F._nonzero_indices(input)


def _nonzero_static_shape(input, size, fill_value):
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return (size, len(input.shape)), int64


op(
    "nonzero_static(Tensor input, *, size, fill_value=-1)",
    tags=NONDIFF,
    shape_fn=_nonzero_static_shape,
    doc="""The first `size` indices of non-zero elements, filled up with `fill_value`: int64 of shape (size,
    input.ndim).
    """,
    out=Out("same", "{name}: Expected out tensor to have scalar type {want} but got scalar type{got}"),
)
