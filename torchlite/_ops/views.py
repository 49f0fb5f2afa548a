"""Views and copies that rearrange dimensions."""

import math
import operator

from .._dispatch import KEEPS_DTYPE, MAYBE_VIEW, VIEW, Out, Overlap, composite, memory_layout, op
from .._dispatch.autograd_graph import alias_meta
from .._dispatch.node_names import saved_argument
from .._dispatch.public_functions import torch
from .._dispatch.shapes import contiguous_strides, infer_size, wrap_dim, wrap_dims


def _inverse_permutation(dims, ndim):
    out = [0] * ndim
    for i, d in enumerate(dims):
        out[d % ndim] = i
    return tuple(out)


def _permute_meta(input, dims):
    ndim = len(input.shape)
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    wrapped = [wrap_dim(d, ndim) for d in dims]
    if len(set(wrapped)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return tuple(input.shape[d] for d in wrapped), input.dtype


def _transpose_meta(input, dim0, dim1):
    shape = list(input.shape)
    first, second = wrap_dim(dim0, len(shape)), wrap_dim(dim1, len(shape))
    if shape:
        shape[first], shape[second] = shape[second], shape[first]
    return tuple(shape), input.dtype


def _expand_meta(input, size):
    """PyTorch checks sizes from the last to the first."""
    shape, lead = tuple(input.shape), len(size) - len(input.shape)
    if lead < 0:
        raise RuntimeError(
            f"expand(torch.{input.dtype.scalar_name}Tensor{{{list(shape)}}}, size={list(size)}): the number of sizes "
            f"provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(shape)})"
        )
    out = list(size)
    for d in reversed(range(len(size))):
        if d < lead:
            if out[d] < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({out[d]}) isn't allowed in a leading, non-existing dimension {d}"
                )
        elif out[d] == -1:
            out[d] = shape[d - lead]
        elif shape[d - lead] not in (1, out[d]):
            raise RuntimeError(
                f"The expanded size of the tensor ({out[d]}) must match the existing size ({shape[d - lead]}) at "
                f"non-singleton dimension {d}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
    return tuple(out), input.dtype


def _squeeze_meta(input, dim):
    dims = wrap_dims(dim, len(input.shape))
    return tuple(n for d, n in enumerate(input.shape) if n != 1 or d not in dims), input.dtype


def _unsqueeze_meta(input, dim):
    at = wrap_dim(dim, len(input.shape) + 1)
    return (*input.shape[:at], 1, *input.shape[at:]), input.dtype


def _flip_meta(input, dims):
    return (wrap_dims(dims, len(input.shape)), (input.shape, input.dtype))[1]


def _reshape_copy(function, given, copy):
    """`reshape(copy=)`: True copies, False raises ValueError where memory does not allow a view."""
    x, shape = given["input"], given.get("shape", ())
    if copy:
        return function(torch.clone(x), shape)
    try:
        return x.view(shape)
    except RuntimeError as error:
        raise ValueError(f"reshape(copy=False): {error}") from None


op(
    "reshape(Tensor input, *shape)",
    tags=MAYBE_VIEW | KEEPS_DTYPE,
    vjp={"input": lambda F, g, input_shape: F.reshape(g, input_shape)},
    shape_fn=lambda input, shape: (infer_size(shape, math.prod(input.shape)), input.dtype),
    doc="""Returns the elements in another shape.

    The result is a view where the strides allow it, else a copy. With ``copy=True`` it is a copy; with
    ``copy=False`` a copy is an error.

    Args:
        shape: The sizes, as integers or as one sequence. One size may be -1; it follows from the others.

    Raises:
        RuntimeError: The numbers of elements differ.
        ValueError: ``copy=False`` and the strides do not allow a view.

    Example:
        >>> torch.reshape(torch.tensor([1, 2, 3, 4]), (2, -1))
        tensor([[1, 2],
                [3, 4]])

    See also:
        `torch.Tensor.view`, which never copies.
    """,
    node_name="ViewBackward0",
    kwarg_aliases={"copy": _reshape_copy},
    array_api_first=True,
    varargs_required=True,
)
op(
    "_view(Tensor input, shape)",
    where="",
    tags=VIEW | KEEPS_DTYPE,
    vjp={"input": lambda F, g, input_shape: F.reshape(g, input_shape)},
)
op(
    "permute(Tensor input, *dims)",
    tags=VIEW | KEEPS_DTYPE,
    vjp={"input": lambda F, g, dims: F.permute(g, _inverse_permutation(dims, len(dims)))},
    shape_fn=_permute_meta,
    doc="""Returns a view with the dimensions in another order.

    Args:
        dims: The dimensions of the input in the order of the result; each one once.

    Raises:
        RuntimeError: A dimension is absent or repeated.

    Example:
        >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
        torch.Size([4, 2, 3])

    See also:
        `torch.transpose`, `torch.movedim`.
    """,
    varargs_required=True,
)
op(
    "transpose(Tensor input, dim0, dim1)",
    tags=VIEW | KEEPS_DTYPE,
    alias="swapaxes swapdims",
    vjp={"input": lambda F, g, dim0, dim1: F.transpose(g, dim0, dim1)},
    shape_fn=_transpose_meta,
    doc="""Returns a view with two dimensions swapped.

    Args:
        dim0: The first dimension.
        dim1: The second dimension.

    Example:
        >>> torch.transpose(torch.tensor([[1, 2, 3], [4, 5, 6]]), 0, 1)
        tensor([[1, 4],
                [2, 5],
                [3, 6]])

    See also:
        `torch.permute`, `torch.Tensor.mT`.
    """,
)
op(
    "expand(Tensor input, *size)",
    where="Tensor",
    kwarg_aliases={"implicit": lambda function, given, implicit: function(**given)},  # of PyTorch's, without an effect
    tags=VIEW | KEEPS_DTYPE,
    vjp={"input": lambda F, g: g},
    shape_fn=_expand_meta,
    doc="""Returns a view in which dimensions of size 1 are repeated.

    The repeated elements share memory, so writes in place to the result are not well defined.

    Args:
        size: The sizes, as integers or as one sequence. -1 keeps a size. Additional dimensions come first.

    Raises:
        RuntimeError: A dimension whose size is not 1 would change.

    Example:
        >>> torch.tensor([[1], [2]]).expand(2, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])

    See also:
        `torch.broadcast_to`, `torch.tile`.
    """,
    varargs_required=True,
)


def _squeeze_node_name(node):
    dim = saved_argument(node, "dim")
    return f"SqueezeBackward{0 if dim is None else 1 if isinstance(dim, int) else 2}"


op(
    "squeeze(Tensor input, dim=None)",
    tags=VIEW | KEEPS_DTYPE,
    vjp={"input": lambda F, g, input_shape, dim: F.reshape(g, input_shape)},  # its node's name tells the dim
    shape_fn=_squeeze_meta,
    doc="""Returns a view without dimensions of size 1.

    Args:
        dim: The dimension, or a tuple of them, to remove where its size is 1. Default: all dimensions.

    Example:
        >>> torch.squeeze(torch.zeros(1, 2, 1)).shape
        torch.Size([2])
        >>> torch.squeeze(torch.zeros(1, 2, 1), 0).shape
        torch.Size([2, 1])

    See also:
        `torch.unsqueeze`.
    """,
    node_name=_squeeze_node_name,
    array_api_first=True,
)
op(
    "unsqueeze(Tensor input, dim)",
    tags=VIEW | KEEPS_DTYPE,
    vjp={"input": lambda F, g, input_shape: F.reshape(g, input_shape)},
    shape_fn=_unsqueeze_meta,
    doc="""Returns a view with an additional dimension of size 1.

    Args:
        dim: The position of the new dimension in the result, from ``-input.dim() - 1`` to ``input.dim()``.

    Raises:
        IndexError: The position is out of range.

    Example:
        >>> torch.unsqueeze(torch.tensor([1, 2]), 1)
        tensor([[1],
                [2]])

    See also:
        `torch.squeeze`.
    """,
)


def _as_strided_vjp(F, g, input_shape, size, stride, offset, input_stride):
    layout = (tuple(size), tuple(stride), offset or 0)
    return F._move_strided(
        g, layout, (input_shape, contiguous_strides(input_shape) if input_stride is None else input_stride, 0), "target"
    )


# `offset` counts from the first element of `input`. The derivative needs `input_stride`, the layout of `input`
# (contiguous when None).
op(
    "_as_strided(Tensor input, size, stride, offset=None, input_stride=None)",
    where="",
    tags=VIEW,
    vjp={"input": _as_strided_vjp},
)
# Elements laid out in memory by `source` (shape, strides, offset), added up there, and read by `target`;
# shares of elements that lie on one place of the source or the target are divided among them.
op(
    "_move_strided(Tensor input, source, target, divide)",
    where="",
    shape_fn=lambda input, target: (target[0], input.dtype),
    vjp={
        "input": lambda F, g, source, target, divide: F._move_strided(
            g, target, source, "source" if divide == "target" else "target"
        )
    },
)


@composite(
    "as_strided(Tensor input, size, stride, storage_offset=None)",
    where="",
    alias="torch.as_strided Tensor.as_strided",
    tags=VIEW,
)
def as_strided(F, input, size, stride, storage_offset):
    """Returns a view of the input's memory with given sizes and strides.

    Element ``(i, j, ...)`` is at ``storage_offset + i * stride[0] + j * stride[1] + ...``. Elements may overlap.

    Args:
        size: The sizes.
        stride: The strides, in elements.
        storage_offset: The position of the first element in the storage, in elements. Default: the input's.

    Raises:
        RuntimeError: An element would be outside the storage.

    Example:
        >>> torch.as_strided(torch.tensor([1, 2, 3]), (2, 2), (1, 1))
        tensor([[1, 2],
                [2, 3]])
    """
    offset = 0 if storage_offset is None else storage_offset - input.storage_offset()
    return F._as_strided(input, tuple(size), tuple(stride), offset, input.stride())


op(
    "flip(Tensor input, *dims)",
    vjp={"input": lambda F, g, dims: F.flip(g, dims)},
    shape_fn=_flip_meta,
    doc="""Returns a copy with the elements in reverse order along dimensions.

    Args:
        dims: The dimensions, as integers or as one sequence.

    Example:
        >>> torch.flip(torch.tensor([[1, 2], [3, 4]]), (1,))
        tensor([[2, 1],
                [4, 3]])

    See also:
        `torch.fliplr`, `torch.flipud`, `torch.roll`.
    """,
    layout=memory_layout.like_first,
    varargs_required=True,
    kwarg_aliases={"axis": "dims"},
)
op(
    "clone(Tensor input, *, memory_format=None)",
    vjp={"input": lambda F, g: g},
    shape_fn=lambda input: (input.shape, input.dtype),
    doc="""Returns a copy of the tensor through which gradients flow.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> y = torch.clone(x)
        >>> y[0] = 5.0
        >>> x
        tensor([1., 2.])

    See also:
        `torch.Tensor.detach`, whose result shares memory and has no gradient.
    """,
)
op(
    "contiguous(Tensor input, *, memory_format=None)",
    where="Tensor",
    tags=MAYBE_VIEW | KEEPS_DTYPE,
    vjp={"input": lambda F, g: g},
    doc="""Returns the tensor itself where its elements are contiguous in memory, else a copy that is.

    Args:
        memory_format: The order of the elements in memory. Default: `torch.contiguous_format`, row-major.

    Example:
        >>> x = torch.zeros(2, 3).t()
        >>> x.is_contiguous(), x.contiguous().is_contiguous()
        (False, True)
    """,
)


def _cat_shape(shapes, dim):
    if not shapes:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    shapes = [s for s in shapes if tuple(s) != (0,)] or [(0,)]
    first = shapes[0]
    for i, s in enumerate(shapes):
        if len(s) == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        if len(s) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(s)}")
    d = wrap_dim(dim, len(first))
    for i, s in enumerate(shapes):
        for axis, (a, b) in enumerate(zip(first, s, strict=True)):
            if a != b and axis != d:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {a} but got size {b} for "
                    f"tensor number {i} in the list."
                )
    return (*first[:d], sum(s[d] for s in shapes), *first[d + 1 :])


def _cat_vjp(F, g, tensors_shape, dim):
    start, out = 0, []
    d = wrap_dim(dim, g.ndim) if any(tuple(shape) != (0,) for shape in tensors_shape) else 0
    for shape in tensors_shape:
        if tuple(shape) == (0,) and g.ndim != 1:
            out.append(F._new_zeros(g, (0,)))
            continue
        out.append(F.narrow(g, d, start, shape[d]))
        start += shape[d]
    return out


op(
    "cat(Tensor[] tensors, dim=0)",
    alias="torch.concat torch.concatenate",
    where="torch",
    promote="default",
    shape_fn=lambda tensors, dim: (_cat_shape([t.shape for t in tensors], dim), tensors[0].dtype),
    vjp={"tensors": _cat_vjp},
    doc="""Concatenates tensors along an existing dimension.

    The dtype of the result is the promoted dtype of the tensors.

    Args:
        tensors: The tensors, whose sizes agree in all dimensions but `dim`. Empty 1-d tensors are left out.

    Raises:
        RuntimeError: The sizes do not agree.
        ValueError: The list is empty.

    Example:
        >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
        tensor([1, 2, 3])

    See also:
        `torch.stack`, which adds a dimension.
    """,
    layout=memory_layout.cat,
    out=Out(message="torch.cat(): input types can't be cast to the desired output type {got}", error=TypeError),
    overlap=Overlap(operands="none"),
)


def _narrow_back(F, g, shape, dim, start, stop, step):
    return F._slice_backward(g, shape, dim, start, stop, step)


op(
    "_slice(Tensor input, dim=0, start=None, stop=None, step=1)",
    where="",
    tags=VIEW | KEEPS_DTYPE,
    vjp={
        "input": lambda F, g, input_shape, dim, start, stop, step: F._slice_backward(
            g, input_shape, dim, start, stop, step
        )
    },
)
op(
    "_slice_backward(Tensor input, shape, dim, start, stop, step)",
    where="",
    shape_fn=lambda input, shape: (shape, input.dtype),
    vjp={"input": lambda F, g, dim, start, stop, step: F._slice(g, dim, start, stop, step)},
)
op(
    "_narrow(Tensor input, dim, start, length)",
    where="",
    tags=VIEW,
    vjp={
        "input": lambda F, g, input_shape, dim, start, length: _narrow_back(
            F, g, input_shape, dim, start, start + length, 1
        )
    },
)


@composite("narrow(Tensor input, dim, start, length)", tags=VIEW)
def narrow(F, input, dim, start, length):
    """Returns a view of a range of a dimension.

    Args:
        start: The first index; negative values count from the end.
        length: The number of entries.

    Raises:
        IndexError: `start` is out of range.
        RuntimeError: The range ends outside the dimension, or `length` is negative.

    Example:
        >>> torch.narrow(torch.tensor([1, 2, 3, 4]), 0, 1, 2)
        tensor([2, 3])

    See also:
        `torch.narrow_copy`.
    """
    if not input.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    size = input.shape[wrap_dim(dim, input.ndim)]
    if hasattr(start, "_tl_array") and (start.ndim or start.dtype.category != 1):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = operator.index(start)
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start += size if start < 0 else 0
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return F._slice(input, dim, start, start + length, 1)


@composite("view(Tensor input, *size, dtype=None)", where="Tensor", varargs_required=("dtype",))
def view(F, input, size, dtype):
    """Returns a view with another shape, or the memory read as another dtype.

    ``view(*size)`` never copies. ``view(dtype)`` scales the last dimension by the ratio of the item sizes.

    Args:
        size: The sizes, as integers or as one sequence, or a dtype. One size may be -1; it follows from the others.
        dtype: The dtype by which the memory is read.

    Raises:
        RuntimeError: The strides do not allow the shape, or the numbers of elements differ.

    Example:
        >>> torch.tensor([1, 2, 3, 4]).view(2, -1)
        tensor([[1, 2],
                [3, 4]])
        >>> torch.tensor([1.0]).view(torch.int32)
        tensor([1065353216], dtype=torch.int32)

    See also:
        `torch.reshape`, which copies where it must.
    """
    if (
        len(size) == 1
        and not isinstance(size[0], int)
        and hasattr(size[0], "itemsize")
        and hasattr(size[0], "category")
    ):
        dtype, size = size[0], ()
    if dtype is not None:
        if size:
            raise TypeError("view() received an invalid combination of arguments: a size and a dtype")
        found = F._view_dtype(input, dtype)
        if found is not input and hasattr(found, "_tl_meta"):
            found._tl_meta = alias_meta(input)  # no gradient passes: to autograd it is no view
        return found
    return F._view(input, infer_size(size, input.numel()))
