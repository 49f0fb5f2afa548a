"""Rearranging, repeating, diagonals and windows: the shape ops beyond the primitive views.

Most are composites of views, so they share memory with their input where PyTorch's do.
"""

import operator
import warnings

from torchlite._dispatch import INPLACE, KEEPS_DTYPE, NONDIFF, VIEW, Out, Overlap, composite, memory_layout, op
from torchlite._dispatch.shape_and_value_checks import check_trace
from torchlite._dispatch.shapes import wrap_dim
from torchlite._types.dtypes import BOOL, int64
from torchlite._types.layouts import contiguous_format

from ._dtype_checks import refuse_floats

# --- other orders of dimensions ------------------------------------------------------------


@composite("movedim(Tensor input, source, destination)", alias="moveaxis")
def movedim(F, input, source, destination):
    """Returns a view with dimensions at other positions; the others keep their order.

    Args:
        source: The dimension, or several.
        destination: Its new position, or theirs.

    Example:
        >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
        torch.Size([3, 4, 2])

    See also:
        `torch.permute`.
    """
    if isinstance(source, (list, tuple)) != isinstance(destination, (list, tuple)):
        raise TypeError("movedim(): source and destination are both integers, or both tuples of integers")
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
    doc="""Returns the transpose of a matrix, as a view; a tensor of fewer dimensions itself.

    Raises:
        RuntimeError: The input has more than two dimensions.

    Example:
        >>> torch.t(torch.tensor([[1, 2]]))
        tensor([[1],
                [2]])

    See also:
        `torch.transpose`.
    """,
)


@composite("adjoint(Tensor input)")
def adjoint(F, input):
    """Returns the conjugate transpose of the last two dimensions.

    Example:
        >>> torch.adjoint(torch.tensor([[1 + 1j, 2]]))
        tensor([[1.-1.j],
                [2.-0.j]])

    See also:
        `torch.Tensor.mH`.
    """
    if not input.ndim:
        warnings.warn("adjoint() is deprecated on 0-D tensors. Consider using x.conj().", UserWarning, stacklevel=3)
        return F._conj(input)
    if input.ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor."
        )
    turned = F.transpose(input, -2, -1)
    return F._conj(turned)


@composite("flatten(Tensor input, start_dim=0, end_dim=-1)")
def flatten(F, input, start_dim, end_dim):
    """Joins a range of dimensions to one.

    Args:
        start_dim: The first dimension of the range. Default: 0.
        end_dim: The last dimension of the range. Default: -1, the last.

    Returns:
        A view where the strides allow it, else a copy.

    Example:
        >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
        torch.Size([2, 12])

    See also:
        `torch.unflatten`, `torch.nn.Flatten`.
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
    """Splits a dimension into several, as a view.

    Args:
        sizes: The sizes, whose product is the size of `dim`; one may be -1.

    Raises:
        RuntimeError: The product differs.

    Example:
        >>> torch.unflatten(torch.zeros(2, 12), 1, (3, 4)).shape
        torch.Size([2, 3, 4])

    See also:
        `torch.flatten`.
    """
    dim = wrap_dim(dim, input.ndim)
    shape, sizes = tuple(input.shape), tuple(sizes)
    refuse_floats(*sizes)
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
    """Returns the elements as a 1-d tensor: a view where the strides allow it, else a copy.

    Example:
        >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4])

    See also:
        `torch.flatten`.
    """
    return input.contiguous().view(-1)


@composite("rot90(Tensor input, k=1, dims=(0, 1))", node_name="Rot90Backward0(input)")
def rot90(F, input, k, dims):
    """Rotates the input by multiples of 90 degrees in a plane, from the first dimension towards the second.

    Args:
        k: The number of quarter turns. Default: 1.
        dims: The two dimensions of the plane.

    Example:
        >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    for d in dims:
        wrap_dim(d, input.ndim)
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == input.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    first, second = (wrap_dim(d, input.ndim) for d in dims)
    k = operator.index(k) % 4
    if k == 0:
        return input.clone(memory_format=contiguous_format)
    if k == 2:
        return F.flip(input, (first, second))
    return F.transpose(F.flip(input, (second if k == 1 else first,)), first, second)


@composite("fliplr(Tensor input)")
def fliplr(F, input):
    """Returns a copy with the second dimension in reverse order.

    Raises:
        RuntimeError: The input has fewer than two dimensions.

    Example:
        >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]])

    See also:
        `torch.flip`.
    """
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return F.flip(input, (1,))


@composite("flipud(Tensor input)")
def flipud(F, input):
    """Returns a copy with the first dimension in reverse order.

    Raises:
        RuntimeError: The input has no dimension.

    Example:
        >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]])

    See also:
        `torch.flip`.
    """
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return F.flip(input, (0,))


def _negate_shifts(shifts):
    return -shifts if isinstance(shifts, int) else tuple(-s for s in shifts)


op(
    "roll(Tensor input, shifts, dims=())",
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={"input": lambda F, g, shifts, dims: F.roll(g, _negate_shifts(shifts), dims)},
    doc="""Shifts the elements along dimensions; elements beyond the end come in at the start.

    Args:
        shifts: The number of positions, one or as many as `dims`.
        dims: The dimensions. Default: none, the flattened elements.

    Example:
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
    doc="""Repeats the tensor along each dimension.

    Args:
        repeats: The number of repetitions of each dimension; additional dimensions come first.

    Example:
        >>> torch.tensor([1, 2]).repeat(2)
        tensor([1, 2, 1, 2])
        >>> torch.tensor([1, 2]).repeat(2, 1)
        tensor([[1, 2],
                [1, 2]])

    See also:
        `torch.tile`, `torch.repeat_interleave`, `torch.Tensor.expand`.
    """,
    layout=memory_layout.contiguous,
    varargs_required=True,
)


@composite("tile(Tensor input, *dims)", layout=memory_layout.contiguous, varargs_required=True)
def tile(F, input, dims):
    """Repeats the tensor along each dimension; missing counts are 1 and come first.

    Args:
        dims: The number of repetitions of each dimension.

    Example:
        >>> torch.tile(torch.tensor([[1, 2], [3, 4]]), (2,))
        tensor([[1, 2, 1, 2],
                [3, 4, 3, 4]])

    See also:
        `torch.Tensor.repeat`.
    """
    return F.repeat(input, (1,) * (input.ndim - len(dims)) + tuple(dims))


# --- diagonals and triangles ------------------------------------------------------------------

op(
    "diagonal(Tensor input, offset=0, dim1=0, dim2=1)",
    tags=VIEW,
    vjp={
        "input": lambda F, g, input_shape, offset, dim1, dim2: F._diagonal_backward(g, input_shape, offset, dim1, dim2)
    },
    doc="""Returns the diagonals of matrices in two dimensions, as a view with the diagonal as the last dimension.

    Args:
        offset: The diagonal, counted from the main one upwards. Default: 0.
        dim1, dim2: The dimensions of the matrices.

    Example:
        >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])

    See also:
        `torch.diag`, `torch.diag_embed`.
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
    doc="""Returns matrices with the input's last dimension on a diagonal and zeros elsewhere.

    Args:
        offset: The diagonal, counted from the main one upwards. Default: 0.
        dim1, dim2: The dimensions of the matrices in the result.

    Example:
        >>> torch.diag_embed(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])

    See also:
        `torch.diagonal`.
    """,
)


@composite(
    "diag(Tensor input, diagonal=0)",
    layout=memory_layout.contiguous,
    out=Out("same"),
    overlap=Overlap(operands="partial"),
    node_name=lambda call: "DiagEmbedBackward0(input)" if call.ndim("input") == 1 else "DiagonalBackward0_copy(input)",
)
def diag(F, input, diagonal):
    """Returns the matrix with a 1-d tensor on a diagonal, or a diagonal of a matrix as a 1-d copy.

    Args:
        diagonal: The diagonal, counted from the main one upwards. Default: 0.

    Example:
        >>> torch.diag(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
        >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])

    See also:
        `torch.diagonal`, `torch.diagflat`.
    """
    if input.ndim == 1:
        return F.diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return F.diagonal(input, diagonal).clone()


@composite("diagflat(Tensor input, offset=0)")
def diagflat(F, input, offset):
    """Returns the matrix with the flattened elements on a diagonal and zeros elsewhere.

    Args:
        offset: The diagonal, counted from the main one upwards. Default: 0.

    Example:
        >>> torch.diagflat(torch.tensor([[1, 2]]))
        tensor([[1, 0],
                [0, 2]])

    See also:
        `torch.diag`.
    """
    return F.diag_embed(input.reshape(-1), offset)


def _trace(F, input):
    check_trace(input.ndim)
    return F.sum(F.diagonal(input))


def _trace_rule(input):
    check_trace(len(input.shape))
    return (), int64 if input.dtype.category < 2 else input.dtype


op(
    "trace(Tensor input)",
    composite=_trace,
    shape_fn=_trace_rule,
    vjp={
        "input": lambda F, g, input_shape: F._diagonal_backward(F.expand(g, (min(input_shape),)), input_shape, 0, 0, 1)
    },
    refuses={("input", BOOL): "trace"},
    doc="""Returns the sum of a matrix's main diagonal.

    Raises:
        RuntimeError: The input does not have two dimensions.

    Example:
        >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """,
)


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
    doc="""Returns the lower triangles of matrices in the last two dimensions, with zeros above them.

    Args:
        diagonal: The highest diagonal that is kept, counted from the main one upwards. Default: 0.

    Example:
        >>> torch.tril(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 0],
                [3, 4]])

    See also:
        `torch.triu`, `torch.tril_indices`.
    """,
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
    doc="""Returns the upper triangles of matrices in the last two dimensions, with zeros below them.

    Args:
        diagonal: The lowest diagonal that is kept, counted from the main one upwards. Default: 0.

    Example:
        >>> torch.triu(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 2],
                [0, 4]])

    See also:
        `torch.tril`, `torch.triu_indices`.
    """,
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
    doc="""Returns all windows of a dimension, as a view with the window as an additional last dimension.

    Args:
        dimension: The dimension.
        size: The size of a window.
        step: The distance between windows.

    Example:
        >>> torch.tensor([1, 2, 3]).unfold(0, 2, 1)
        tensor([[1, 2],
                [2, 3]])

    See also:
        `torch.nn.functional.unfold`, which copies blocks of images.
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
    doc="""Returns a real view of a complex tensor: the last dimension has the real and the imaginary part.

    Example:
        >>> torch.view_as_real(torch.tensor([1 + 2j]))
        tensor([[1., 2.]])

    See also:
        `torch.view_as_complex`.
    """,
)
op(
    "view_as_complex(Tensor input)",
    where="torch",
    tags=VIEW,
    vjp={"input": lambda F, g: F.view_as_real(g)},
    doc="""Returns a complex view of a real tensor whose last dimension has the real and the imaginary part.

    Raises:
        RuntimeError: The size of the last dimension is not 2, or the strides do not fit.

    Example:
        >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
        tensor([1.+2.j])

    See also:
        `torch.view_as_real`.
    """,
)
op("_view_dtype(Tensor input, dtype)", where="", tags=VIEW | NONDIFF)
