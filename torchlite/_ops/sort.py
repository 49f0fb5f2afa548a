"""Sorting, selection by rank, search, and distinct elements."""

from torchlite._dispatch import MODE, NONDIFF, Out, Overlap, call, composite, memory_layout, op
from torchlite._dispatch.shapes import reduced_shape, wrap_dim

from .._dispatch.node_names import saved_argument
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
    vjp={"input": lambda F, g, out1, input_shape, dim, stable: to_chosen(F, g[0], out1, input_shape, dim)},
    node_name=lambda node: f"SortBackward{1 if saved_argument(node, 'stable') else 0}",
    doc="""Sorts the elements along a dimension and returns their original indices too.

    NaN counts as the greatest value. Elements that compare equal keep their order.

    Args:
        descending: Whether the greatest elements come first. Default: ``False``.
        stable: Has no effect: the order of equal elements is always kept.

    Returns:
        A named tuple ``(values, indices)``, both of the input's shape; `indices` is int64.

    Example:
        >>> torch.sort(torch.tensor([3, 1, 2]))
        torch.return_types.sort(
        values=tensor([1, 2, 3]),
        indices=tensor([1, 2, 0]))

    See also:
        `torch.argsort`, `torch.topk`.
    """,
    layout=memory_layout.like_first,
    out=Out("same"),
)


@composite("argsort(Tensor input, dim=-1, descending=False, *, stable=False)", layout=memory_layout.like_first)
def argsort(F, input, dim, descending, stable):
    """Returns the indices (int64) that sort the input along a dimension.

    Args:
        descending: Whether the greatest elements come first. Default: ``False``.
        stable: Has no effect: the order of equal elements is always kept.

    Example:
        >>> torch.argsort(torch.tensor([3, 1, 2]))
        tensor([1, 2, 0])

    See also:
        `torch.sort`.
    """
    return F.sort(input.detach(), dim, descending, stable)[1]


@composite("msort(Tensor input)", out=Out("same"))
def msort(F, input):
    """Sorts the input along its first dimension.

    Example:
        >>> torch.msort(torch.tensor([[3, 1], [2, 4]]))
        tensor([[2, 1],
                [3, 4]])

    See also:
        `torch.sort`.
    """
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
    doc="""Returns the `k` largest or smallest elements along a dimension and their indices.

    Args:
        k: The number of elements, at most the size of the dimension.
        largest: Whether the largest elements are returned, else the smallest. Default: ``True``.
        sorted: Has no effect: the elements are always in order.

    Returns:
        A named tuple ``(values, indices)``; the size of `dim` is `k`, and `indices` is int64.

    Raises:
        RuntimeError: `k` is out of range, or the dtype is complex or bool.

    Example:
        >>> torch.topk(torch.tensor([1.0, 3.0, 2.0]), 2).values
        tensor([3., 2.])

    See also:
        `torch.sort`, `torch.kthvalue`.
    """,
    out=Out("same"),
    refuses={
        ("input", COMPLEX): RuntimeError(" topk does not support complex dtypes on CPU"),
        ("input", BOOL): RuntimeError("topk does not support bool dtypes on CPU"),
    },
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
    doc="""Returns the `k`-th smallest element along a dimension and its index.

    Args:
        k: The rank, counted from 1.

    Returns:
        A named tuple ``(values, indices)``; `indices` is int64.

    Raises:
        RuntimeError: `k` is out of range.
        IndexError: The dimension is empty.

    Example:
        >>> torch.kthvalue(torch.tensor([3.0, 1.0, 2.0]), 2).values
        tensor(2.)

    See also:
        `torch.topk`, `torch.median`.
    """,
    layout=memory_layout.contiguous,
    out=Out("same", ("output values must be of same type as input", "output indices must be of scalar type Long")),
    overlap=Overlap(operands="none"),
    refuses={("input", COMPLEX): "kthvalue_cpu", ("input", BOOL): "kthvalue_cpu"},
)


def _search_rule(sorted_sequence, input, out_int32, right, side, sorter):
    return getattr(input, "shape", ()), int32 if out_int32 else int64


_WRONG_OUT = (
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
    "whether out_int32 flag is True, but we got output tensor's dtype {got}"
)
op(
    "searchsorted(Tensor sorted_sequence, Tensor|Number input, *, out_int32=False, right=False, side=None, Tensor? "
    "sorter=None)",
    where="torch",
    tags=NONDIFF,
    shape_fn=_search_rule,
    out=Out("same", _WRONG_OUT),
    doc="""Finds the indices at which values are inserted into a sorted sequence to keep its order.

    The search is binary, along the last dimension.

    Args:
        sorted_sequence: The sorted values, of one dimension or with the leading dimensions of `input`.
        input: The values, a tensor or a number.
        out_int32: Whether the result is int32. Default: ``False``, int64.
        right: Whether a value is inserted after equal ones. Default: ``False``, before them.
        side: ``"left"`` or ``"right"``, in place of `right`.
        sorter: Indices (int64) that sort a `sorted_sequence` that is not in order.

    Returns:
        Indices of the shape of `input`.

    Example:
        >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6]))
        tensor([1, 3])

    See also:
        `torch.bucketize`.
    """,
)


@composite(
    "bucketize(Tensor|Number input, Tensor boundaries, *, out_int32=False, right=False)",
    where="torch",
    out=Out("same", _WRONG_OUT),
)
def bucketize(F, input, boundaries, out_int32, right):
    """Returns the index of the bucket that each value falls into.

    Args:
        input: The values, a tensor or a number.
        boundaries: The bounds of the buckets: one dimension, sorted.
        out_int32: Whether the result is int32. Default: ``False``, int64.
        right: Whether a value that equals a bound falls into the bucket above it. Default: ``False``.

    Returns:
        Indices of the shape of `input`, from 0 to ``len(boundaries)``.

    Raises:
        RuntimeError: `boundaries` does not have one dimension.

    Example:
        >>> torch.bucketize(torch.tensor([2, 9]), torch.tensor([1, 5]))
        tensor([1, 2])

    See also:
        `torch.searchsorted`.
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
    doc="""Tests for each element whether it occurs in another tensor.

    Args:
        elements: The elements, a tensor or a number.
        test_elements: The values to look for them in, a tensor or a number.
        assume_unique: Whether both have distinct elements, which may be faster. Default: ``False``.
        invert: Whether the result is negated. Default: ``False``.

    Returns:
        A bool tensor of the shape of `elements`.

    Example:
        >>> torch.isin(torch.tensor([1, 2]), torch.tensor([2, 3]))
        tensor([False,  True])
    """,
    out=Out("same"),
)

for _schema, _kernel in (
    ("_unique_flat(Tensor input, return_inverse=False, return_counts=False)", "unique"),
    ("_unique_rows(Tensor input, dim)", "unique_dim"),
    ("_unique_runs(Tensor input, dim=None)", "unique"),
):
    op(_schema, where="", tags=NONDIFF, multi_output=True, refuses={("input", COMPLEX): _kernel})


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
    """Returns the distinct elements in ascending order.

    Args:
        sorted: Has no effect: the elements are always in order.
        return_inverse: Whether to return the index in the result of each element of the input. Default: ``False``.
        return_counts: Whether to return how often each element occurs. Default: ``False``.
        dim: The dimension whose slices are compared. Default: none, single elements.

    Returns:
        The distinct elements, or a tuple of them with what is requested, in the order of the arguments.

    Example:
        >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))

    See also:
        `torch.unique_consecutive`.
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
    """Removes the elements that equal their predecessor.

    Args:
        return_inverse: Whether to return the index in the result of each element of the input. Default: ``False``.
        return_counts: Whether to return the length of each run. Default: ``False``.
        dim: The dimension whose slices are compared. Default: none, single elements.

    Returns:
        The elements, or a tuple of them with what is requested, in the order of the arguments.

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])

    See also:
        `torch.unique`.
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
    """Returns the indices of the elements that are not zero.

    Args:
        as_tuple: Whether to return one 1-d tensor of indices a dimension, with which the input can be indexed.

    Returns:
        An int64 tensor of shape ``(count, input.dim())``, or a tuple of tensors of shape ``(count,)``.

    Example:
        >>> torch.nonzero(torch.tensor([[0, 5], [7, 0]]))
        tensor([[0, 1],
                [1, 0]])

    See also:
        `torch.where`, `torch.nonzero_static`.
    """
    if as_tuple:
        return F.unbind(F._nonzero_indices(input if input.ndim else input.reshape(1)), 1)
    return F._nonzero_indices(input)


@composite("argwhere(Tensor input)", layout=memory_layout.nonzero_indices)
def argwhere(F, input):
    """Returns the indices of the elements that are not zero.

    Returns:
        An int64 tensor of shape ``(count, input.dim())``.

    Example:
        >>> torch.argwhere(torch.tensor([0, 5]))
        tensor([[1]])

    See also:
        `torch.nonzero`.
    """
    return F._nonzero_indices(input)


def _nonzero_static_shape(input, size, fill_value):
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    return (size, len(input.shape)), int64


op(
    "nonzero_static(Tensor input, *, size, fill_value=-1)",
    tags=NONDIFF,
    shape_fn=_nonzero_static_shape,
    doc="""Returns the indices of the first `size` elements that are not zero, in a result of fixed size.

    Args:
        size: The number of rows of the result.
        fill_value: The value of rows beyond the number of elements. Default: ``-1``.

    Returns:
        An int64 tensor of shape ``(size, input.dim())``.

    Raises:
        RuntimeError: `size` is negative.

    Example:
        >>> torch.nonzero_static(torch.tensor([0, 5]), size=2)
        tensor([[ 1],
                [-1]])

    See also:
        `torch.nonzero`.
    """,
    out=Out("same", "{name}: Expected out tensor to have scalar type {want} but got scalar type{got}"),
)
