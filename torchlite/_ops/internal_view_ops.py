"""Ops that the core calls: history of in-place writes through views, selection of one of several views, device
transfers.
"""

import math

from .._dispatch import MODE, NONDIFF, UNINITIALIZED, VIEW, Out, Overlap, call, composite, memory_layout, op, table_of
from .._dispatch.autograd_graph import TRANSPARENT
from .._dispatch.callbacks import CALLBACKS
from .._dispatch.error_translation import filter_traceback
from .._dispatch.node_names import saved_argument

# Positions count cells: elements of the base, or real numbers where of base and view one is complex and one is not.


def _view_as_cells(F, x, other):
    """The cells of a base in a vector, for a view of the dtype `other`; of a real base these are its elements."""
    x = F.contiguous(x)
    if F.dtype_of(x).is_complex and not other.is_complex:
        x = F.view_as_real(x)
    return F.reshape(x, (-1,))


def _view_cells_as(F, base, index, dtype):
    """The elements of a view of that dtype at these cells of a base."""
    found = F._index(_view_as_cells(F, base, dtype), (index,))
    return F.view_as_complex(found) if dtype.is_complex and not F.dtype_of(base).is_complex else found


def _zero_cells(F, g, view_dtype, index):
    """g with zeros in the cells `index`."""
    flat = F._setitem(_view_as_cells(F, g, view_dtype), (index,), 0)
    if F.dtype_of(g).is_complex and not view_dtype.is_complex:
        flat = F.view_as_complex(F.reshape(flat, (-1, 2)))
    return F.reshape(flat, g.shape)


def _view_of_base_vjp(F, g, input_shape, input_dtype, index, dtype):
    pairs = input_dtype.is_complex and not dtype.is_complex
    if dtype.is_complex and not input_dtype.is_complex:
        g = F.view_as_real(F.contiguous(g))
    cells = F._index_backward(g, (math.prod(input_shape) * (2 if pairs else 1),), (index,))
    return F.reshape(F.view_as_complex(F.reshape(cells, (-1, 2))) if pairs else cells, input_shape)


# `base` after the elements of a view at the cells `index` were replaced by `view`.
CALLBACKS.copy_slices = op(
    "_copy_slices(Tensor base, Tensor view, index)",
    where="",
    vjp={"base": _zero_cells, "view": lambda F, g, view_dtype, index: _view_cells_as(F, g, index, view_dtype)},
    node_name="torch::autograd::CopySlices",
)
# A tensor that another one determines in PyTorch's graph, with a derivative of zero (`autograd/zero_derivatives.py`).
op(
    "_depend_on(Tensor input, Tensor other)",
    where="",
    composite=lambda F, input, other: F.clone(input),
    vjp={"input": lambda F, g: g, "other": lambda F, g: F._new_zeros(g, ())},
)
# A composite's input, for PyTorch's graph: its gradient is constant there and depends on it, or has no gradient itself.
for _name, _fact in (("_with_constant_gradient", "zero_derivatives"), ("_with_absent_gradient", "absent_derivatives")):
    op(
        f"{_name}(Tensor input)",
        where="",
        tags=VIEW,
        composite=lambda F, input: F.alias(input),
        vjp={"input": lambda F, g: g},
        **{_fact: {"input": ("input",)}},
    )
# The elements at these cells, which a view takes from its base's new history. It holds no tensor of the program's.


def _view_of_base_node_name(node):
    """A view of another kind of numbers than its base, or any other view."""
    to_complex, from_complex = (
        dtype is not None and dtype.is_complex
        for dtype in (saved_argument(node, "dtype"), saved_argument(node, "input", ("dtype",)))
    )
    if to_complex is from_complex:
        return "AsStridedBackward0"
    return "ViewAsComplexBackward0" if to_complex else "ViewAsRealBackward0"


op(
    "_view_of_base(Tensor input, index, dtype)",
    where="",
    composite=_view_cells_as,
    vjp={"input": _view_of_base_vjp},
    node_name=_view_of_base_node_name,
)
op(
    "_with_strides(Tensor input, strides)",
    where="",
    composite=memory_layout.with_strides,
    vjp={"input": lambda F, g: g},
    node_name=TRANSPARENT,
)
# The input itself: how the engine ties a tensor to the history of another.
op("_identity(Tensor input)", where="", vjp={"input": lambda F, g: g})
_moved = op(
    "_device_copy(Tensor input, where, source)",
    where="",
    vjp={"input": lambda F, g, source: F._move(g, source)},
    node_name="ToCopyBackward0",
)


@composite("_move(Tensor input, where)", where="")
def move(F, input, where):
    """The tensor on another device; its gradient moves back."""
    target = table_of(where)
    source = input._tl_kernels
    if target is source or input._tl_dispatches and target.device == source.device:
        return input
    if input._tl_dispatches and not MODE.torch_dispatch_disabled:
        return CALLBACKS.copied_to(input, where)
    if input._tl_level is not None:  # one example inside `vmap`: all of them
        return input._batch_like(move(F, input._value, where))
    if input._tl_rules is not None:
        return getattr(CALLBACKS, input._tl_rules)("move")(input, where)
    out = call.wrap_array(target, source.move_to(target, input._tl_array), input.dtype)
    if MODE.grad and input._tl_node is not None:
        call.record_node(_moved, target, [input, where, source.device], (out,))
    if MODE.forwards:
        CALLBACKS.map_tangents(input, out, lambda tangent: move(F, tangent, where))
    return out


def move_tensor(tensor, where):
    try:
        return move(CALLBACKS.F, tensor, where)
    except Exception:
        filter_traceback()
        raise


@composite("alias(Tensor input)", where="Tensor", tags=VIEW)
def alias(F, input):
    """Returns a view of the whole tensor.

    Example:
        >>> torch.tensor([1, 2]).alias()
        tensor([1, 2])
    """
    return F._slice_index(input, (...,))


CALLBACKS.move = move_tensor

# Creation kernels (no tensor argument; `call.create` finds their device) and creation like an existing array, which
# formulas use. The public torch.zeros, torch.zeros_like … are composites over these in creation.py.
op(
    "_empty(size, dtype)",
    where="",
    tags=UNINITIALIZED,
    shape_fn=lambda size, dtype: (size, dtype),
    out=Out(resize="silent"),
    overlap=Overlap("allowed"),
)
op(
    "_full(size, value, dtype)",
    where="",
    shape_fn=lambda size, dtype: (size, dtype),
    out=Out(resize="silent"),
    overlap=Overlap("allowed"),
)
op(
    "_arange(start, end, step, dtype)",
    where="",
    shape_fn=lambda start, end, step, dtype: ((max(0, math.ceil((end - start) / step)),), dtype),
    out=Out(resize="rounding"),
)
for _name in ("_zeros_like", "_ones_like"):
    op(f"{_name}(Tensor input)", where="", tags=NONDIFF, shape_fn=lambda input: (input.shape, input.dtype))
op("_full_like(Tensor input, value)", where="", tags=NONDIFF, shape_fn=lambda input: (input.shape, input.dtype))
op("_new_zeros(Tensor input, shape)", where="", tags=NONDIFF, shape_fn=lambda input, shape: (shape, input.dtype))
op("_new_full(Tensor input, shape, value)", where="", tags=NONDIFF, shape_fn=lambda input, shape: (shape, input.dtype))
op(
    "_new_arange(Tensor input, start, end, step, dtype)",
    where="",
    tags=NONDIFF,
    shape_fn=lambda start, end, step, dtype: ((max(0, math.ceil((end - start) / step)),), dtype),
)


op(
    "_cow_clone(Tensor input)",
    where="",
    composite=lambda F, input: F.clone(input),
    vjp={"input": lambda F, g: g},
    node_name="LazyCloneBackward0",
)


@composite("_lazy_clone(Tensor input)")
def _lazy_clone(F, input):
    """A clone whose storage shares the input's memory until one of the two is written, if the backend supports it and
    no other object writes there; else an ordinary clone.

    >>> x = torch.zeros(2)
    >>> y = x._lazy_clone()
    >>> y.add_(1), x
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if input._tl_signs or not input.untyped_storage().resizable():
        return F.clone(input)
    from .._tensor import copy_on_write  # noqa: F401  (looks at tensors before writes from now on)

    return F._cow_clone(input)
