"""Sharding rules of reductions: kept dimensions may be sharded; a sharded reduced dimension gives a partial result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torchlite as torch

from .._dispatch import call_op, compute_local
from .._dtensor_spec import DTensorSpec, TensorMeta
from .._op_strategy import OpCall, Strategy, register_op_handler, register_op_strategy
from ..placement_types import Partial, Shard
from .rule_helpers import has_empty_part, normalize_dims, partial_kinds, shard_kinds

# How the results of parts are joined, by the op.
_JOINED = {
    "sum": "sum",
    "count_nonzero": "sum",
    "all": "min",
    "any": "max",
    "amax": "max",
    "amin": "min",
    "prod": "product",
}
_WITHOUT_EMPTY = ("amax", "amin")


def _kept_dim_strategies(found: OpCall, number: int, dims: tuple[int, ...], keepdim: bool) -> Iterator[Strategy]:
    """Shard the kept dimensions."""
    ndim = found.tensors[0].ndim
    for cut in shard_kinds(found, number):
        for dim in range(ndim):
            if dim not in dims:
                after = dim if keepdim else dim - sum(d < dim for d in dims)
                yield [cut(dim)], cut(after)


@register_op_strategy("sum", "count_nonzero", "all", "any", "amax", "amin", "prod")
def _joinable_reductions(found: OpCall, number: int) -> Iterator[Strategy]:
    """Reductions with a Partial placement for their result."""
    name, tensor = found.op.name, found.tensors[0]
    dims = normalize_dims(found["dim"], tensor.ndim)
    keepdim = "keepdim" in [p.name for p in found.op.params] and bool(found["keepdim"])
    yield from _kept_dim_strategies(found, number, dims, keepdim)
    if name == "sum":
        for partial in partial_kinds(found, number):
            if tensor.is_floating_point() or tensor.is_complex():
                yield [partial], partial
    if name not in ("sum", "count_nonzero") and found.wants_gradient:
        return  # equal extremes share their gradient over all processes
    for cut in shard_kinds(found, number):
        for dim in dims:
            if name in _WITHOUT_EMPTY and has_empty_part(tensor.shape[dim], found.mesh):
                continue
            if name in _WITHOUT_EMPTY and type(cut(dim)) is not Shard:
                continue
            yield [cut(dim)], Partial(_JOINED[name])


@register_op_handler("mean")
def _mean_handler(found: OpCall) -> Any:
    """Mean as a sum divided by the number of elements: shards may differ in size."""
    tensor = found.tensors[0]
    dims = normalize_dims(found["dim"], tensor.ndim)
    if not tensor.is_floating_point() or not any(isinstance(p, Shard) and p.dim in dims for p in tensor.placements):
        return NotImplemented
    count = math.prod(tensor.shape[d] for d in dims)
    total = torch.sum(tensor, found["dim"], found["keepdim"], dtype=found["dtype"])
    return total / count


@register_op_strategy(
    "mean", "_max_dim", "_min_dim", "argmax", "argmin", "_median_dim", "_nanmedian_dim", "mode", "logsumexp",
    "_var_correction", "_std_correction", "_var_mean", "_std_mean", "_vector_norm_core", "kthvalue",
)  # fmt: skip
def _other_reductions(found: OpCall, number: int) -> Iterator[Strategy]:
    """Reductions that need full dimensions."""
    tensor, names = found.tensors[0], [p.name for p in found.op.params]
    dims = normalize_dims(found["dim"], tensor.ndim)
    yield from _kept_dim_strategies(found, number, dims, "keepdim" in names and bool(found["keepdim"]))
    if found.op.name == "mean" and tensor.is_floating_point():
        for partial in partial_kinds(found, number):
            yield [partial], partial


@register_op_handler("logsumexp", "_vector_norm_core")
def _two_stage_reduction(found: OpCall) -> Any:
    """Reduce over a sharded dimension: reduce the local results in the same way."""
    tensor = found.tensors[0]
    dims = normalize_dims(found["dim"], tensor.ndim)
    cut = [i for i, p in enumerate(tensor.placements) if isinstance(p, Shard) and p.dim in dims]
    if not cut or (found.op.name == "_vector_norm_core" and found["ord"] in (0, None)):
        return NotImplemented
    if any(p.is_partial() for p in tensor.placements):
        return NotImplemented
    over = sorted({tensor.placements[i].dim for i in cut})
    if found.op.name == "logsumexp" or math.isinf(found["ord"]):  # an empty shard has no identity for these
        if any(has_empty_part(tensor.shape[tensor.placements[i].dim], found.mesh) for i in cut):
            return NotImplemented
    if len(cut) > 1 and len(over) < len(cut):
        return NotImplemented
    from .._dispatch import make_dtensor

    local = call_op(
        found.op, found.with_values(**{found.op.params[0].name: tensor._local_tensor, "dim": dims, "keepdim": True})
    )
    shape = [1 if d in dims else n for d, n in enumerate(tensor.shape)]
    for i in cut:
        shape[tensor.placements[i].dim] *= found.mesh.size(i)
    strides = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    places = [Shard(p.dim) if i in cut else p for i, p in enumerate(tensor.placements)]
    parts = make_dtensor(local, DTensorSpec(found.mesh, places, TensorMeta(torch.Size(shape), strides, local.dtype)))
    again = OpCall(found.op, [parts, *found.with_values(dim=dims)[1:]], found.mesh, False)
    return compute_local(again)
