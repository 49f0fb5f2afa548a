"""Selecting, splitting, joining, rearranging and repeating: the shape ops beyond the primitive views.

Most are composites of views, so they share memory with their input where PyTorch's do.
"""

from operator import index

from torchlite._dispatch import (
    INPLACE,
    KEEPS_DTYPE,
    MODE,
    NONDIFF,
    VIEW,
    Out,
    Overlap,
    call,
    composite,
    memory_layout,
    op,
)
from torchlite._dispatch.callbacks import CALLBACKS
from torchlite._dispatch.node_names import saved_argument
from torchlite._dispatch.public_functions import torch
from torchlite._dispatch.shapes import broadcast_shapes, wrap_dim
from torchlite._types.dtypes import int64
from torchlite._types.layouts import contiguous_format

# --- parts -----------------------------------------------------------------------

op(
    "select(Tensor input, dim, index)",
    tags=VIEW,
    vjp={"input": lambda F, g, input_shape, dim, index: F._select_backward(g, input_shape, dim, index)},
    doc="""The slice `index` along `dim`, as a view without that dimension.

    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
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
    doc="""Consecutive parts of the given sizes along `dim`, as views.""",
    node_name=_split_node_name,
    multi_output=True,
)
op(
    "unbind(Tensor input, dim=0)",
    tags=VIEW,
    vjp={"input": _unbind_vjp},
    doc="""The slices along `dim`, as views without that dimension.""",
    multi_output=True,
)


@composite(
    "split(Tensor input, split_size_or_sections=None, dim=0, *, split_size=None)",
    out=Out(supported=False),
    keywords_from=2,
)
def split(F, input, split_size_or_sections, dim, split_size):
    """Parts of `split_size` (the last may be smaller), or of the listed sizes, along `dim`, as views.

    >>> [p.tolist() for p in torch.split(torch.tensor([1, 2, 3]), 2)]
    [[1, 2], [3]]
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


@composite("chunk(Tensor input, chunks, dim=0)")
def chunk(F, input, chunks, dim):
    """`input` cut into (at most) `chunks` equal parts along `dim`, the last perhaps smaller, as views.

    >>> [p.tolist() for p in torch.chunk(torch.tensor([1, 2, 3]), 2)]
    [[1, 2], [3]]
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


for _name, _rest in (
    ("split", "split_size, dim=0"), ("split_with_sizes", "split_sizes, dim=0"), ("chunk", "chunks, dim=0"),
):  # fmt: skip

    def _split_unsafely(F, input, sizes, dim, name=_name):
        return _drop_view_relation(getattr(F, name)(input, sizes, dim))

    _split_unsafely.__doc__ = f"`{_name}`, whose parts may be written to; gradients do not know that they share memory."
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
    """`input` cut along `dim` into a number of parts that differ by one at most, or before each of the given indices,
    as views.
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
    """`tensor_split` along the second dimension (the first of a vector); a number of parts must divide its size."""
    return _split_evenly(F, "hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1, 1)


@composite("vsplit(Tensor input, indices_or_sections)")
def vsplit(F, input, indices_or_sections):
    """`tensor_split` along the first dimension; a number of parts must divide its size."""
    return _split_evenly(F, "vsplit", input, indices_or_sections, 0, 2)


@composite("dsplit(Tensor input, indices_or_sections)")
def dsplit(F, input, indices_or_sections):
    """`tensor_split` along the third dimension; a number of parts must divide its size."""
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
    doc="""Tensors of one shape put side by side along a new dimension `dim`. RuntimeError for different shapes.

    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], 1)
    tensor([[1, 3],
            [2, 4]])
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
    """Each tensor with at least one dimension."""
    return _apply_to_each_tensor(_to_1d, tensors)


@composite("atleast_2d(*tensors)", where="torch", out=Out(supported=False))
def atleast_2d(F, tensors):
    """Each tensor with at least two dimensions; new dimensions are leading ones."""
    return _apply_to_each_tensor(_to_2d, tensors)


@composite("atleast_3d(*tensors)", where="torch", out=Out(supported=False))
def atleast_3d(F, tensors):
    """Each tensor with at least three dimensions; a matrix gets the new one last."""
    return _apply_to_each_tensor(_to_3d, tensors)


def _reshape_each_for_stack(name, tensors, reshaped):
    """The tensors of a list as a function reshapes each. RuntimeError for none."""
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return [reshaped(t) for t in tensors]


@composite(
    "hstack(Tensor[] tensors)",
    where="torch",
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
)
def hstack(F, tensors):
    """Tensors joined along the second dimension, vectors along the first."""
    tensors = _reshape_each_for_stack("hstack", tensors, _to_1d)
    return F.cat(tensors, 0 if tensors and tensors[0].ndim == 1 else 1)


@composite(
    "vstack(Tensor[] tensors)",
    where="torch",
    alias="row_stack",
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
)
def vstack(F, tensors):
    """Tensors joined along the first dimension, vectors as rows."""
    return F.cat(_reshape_each_for_stack("vstack", tensors, _to_2d), 0)


@composite(
    "dstack(Tensor[] tensors)",
    where="torch",
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
)
def dstack(F, tensors):
    """Tensors joined along the third dimension."""
    return F.cat(_reshape_each_for_stack("dstack", tensors, _to_3d), 2)


@composite(
    "column_stack(Tensor[] tensors)",
    where="torch",
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
)
def column_stack(F, tensors):
    """Tensors joined along the second dimension, vectors as columns."""
    return F.cat(_reshape_each_for_stack("column_stack", tensors, lambda t: t.reshape(-1, 1) if t.ndim < 2 else t), 1)


@composite("block_diag(*tensors)", where="torch", out=Out(supported=False))
def block_diag(F, tensors):
    """A matrix with the given matrices (numbers, vectors as rows) along its diagonal and zeros elsewhere."""
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


@composite("broadcast_to(Tensor input, *size)", kwarg_aliases={"shape": "size"}, array_api_first=True)
def broadcast_to(F, input, size):
    """`input` expanded to `size` by broadcasting, as a view."""
    return input.expand(tuple(size))


@composite("broadcast_tensors(*tensors)", where="torch", out=Out(supported=False))
def broadcast_tensors(F, tensors):
    """The tensors expanded to their common shape, as views."""
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t if t.shape == shape else t.expand(shape) for t in tensors)


@composite("expand_as(Tensor input, Tensor other)", where="Tensor")
def expand_as(F, input, other):
    """`input` expanded to `other`'s shape, as a view."""
    return input.expand(other.shape)


@composite("view_as(Tensor input, Tensor other)", where="Tensor")
def view_as(F, input, other):
    """`input` viewed with `other`'s shape."""
    return input.view(other.shape)


@composite("reshape_as(Tensor input, Tensor other)", where="Tensor")
def reshape_as(F, input, other):
    """`input` reshaped to `other`'s shape."""
    return input.reshape(other.shape)


# --- other orders of dimensions ------------------------------------------------------------


@composite("movedim(Tensor input, source, destination)", alias="moveaxis")
def movedim(F, input, source, destination):
    """`input` with the dimensions `source` (an int or several) at the places `destination`, the others in their order,
    as a view.

    >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
    torch.Size([3, 4, 2])
    """
    source = [source] if isinstance(source, int) else list(source)
    destination = [destination] if isinstance(destination, int) else list(destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({source} dims) should contain the same number of "
            f"dims as destination ({destination} dims)"
        )
    ndim = input.ndim
    given = source, destination
    source, destination = [wrap_dim(d, ndim) for d in source], [wrap_dim(d, ndim) for d in destination]
    for name, dims, said in zip(("source", "destination"), (source, destination), given, strict=True):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({said})")
    if not ndim:
        return F.alias(input)
    order, rest = [-1] * ndim, iter(d for d in range(ndim) if d not in source)
    for s, d in zip(source, destination, strict=True):
        order[d] = s
    return F.permute(input, tuple(next(rest) if d == -1 else d for d in order))


def _t_rule(input):
    if len(input.shape) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(input.shape)}D")
    return tuple(reversed(input.shape)), input.dtype


def _t(F, input):
    if input.ndim > 2:
        _t_rule(input)
    return F.permute(input, tuple(reversed(range(input.ndim))))


op(
    "t(Tensor input)",
    tags=VIEW | KEEPS_DTYPE,
    composite=_t,
    shape_fn=_t_rule,
    vjp={"input": lambda F, g: F.t(g)},
    doc="The transpose of a matrix, as a view; a vector or a number itself.",
)


@composite("adjoint(Tensor input)")
def adjoint(F, input):
    """The conjugate transpose of the last two dimensions."""
    if input.ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor."
        )
    turned = F.transpose(input, -2, -1)
    return F._conj(turned)


@composite("flatten(Tensor input, start_dim=0, end_dim=-1)")
def flatten(F, input, start_dim, end_dim):
    """`input` with the dimensions `start_dim` to `end_dim` flattened to one.

    >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
    torch.Size([2, 12])
    """
    first, last = wrap_dim(start_dim, input.ndim), wrap_dim(end_dim, input.ndim)
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not input.ndim:
        return input.reshape(1)
    if first == last:
        return input
    shape = tuple(input.shape)
    count = 1
    for n in shape[first : last + 1]:
        count *= n
    return F.reshape(input, shape[:first] + (count,) + shape[last + 1 :])


@composite("unflatten(Tensor input, dim, sizes)")
def unflatten(F, input, dim, sizes):
    """`input` with the dimension `dim` expanded to several of the given `sizes` (one may be -1)."""
    dim = wrap_dim(dim, input.ndim)
    shape, sizes = tuple(input.shape), tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if sizes.count(-1) > 1:
        raise RuntimeError("unflatten got an unexpected error:\nonly one dimension can be inferred")
    known = 1
    for n in sizes:
        known *= n if n != -1 else 1
    fits = known == shape[dim] if -1 not in sizes else known and shape[dim] % known == 0
    if not fits:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in "
            "the input tensor"
        )
    return input.view(shape[:dim] + tuple(shape[dim] // known if n == -1 else n for n in sizes) + shape[dim + 1 :])


@composite("ravel(Tensor input)")
def ravel(F, input):
    """All elements as a vector; a view where memory allows."""
    return input.contiguous().view(-1)


@composite("rot90(Tensor input, k=1, dims=(0, 1))")
def rot90(F, input, k, dims):
    """`input` turned by `k` quarter turns in the plane of two dimensions, from the first towards the second."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    for d in dims:
        wrap_dim(d, input.ndim)
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == input.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    first, second = (wrap_dim(d, input.ndim) for d in dims)
    k %= 4
    if k == 0:
        return input.clone(memory_format=contiguous_format)
    if k == 2:
        return F.flip(input, (first, second))
    return F.transpose(F.flip(input, (second if k == 1 else first,)), first, second)


@composite("fliplr(Tensor input)")
def fliplr(F, input):
    """`input` with its second dimension reversed."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return F.flip(input, (1,))


@composite("flipud(Tensor input)")
def flipud(F, input):
    """`input` with its first dimension reversed."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return F.flip(input, (0,))


def _negate_shifts(shifts):
    return -shifts if isinstance(shifts, int) else tuple(-s for s in shifts)


op(
    "roll(Tensor input, shifts, dims=())",
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={"input": lambda F, g, shifts, dims: F.roll(g, _negate_shifts(shifts), dims)},
    doc="""`input` with elements moved on by `shifts` along `dims` (along the flattened elements without any); what
    falls off the end comes in at the
   front.

    >>> torch.roll(torch.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """,
    layout=memory_layout.suggest_memory_format,
    kwarg_aliases={"shift": "shifts", "axis": "dims"},
    array_api_first=True,
)

# --- repetition -----------------------------------------------------------------------------


def _repeat_rule(input, repeats):
    if len(repeats) < len(input.shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * (len(repeats) - len(input.shape)) + tuple(input.shape)
    return tuple(r * n for r, n in zip(repeats, shape, strict=True)), input.dtype


def _repeat_vjp(F, g, input_shape, repeats):
    shape = (1,) * (len(repeats) - len(input_shape)) + tuple(input_shape)
    if not repeats:
        return g
    wide = tuple(n for pair in zip(repeats, shape, strict=True) for n in pair)
    return F.reshape(F.sum(F.reshape(g, wide), tuple(range(0, len(wide), 2)), False), input_shape)


op(
    "repeat(Tensor input, *repeats)",
    where="Tensor",
    shape_fn=_repeat_rule,
    vjp={"input": _repeat_vjp},
    doc="""`input` repeated so many times along each dimension; new dimensions come first.

    >>> torch.tensor([1, 2]).repeat(2)
    tensor([1, 2, 1, 2])
    """,
    layout=memory_layout.contiguous,
    varargs_required=True,
)


@composite("tile(Tensor input, *dims)", layout=memory_layout.contiguous, varargs_required=True)
def tile(F, input, dims):
    """`input` repeated along each dimension, missing counts (at the front) taken as one."""
    return F.repeat(input, (1,) * (input.ndim - len(dims)) + tuple(dims))


# --- diagonals and triangles ------------------------------------------------------------------

op(
    "diagonal(Tensor input, offset=0, dim1=0, dim2=1)",
    tags=VIEW,
    vjp={
        "input": lambda F, g, input_shape, offset, dim1, dim2: F._diagonal_backward(g, input_shape, offset, dim1, dim2)
    },
    doc="""The diagonal of the plane of `dim1` and `dim2` as a view, with the diagonal as the last dimension; `offset`
    counts diagonals above it.

    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """,
)
op(
    "_diagonal_backward(Tensor grad, shape, offset, dim1, dim2)",
    where="",
    shape_fn=lambda grad, shape: (tuple(shape), grad.dtype),
    vjp={"grad": lambda F, g, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2)},
)


def _embed_rule(input, offset, dim1, dim2):
    ndim = len(input.shape) + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size, rest = input.shape[-1] + abs(offset), iter(input.shape[:-1])
    return tuple(size if d in (first, second) else next(rest) for d in range(ndim)), input.dtype


op(
    "diag_embed(Tensor input, offset=0, dim1=-2, dim2=-1)",
    shape_fn=_embed_rule,
    vjp={"input": lambda F, g, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2)},
    doc="""Matrices (in the plane of `dim1` and `dim2`) with the last dimension of `input` on a diagonal and zeros
    elsewhere.

    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """,
)


@composite(
    "diag(Tensor input, diagonal=0)",
    layout=memory_layout.contiguous,
    out=Out("same"),
    overlap=Overlap(operands="partial"),
)
def diag(F, input, diagonal):
    """For a vector, the matrix with it on a diagonal; for a matrix, a diagonal as a vector.

    >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    if input.ndim == 1:
        return F.diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return F.diagonal(input, diagonal).clone()


@composite("diagflat(Tensor input, offset=0)")
def diagflat(F, input, offset):
    """The matrix with the elements of `input` on a diagonal."""
    return F.diag_embed(input.reshape(-1), offset)


@composite("trace(Tensor input)")
def trace(F, input):
    """The sum of a matrix's diagonal."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return F.sum(F.diagonal(input))


def _triangle_rule(name):
    def rule(input, diagonal):
        if len(input.shape) < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return input.shape, input.dtype

    return rule


op(
    "tril(Tensor input, diagonal=0)",
    tags=INPLACE,
    shape_fn=_triangle_rule("tril"),
    vjp={"input": lambda F, g, diagonal: F.tril(g, diagonal)},
    doc="""The lower triangle of the last two dimensions, up to the given diagonal, with zeros above it.""",
    layout=memory_layout.contiguous,
    out=Out("same"),
    overlap=Overlap("allowed", "partial"),
    kwarg_aliases={"k": "diagonal"},
)
op(
    "triu(Tensor input, diagonal=0)",
    tags=INPLACE,
    shape_fn=_triangle_rule("triu"),
    vjp={"input": lambda F, g, diagonal: F.triu(g, diagonal)},
    doc="""The upper triangle of the last two dimensions, from the given diagonal, with zeros below it.""",
    layout=memory_layout.contiguous,
    out=Out("same"),
    overlap=Overlap("allowed", "partial"),
    kwarg_aliases={"k": "diagonal"},
)

# --- windows and bits --------------------------------------------------------------------------

op(
    "unfold(Tensor input, dimension, size, step)",
    where="Tensor",
    tags=VIEW,
    vjp={
        "input": lambda F, g, input_shape, dimension, size, step: F._unfold_backward(
            g, input_shape, dimension, size, step
        )
    },
    doc="""All windows of `size` along `dimension`, `step` apart, as a view with the window as a new last dimension.

    >>> torch.tensor([1, 2, 3]).unfold(0, 2, 1)
    tensor([[1, 2],
            [2, 3]])
    """,
)
op(
    "_unfold_backward(Tensor grad, shape, dim, size, step)",
    where="",
    shape_fn=lambda grad, shape: (tuple(shape), grad.dtype),
    vjp={"grad": lambda F, g, dim, size, step: F.unfold(g, dim, size, step)},
)
op(
    "view_as_real(Tensor input)",
    where="torch",
    tags=VIEW,
    vjp={"input": lambda F, g: F.view_as_complex(F.contiguous(g))},
    doc="""A complex tensor as a real view with a last dimension of two: real and imaginary part.""",
)
op(
    "view_as_complex(Tensor input)",
    where="torch",
    tags=VIEW,
    vjp={"input": lambda F, g: F.view_as_real(g)},
    doc="""A real tensor with a last dimension of two (real and imaginary part) as a complex view.""",
)
op("_view_dtype(Tensor input, dtype)", where="", tags=VIEW | NONDIFF)

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


# --- copies of views -----------------------------------------------------------------------------


def _make_copy_variant(name, schema):
    kept = name in ("view_as_real", "view_as_complex", "select")  # these lie as the view

    def call_and_clone(F, input, *args):
        return getattr(F, name)(input, *args).clone()

    call_and_clone.__doc__ = f"A copy of what `{name.lstrip('_')}` gives."
    composite(
        f"{name.lstrip('_')}_copy(Tensor input{schema})",
        where="torch",
        layout=None if kept else memory_layout.contiguous,
        out=Out("same"),
        overlap=Overlap(operands="" if kept or name == "_slice" else "partial"),
    )(call_and_clone)


for _name, _schema in {
    "expand": ", size",
    "diagonal": ", offset=0, dim1=0, dim2=1",
    "as_strided": ", size, stride, storage_offset=None",
    "permute": ", dims",
    "squeeze": ", dim=None",
    "unsqueeze": ", dim",
    "transpose": ", dim0, dim1",
    "select": ", dim, index",
    "_slice": ", dim=0, start=None, end=None, step=1",
    "unfold": ", dimension, size, step",
    "view": ", size",
    "t": "",
    "alias": "",
    "view_as_real": "",
    "view_as_complex": "",
}.items():
    _make_copy_variant(_name, _schema)


@composite("narrow_copy(Tensor input, dim, start, length)", where="torch Tensor", layout=memory_layout.contiguous)
def narrow_copy(F, input, dim, start, length):
    """A copy of the `length` entries of a dimension from `start` on.

    >>> torch.narrow_copy(torch.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    if dim >= input.ndim > 0:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if input.ndim and length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({input.shape[dim]}).")
    return F.narrow(input, dim, start, length).clone()


@composite("unbind_copy(Tensor input, dim=0)", where="torch", layout=memory_layout.contiguous, out=Out("same"))
def unbind_copy(F, input, dim):
    """Copies of the slices along `dim`."""
    return tuple(t.clone() for t in F.unbind(input, dim))


@composite(
    "split_with_sizes_copy(Tensor input, split_sizes, dim=0)",
    where="torch",
    layout=memory_layout.contiguous,
    out=Out("same"),
)
def split_with_sizes_copy(F, input, split_sizes, dim):
    """Copies of consecutive parts of the given sizes along `dim`."""
    return tuple(t.clone() for t in F.split_with_sizes(input, tuple(split_sizes), dim))


@composite("split_copy(Tensor input, split_size, dim=0)", where="torch", layout=memory_layout.contiguous)
def split_copy(F, input, split_size, dim):
    """Copies of parts of `split_size`, or of the listed sizes, along `dim`."""
    return tuple(t.clone() for t in F.split(input, split_size, dim))
