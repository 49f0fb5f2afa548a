"""Rows that an index reads and writes, and rows repeated by count."""

from torchlite._dispatch import INPLACE, NONDIFF, Out, Overlap, composite, memory_layout, op
from torchlite._dispatch.shape_and_value_checks import (
    check_index_vector,
    check_selected_number,
    check_slices,
    min_and_max,
)
from torchlite._dispatch.shapes import wrap_dim

from .._types.dtypes import BOOL, COMPLEX
from ._dtype_checks import refuse_kinds
from ._gradient_helpers import copy_if_aliased
from .node_graphs import repeat_interleave_graph


def _select_rule(input, dim, index):
    if len(index.shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    count = index.shape[0] if index.shape else 1
    if not input.shape:
        check_selected_number(count)
    dim = wrap_dim(dim, len(input.shape))
    return (*input.shape[:dim], count, *input.shape[dim + 1 :]) if input.shape else (), input.dtype


op(
    "index_select(Tensor input, dim, Tensor index)",
    shape_fn=_select_rule,
    vjp={"input": lambda F, g, input_shape, dim, index: F.index_add(F._new_zeros(g, input_shape), dim, index, g)},
    doc="""Returns a copy of the slices at given indices along a dimension.

    Args:
        index: The indices along `dim`, int32 or int64, of one dimension.

    Raises:
        IndexError: An index is out of range.

    Example:
        >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([0]))
        tensor([[1],
                [3]])

    See also:
        `torch.select`, which takes one index.
    """,
    layout=memory_layout.contiguous,
    out=Out("same", "{name}(): self and result must have the same scalar type"),
    overlap=Overlap(operands="none"),
)


def _index_add_source_vjp(F, g, dim, index, source_shape, alpha):
    picked = F.index_select(g, dim, index) if g.ndim else g
    return F.reshape(picked if alpha == 1 else F.mul(picked, alpha), source_shape)


op(
    "index_add(Tensor input, dim, Tensor index, Tensor source, *, alpha=1)",
    tags=INPLACE,
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={"input": lambda F, g: g, "source": _index_add_source_vjp},
    numbers={"alpha": False},
    doc="""Returns the input with slices added at given indices along a dimension; repeated indices add up.

    Args:
        index: The indices along `dim`, int32 or int64, of one dimension.
        source: The slices: the shape of `input` with ``len(index)`` as the size of `dim`.
        alpha: A factor of `source`. Default: 1.

    Example:
        >>> torch.index_add(torch.zeros(2), 0, torch.tensor([1, 1]), torch.tensor([2.0, 3.0]))
        tensor([0., 5.])
    """,
    out=Out("same"),
    overlap=Overlap(operands="target"),
)


op(
    "index_copy(Tensor input, dim, Tensor index, Tensor source)",
    tags=INPLACE,
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={
        "input": lambda F, g, dim, index: F.index_fill(g, dim, index, 0),
        "source": lambda F, g, dim, index, source_shape: _index_add_source_vjp(F, g, dim, index, source_shape, 1),
    },
    doc="""Returns the input with slices replaced at given indices along a dimension.

    Args:
        index: The indices along `dim`, int32 or int64, of one dimension.
        source: The slices: the shape of `input` with ``len(index)`` as the size of `dim`.

    Example:
        >>> torch.index_copy(torch.zeros(2), 0, torch.tensor([1]), torch.tensor([2.0]))
        tensor([0., 2.])
    """,
    out=Out("same"),
    overlap=Overlap(operands="target"),
)


def _index_fill_value_vjp(F, g, dim, index, value_dtype):
    return F.to(F.sum(F.sub(g, F.index_fill(g, dim, index, 0))), value_dtype)


def _check_fill(input, dim, index, value):
    complex_value = value.dtype.category == 3 if hasattr(value, "_tl_array") else isinstance(value, complex)
    if complex_value and input.dtype.category != 3:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")


op(
    "index_fill(Tensor input, dim, Tensor index, Tensor|Number value)",
    check=_check_fill,
    tags=INPLACE,
    shape_fn=lambda input: (input.shape, input.dtype),
    vjp={"input": lambda F, g, dim, index: F.index_fill(g, dim, index, 0), "value": _index_fill_value_vjp},
    doc="""Returns the input with a value in the slices at given indices along a dimension.

    Args:
        index: The indices along `dim`, int32 or int64, of one dimension.
        value: A number or a 0-d tensor.

    Example:
        >>> torch.index_fill(torch.zeros(2), 0, torch.tensor([1]), 5)
        tensor([0., 5.])
    """,
    layout=memory_layout.like_first,
    overlap=Overlap("deprecated", "target", example="tensor[mask] = scalar", read_first=lambda values: values[3]),
    numbers={"value": False},
    node_name=lambda node: "IndexFillBackward0(input)" if getattr(node, "_shown", "") else "IndexFillBackward1",
)


@composite(
    "index_reduce(Tensor input, dim, Tensor index, Tensor source, reduce, *, include_self=True)",
    tags=INPLACE,
    out=Out("same"),
    overlap=Overlap(operands="target"),
    node_name="IndexReduceBackward0(input, source)",
)
def index_reduce(F, input, dim, index, source, reduce, include_self):
    """Returns the input with slices reduced into those at given indices along a dimension.

    Args:
        index: The indices along `dim`, int32 or int64, of one dimension.
        source: The slices: the shape of `input` with ``len(index)`` as the size of `dim`.
        reduce: ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
        include_self: Whether the input's elements at these indices are part of the reduction. Default: ``True``.

    Example:
        >>> torch.index_reduce(torch.ones(2), 0, torch.tensor([1, 1]), torch.tensor([2.0, 3.0]), "prod")
        tensor([1., 6.])

    See also:
        `torch.scatter_reduce`.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim] if input.ndim else 1
    check_index_vector("index_reduce_", index.shape, index.dtype)
    check_slices("index_reduce_", input.shape, dim, index.numel(), source.shape)
    low, high = min_and_max(index) if index.numel() else (0, 0)
    if low < 0 or high >= size:
        raise IndexError("index out of range in self")
    if not (reduce == "prod" and include_self and input.ndim > 1):  # slices are multiplied, elements are not
        kernel = "index_func_" if include_self else "index_reduce_func_exclude_input_init"
        refuse_kinds(input.dtype, kernel, BOOL, COMPLEX)
    shape = [-1 if d == dim else 1 for d in range(source.ndim)]
    return F.scatter_reduce(
        input, dim, index.reshape(shape).expand(source.shape), source, reduce, include_self=include_self
    )


op("_repeat_interleave_indices(Tensor repeats)", where="", tags=NONDIFF)


@composite(
    "repeat_interleave(Tensor input, repeats=None, dim=None, *, output_size=None)",
    layout=memory_layout.contiguous,
    node_name=repeat_interleave_graph,
)
def repeat_interleave(F, input, repeats, dim, output_size):
    """Repeats each element, or each slice along a dimension, one after the other.

    ``repeat_interleave(repeats)`` alone returns each index of `repeats` as many times as its count says.

    Args:
        repeats: The number of repetitions: an integer, or an int64 tensor with one count a slice.
        dim: The dimension. Default: none, the flattened input.
        output_size: The size of `dim` in the result, where it is known.

    Example:
        >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
        >>> torch.repeat_interleave(torch.tensor([2, 0, 1]))
        tensor([0, 0, 2])

    See also:
        `torch.Tensor.repeat`, `torch.tile`.
    """
    if repeats is None:
        if dim is not None:
            raise TypeError("repeat_interleave() received an invalid combination of arguments: `dim` without `repeats`")
        index = F._repeat_interleave_indices(input)
        return _check_output_size(index, output_size, 0)
    if dim is None:
        input, dim = input.reshape(-1), 0
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        input = input.reshape(1)
    if not hasattr(repeats, "_tl_array"):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        wide = F.unsqueeze(input, dim + 1).expand(*input.shape[: dim + 1], repeats, *input.shape[dim + 1 :])
        wide = wide.reshape(*input.shape[:dim], input.shape[dim] * repeats, *input.shape[dim + 1 :])
        return _check_output_size(copy_if_aliased(F, wide, input), output_size, dim)
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.ndim == 0 or (repeats.ndim == 1 and repeats.shape[0] == 1):
        repeats = repeats.reshape(1).expand(input.shape[dim])
    elif repeats.ndim == 1 and repeats.shape[0] != input.shape[dim]:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.shape[0]} and "
            f"input.size({dim}) = {input.shape[dim]}"
        )
    return _check_output_size(F.index_select(input, dim, F._repeat_interleave_indices(repeats)), output_size, dim)


def _check_output_size(result, output_size, dim):
    if output_size is not None and result.shape[dim] != output_size:
        raise RuntimeError("allocated size does not match required size")
    return result
