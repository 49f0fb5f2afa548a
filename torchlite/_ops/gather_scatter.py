"""Reading and writing by index: masks, flat indices, rows, and scatter reductions."""

import math

from torchlite._dispatch import INPLACE, Out, Overlap, composite, memory_layout, op
from torchlite._dispatch.public_functions import torch
from torchlite._dispatch.shapes import broadcast_shapes, wrap_dim

from .._types.dtypes import BOOL, COMPLEX, bool_, int64
from ._dtype_checks import refuse_kinds
from .indexing import INDEX_DTYPES
from .indexing import _raw_index as raw_index


def _same_shape_and_dtype(input, **_):
    return input.shape, input.dtype


# --- masks -------------------------------------------------------------------------


def _masked_select_vjp(F, g, input_shape, mask):
    shape = broadcast_shapes(input_shape, mask.shape)
    return F.masked_scatter(F._new_zeros(g, shape), mask, g)


op(
    "masked_select(Tensor input, Tensor mask)",
    vjp={"input": _masked_select_vjp},
    doc="""Returns the elements where a mask is true, as a 1-d tensor.

    Args:
        mask: A bool tensor that broadcasts with `input`.

    Example:
        >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
        tensor([1, 3])

    See also:
        `torch.masked_fill`, `torch.where`.
    """,
    out=Out("same", "{name}(): self and result must have the same scalar type"),
    overlap=Overlap(operands="none"),
)


def _fill_rule(input, mask, value):
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.c_name}")
    return broadcast_shapes(mask.shape, input.shape), input.dtype


op(
    "_masked_fill(Tensor input, Tensor mask, value)",
    where="",
    shape_fn=_fill_rule,
    vjp={"input": lambda F, g, mask: F._masked_fill(g, mask, 0)},
    numbers={"value": False},
)
op(
    "_masked_fill_tensor(Tensor input, Tensor mask, Tensor value)",
    where="",
    shape_fn=_fill_rule,
    vjp={
        "input": lambda F, g, mask: F._masked_fill(g, mask, 0),
        "value": lambda F, g, mask, value_dtype: F.to(F.sum(F._where(mask, g, F._zeros_like(g))), value_dtype),
    },
    node_name="MaskedFillBackward1",
    overlap=Overlap(read_first=lambda values: values[2]),
)


@composite(
    "masked_fill(Tensor input, Tensor mask, Tensor|Number value)",
    tags=INPLACE,
    layout=memory_layout.contiguous,
    overlap=Overlap("deprecated", example="tensor[mask] = scalar", read_first=lambda values: values[2]),
)
def masked_fill(F, input, mask, value):
    """Returns the input with a value where a mask is true.

    Args:
        mask: A bool tensor that broadcasts with `input`.
        value: A number or a 0-d tensor.

    Raises:
        RuntimeError: The mask is not bool.

    Example:
        >>> torch.masked_fill(torch.tensor([1.0, 2.0]), torch.tensor([False, True]), 0)
        tensor([1., 0.])
    """
    return (
        F._masked_fill_tensor(input, mask, value) if hasattr(value, "_tl_array") else F._masked_fill(input, mask, value)
    )


def _masked_source_vjp(F, g, mask, source_shape):
    taken = F.masked_select(g, mask)
    rest = math.prod(source_shape) - taken.shape[0]
    if rest > 0:
        taken = F.cat([taken, F._new_zeros(taken, (rest,))], 0)
    return F.reshape(taken, source_shape)


op(
    "masked_scatter(Tensor input, Tensor mask, Tensor source)",
    tags=INPLACE,
    overlap=Overlap(read_first=lambda values: values[2]),
    shape_fn=lambda input, mask, source: (broadcast_shapes(input.shape, mask.shape), input.dtype),
    vjp={"input": lambda F, g, mask: F._masked_fill(g, mask, 0), "source": _masked_source_vjp},
    doc="""Returns the input with the elements of another tensor, in order, where a mask is true.

    Args:
        mask: A bool tensor that broadcasts with `input`.
        source: The elements, at least as many as the mask has true ones; its dtype is the input's.

    Raises:
        RuntimeError: `source` has too few elements, or the dtypes do not fit.

    Example:
        >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2.])
    """,
)

# --- flat indices ------------------------------------------------------------------------


def _take_along_axis(function, given, axis):
    """`take(axis=)`: slices by indices, which may be negative."""
    x, indices = given["input"], given["index"]
    return torch.index_select(x, axis, torch.where(indices < 0, indices + x.shape[axis], indices))


op(
    "take(Tensor input, Tensor index)",
    shape_fn=lambda input, index: (index.shape, input.dtype),
    vjp={"input": lambda F, g, input_shape, index: F.put(F._new_zeros(g, input_shape), index, g, True)},
    doc="""Returns the elements of the flattened input at given indices.

    Args:
        index: The indices, int64, of any shape; negative ones count from the end.

    Returns:
        A tensor of the shape of `index`.

    Raises:
        IndexError: An index is out of range.

    Example:
        >>> torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 3]))
        tensor([1, 4])

    See also:
        `torch.take_along_dim`, `torch.put`.
    """,
    out=Out(
        "same",
        "take(): self and out expected to have the same dtype, but got self.dtype = {want} and out.dtype = {got}",
    ),
    overlap=Overlap(operands="none"),
    kwarg_aliases={"axis": _take_along_axis},
)


def _put_input_vjp(F, g, index, source_shape, accumulate):
    return g if accumulate else F.put(g, index, F._new_zeros(g, source_shape), False)


op(
    "put(Tensor input, Tensor index, Tensor source, accumulate=False)",
    where="Tensor torch",
    tags=INPLACE,
    shape_fn=_same_shape_and_dtype,
    vjp={
        "input": _put_input_vjp,
        "source": lambda F, g, index, source_shape: F.reshape(F.take(g, index), source_shape),
    },
    doc="""Returns the input with values at given indices of the flattened elements.

    Args:
        index: The indices, int64; negative ones count from the end.
        source: The values, as many as there are indices, of the input's dtype.
        accumulate: Whether the values are added. Default: ``False``.

    Example:
        >>> torch.put(torch.zeros(2, 2), torch.tensor([3, 0]), torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 1.]])

    See also:
        `torch.take`.
    """,
    layout=memory_layout.like_first,
    overlap=Overlap(operands="target"),
)


def _from_front(F, index, size):
    return F.where(index < 0, index + size, index)


@composite(
    "take_along_dim(Tensor input, Tensor indices, dim=None)",
    layout=memory_layout.contiguous,
    out=Out("same"),
    overlap=Overlap(operands="none"),
)
def take_along_dim(F, input, indices, dim):
    """Returns the elements at given indices along a dimension.

    In contrast to `torch.gather`, the other dimensions broadcast.

    Args:
        indices: The indices, int64.
        dim: The dimension. Default: none, the flattened input.

    Example:
        >>> torch.take_along_dim(torch.tensor([[3, 1, 2]]), torch.tensor([[1, 2]]), 1)
        tensor([[1, 2]])

    See also:
        `torch.gather`, `torch.argsort`.
    """
    if indices.dtype is not int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return F.gather(input.reshape(-1), 0, _from_front(F, indices.reshape(-1), input.numel()))
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return F.gather(input, 0, indices)
    common = broadcast_shapes(
        input.shape[:dim] + (1,) + input.shape[dim + 1 :], indices.shape[:dim] + (1,) + indices.shape[dim + 1 :]
    )
    wide = [
        tuple(n if d == dim else c for d, (n, c) in enumerate(zip(t.shape, common, strict=True)))
        for t in (input, indices)
    ]
    return F.gather(input.expand(wide[0]), dim, _from_front(F, indices, input.shape[dim]).expand(wide[1]))


# --- gather and scatter ------------------------------------------------------------------------

op(
    "gather(Tensor input, dim, Tensor index, *, sparse_grad=False)",
    shape_fn=lambda input, index: (index.shape, input.dtype),
    vjp={"input": lambda F, g, input_shape, dim, index: F.scatter_add(F._new_zeros(g, input_shape), dim, index, g)},
    doc="""Returns the elements at given indices along a dimension.

    For three dimensions and ``dim=1``, ``out[i][j][k] = input[i][index[i][j][k]][k]``.

    Args:
        index: The indices along `dim`, int64, with as many dimensions as `input`.
        sparse_grad: Whether the gradient of `input` is a sparse tensor. Default: ``False``.

    Returns:
        A tensor of the shape of `index`.

    Raises:
        RuntimeError: An index is out of range, or the shapes do not fit.

    Example:
        >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0], [1]]))
        tensor([[1],
                [4]])

    See also:
        `torch.scatter`, `torch.take_along_dim`.
    """,
    layout=memory_layout.contiguous,
    out=Out("same"),
    overlap=Overlap(operands="none"),
    sparse_grad_param="sparse_grad",
)


def _read_part(F, src, index):
    """The elements of `src` that a scatter reads: those that `index` covers, in its shape."""
    if src.ndim != index.ndim:  # one of them is 0-d
        src = F.reshape(src, (-1,))
        return F.reshape(F._slice(src, 0, 0, index.shape[0] if index.ndim else 1, 1), index.shape)
    for dim, (have, want) in enumerate(zip(src.shape, index.shape, strict=True)):
        if have != want:
            src = F._slice(src, dim, 0, want, 1)
    return src


def _pad_unread(F, g, src_shape):
    """The gradient of `src` from that of its part that the index covers: zeros elsewhere."""
    if g.shape == src_shape:
        return g
    if 0 in g.shape:  # nothing was read
        zeros = F.constant_pad_nd(F.reshape(g, (0,)), (0, math.prod(src_shape)), 0)
        return F.reshape(zeros, src_shape)
    if g.ndim != len(src_shape):  # one of them is 0-d
        g = F.reshape(g, (-1,) if src_shape else ())
    missing = [n - have for n, have in zip(src_shape, g.shape, strict=True)]
    return F.constant_pad_nd(g, tuple(n for m in reversed(missing) for n in (0, m)), 0) if any(missing) else g


def _scatter_src_vjp(F, g, dim, index, src_shape):
    return _pad_unread(F, F.gather(g, dim, index), src_shape)


def _scatter_input_vjp(F, g, dim, index, reduce):
    if reduce == "multiply":
        raise RuntimeError(
            "the derivative for 'scatter' with reduce='multiply' is not implemented; use scatter_reduce with 'prod'"
        )
    return g if reduce == "add" else F.scatter(g, dim, index, 0)


op(
    "scatter(Tensor input, dim, Tensor index, Tensor|Number src=None, *, value=None, reduce=None)",
    tags=INPLACE,
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={"input": _scatter_input_vjp, "src": _scatter_src_vjp},
    doc="""Returns the input with values at given indices along a dimension.

    For three dimensions and ``dim=1``, ``out[i][index[i][j][k]][k] = src[i][j][k]``. Where an index is repeated,
    one of the values stays.

    Args:
        index: The indices along `dim`, int64, with as many dimensions as `input`.
        src: The values; its sizes are at least those of `index`.
        value: A number in place of `src`.
        reduce: ``"add"`` or ``"multiply"``, to combine the values with the input's. Default: none, replace.

    Raises:
        RuntimeError: An index is out of range, or the shapes or dtypes do not fit.

    Example:
        >>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([5.0, 6.0]))
        tensor([6., 0., 5.])

    See also:
        `torch.gather`, `torch.scatter_add`, `torch.scatter_reduce`.
    """,
    out=Out("same"),
    overlap=Overlap(operands="target"),
    numbers={"src": False, "value": False},
    node_name=lambda node: "ScatterBackward1(input)" if getattr(node, "_shown", "") else "ScatterBackward0",
)


def raw_indices(input, indices):
    """Index tensors as the raw arrays of `input`'s device; None is a full slice."""
    for index in indices:
        if index is not None and index.dtype.name not in INDEX_DTYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return tuple(
        slice(None) if i is None else raw_index(input, i.to(bool_) if i.dtype.name == "uint8" else i) for i in indices
    )


def _number_under_a_mask(values):
    """The values of `index_put` if they are one element that a single mask writes: PyTorch fills with it."""
    _, indices, source, accumulate = values
    masks = [i for i in indices if i is not None and not isinstance(i, slice)]
    one = len(masks) == 1 and masks[0].dtype.name == "bool" and not accumulate
    return source if one and hasattr(source, "_tl_array") and math.prod(source.shape) == 1 else None


@composite(
    "index_put(Tensor input, indices, Tensor values, accumulate=False)",
    tags=INPLACE,
    layout=memory_layout.like_first,
    overlap=Overlap("deprecated", "target", "tensor[indices] = tensor", _number_under_a_mask),
)
def index_put(F, input, indices, values, accumulate):
    """Returns the input with values at the positions of an indexing expression, as ``input[indices] = values``.

    Args:
        indices: A tuple of index tensors (int64 or bool) that broadcast with one another; ``None`` is an entire
            dimension.
        values: The values, which broadcast to the shape of ``input[indices]``.
        accumulate: Whether the values are added, those of repeated indices too. Default: ``False``.

    Example:
        >>> torch.index_put(torch.zeros(3), (torch.tensor([1]),), torch.tensor(2.0))
        tensor([0., 2., 0.])
    """
    if input.dtype is not values.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {input.dtype.scalar_name} for the "
            f"destination and {values.dtype.scalar_name} for the source."
        )
    return F._index_put(input, raw_indices(input, indices), values, accumulate)


op(
    "_index_put(Tensor input, index, Tensor values, accumulate)",
    where="",
    tags=INPLACE,
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={
        "input": lambda F, g, index, accumulate: g if accumulate else F._setitem(g, index, 0),
        "values": lambda F, g, index: F._index(g, index),
    },
    overlap=Overlap("deprecated", "target", "tensor[indices] = tensor", _number_under_a_mask),
)

# --- scatter with a reduction ----------------------------------------------------------------


op(
    "scatter_add(Tensor input, dim, Tensor index, Tensor src)",
    tags=INPLACE,
    shape_fn=_same_shape_and_dtype,
    vjp={"input": lambda F, g: g, "src": _scatter_src_vjp},
    doc="""Returns the input with values added at given indices along a dimension; repeated indices add up.

    Args:
        index: The indices along `dim`, int64, with as many dimensions as `input`.
        src: The values; its sizes are at least those of `index`.

    Raises:
        RuntimeError: An index is out of range, or the shapes or dtypes do not fit.

    Example:
        >>> torch.scatter_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([2.0, 3.0]))
        tensor([0., 5.])

    See also:
        `torch.scatter`, `torch.scatter_reduce`.
    """,
    out=Out("same"),
    overlap=Overlap(operands="target"),
)


def _zero_written_places(F, g, dim, index, include_self):
    """The gradient of what `input` itself brings in: nothing at the places written to, unless it is included."""
    return g if include_self else F.scatter(g, dim, index, F._new_zeros(g, index.shape))


def ones_for_zeros(F, x):
    """The factors of a product with zeros replaced by ones."""
    return F._where(F.eq(x, 0), F._ones_like(x), x)


def effect_of_other_zeros(F, x, added):
    """The effect of zeros among the other factors of a product: 1 if there are none, 0 otherwise. It is differentiable
    through the zeros; only the third derivative misses products with three zeros. added(f): the sum of f over all
    factors, for each.
    """
    zero = F.eq(x, 0)
    count = F.sub(added(lambda x: F.to(F.eq(x, 0), F.dtype_of(x))), F.to(zero, F.dtype_of(x)))
    own = lambda x: F._where(F.eq(x, 0), x, F._zeros_like(x))
    other = F._where(F.eq(count, 1), F.sub(added(own), own(x)), F._zeros_like(x))
    return F._where(F.eq(count, 0), F._ones_like(x), other)


def _product_vjp(F, g, input, dim, index, src, include_self):
    """The product of all but one factor, without dividing by zero."""
    start = input if include_self else F.scatter(input, dim, index, F._ones_like(src))
    plain = ones_for_zeros(F, start), ones_for_zeros(F, src)
    product = F.scatter_reduce(plain[0], dim, index, plain[1], "prod", include_self=True)

    def product_of_others(x, plain, at):
        zeros = effect_of_other_zeros(F, x, lambda f: at(F.scatter_add(f(start), dim, index, f(src))))
        return F.mul(F.div(at(product), plain), zeros)

    for_input = _zero_written_places(
        F, F.mul(g, product_of_others(start, plain[0], lambda x: x)), dim, index, include_self
    )
    at_src = lambda x: F.gather(x, dim, index)
    return for_input, F.mul(at_src(g), product_of_others(src, plain[1], at_src))


def _scatter_mean_vjp(F, g, dim, index, src, include_self):
    count = F._ones_like(g) if include_self else F._zeros_like(g)
    count = F.scatter_add(count, dim, index, F._ones_like(src))
    share = F.div(g, F.maximum(count, F._ones_like(count)))
    return _zero_written_places(F, share, dim, index, include_self), F.gather(share, dim, index)


def _scatter_extreme_vjp(F, g, input, dim, index, src, include_self, out):
    mine = F.to(F.eq(input, out), F.dtype_of(g))
    theirs = F.to(F.eq(src, F.gather(out, dim, index)), F.dtype_of(g))
    if not include_self:
        mine = F._where(
            F.eq(F.scatter(F._zeros_like(mine), dim, index, F._ones_like(src)), 1), F._zeros_like(mine), mine
        )
    count = F.scatter_add(mine, dim, index, theirs)
    share = F.div(g, F._where(F.eq(count, 0), F._ones_like(count), count))
    return F.mul(mine, share) if include_self else _zero_written_places(F, g, dim, index, False), F.mul(
        theirs, F.gather(share, dim, index)
    )


def _scatter_reduce_vjp(F, g, input, dim, index, src, reduce, include_self, out):
    if reduce in ("max", "min"):  # the kernel takes these names, as PyTorch's does
        raise RuntimeError(f"Expected 'reduce' to be one of 'sum', 'prod', 'mean', 'amax', 'amin' but got {reduce}.")
    if 0 in index.shape:
        return g, F._zeros_like(src)
    src_shape, src = src.shape, _read_part(F, src, index)
    if reduce == "sum":
        for_input, for_part = _zero_written_places(F, g, dim, index, include_self), F.gather(g, dim, index)
    elif reduce == "mean":
        for_input, for_part = _scatter_mean_vjp(F, g, dim, index, src, include_self)
    elif reduce == "prod":
        for_input, for_part = _product_vjp(F, g, input, dim, index, src, include_self)
    else:
        for_input, for_part = _scatter_extreme_vjp(F, g, input, dim, index, src, include_self, out)
    return for_input, _pad_unread(F, for_part, src_shape)


def _check_reduce(reduce):
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")


def _check_reduced_dtype(input, dim, index, src, reduce, include_self):
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    kinds = {"mean": (BOOL,), "amax": (COMPLEX,), "amin": (COMPLEX,)}.get(reduce, ())
    refuse_kinds(input.dtype, f"scatter_gather_tensor_cpu_reduce_{reduce}", *kinds)


op(
    "scatter_reduce(Tensor input, dim, Tensor index, Tensor src, reduce, *, include_self=True)",
    tags=INPLACE,
    shape_fn=lambda input, dim, index, src, reduce, include_self: (_check_reduce(reduce), (input.shape, input.dtype))[
        1
    ],
    vjp={("input", "src"): _scatter_reduce_vjp},
    doc="""Returns the input with values reduced into given indices along a dimension.

    Args:
        index: The indices along `dim`, int64, with as many dimensions as `input`.
        src: The values; its sizes are at least those of `index`.
        reduce: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
        include_self: Whether the input's elements at these indices are part of the reduction. Default: ``True``.

    Raises:
        RuntimeError: An index is out of range, or the shapes or dtypes do not fit.

    Example:
        >>> torch.scatter_reduce(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([2.0, 3.0]), "amax")
        tensor([0., 3.])

    See also:
        `torch.scatter_add`, `torch.index_reduce`.
    """,
    check=_check_reduced_dtype,
    out=Out("same"),
    overlap=Overlap(operands="target"),
)


# --- slices written -------------------------------------------------------------------------------

op(
    "slice_scatter(Tensor input, Tensor src, dim=0, start=None, end=None, step=1)",
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={
        "input": lambda F, g, src_shape, dim, start, end, step: F.slice_scatter(
            g, F._new_zeros(g, src_shape), dim, start, end, step
        ),
        "src": lambda F, g, dim, start, end, step: F._slice(g, dim, start, end, step),
    },
    doc="""Returns a copy of the input with another tensor in place of a slice.

    Args:
        src: The tensor, of the shape of the slice.
        start: The first index. Default: 0.
        end: The index after the last one. Default: the size.
        step: The distance of the indices. Default: 1.

    Example:
        >>> torch.slice_scatter(torch.zeros(3), torch.ones(2), start=1)
        tensor([0., 1., 1.])
    """,
    layout=memory_layout.like_first,
    out=Out("same"),
    overlap=Overlap(operands="partial"),
)
op(
    "select_scatter(Tensor input, Tensor src, dim, index)",
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={
        "input": lambda F, g, src_shape, dim, index: F.select_scatter(g, F._new_zeros(g, src_shape), dim, index),
        "src": lambda F, g, dim, index: F.select(g, dim, index),
    },
    doc="""Returns a copy of the input with another tensor in place of the slice at one index.

    Args:
        src: The tensor, of the shape of the slice.
        index: The index along `dim`.

    Example:
        >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
        tensor([[0., 0.],
                [1., 1.]])

    See also:
        `torch.select`.
    """,
    layout=memory_layout.like_first,
)
op(
    "diagonal_scatter(Tensor input, Tensor src, offset=0, dim1=0, dim2=1)",
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={
        "input": lambda F, g, src_shape, offset, dim1, dim2: F.diagonal_scatter(
            g, F._new_zeros(g, src_shape), offset, dim1, dim2
        ),
        "src": lambda F, g, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2),
    },
    doc="""Returns a copy of the input with another tensor in place of a diagonal.

    Args:
        src: The tensor, of the shape of the diagonal.
        offset: The diagonal, counted from the main one upwards. Default: 0.
        dim1, dim2: The dimensions of the matrices.

    Example:
        >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
        tensor([[1., 0.],
                [0., 1.]])

    See also:
        `torch.diagonal`.
    """,
    layout=memory_layout.like_first,
)


@composite(
    "as_strided_scatter(Tensor input, Tensor src, size, stride, storage_offset=None)",
    node_name="AsStridedScatterBackward0(input, src)",
)
def as_strided_scatter(F, input, src, size, stride, storage_offset):
    """Returns a copy of the input with another tensor in place of a strided view.

    Args:
        src: The tensor, of shape `size`.
        size: The sizes of the view.
        stride: Its strides, in elements.
        storage_offset: The position of its first element. Default: the input's.

    Example:
        >>> torch.as_strided_scatter(torch.zeros(4), torch.ones(2), (2,), (2,))
        tensor([1., 0., 1., 0.])

    See also:
        `torch.as_strided`.
    """
    out = input.clone()
    part = out.as_strided(size, stride, storage_offset)
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(part.shape)}"
        )
    part.copy_(src)
    return out


op(
    "_select_backward(Tensor grad, shape, dim, index)",
    where="",
    shape_fn=lambda grad, shape: (tuple(shape), grad.dtype),
    vjp={"grad": lambda F, g, dim, index: F.select(g, dim, index)},
)


@composite("unravel_index(Tensor indices, shape)", where="torch", out=Out(supported=False))
def unravel_index(F, indices, shape):
    """Converts flat indices to coordinates.

    Args:
        indices: The indices, int64, into the flattened array.
        shape: The shape of the array.

    Returns:
        A tuple with one tensor a dimension, each of the shape of `indices`.

    Example:
        >>> torch.unravel_index(torch.tensor(5), (2, 3))
        (tensor(1), tensor(2))
    """
    if indices.dtype.category != 1:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    elif not isinstance(shape, (tuple, list)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for n in shape:
        if not hasattr(n, "__index__") or isinstance(n, bool):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    shape = tuple(shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    coordinates, indices = [], F.to(indices, int64)
    for n in reversed(shape):
        coordinates.append(indices % n)
        indices = F.floor_divide(indices, n)
    return tuple(reversed(coordinates))
