"""Splitting tensors into parts, joining tensors, and broadcasting them to common shapes."""

from operator import index

from torchlite._dispatch import MODE, VIEW, Out, Overlap, call, composite, memory_layout, op
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._dispatch.node_names import saved_argument
from torchlite._dispatch.public_functions import torch
from torchlite._dispatch.shapes import broadcast_shapes, wrap_dim
from torchlite._types.dtypes import int64

from .node_graphs import at_least_graph, stacked_graph

# --- parts -----------------------------------------------------------------------

op(
    "select(Tensor input, dim, index)",
    tags=VIEW,
    vjp={"input": lambda F, g, input_shape, dim, index: F._select_backward(g, input_shape, dim, index)},
    doc="""Returns the slice at one index of a dimension, as a view without that dimension.

    Args:
        index: The index; negative values count from the end.

    Raises:
        IndexError: The index is out of range.

    Example:
        >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([3, 4])

    See also:
        `torch.index_select`.
    """,
)


def _zeros_if_none(F, g, like, shape):
    return F._new_zeros(like, shape) if g is None else g


def _split_vjp(F, g, input_shape, split_sizes, dim):
    like = next(x for x in g if x is not None)
    dim = dim % len(input_shape)
    return F.cat(
        [
            _zeros_if_none(F, x, like, (*input_shape[:dim], n, *input_shape[dim + 1 :]))
            for x, n in zip(g, split_sizes, strict=True)
        ],
        dim,
    )


def _split_node_name(node):
    """Equal parts, but for a smaller last one, are PyTorch's `split`."""
    sizes = saved_argument(node, "split_sizes") or ()
    return "SplitBackward0" if len(set(sizes[:-1])) < 2 and sizes[-1:] <= sizes[:1] else "SplitWithSizesBackward0"


def _unbind_vjp(F, g, input_shape, dim):
    like = next(x for x in g if x is not None)
    return F.stack([_zeros_if_none(F, x, like, like.shape) for x in g], dim)


op(
    "split_with_sizes(Tensor input, split_sizes, dim=0)",
    tags=VIEW,
    vjp={"input": _split_vjp},
    doc="""Returns consecutive parts of given sizes, as views.

    Args:
        split_sizes: The sizes, which add up to the size of `dim`.

    Returns:
        A tuple of tensors.

    Example:
        >>> torch.split_with_sizes(torch.tensor([1, 2, 3]), [1, 2])
        (tensor([1]), tensor([2, 3]))

    See also:
        `torch.split`.
    """,
    node_name=_split_node_name,
    multi_output=True,
)
op(
    "unbind(Tensor input, dim=0)",
    tags=VIEW,
    vjp={"input": _unbind_vjp},
    doc="""Returns the slices along a dimension, as views without that dimension.

    Returns:
        A tuple of tensors.

    Example:
        >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))

    See also:
        `torch.stack`, the inverse.
    """,
    multi_output=True,
)


@composite(
    "split(Tensor input, split_size_or_sections=None, dim=0, *, split_size=None)",
    kwarg_aliases={"tensor": "input"},
    out=Out(supported=False),
    keywords_from=2,
)
def split(F, input, split_size_or_sections, dim, split_size):
    """Returns parts of equal or given sizes, as views.

    Args:
        split_size_or_sections: The size of each part but the last, which may be smaller, or a list of sizes.
        split_size: The same by PyTorch's older name.

    Returns:
        A tuple of tensors.

    Raises:
        RuntimeError: The sizes do not add up to the size of `dim`.

    Example:
        >>> torch.split(torch.tensor([1, 2, 3]), 2)
        (tensor([1, 2]), tensor([3]))

    See also:
        `torch.chunk`, `torch.tensor_split`.
    """
    if split_size_or_sections is None:
        split_size_or_sections = split_size
    if not hasattr(split_size_or_sections, "__index__"):
        return F.split_with_sizes(input, tuple(split_size_or_sections), dim)
    if not input.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    size, step = input.shape[wrap_dim(dim, input.ndim)], int(split_size_or_sections)
    if step < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
    if step == 0:
        if size:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
        return F.split_with_sizes(input, (0,), dim)
    count = max((size + step - 1) // step, 1)
    return F.split_with_sizes(input, (step,) * (count - 1) + (size - step * (count - 1),), dim)


@composite(
    "chunk(Tensor input, chunks, dim=0)",
    node_name=lambda call: f"Split{'' if call['input'][0][call['dim']] else 'WithSizes'}Backward0(input)",
)
def chunk(F, input, chunks, dim):
    """Returns at most `chunks` parts of equal size, as views.

    The last part may be smaller, and there may be fewer parts than asked for.

    Args:
        chunks: The number of parts.

    Returns:
        A tuple of tensors.

    Example:
        >>> torch.chunk(torch.tensor([1, 2, 3]), 2)
        (tensor([1, 2]), tensor([3]))

    See also:
        `torch.tensor_split`, which returns exactly as many parts.
    """
    if not input.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = input.shape[wrap_dim(dim, input.ndim)]
    step = (size + chunks - 1) // chunks
    if not step:
        return F.split_with_sizes(input, (0,) * chunks, dim)
    count = (size + step - 1) // step
    return F.split_with_sizes(input, (step,) * (count - 1) + (size - step * (count - 1),), dim)


def _drop_view_relation(parts):
    """Drop the parts' view relation to the input, as PyTorch's unsafe_split and unsafe_chunk do."""
    for part in parts:
        twin = CALLBACKS.copy_tangents(part, part.detach()) if MODE.forwards else None
        part._tl_meta = None
        if twin is not None:
            CALLBACKS.copy_tangents(twin, part)
    return parts


# {function: parameters, argument, description, an example}
_UNSAFE = {
    "split": (
        "split_size, dim=0",
        "split_size: The size of each part but the last.",
        ">>> torch.unsafe_split(torch.tensor([1, 2, 3]), 2)\n    (tensor([1, 2]), tensor([3]))",
    ),
    "split_with_sizes": (
        "split_sizes, dim=0",
        "split_sizes: The sizes, which add up to the size of `dim`.",
        ">>> torch.unsafe_split_with_sizes(torch.tensor([1, 2, 3]), [1, 2])\n    (tensor([1]), tensor([2, 3]))",
    ),
    "chunk": (
        "chunks, dim=0",
        "chunks: The number of parts.",
        ">>> torch.unsafe_chunk(torch.tensor([1, 2, 3]), 2)\n    (tensor([1, 2]), tensor([3]))",
    ),
}
for _name, (_rest, _argument, _example) in _UNSAFE.items():

    def _split_unsafely(F, input, sizes, dim, name=_name):
        return _drop_view_relation(getattr(F, name)(input, sizes, dim))

    _split_unsafely.__doc__ = (
        f"Returns the parts that `{_name}` returns, without a record that they share memory.\n\n"
        f"A write in place to a part does not change the others' gradients.\n\n"
        f"Args:\n    {_argument}\n\nReturns:\n    A tuple of tensors.\n\nExample:\n    {_example}\n\nSee also:\n"
        f"    `torch.{_name}`."
    )
    composite(f"unsafe_{_name}(Tensor input, {_rest})")(_split_unsafely)


def _parse_split_positions(where):
    """The number of parts, or the indices to split at, also from a tensor. TypeError for other values, for the parser's
    error message.
    """
    if isinstance(where, call.Tensor):
        if where.dtype is not int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{where.dtype.scalar_name}"
            )
        if where.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                f"but got a tensor with {where.ndim} dims"
            )
        return where.tolist()
    return [index(place) for place in where] if isinstance(where, (tuple, list)) else index(where)


@composite(
    "tensor_split(Tensor input, indices_or_sections=None, dim=0, *, indices=None, sections=None, "
    "tensor_indices_or_sections=None)"
)
def tensor_split(F, input, indices_or_sections, dim, indices, sections, tensor_indices_or_sections):
    """Returns parts by their number or by indices, as views.

    A number of parts need not divide the size: the sizes of parts differ by one at most.

    Args:
        indices_or_sections: The number of parts, or the indices before which the input is split; also a tensor of
            these.
        indices: The indices alone.
        sections: The number alone.
        tensor_indices_or_sections: The tensor alone.

    Returns:
        A tuple of tensors.

    Example:
        >>> torch.tensor_split(torch.tensor([1, 2, 3]), 2)
        (tensor([1, 2]), tensor([3]))
        >>> torch.tensor_split(torch.tensor([1, 2, 3]), (1,))
        (tensor([1]), tensor([2, 3]))

    See also:
        `numpy.array_split`.
    """
    given = (indices_or_sections, indices, sections, tensor_indices_or_sections)
    where = _parse_split_positions(next((one for one in given if one is not None), None))
    if not input.ndim:
        raise RuntimeError(
            f"tensor_split expected at least a 1-dimensional tensor, but got a tensor with {input.ndim} dims"
        )
    size = input.shape[wrap_dim(dim, input.ndim)]
    if isinstance(where, int):
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        least, extra = divmod(size, where)
        where = [i * least + min(i, extra) for i in range(1, where)]
    edges = [slice(None, i).indices(size)[1] for i in where]
    return tuple(F._slice(input, dim, a, max(a, b), 1) for a, b in zip([0, *edges], [*edges, size], strict=True))


def _split_evenly(F, name, input, where, dim, least):
    if input.ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {input.ndim} "
            "dimensions!"
        )
    if isinstance(where, call.Tensor):
        raise TypeError("a number or numbers")
    if isinstance(where, int):
        if not where or input.shape[dim] % where:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension "
                f"{input.shape[dim]} is not divisible by the split_size {where}!"
            )
    return F.tensor_split(input, where, dim)


@composite("hsplit(Tensor input, indices_or_sections)")
def hsplit(F, input, indices_or_sections):
    """Splits the input along its second dimension, or the only one of a 1-d tensor.

    Args:
        indices_or_sections: The number of parts, which divides the size, or the indices before which the input is
            split.

    Returns:
        A tuple of views.

    Example:
        >>> torch.hsplit(torch.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1],
                [3]]), tensor([[2],
                [4]]))

    See also:
        `torch.tensor_split`.
    """
    return _split_evenly(F, "hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1, 1)


@composite("vsplit(Tensor input, indices_or_sections)")
def vsplit(F, input, indices_or_sections):
    """Splits the input along its first dimension.

    Args:
        indices_or_sections: The number of parts, which divides the size, or the indices before which the input is
            split.

    Returns:
        A tuple of views.

    Example:
        >>> torch.vsplit(torch.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1, 2]]), tensor([[3, 4]]))

    See also:
        `torch.tensor_split`.
    """
    return _split_evenly(F, "vsplit", input, indices_or_sections, 0, 2)


@composite("dsplit(Tensor input, indices_or_sections)")
def dsplit(F, input, indices_or_sections):
    """Splits the input along its third dimension.

    Args:
        indices_or_sections: The number of parts, which divides the size, or the indices before which the input is
            split.

    Returns:
        A tuple of views.

    Example:
        >>> torch.dsplit(torch.zeros(1, 1, 4), 2)
        (tensor([[[0., 0.]]]), tensor([[[0., 0.]]]))

    See also:
        `torch.tensor_split`.
    """
    return _split_evenly(F, "dsplit", input, indices_or_sections, 2, 3)


# --- joining ------------------------------------------------------------------------


def _stack_rule(tensors, dim):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tuple(tensors[0].shape)
    for i, t in enumerate(tensors):
        if tuple(t.shape) != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and {list(t.shape)} "
                f"at entry {i}"
            )
    at = wrap_dim(dim, len(first) + 1)
    return (*first[:at], len(tensors), *first[at:]), tensors[0].dtype


op(
    "stack(Tensor[] tensors, dim=0)",
    where="torch",
    promote="default",
    shape_fn=_stack_rule,
    vjp={"tensors": lambda F, g, dim: [F.select(g, dim, i) for i in range(g.shape[dim])]},
    doc="""Joins tensors of one shape along a new dimension.

    Args:
        tensors: The tensors; dtypes are promoted.

    Raises:
        RuntimeError: The shapes differ, or the list is empty.

    Example:
        >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], 1)
        tensor([[1, 3],
                [2, 4]])

    See also:
        `torch.cat`, which joins along an existing dimension.
    """,
    layout=memory_layout.stack,
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
)


def _to_1d(t):
    return t if t.ndim else t.reshape(1)


def _to_2d(t):
    return t if t.ndim > 1 else t.reshape(1, -1)


def _to_3d(t):
    return t if t.ndim > 2 else t.unsqueeze(-1) if t.ndim == 2 else t.reshape(1, -1, 1)


def _apply_to_each_tensor(change, tensors):
    return change(tensors[0]) if len(tensors) == 1 else tuple(change(t) for t in tensors)


@composite("atleast_1d(*tensors)", where="torch", out=Out(supported=False))
def atleast_1d(F, tensors):
    """Returns tensors with at least one dimension, as views.

    Args:
        tensors: The tensors, each an argument, or one sequence of them.

    Returns:
        A tensor for one tensor, else a tuple.

    Example:
        >>> torch.atleast_1d(torch.tensor(1))
        tensor([1])
    """
    return _apply_to_each_tensor(_to_1d, tensors)


@composite("atleast_2d(*tensors)", where="torch", out=Out(supported=False), node_name=at_least_graph(2))
def atleast_2d(F, tensors):
    """Returns tensors with at least two dimensions, as views; new dimensions come first.

    Args:
        tensors: The tensors, each an argument, or one sequence of them.

    Returns:
        A tensor for one tensor, else a tuple.

    Example:
        >>> torch.atleast_2d(torch.tensor([1, 2]))
        tensor([[1, 2]])
    """
    return _apply_to_each_tensor(_to_2d, tensors)


@composite("atleast_3d(*tensors)", where="torch", out=Out(supported=False), node_name=at_least_graph(3))
def atleast_3d(F, tensors):
    """Returns tensors with at least three dimensions, as views; a matrix gets the new one last.

    Args:
        tensors: The tensors, each an argument, or one sequence of them.

    Returns:
        A tensor for one tensor, else a tuple.

    Example:
        >>> torch.atleast_3d(torch.tensor([[1, 2]])).shape
        torch.Size([1, 2, 1])
    """
    return _apply_to_each_tensor(_to_3d, tensors)


def _reshape_each_for_stack(name, tensors, ndim, reshaped):
    """The tensors of a list, those of fewer dimensions as a function reshapes each. RuntimeError for an empty list."""
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    if [t for t in tensors if t.ndim < ndim]:
        return [t if t.ndim >= ndim else reshaped(t) for t in tensors]
    return tensors


@composite(
    "hstack(Tensor[] tensors)",
    where="torch",
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
)
def hstack(F, tensors):
    """Joins tensors along the second dimension, or the only one of 1-d tensors.

    Args:
        tensors: The tensors; dtypes are promoted.

    Example:
        >>> torch.hstack([torch.tensor([1, 2]), torch.tensor([3])])
        tensor([1, 2, 3])

    See also:
        `torch.cat`.
    """
    tensors = _reshape_each_for_stack("hstack", tensors, 1, _to_1d)
    return F.cat(tensors, 0 if tensors[0].ndim == 1 else 1)


@composite(
    "vstack(Tensor[] tensors)",
    where="torch",
    alias="row_stack",
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
    node_name=stacked_graph(2),
)
def vstack(F, tensors):
    """Joins tensors along the first dimension; 1-d tensors are rows.

    Args:
        tensors: The tensors; dtypes are promoted.

    Example:
        >>> torch.vstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])

    See also:
        `torch.cat`, `torch.stack`.
    """
    if tensors and tensors[0].ndim == 1 and len({t.shape for t in tensors}) == 1:
        return F.stack(tensors, 0)  # without a view of each
    return F.cat(_reshape_each_for_stack("vstack", tensors, 2, _to_2d), 0)


@composite(
    "dstack(Tensor[] tensors)",
    where="torch",
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
    node_name=stacked_graph(3),
)
def dstack(F, tensors):
    """Joins tensors along the third dimension.

    Args:
        tensors: The tensors; dtypes are promoted.

    Example:
        >>> torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
        tensor([[[1, 3],
                 [2, 4]]])

    See also:
        `torch.cat`, `torch.stack`.
    """
    return F.cat(_reshape_each_for_stack("dstack", tensors, 3, _to_3d), 2)


@composite(
    "column_stack(Tensor[] tensors)",
    where="torch",
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
)
def column_stack(F, tensors):
    """Joins tensors along the second dimension; 1-d tensors are columns.

    Args:
        tensors: The tensors; dtypes are promoted.

    Example:
        >>> torch.column_stack([torch.tensor([1, 2]), torch.tensor([3, 4])])
        tensor([[1, 3],
                [2, 4]])

    See also:
        `torch.hstack`.
    """
    return F.cat(_reshape_each_for_stack("column_stack", tensors, 2, lambda t: t.reshape(-1, 1)), 1)


@composite("block_diag(*tensors)", where="torch", out=Out(supported=False), node_name="BlockDiagBackward0(tensors)")
def block_diag(F, tensors):
    """Returns a matrix with the given ones along its diagonal and zeros elsewhere.

    Args:
        tensors: Tensors of at most two dimensions; numbers and 1-d tensors are rows.

    Example:
        >>> torch.block_diag(torch.tensor([1, 2]), torch.tensor([[3]]))
        tensor([[1, 2, 0],
                [0, 0, 3]])
    """
    blocks = []
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.ndim} dimensions"
            )
        blocks.append(t.reshape(1, -1) if t.ndim < 2 else t)
    if not blocks:
        return torch.zeros((1, 0))
    width, before, rows = sum(b.shape[1] for b in blocks), 0, []
    for b in blocks:
        height, own = b.shape
        rows.append(F.cat([F._new_zeros(b, (height, before)), b, F._new_zeros(b, (height, width - before - own))], 1))
        before += own
    return F.cat(rows, 0)


@composite(
    "broadcast_to(Tensor input, *size)", kwarg_aliases={"shape": "size"}, array_api_first=True, varargs_required=True
)
def broadcast_to(F, input, size):
    """Returns a view of the input broadcast to a shape.

    Args:
        size: The sizes, as integers or as one sequence.

    Raises:
        RuntimeError: The shape does not broadcast.

    Example:
        >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])

    See also:
        `torch.Tensor.expand`.
    """
    return input.expand(tuple(size))


@composite("broadcast_tensors(*tensors)", where="torch", out=Out(supported=False))
def broadcast_tensors(F, tensors):
    """Returns views of the tensors broadcast to their common shape.

    Args:
        tensors: The tensors, each an argument, or one sequence of them.

    Returns:
        A tuple of tensors.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> torch.broadcast_tensors(torch.tensor([1, 2]), torch.tensor([[3]]))
        (tensor([[1, 2]]), tensor([[3, 3]]))
    """
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t if t.shape == shape else t.expand(shape) for t in tensors)


@composite("expand_as(Tensor input, Tensor other)", where="Tensor")
def expand_as(F, input, other):
    """Returns a view of the input expanded to the shape of another tensor.

    Args:
        other: The tensor whose shape the result has.

    Example:
        >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
        tensor([[1, 2],
                [1, 2]])

    See also:
        `torch.Tensor.expand`.
    """
    return input.expand(other.shape)


@composite("view_as(Tensor input, Tensor other)", where="Tensor")
def view_as(F, input, other):
    """Returns a view of the input with the shape of another tensor.

    Args:
        other: The tensor whose shape the result has.

    Example:
        >>> torch.tensor([1, 2]).view_as(torch.zeros(2, 1))
        tensor([[1],
                [2]])

    See also:
        `torch.Tensor.view`.
    """
    return input.view(other.shape)


@composite("reshape_as(Tensor input, Tensor other)", where="Tensor")
def reshape_as(F, input, other):
    """Returns the elements in the shape of another tensor.

    Args:
        other: The tensor whose shape the result has.

    Example:
        >>> torch.tensor([1, 2]).reshape_as(torch.zeros(2, 1))
        tensor([[1],
                [2]])

    See also:
        `torch.reshape`.
    """
    return input.reshape(other.shape)


# --- chunks ----------------------------------------------------------------------------------


def _check_chunks(tensors, dim, num_chunks):
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if any(not t.numel() for t in tensors):
        raise RuntimeError("_chunk_cat expects non-empty tensor")
    if dim < 0 and any(t.ndim != tensors[0].ndim for t in tensors):
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    if any(dim >= t.ndim for t in tensors):
        raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
    if any(t.shape[:dim] != tensors[0].shape[:dim] for t in tensors):
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")


@composite("_chunk_cat(Tensor[] tensors, dim, num_chunks)", where="torch")
def _chunk_cat(F, tensors, dim, num_chunks):
    """Each tensor filled up with zeros along `dim` and cut there into `num_chunks`, whose elements lie in a row; the
    rows of all tensors joined.
    """
    _check_chunks(tensors, dim, num_chunks)
    dim = wrap_dim(dim, tensors[0].ndim)
    rows = []
    for t in tensors:
        missing = -t.shape[dim] % num_chunks
        if missing:
            t = F.cat([t, F._new_zeros(t, (*t.shape[:dim], missing, *t.shape[dim + 1 :]))], dim)
        rows.append(t.reshape(*t.shape[:dim], num_chunks, -1))
    return F.cat(rows, dim + 1)
