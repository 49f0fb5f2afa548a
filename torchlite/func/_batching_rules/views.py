"""Batching rules of views, concatenation and other shape ops."""

from __future__ import annotations

import math
from typing import Any

from ..._dispatch import F
from ..._dispatch.shapes import wrap_dim
from ..._tensor import Tensor
from ..._types.layouts import contiguous_format, preserve_format
from .._batched_tensor import batch_dim_first, is_batched_at
from .rule_helpers import (
    align_ndim,
    flatten_examples,
    leading_batch_rule,
    logical_ndim,
    promote_operands,
    rule,
    run_below_level,
    shift_dims,
    to_batch,
)

# Ops without batching rule, with the reason.
LOOPS = {
    "_grouped_mm": "groups differ in size by example",
    "_fill_diagonal": "what `wrap` fills depends on the matrix's shape in memory",
    "_move_strided": "moves elements between places of one storage",
    "embedding_bag": "where bags lie is looked up by indices of another length in each example",
    "histogram": "its edges are numbers that depend on the data",
    "histogramdd": "as histogram",
    "histc": "as histogram",
    "_histogram_counts": "as histogram",
    "bincount": "how many bins there are depends on the data; all examples have as many",
    "argwhere": "as nonzero_static, where all examples have as many",
    "nonzero_static": "where elements are is known once they are looked at",
    "_copy_slices": "the history of writes through views, which is recorded below all examples",
    "_set": "as _copy_slices",
}

for _name in (
    "positive", "real", "imag", "to", "view_as_real", "_view_dtype", "tril", "triu", "angle",
    "frexp", "_conj", "_neg_view", "resolve_conj", "resolve_neg", "_zeros_like", "_ones_like", "_full_like",
    "empty_like", "zeros_like", "ones_like", "full_like", "_identity", "_cow_clone",
):  # fmt: skip
    rule(_name, kind="front")(leading_batch_rule)


@rule("select", "split_with_sizes", "unbind", "_slice", "_narrow", "unfold", "transpose", "diagonal", kind="view")
def along_view_rule(level, op, values):
    """Apply a view op with shifted dimensions."""
    x = batch_dim_first(values[0])
    ndim = x.ndim - 1
    shifted: list[Any] = [x]
    for param, value in zip(op.params[1:], values[1:], strict=True):
        shifted.append(shift_dims(value, ndim) if param.name in ("dim", "dim0", "dim1", "dim2", "dimension") else value)
    if not ndim:
        if op.name == "transpose":
            return values[0]
        if op.name == "unfold":
            return level.wrap(F.narrow(F.unsqueeze(x, 1), 1, 0, shifted[2]))
        if op.name == "unbind":
            raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
        raise IndexError(f"{op.name}() cannot be applied to a 0-dim tensor.")
    return level.wrap(run_below_level(op, shifted))


@rule("permute", kind="view")
def _permute(level, op, values):
    x, dims = batch_dim_first(values[0]), _int_arguments(values[1])
    if len(dims) != x.ndim - 1:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {x.ndim - 1} is not equal to len(dims) = {len(dims)}"
        )
    return level.wrap(F.permute(x, 0, *shift_dims(dims, x.ndim - 1)))


def _int_arguments(values) -> tuple:
    return tuple(values[0]) if len(values) == 1 and values[0].__class__ in (tuple, list) else tuple(values)


@rule("unsqueeze", kind="view")
def _unsqueeze(level, op, values):
    x = batch_dim_first(values[0])
    return level.wrap(F.unsqueeze(x, wrap_dim(values[1], x.ndim) + 1))


@rule("squeeze", kind="view")
def _squeeze(level, op, values):
    x, dim = batch_dim_first(values[0]), values[1]
    ndim = x.ndim - 1
    given = range(ndim) if dim is None else dim if dim.__class__ in (tuple, list) else [dim]
    dims = tuple(d + 1 for d in (wrap_dim(d, ndim) for d in given) if d < ndim and x.shape[d + 1] == 1)
    return level.wrap(F.squeeze(x, dims) if dims else F._slice_index(x, (...,)))


_FORMATS = (
    "NYI: {} inside of vmap is only supported with memory_format torch.preserve_format or torch.contiguous_format "
    "(got {})"
)


@rule("clone", "contiguous", kind="front")
def _clone_rule(level, op, values):
    x, order = batch_dim_first(values[0]), values[1]
    if order not in (None, contiguous_format, preserve_format):
        if op.name == "contiguous":
            values[0].is_contiguous(memory_format=order)  # raises for an invalid memory format
        raise RuntimeError(_FORMATS.format(op.name, order))
    return level.wrap(run_below_level(op, [x, *values[1:]]))


def _resolve_shape(shape, numel: int) -> tuple:
    """Return a shape with -1 resolved."""
    shape = tuple(int(n) for n in shape)
    if shape.count(-1) != 1:
        return shape
    others = math.prod(n for n in shape if n != -1)
    if others and numel % others == 0:
        return tuple(numel // others if n == -1 else n for n in shape)
    return shape


@rule("reshape", "_view", kind="view")
def _reshape(level, op, values):
    x = batch_dim_first(values[0])
    given = _int_arguments(values[1]) if op.name == "reshape" else tuple(values[1])
    numel = math.prod(x.shape[1:])
    shape = _resolve_shape(given, numel)
    if math.prod(shape) != numel or min(shape, default=0) < 0:
        raise RuntimeError(f"shape '{list(given)}' is invalid for input of size {numel}")
    if op.name == "reshape":
        return level.wrap(F.reshape(x, (x.shape[0], *shape)))
    return level.wrap(F._view(x, (x.shape[0], *shape)))


@rule("expand", kind="view")
def _expand(level, op, values):
    x, sizes = batch_dim_first(values[0]), _int_arguments(values[1])
    for _ in range(len(sizes) - (x.ndim - 1)):
        x = F.unsqueeze(x, 1)
    return level.wrap(F.expand(x, x.shape[0], *sizes))


@rule("repeat", kind="view")
def _repeat(level, op, values):
    x, counts = batch_dim_first(values[0]), _int_arguments(values[1])
    for _ in range(len(counts) - (x.ndim - 1)):
        x = F.unsqueeze(x, 1)
    return level.wrap(F.repeat(x, 1, *counts))


@rule("flip", kind="view")
def _flip(level, op, values):
    x = batch_dim_first(values[0])
    if x.ndim == 1:
        return values[0].clone()
    return level.wrap(F.flip(x, *shift_dims(_int_arguments(values[1]), x.ndim - 1)))


@rule("roll", kind="view")
def _roll(level, op, values):
    x, shifts, dims = batch_dim_first(values[0]), values[1], values[2]
    if dims is None or dims.__class__ in (tuple, list) and not len(dims):
        return level.wrap(F.reshape(F.roll(flatten_examples(x), shifts, 1), x.shape))
    return level.wrap(F.roll(x, shifts, shift_dims(dims, x.ndim - 1)))


@rule("diag_embed", kind="view")
def _diag_embed(level, op, values):
    x = batch_dim_first(values[0])
    offset, dim1, dim2 = values[1:]
    return level.wrap(F.diag_embed(x, offset, wrap_dim(dim1, x.ndim) + 1, wrap_dim(dim2, x.ndim) + 1))


def _check_within(x, size, stride, offset: int) -> None:
    """Raise RuntimeError if the strides reach elements of other examples."""
    start, own, span = x.storage_offset(), _memory_span(x.shape[1:], x.stride()[1:]), _memory_span(size, stride)
    if not span or start <= offset and offset + span <= start + own:
        return
    what = (
        f"`result` can access some memory in range [{offset}, {offset + span}], but `tensor` can only access some "
        f"memory in range [{start}, {start + own}]"
        if own
        else "`tensor` has no storage but the passed-in (size, stride, storage_offset) imply a result with some storage"
    )
    raise RuntimeError(
        f"result = tensor.as_strided({list(size)}, {list(stride)}, {offset}) can access memory outside of `tensor`. "
        f"{what}. This is not supported inside of vmap, please try to rewrite the `as_strided` call as a sequence of "
        "PyTorch view operations"
    )


def _memory_span(size, stride) -> int:
    """Return the number of elements between the first and last in memory, inclusive."""
    return 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


@rule("_as_strided", kind="view")
def _as_strided(level, op, values):
    x = batch_dim_first(values[0])
    size, stride, offset = values[1:4]
    if len(size) != len(stride):
        raise RuntimeError(
            "Tensor.as_strided(size, stride, ...): size and stride must have the same length! Got size "
            f"{list(size)} and stride {list(stride)}"
        )
    _check_within(x, size, stride, x.storage_offset() + (offset or 0))  # relative to the tensor's first element
    return level.wrap(F._as_strided(x, (x.shape[0], *size), (x.stride(0), *stride), offset))


@rule("stack", "cat", kind="join")
def _cat_rule(level, op, values):
    items, dim = list(values[0]), values[1]
    if op.name == "cat":
        ndim = max(logical_ndim(t) for t in items)
        items = [t for t in items if tuple(t.shape) != (0,) or ndim == 1]
    ndim = logical_ndim(items[0]) + (op.name == "stack")
    items = promote_operands(op, [tuple(items), dim])[0]
    return level.wrap(run_below_level(op, [[to_batch(level, t) for t in items], wrap_dim(dim, ndim) + 1]))


@rule("slice_scatter", "select_scatter", "diagonal_scatter", kind="view")
def _view_scatter_rule(level, op, values):
    ndim = logical_ndim(values[0])
    made = [to_batch(level, values[0]), to_batch(level, values[1])]
    for param, value in zip(op.params[2:], values[2:], strict=True):
        made.append(shift_dims(value, ndim) if param.name in ("dim", "dim1", "dim2") else value)
    return level.wrap(run_below_level(op, made))


@rule("_diagonal_backward", "_select_backward", "_unfold_backward", "_slice_backward", kind="view")
def _select_backward_rule(level, op, values):
    g, shape = batch_dim_first(values[0]), tuple(values[1])
    made = [g, (g.shape[0], *shape)]
    for param, value in zip(op.params[2:], values[2:], strict=True):
        made.append(shift_dims(value, len(shape)) if param.name in ("dim", "dim1", "dim2") else value)
    return level.wrap(run_below_level(op, made))


@rule("_new_zeros", "_new_full", kind="creation")
def _new_tensor_rule(level, op, values):
    """Create a tensor for the whole batch, so that batched results can be written to it."""
    x = batch_dim_first(values[0])
    return level.wrap(run_below_level(op, [x, (x.shape[0], *values[1]), *values[2:]]))


@rule("_new_arange", kind="creation")
def _new_arange(level, op, values):
    return run_below_level(op, [batch_dim_first(values[0]), *values[1:]])


@rule("_copy", kind="pointwise")
def _copy_rule(level, op, values):
    target, source = values
    made = to_batch(level, target)
    value = align_ndim(level, source, target.ndim) if is_batched_at(source, level) else source
    if isinstance(value, Tensor) and value.ndim > made.ndim:
        made = F.expand(made, value.shape)
    return level.wrap(F._copy(made, value))


@rule("_fill", kind="pointwise")
def _fill_rule(level, op, values):
    target, value = values
    if not isinstance(value, Tensor):
        return level.wrap(F._fill(batch_dim_first(target), value))
    made = to_batch(level, target)
    return level.wrap(F._copy(made, align_ndim(level, value, target.ndim)))


@rule(*LOOPS, kind="loop")
def _loop_rule(level, op, values):
    from .rule_helpers import loop_fallback

    return loop_fallback(level, op, values)


@rule("_device_copy", kind="front")
def _movedim_rule(level, op, values):
    return level.wrap(run_below_level(op, [batch_dim_first(values[0]), *values[1:]]))


@rule("view_as_complex", kind="view")
def _view_as_complex(level, op, values):
    x = batch_dim_first(values[0])
    if x.ndim > 1 and x.stride(-1) != 1 and values[0].stride(-1) == 1:
        x = F.contiguous(x)
    return level.wrap(F.view_as_complex(x))


@rule("_with_strides", kind="front")
def _layout_rule(level, op, values):
    """Ignore memory format arguments: layout is a property of the batch."""
    return level.wrap(F.clone(batch_dim_first(values[0])))


@rule("new_empty", "new_zeros", "new_ones", "new_full", kind="creation")
def _new_empty(level, op, values):
    size = _int_arguments(values[1:2] if op.params[1].kind != "varargs" else values[1])
    return level.wrap(_call_on_batch(op, batch_dim_first(values[0]), (level.size, *size), values[2:]))


@rule("new_empty_strided", kind="creation")
def _new_empty_strided(level, op, values):
    x, size, stride, *rest = values
    return level.wrap(
        run_below_level(op, [batch_dim_first(x), (level.size, *size), (_memory_span(size, stride), *stride), *rest])
    )


def _call_on_batch(op, first, size, rest):
    second = (size,) if op.params[1].kind == "varargs" else size
    return run_below_level(op, [first, second, *rest])
