"""Registration and helpers of batching rules, and rules for classes of ops."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ..._dispatch import F, function_for, type_promotion
from ..._dispatch.hooks import saved_tensor_hooks
from ..._dispatch.interceptors import ReenabledInterceptor, stack
from ..._dispatch.op_functions import unintercepted_function_for
from ..._dispatch.shapes import wrap_dim
from ..._tensor import Tensor
from ...utils._pytree import tree_flatten, tree_unflatten
from .._batched_tensor import BatchedTensor, batch_dim_first, is_batched_at, make_batched

RULES: dict[str, Callable] = {}


def rule(*names: str, kind: str = ""):
    """Register the decorated function `(level, op, values)` as batching rule of ops."""

    def declare(function):
        for name in names:
            if name in RULES:
                raise RuntimeError(f"{name} has two batching rules")
            RULES[name] = function
        function.kind = kind or function.__name__
        return function

    return declare


def composite_rule(*names: str):
    """Register the decorated function `(F, *arguments)`, which runs on examples, as composite of ops."""

    def declare(function):
        def run_parts(level, op, values):
            with ReenabledInterceptor(level):
                return function(F, *values)

        run_parts.kind = "parts"  # type: ignore[attr-defined]
        for name in names:
            RULES[name] = run_parts
        return function

    return declare


def run_below_level(op, values):
    """Run the op on these values below the level."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    by_name = False
    for param, value in zip(op.params, values, strict=True):
        if param.kwonly or by_name:
            keywords[param.name] = value
        elif param.kind == "varargs":
            positional += value
            by_name = True
        else:
            positional.append(value)
    # Fast path if nothing else intercepts.
    function = function_for(op) if stack.items or saved_tensor_hooks.stack else unintercepted_function_for(op)
    return function(*positional, **keywords)


def logical_ndim(value: Any) -> int:
    """Return the number of dimensions of one example."""
    return value.ndim if isinstance(value, Tensor) else 0


def to_batch(level, value: Any):
    """Return a tensor as a batch, expanded if unbatched; other values unchanged."""
    if is_batched_at(value, level):
        return batch_dim_first(value)
    if isinstance(value, Tensor):
        return F.expand(F.unsqueeze(value, 0), level.size, *value.shape)
    return value


def align_ndim(level, value: Any, ndim: int):
    """Return a batch with examples of `ndim` dimensions, new ones first. Unbatched values are unchanged, as they
    broadcast.
    """
    if not is_batched_at(value, level):
        return value
    out = batch_dim_first(value)
    for _ in range(ndim - (out.ndim - 1)):
        out = F.unsqueeze(out, 1)
    return out


def shift_dims(dims: Any, ndim: int):
    """Return an example's dimensions as dimensions of the batch, batch dimension first."""
    if dims.__class__ in (tuple, list):
        return tuple(wrap_dim(d, ndim) + 1 for d in dims)
    return wrap_dim(dims, ndim) + 1


def map_outputs(result: Any, change: Callable):
    """Apply a function to an op's result or each of its results."""
    if isinstance(result, Tensor):
        return change(result)
    made = [change(item) if isinstance(item, Tensor) else item for item in result]
    return tuple(made) if result.__class__ in (tuple, list) else type(result)(made)


def promote_operands(op, values: list) -> list:
    """Cast operands to the dtype that the examples promote to. Zero-dimensional examples promote differently from their
    batches.
    """
    if op.promote is None:
        return values
    taken = [
        i for i, p in enumerate(op.params) if p.is_tensor and (op.promote_args is None or p.name in op.promote_args)
    ]
    flat = [v for i in taken for v in (values[i] if values[i].__class__ in (tuple, list) else (values[i],))]
    tensors = [v for v in flat if isinstance(v, Tensor)]
    if all(t.dtype is tensors[0].dtype for t in tensors):
        return values
    to = type_promotion.result_dtype([v for v in flat if v is not None])

    def cast(value):
        if value.__class__ in (tuple, list):
            return tuple(cast(v) for v in value)
        if value.__class__ is BatchedTensor:
            return value if value.dtype is to else make_batched(_cast(value._value, to), value._dim, value._tl_level)
        return _cast(value, to) if isinstance(value, Tensor) and value.dtype is not to else value

    return [cast(v) if i in taken else v for i, v in enumerate(values)]


def _cast(value, to):
    return F.to(value, to)


def elementwise_rule(level, op, values):
    """Apply an elementwise op: batch dimensions first, equal ranks, then broadcast."""
    values = promote_operands(op, values)
    ndim = max(
        logical_ndim(v) for p, v in zip(op.params, values, strict=True) if p.is_tensor and v.__class__ is not tuple
    )
    return level.wrap(run_below_level(op, [align_ndim(level, v, ndim) for v in values]))


elementwise_rule.kind = "pointwise"  # type: ignore[attr-defined]
rule("complex", "polar", kind="pointwise")(elementwise_rule)


def decomposed_rule(level, op, values):
    """Run the composite of a fused op on examples."""
    with ReenabledInterceptor(level):
        result = op.composite(F, *values)
    return result[0] if op.aux_outputs else op.result_type(result) if op.outputs else result


decomposed_rule.kind = "parts"  # type: ignore[attr-defined]


def leading_batch_rule(level, op, values):
    """Apply an op whose tensor arguments accept equal leading batch dimensions."""
    ndim = max(logical_ndim(v) for v in values)
    several = sum(isinstance(v, Tensor) for v in values) > 1
    made = [pad_ndim(level, v, ndim if several else 0) for v in values]
    return level.wrap(run_below_level(op, made))


def pad_ndim(level, value, ndim: int):
    """Return a batch whose examples have at least `ndim` dimensions."""
    if not isinstance(value, Tensor):
        return value
    out = to_batch(level, value)
    for _ in range(ndim - (out.ndim - 1)):
        out = F.unsqueeze(out, 1)
    return out


def flatten_examples(tensor: Tensor) -> Tensor:
    """Return a batch with each example flattened to one dimension."""
    return F.reshape(tensor, (tensor.shape[0], math.prod(tensor.shape[1:])))


def merge_batch_into_dim(tensor: Tensor, dim: int = 0) -> Tensor:
    """Return a batch with the batch dimension merged into an example's dimension `dim`."""
    size = tensor.shape[0]
    order = list(range(1, tensor.ndim))
    order.insert(dim, 0)
    moved = F.permute(tensor, *order)
    shape = moved.shape
    return F.reshape(moved, (*shape[:dim], size * shape[dim + 1], *shape[dim + 2 :]))


def split_batch_from_dim(tensor: Tensor, size: int, dim: int = 0) -> Tensor:
    """Split the batch dimension from dimension `dim`; the inverse of `merge_batch_into_dim`."""
    shape = tuple(tensor.shape)
    each = shape[dim] // size if size else 0
    out = F.reshape(tensor, (*shape[:dim], size, each, *shape[dim + 1 :]))
    order = [d for d in range(out.ndim) if d != dim]
    return F.permute(out, dim, *order)


_WARNED_OPS: set[str] = set()


def loop_fallback(level, op, values):
    """Run the op example by example, with PyTorch's performance warning."""
    if op.name not in _WARNED_OPS:
        _WARNED_OPS.add(op.name)
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for {op.name}. You "
            "could file an issue with us on GitHub.",
            stacklevel=4,
        )
    if not level.size:
        raise RuntimeError(
            f"There is a batching rule missing for {op.name}, and a batch without examples says nothing of its results."
        )
    results = [
        tree_flatten(run_below_level(op, [_select_example(level, v, i) for v in values])) for i in range(level.size)
    ]
    columns = zip(*(leaves for leaves, _ in results), strict=True)
    stacked = [make_batched(F.stack(list(c), 0), 0, level) if isinstance(c[0], Tensor) else c[0] for c in columns]
    return tree_unflatten(stacked, results[0][1])


loop_fallback.kind = "loop"  # type: ignore[attr-defined]


def _select_example(level, value, index: int):
    if is_batched_at(value, level):
        return F.select(value._value, value._dim, index)
    if value.__class__ in (tuple, list):
        return value.__class__([_select_example(level, item, index) for item in value])
    return value
