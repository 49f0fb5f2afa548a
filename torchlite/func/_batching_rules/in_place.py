"""Batching rules of in-place ops."""

from __future__ import annotations

import math
from typing import Any

from ..._dispatch import REGISTRY, F, function_for, in_place_calls
from ..._dispatch.interceptors import ReenabledInterceptor
from ..._dispatch.out_variants import check_output_shape
from ..._dispatch.shapes import broadcast_shapes
from ..._tensor import Tensor
from .._batched_tensor import batch_dim_first, is_batched_at
from .indexing import align_value, write_item
from .rule_helpers import flatten_examples, rule
from .views import _int_arguments

# In-place ops without an out-of-place computation: `(level, target, *arguments)`.
WRITES: dict[str, Any] = {"_setitem": write_item}


def _copy_into_batch(level, target, source) -> None:
    part = batch_dim_first(target)
    if source.shape != target.shape:
        check_output_shape(target, broadcast_shapes(tuple(source.shape), tuple(target.shape)))
    in_place_calls.run_in_place(REGISTRY["_copy"], (part, align_value(level, source, part)), {})


def _fill_batch(level, target, value) -> None:
    if isinstance(value, Tensor):
        _copy_into_batch(level, target, value)
    else:
        in_place_calls.run_in_place(REGISTRY["_fill"], (batch_dim_first(target), value), {})


WRITES["_copy"], WRITES["_fill"] = _copy_into_batch, _fill_batch


@rule("copy_", kind="writing")
def _copy(level, op, values):
    target, source = values[:2]
    with ReenabledInterceptor(level):
        return in_place_calls.run_in_place(
            REGISTRY["_copy" if isinstance(source, Tensor) else "_fill"], (target, source), {}
        )


@rule("fill_", "zero_", kind="writing")
def _fill(level, op, values):
    with ReenabledInterceptor(level):
        return in_place_calls.run_in_place(REGISTRY["_fill"], (values[0], values[1] if op.name == "fill_" else 0), {})


@rule("transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "t_", "as_strided_", kind="writing")
def _metadata_rule(level, op, values):
    """Apply an op that changes metadata and not elements."""
    target = values[0]
    name = "transpose" if op.name.startswith("swap") else op.name[:-1]
    with ReenabledInterceptor(level):
        made = function_for(REGISTRY[name])(*values)
    target._value, target._dim = made._value, made._dim
    return target


@rule("resize_", "resize_as_", kind="writing")
def _resize_rule(level, op, values):
    """Keep the first elements of each example; the rest is uninitialized."""
    target, size = values[:2]
    size = tuple(size.shape) if isinstance(size, Tensor) else _int_arguments(size)
    if not is_batched_at(target, level):
        return F.resize_(target, size)
    found = flatten_examples(batch_dim_first(target))
    count, wanted = found.shape[1], math.prod(size)
    if wanted > count:
        found = F.cat([found, F.new_empty(found, (found.shape[0], wanted - count))], 1)
    target._value, target._dim = F.reshape(F.narrow(found, 1, 0, wanted), (found.shape[0], *size)), 0
    return target
