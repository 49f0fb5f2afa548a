"""In-place ops: copy_, fill_, zero_ and fill_diagonal_, and the methods that replace a tensor's memory."""

import math

from .._dispatch import (
    DEFAULT,
    INPLACE,
    MODE,
    NONDIFF,
    VIEW,
    Out,
    Overlap,
    call,
    composite,
    in_place_calls,
    memory_layout,
    op,
)
from .._dispatch.autograd_graph import (
    adopt_memory_counter,
    base_of,
    bump_version,
    check_before_write,
    check_in_place_autograd,
    invalidate_views,
)
from .._dispatch.backend import owner_of
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.error_translation import ARGUMENT_ERRORS
from .._dispatch.memory_overlap import (
    check_in_place,
    check_no_internal_overlap,
    has_internal_overlap,
    has_leaf_base,
    has_partial_overlap,
)
from .._dispatch.numpy_errors import run_quietly
from .._dispatch.shape_and_value_checks import check_new_size
from .._dispatch.shapes import broadcast_shapes, memory_format_strides
from .._dispatch.type_promotion import cast_scalar
from .._tensor.nested_sequences import numbers_to_array
from .._types.dtypes import bool_
from .._types.layouts import channels_last, channels_last_3d, contiguous_format
from ._gradient_helpers import make_missing_derivative_formula
from .node_graphs import number_or_tensor


def _copy_rule(input, src):
    if broadcast_shapes(input.shape, src.shape) != tuple(input.shape):
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape "
            f"{list(broadcast_shapes(input.shape, src.shape))}"
        )
    return input.shape, input.dtype


_copy = CALLBACKS.copy = op(
    "_copy(Tensor input, Tensor src)",
    where="",
    tags=INPLACE,
    shape_fn=_copy_rule,
    vjp={"input": lambda F, g: F._zeros_like(g), "src": lambda F, g, src_dtype: F.to(g, src_dtype)},
    overlap=Overlap("same_view"),
    node_name="CopyBackwards",
)
_fill = op(
    "_fill(Tensor input, Tensor|Number value)",
    where="",
    tags=INPLACE,
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={"input": lambda F, g: F._zeros_like(g), "value": lambda F, g, value_dtype: F.to(F.sum(g), value_dtype)},
    overlap=Overlap("allowed", read_first=lambda values: values[1]),
    numbers={"value": True},
    opaque="number",
)
_fill_diagonal = op(
    "_fill_diagonal(Tensor input, value, wrap)",
    where="",
    tags=INPLACE,
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={"input": lambda F, g, wrap: F._fill_diagonal(g, 0, wrap)},
    overlap=Overlap("allowed"),
)


def _fill_by_kernel(input, value):
    if isinstance(value, (int, float, complex)):
        value = cast_scalar(value, input.dtype, infinite=math.prod(input._tl_array.shape) == 1)
    if call.GLOBALS["WRITE_CHECKS"]:
        check_before_write(input)
    fill = getattr(input._tl_kernels, "_fill_", None)  # a backend need not have it
    if (
        fill is None
        or input._tl_signs
        or (MODE.grad and (input._tl_node is not None or has_leaf_base(input)))
        or not isinstance(value, (int, float))
    ):
        return in_place_calls.run_in_place(_fill, (input, value), {})
    run_quietly(fill, input._tl_array, value)
    bump_version(input)
    return input


@composite("copy_(Tensor input, src, non_blocking=False)", where="Tensor", kwarg_aliases={"other": "src", "x2": "src"})
def copy_(F, input, src, non_blocking):
    """Copies the elements of another tensor into this one, broadcast and converted.

    Args:
        input: The tensor, which is overwritten.
        src: A tensor or a number.
        non_blocking: Has no effect: a copy is complete, or ordered by the stream, on return.

    Returns:
        The tensor.

    Raises:
        RuntimeError: The shape does not broadcast.

    Example:
        >>> torch.zeros(2).copy_(torch.tensor([1, 2]))
        tensor([1., 2.])
    """
    if not hasattr(src, "_tl_array"):
        if hasattr(src.__class__, "__torch_function__"):  # called with the arguments of this call
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
        return in_place_calls.run_in_place(_fill, (input, src), {})
    if call.GLOBALS["WRITE_CHECKS"]:
        check_before_write(input)
        call.regenerate_stale_views((src,))
    copy = getattr(input._tl_kernels, "_copy_", None)
    if (
        copy is not None
        and src._tl_kernels is input._tl_kernels
        and not input._tl_signs
        and (not MODE.grad or input._tl_node is src._tl_node is None and not has_leaf_base(input))
    ):
        ours, theirs = input._tl_array, src._tl_array
        if (ours.base is not None or theirs.base is not None) and (
            has_internal_overlap(ours) or has_partial_overlap(input._tl_kernels, ours, theirs)
        ):
            check_in_place(_copy, [input, src])
        try:
            call.GLOBALS["quiet_run"](copy, input._tl_array, src._tl_array)
        except ARGUMENT_ERRORS:  # the op itself raises PyTorch's error
            return in_place_calls.run_in_place(_copy, (input, src), {})
        bump_version(input)
        return input
    return in_place_calls.run_in_place(
        _copy, (input, src if src._tl_kernels is input._tl_kernels else src.to(input.device)), {}
    )


@composite(
    "fill_(Tensor input, value)",
    where="torch Tensor",
    node_name=number_or_tensor("value", "FillBackward2(input)", "FillBackward3(input, value)"),
)
def fill_(F, input, value):
    """Sets all elements to a value.

    Args:
        input: The tensor, which is overwritten.
        value: A number or a 0-d tensor.

    Returns:
        The tensor.

    Example:
        >>> torch.zeros(2).fill_(7)
        tensor([7., 7.])
    """
    if hasattr(value, "_tl_array"):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        check_no_internal_overlap(input)
    elif not isinstance(value, (int, float, complex)):
        if not hasattr(value, "item"):
            raise TypeError(
                f"fill_() received an invalid combination of arguments - got ({type(value).__name__}), but expected "
                "one of:\n"
                " * (Tensor value)\n"
                " * (Number value)"
            )
        value = value.item()
    return _fill_by_kernel(input, value)


@composite("zero_(Tensor input)", where="torch Tensor", node_name="ZeroBackward0(input)")
def zero_(F, input):
    """Sets all elements to zero.

    Args:
        input: The tensor, which is overwritten.

    Returns:
        The tensor.

    Example:
        >>> torch.ones(2).zero_()
        tensor([0., 0.])
    """
    return _fill_by_kernel(input, 0)


@composite("fill_diagonal_(Tensor input, fill_value, wrap=False)", where="Tensor", node_name="CopySlices(input)")
def fill_diagonal_(F, input, fill_value, wrap):
    """Sets the elements of the main diagonal to a value.

    Args:
        input: The tensor, which is overwritten.
        fill_value: The number.
        wrap: Whether the diagonal of a tall matrix begins anew below an empty row. Default: ``False``.

    Returns:
        The tensor.

    Example:
        >>> torch.zeros(2, 2).fill_diagonal_(1)
        tensor([[1., 0.],
                [0., 1.]])
    """
    if input.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if input.ndim > 2 and len(set(input.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if hasattr(fill_value, "_tl_array"):
        fill_value = fill_value.item()
    return in_place_calls.run_in_place(_fill_diagonal, (input, fill_value, wrap), {})


@composite("resize_(Tensor input, *size, memory_format=None)", where="Tensor", varargs_required=True)
def resize_(F, input, size, memory_format):
    """Changes the shape in place. The elements keep their order, and additional ones are not initialized.

    Args:
        input: The tensor, which is resized.
        size: The sizes, as integers or as one sequence.
        memory_format: The order of the elements in memory. Default: `torch.contiguous_format`.

    Returns:
        The tensor.

    Example:
        >>> torch.tensor([1, 2, 3]).resize_(2)
        tensor([1, 2])

    See also:
        `torch.reshape`.
    """
    if input.requires_grad and not MODE.inference:
        raise RuntimeError("cannot resize variables that require grad")
    from .._tensor.storage import set_geometry

    if min(size, default=0) < 0 or math.prod(size) >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    check_new_size(size, input.dtype.itemsize)
    if tuple(size) != input._tl_array.shape or memory_format is not None:
        name = getattr(memory_format, "name", "contiguous_format")
        if name == "preserve_format":
            raise RuntimeError("Unsupported memory format Preserve")
        set_geometry(input, None, size, memory_format_strides(size, name), input.storage_offset())
        bump_version(input)
    return input


CALLBACKS.resize = lambda tensor, shape: resize_(CALLBACKS.F, tensor, shape, None)


@composite("resize_as_(Tensor input, Tensor the_template, *, memory_format=None)", where="torch Tensor")
def resize_as_(F, input, the_template, memory_format):
    """Changes the shape in place to that of another tensor.

    Args:
        input: The tensor, which is resized.
        the_template: The other tensor.
        memory_format: The order of the elements in memory. Default: `torch.contiguous_format`.

    Returns:
        The tensor.

    Example:
        >>> torch.tensor([1, 2, 3]).resize_as_(torch.zeros(2))
        tensor([1, 2])

    See also:
        `torch.Tensor.resize_`.
    """
    if getattr(memory_format, "name", "") == "preserve_format":
        channels = [f for f in (channels_last, channels_last_3d) if the_template.is_contiguous(memory_format=f)]
        dense = the_template.is_contiguous() or not channels
        memory_format = contiguous_format if dense else channels[0]
    return F.resize_(input, tuple(the_template.shape), memory_format=memory_format)


@composite("set_(Tensor input, source=None, storage_offset=0, size=None, stride=None)", where="Tensor")
def set_(F, input, source, storage_offset, size, stride):
    """Makes the tensor share the memory of another tensor or of a storage.

    Args:
        input: The tensor, which is changed.
        source: A tensor of the same dtype, or a storage. Default: none, the tensor becomes empty.
        storage_offset: The position of the first element, in elements. Default: 0.
        size: The sizes. Default: the source's.
        stride: The strides, in elements. Default: contiguous.

    Returns:
        The tensor.

    Example:
        >>> x, y = torch.zeros(1), torch.tensor([1.0, 2.0])
        >>> x.set_(y)
        tensor([1., 2.])
    """
    from .._tensor.storage import set_geometry
    from .._tensor.typed_storage import checked_bytes, is_storage

    if MODE.grad and input.requires_grad:
        check_in_place_autograd(input)
    if source is None:
        input._tl_array = input._tl_kernels._empty((0,), input.dtype)
        bump_version(input)
        return input
    if is_storage(source):
        storage = checked_bytes(source, input.dtype)
        if size is None:
            size = (storage.nbytes() // input.dtype.itemsize - storage_offset,)
        tensor = storage._tensor
    elif hasattr(source, "_tl_array"):
        if source.dtype is not input.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype.c_name} to a tensor of type {input.dtype.c_name}"
            )
        tensor, storage = source, None
    else:
        raise TypeError(f"set_(): argument 'source' must be Tensor, not {type(source).__name__}")
    if tensor._tl_kernels is not input._tl_kernels:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{input.device}" to a storage on different device '
            f'"{tensor.device}".  This is no longer allowed; the devices must match.'
        )
    if size is None:
        input._tl_array = source._tl_memory
        adopt_memory_counter(input, source)
    else:
        size = tuple(size)
        strides = (
            memory_format_strides(size, "contiguous_format") if stride is None or not len(stride) else tuple(stride)
        )
        storage = source.untyped_storage() if storage is None else storage
        set_geometry(input, storage, size, strides, storage_offset)
    bump_version(input)
    sources = [t for t in (input, source) if getattr(t, "requires_grad", False)]
    if MODE.grad and sources and base_of(input) is None:
        call.record_node(_set, input._tl_kernels, [sources], (input,))
    return input


_set = op(
    "_set(Tensor[] tensors)",
    where="",
    vjp={"tensors": make_missing_derivative_formula("set_")},
    node_name="NotImplemented",
)


# A kernel may stop at the first difference.
op(
    "_equal(Tensor input, Tensor other)",
    where="",
    promote=DEFAULT,
    tags=NONDIFF,
    opaque="values",
    composite=lambda F, input, other: F.all(F.eq(input, other)),
    shape_fn=lambda: ((), bool_),
)


@composite("equal(Tensor input, Tensor other)", opaque="values")
def equal(F, input, other):
    """Returns whether two tensors have the same shape and equal elements.

    Args:
        other: The other tensor, on the same device.

    Returns:
        A bool.

    Example:
        >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
        True

    See also:
        `torch.allclose`, `torch.eq`.
    """
    if not hasattr(other, "_tl_array"):
        raise TypeError(f"equal(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    if input._tl_kernels is not other._tl_kernels and input.device != other.device:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {input.device} and "
            f"{other.device}!"
        )
    return input.shape == other.shape and bool(F._equal(input, other))


def _squeeze_in_place_graph(call):
    """`squeeze_` has an overload for a dimension and one for several."""
    dim = call["dim"]
    return f"SqueezeBackward{3 if dim is None else 5 if isinstance(dim, (tuple, list)) else 4}(input)"


def _make_in_place_view(name, schema, doc, where="Tensor"):
    def set_view_geometry(F, input, *args):
        if call.GLOBALS["WRITE_CHECKS"]:
            check_before_write(input)
        if MODE.grad and input._tl_node is not None:
            check_in_place_autograd(input)
        out = getattr(F, name)(in_place_calls._shallow_copy(input), *args)
        input._tl_memory = out._tl_memory
        bump_version(input)
        if MODE.grad:  # without recording a leaf stays a leaf
            input._tl_node = out._tl_node
            if input._tl_node is not None:
                invalidate_views(input)
        return input

    set_view_geometry.__doc__ = doc
    schema = f"{schema[: schema.index('(')]}_(Tensor input{schema[schema.index('(') + 1 :]}"
    graph = _squeeze_in_place_graph if name == "squeeze" else f"{name.title()}Backward1(input)"
    composite(schema, where=where, node_name=graph)(set_view_geometry)


_IN_PLACE_DOC = """Gives the tensor the shape and strides of the view that `{name}` returns.

Args:
    input: The tensor, which is changed.
    {arguments}

Returns:
    The tensor.

Example:
    >>> torch.zeros(2, 1).{name}_({call}).shape
    torch.Size({shape})

See also:
    `torch.{name}`."""
_TWO_DIMS = "dim0, dim1: The two dimensions."
for _schema, _words in {
    "transpose(, dim0, dim1)": {"arguments": _TWO_DIMS, "call": "0, 1", "shape": [1, 2]},
    "squeeze(, dim=None)": {
        "arguments": "dim: The dimension, or a tuple of them, to remove where its size is 1. Default: all dimensions.",
        "call": "1",
        "shape": [2],
    },
    "unsqueeze(, dim)": {"arguments": "dim: The position of the new dimension.", "call": "0", "shape": [1, 2, 1]},
}.items():
    _name = _schema[: _schema.index("(")]
    _make_in_place_view(_name, _schema, _IN_PLACE_DOC.format(name=_name, **_words))


def _make_in_place_transpose(name):
    def transpose_in_place(F, input, dim0, dim1):
        return F.transpose_(input, dim0, dim1)

    transpose_in_place.__doc__ = _IN_PLACE_DOC.format(name=name, arguments=_TWO_DIMS, call="0, 1", shape=[1, 2])
    composite(f"{name}_(Tensor input, dim0, dim1)", where="Tensor")(transpose_in_place)


_make_in_place_transpose("swapaxes")
_make_in_place_transpose("swapdims")


@composite("t_(Tensor input)", where="Tensor", node_name="TBackward1(input)")
def t_(F, input):
    """Transposes the matrix in place; the memory stays as it is.

    Args:
        input: The tensor, which is transposed.

    Returns:
        The tensor.

    Raises:
        RuntimeError: The tensor has more than two dimensions.

    Example:
        >>> torch.tensor([[1, 2]]).t_()
        tensor([[1],
                [2]])

    See also:
        `torch.t`.
    """
    if input.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return F.transpose_(input, 0, input.ndim - 1) if input.ndim else input


@composite(
    "as_strided_(Tensor input, size, stride, storage_offset=None)",
    where="torch Tensor",
    node_name="AsStridedBackward1(input)",
)
def as_strided_(F, input, size, stride, storage_offset):
    """Sets the tensor's sizes, strides and storage offset on its memory.

    Args:
        input: The tensor, which is changed.
        size: The sizes.
        stride: The strides, in elements.
        storage_offset: The position of the first element in the storage. Default: the input's.

    Returns:
        The tensor.

    Raises:
        RuntimeError: An element would be outside the storage.

    Example:
        >>> torch.tensor([1, 2, 3]).as_strided_((2, 2), (1, 1))
        tensor([[1, 2],
                [2, 3]])

    See also:
        `torch.as_strided`.
    """
    offset = 0 if storage_offset is None else storage_offset - input.storage_offset()
    return F._restride_(input, tuple(size), tuple(stride), offset, input.stride())


_make_in_place_view("_as_strided", "_restride(, size, stride, offset, input_stride)", "", where="")


@composite("detach(Tensor input)", where="torch", tags=VIEW)
def detach(F, input):
    """Returns a tensor on the same memory that autograd does not follow.

    Example:
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> torch.detach(x).requires_grad
        False

    See also:
        `torch.Tensor.detach_`, `torch.no_grad`.
    """
    return input.detach()


@composite("detach_(Tensor input)", where="torch", tags=VIEW)
def detach_(F, input):
    """Removes the tensor from the autograd graph in place.

    Returns:
        The tensor.

    Example:
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> (2 * x).detach_().requires_grad
        False

    See also:
        `torch.detach`.
    """
    return input.detach_()


@composite(
    "detach_copy(Tensor input)",
    where="torch",
    vjp={"input": make_missing_derivative_formula("detach_copy")},
    layout=memory_layout.contiguous,
    out=Out("same"),
    node_name="NotImplemented",
)
def detach_copy(F, input):
    """Returns a copy, which requires a gradient if the input does; the op has no derivative.

    Example:
        >>> torch.detach_copy(torch.tensor([1.0]))
        tensor([1.])

    See also:
        `torch.detach`, whose result requires no gradient.
    """
    return F.clone(input)


@composite("is_nonzero(Tensor input)", where="Tensor", tags=VIEW)
def is_nonzero(F, input):
    """Returns whether the only element of the tensor is not zero.

    Returns:
        A bool.

    Raises:
        RuntimeError: The tensor has another number of elements.

    Example:
        >>> torch.tensor([2.0]).is_nonzero()
        True
    """
    return bool(input)


@composite("is_same_size(Tensor input, Tensor other)", where="Tensor", tags=VIEW)
def is_same_size(F, input, other):
    """Returns whether two tensors have the same shape.

    Args:
        other: The other tensor.

    Returns:
        A bool.

    Example:
        >>> torch.zeros(2).is_same_size(torch.ones(2))
        True
    """
    return tuple(input.shape) == tuple(other.shape)


@composite("is_set_to(Tensor input, Tensor tensor)", where="Tensor", tags=VIEW)
def is_set_to(F, input, tensor):
    """Returns whether two tensors have the same memory, offset, shape and strides.

    Args:
        tensor: The other tensor.

    Returns:
        A bool.

    Example:
        >>> x = torch.zeros(2)
        >>> x.is_set_to(x.view(2))
        True
    """
    return (
        owner_of(input._tl_array) is owner_of(tensor._tl_array)
        and input.storage_offset() == tensor.storage_offset()
        and tuple(input.shape) == tuple(tensor.shape)
        and input.stride() == tensor.stride()
        and bool(input.untyped_storage().nbytes())
    )


@composite("map_(Tensor input, Tensor tensor, callable)", where="Tensor", tags=VIEW)
def map_(F, input, tensor, callable):
    """Replaces each element by a function of it and of another tensor's element. It is slow, and for the CPU alone.

    Args:
        input: The tensor, which is overwritten.
        tensor: The other tensor, which broadcasts.
        callable: A function of two numbers.

    Returns:
        The tensor.

    Example:
        >>> torch.tensor([1.0, 2.0]).map_(torch.tensor([3.0, 4.0]), lambda a, b: a * b)
        tensor([3., 8.])
    """
    return _map_elements(F, "map_", callable, input, other=tensor)


@composite("map2_(Tensor input, Tensor x, Tensor y, callable)", where="Tensor", tags=VIEW)
def map2_(F, input, x, y, callable):
    """Replaces each element by a function of it and of two other tensors' elements. It is slow, and for the CPU alone.

    Args:
        input: The tensor, which is overwritten.
        x: The first other tensor, which broadcasts.
        y: The second other tensor, which broadcasts.
        callable: A function of three numbers.

    Returns:
        The tensor.

    Example:
        >>> torch.tensor([1.0, 2.0]).map2_(torch.tensor([3.0, 4.0]), torch.tensor(5.0), lambda a, b, c: a * b + c)
        tensor([ 8., 13.])
    """
    return _map_elements(F, "map2_", callable, input, x=x, y=y)


def _map_elements(F, name, callable, input, **others):
    if any(tensor.requires_grad for tensor in (input, *others.values())):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for argument, tensor in others.items():
        if tensor.dtype is not input.dtype or tensor.device != input.device:
            wanted = f"'{argument}'" if len(others) == 1 else f"argument '{argument}'"
            raise TypeError(f"{name}: expected {input.type()} for {wanted} (got {tensor.type()})")
    if input.device.type == "meta":
        return input
    columns = [tensor.expand(input.shape).reshape(-1).tolist() for tensor in (input, *others.values())]
    values = numbers_to_array([callable(*row) for row in zip(*columns, strict=True)], input.dtype)
    return F.copy_(input, CALLBACKS.as_tensor(values).reshape(input.shape))
