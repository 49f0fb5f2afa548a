"""Sharding rules of layers: norms, embedding, attention, convolution, pooling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torchlite as torch

from .._dispatch import R
from .._dtensor_factory import make_dtensor
from .._dtensor_spec import DTensorSpec, TensorMeta
from .._op_strategy import OpCall, Strategy, register_op_handler, register_op_strategy
from .._redistribute import sum_gradients
from ..placement_types import Shard
from .rule_helpers import SUM, has_empty_part, shard_kinds


@register_op_strategy(
    "_softmax", "_log_softmax", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "sort", "topk"
)
def _shard_other_dims(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard dimensions other than the op's."""
    tensor = found.tensors[0]
    own = found["dim"] % max(tensor.ndim, 1)
    for cut in shard_kinds(found, number):
        for dim in range(tensor.ndim):
            if dim != own:
                yield [cut(dim)], cut(dim)


@register_op_strategy("_layer_norm", "_rms_norm")
def _norm_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard dimensions that are not normalised."""
    tensor = found.tensors[0]
    for cut in shard_kinds(found, number):
        for dim in range(tensor.ndim - found["n_dims"]):
            yield [cut(dim), *[R] * (len(found.tensors) - 1)], cut(dim)


@register_op_strategy("embedding")
def _embedding_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard the indices, or the embedding dimension."""
    indices = found["indices"]
    for cut in shard_kinds(found, number):
        for dim in range(indices.ndim):
            yield [R, cut(dim)], cut(dim)
        yield [cut(1), R], cut(indices.ndim)


@register_op_handler("embedding")
def _row_sharded_embedding(found: OpCall) -> Any:
    """Row-sharded table: each process looks up its rows, with zeros for the others."""
    weight, indices = found["weight"], found["indices"]
    rows = [i for i, p in enumerate(weight.placements) if isinstance(p, Shard) and p.dim == 0]
    if (
        len(rows) != 1
        or type(weight.placements[rows[0]]) is not Shard
        or not indices.placements[rows[0]].is_replicate()
    ):
        return NotImplemented
    if any(not p.is_replicate() for i, p in enumerate(weight.placements) if i not in rows):
        return NotImplemented
    mesh, number = found.mesh, rows[0]
    table = weight._local_tensor
    for i, p in enumerate(indices.placements):
        if i != number and not p.is_replicate():
            table = sum_gradients(table, mesh.get_group(i))
    place = mesh.get_coordinate()[number]
    length, start = Shard.local_shard_size_and_offset(weight.shape[0], mesh.size(number), place)
    given = indices._local_tensor
    bad = (given < 0) | (given >= weight.shape[0])
    if bool(bad.any()):
        raise IndexError("index out of range in self")
    inside = (given >= start) & (given < start + length)
    padding = found["padding_idx"]
    if padding >= 0:
        own = padding - start
        padding = own if 0 <= own < length else -1
    if length:
        out = torch.embedding(
            table, (given - start).where(inside, 0), padding, found["scale_grad_by_freq"], found["sparse"]
        )
        out = out.masked_fill(~inside.unsqueeze(-1), 0)
    else:
        out = table.sum() * 0 + table.new_zeros([*given.shape, weight.shape[1]])
    outs = [SUM if i == number else p for i, p in enumerate(indices.placements)]
    shape = torch.Size([*indices.shape, weight.shape[1]])
    strides = torch.empty(shape, device="meta").stride()
    return make_dtensor(out, DTensorSpec(mesh, outs, TensorMeta(shape, strides, out.dtype)))


@register_op_strategy("_sdpa")
def _attention_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard batch and heads, in all operands."""
    query, key, value, mask = (found[name] for name in ("query", "key", "value", "attn_mask"))
    if not query.ndim == key.ndim == value.ndim:
        return
    for cut in shard_kinds(found, number):
        for dim in range(query.ndim - 2):
            if not query.shape[dim] == key.shape[dim] == value.shape[dim]:
                continue
            ins: list[Any] = [cut(dim)] * 3
            if mask is not None:
                own = dim - (query.ndim - mask.ndim)
                ins.append(R if own < 0 or mask.shape[own] == 1 else cut(own))
            if len(ins) == len(found.tensors):
                yield ins, cut(dim)


@register_op_strategy("convolution")
def _convolution_strategies(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard the batch; without groups the output channels, or the input channels with a partial result."""
    image, weight, bias = found["input"], found["weight"], found["bias"]
    rest = len(found.tensors) - 1
    out, into = (1, 0) if found["transposed"] else (0, 1)
    for cut in shard_kinds(found, number):
        yield [cut(0), *[R] * rest], cut(0)
        if found["groups"] != 1 or rest != 1 + (bias is not None):
            continue
        if not has_empty_part(weight.shape[out], found.mesh):
            yield [R, cut(out), *[cut(0)] * (rest - 1)], cut(1)
        if not has_empty_part(image.shape[1], found.mesh) and image.is_floating_point():
            yield [cut(1), cut(into), *[SUM] * (rest - 1)], SUM


@register_op_strategy(
    "_max_pool", "_max_pool_with_indices", "_adaptive_max_pool", "_avg_pool", "_adaptive_avg_pool", "_group_norm",
)  # fmt: skip
def _batch_sharded(found: OpCall, number: int) -> Iterator[Strategy]:
    """Shard the batch. (Inputs without a batch dimension got one before.)"""
    if found.op.name == "_group_norm" and has_empty_part(found.tensors[0].shape[0], found.mesh):
        return  # its kernel needs a sample
    for cut in shard_kinds(found, number):
        yield [cut(0), *[R] * (len(found.tensors) - 1)], cut(0)
