"""Redistribution of DTensors between placements: differentiable steps on local tensors, one mesh dimension at a time.

The gradient of a sharded tensor is sharded in the same way, that of a replicated one is replicated, and that of a
partial one is replicated too (a summand's derivative is the sum's). Each step below is therefore the transpose of
another, and second derivatives use the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlite as torch
from torchlite.autograd import Function

from ..device_mesh import DeviceMesh
from ._collective_utils import Later, all_gather_dim, all_reduce_tensor, all_to_all_dims, reduce_scatter_dim
from .placement_types import Partial, Placement, Replicate, Shard, concat_ranges

# (dimension, placement, global size) of a sharded dimension.
DimShard = tuple[int, Shard, int]


class _ShardToReplicate(Function):
    """Sharded to replicated."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, cut: DimShard, group: Any, later: Later = None) -> torch.Tensor:
        ctx.cut, ctx.group = cut, group
        return all_gather_dim(tensor, *cut, group, later)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _ReplicateToShard.apply(grad, ctx.cut, ctx.group), None, None, None


class _ReplicateToShard(Function):
    """Replicated to sharded."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, cut: DimShard, group: Any) -> torch.Tensor:
        ctx.cut, ctx.group = cut, group
        dim, placement, size = cut
        return concat_ranges(tensor, dim, placement.pieces(size, group.size())[group.rank()]).clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _ShardToReplicate.apply(grad, ctx.cut, ctx.group), None, None


class _PartialToReplicate(Function):
    """Partial to replicated: all-reduce."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any, later: Later = None) -> torch.Tensor:
        ctx.group = group
        return all_reduce_tensor(tensor, "sum", group, later)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _SumGradients.apply(grad, ctx.group), None, None


class _SumGradients(Function):
    """Identity on a replicated tensor that each process uses differently: the gradients are summed."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _PartialToReplicate.apply(grad, ctx.group), None


class _PartialToShard(Function):
    """Partial to sharded: reduce-scatter."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, cut: DimShard, group: Any, later: Later = None) -> torch.Tensor:
        ctx.cut, ctx.group = cut, group
        return reduce_scatter_dim(tensor, cut[0], cut[1], "sum", group, later)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _SumGradients.apply(_ShardToReplicate.apply(grad, ctx.cut, ctx.group), ctx.group), None, None, None


class _ShardToShard(Function):
    """Sharded in one dimension to sharded in another: all-to-all."""

    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, source: DimShard, target: DimShard, group: Any, later: Later = None
    ) -> torch.Tensor:
        ctx.source, ctx.target, ctx.group = source, target, group
        return all_to_all_dims(tensor, source, target, group, later)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _ShardToShard.apply(grad, ctx.target, ctx.source, ctx.group), None, None, None, None


class _ReplicateToPartial(Function):
    """Replicated to partial: the first process's tensor, zeros on the others."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return tensor.clone() if group.rank() == 0 else torch.zeros_like(tensor)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _PartialGradient.apply(grad, ctx.group), None


class _PartialGradient(Function):
    """Transpose of `_ReplicateToPartial`: the gradient of a sum is that of each summand."""

    @staticmethod
    def forward(ctx: Any, grad: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return grad.view_as(grad)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _ReplicateToPartial.apply(grad, ctx.group), None


class _ExtremeToReplicate(Function):
    """Maximum or minimum over the processes; equal ones share the gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, reduce_op: str, group: Any) -> torch.Tensor:
        out = all_reduce_tensor(tensor, reduce_op, group)
        ctx.save_for_backward(tensor, out)
        ctx.group = group
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        tensor, out = ctx.saved_tensors
        mine = (tensor == out).to(grad.dtype)
        return grad * (mine / all_reduce_tensor(mine, "sum", ctx.group)), None, None


def sum_gradients(tensor: torch.Tensor, group: Any) -> torch.Tensor:
    """Mark a replicated tensor that each process of the group uses differently."""
    return _SumGradients.apply(tensor, group) if tensor.requires_grad else tensor


def partial_gradient(gradient: torch.Tensor, group: Any) -> torch.Tensor:
    """Return the gradient of a summand, which is that of the sum, replicated."""
    return _PartialGradient.apply(gradient, group) if gradient.requires_grad else gradient


def _reduce_partial(tensor: torch.Tensor, reduce_op: str, group: Any) -> torch.Tensor:
    if reduce_op in ("sum", "avg"):
        out = _PartialToReplicate.apply(tensor, group)
        if reduce_op == "sum":
            return out
        return out / group.size() if out.is_floating_point() or out.is_complex() else out // group.size()
    if reduce_op in ("max", "min"):
        return _ExtremeToReplicate.apply(tensor, reduce_op, group)
    if tensor.requires_grad and reduce_op == "product":
        cut = (0, Shard(0), group.size())
        return _ShardToReplicate.apply(tensor.unsqueeze(0), cut, group).prod(0)
    return all_reduce_tensor(tensor, reduce_op, group)


def redistribute_dim(
    tensor: torch.Tensor, source: Placement, target: Placement, shape: Sequence[int], group: Any, later: Later = None
) -> torch.Tensor:
    """Redistribute the local tensor along one mesh dimension, whose group is `group`.

    `shape` is the tensor's shape without that dimension's sharding. RuntimeError for an unsupported target. `later`
    gets what has to be waited for, if one collective is the whole step.
    """
    if source == target:
        return tensor
    if isinstance(source, Shard):
        cut = (source.dim, source, shape[source.dim])
        if isinstance(target, Shard):
            if target.dim == source.dim:
                return _ReplicateToShard.apply(
                    _ShardToReplicate.apply(tensor, cut, group), (target.dim, target, shape[target.dim]), group
                )
            return _ShardToShard.apply(tensor, cut, (target.dim, target, shape[target.dim]), group, later)
        whole = _ShardToReplicate.apply(tensor, cut, group, later if target.is_replicate() else None)
        return whole if target.is_replicate() else redistribute_dim(whole, Replicate(), target, shape, group)
    if isinstance(source, Partial):
        if isinstance(target, Shard) and source.reduce_op == "sum":
            return _PartialToShard.apply(tensor, (target.dim, target, shape[target.dim]), group, later)
        if target.is_replicate() and source.reduce_op == "sum":
            return _PartialToReplicate.apply(tensor, group, later)
        whole = _reduce_partial(tensor, source.reduce_op, group)
        return whole if target.is_replicate() else redistribute_dim(whole, Replicate(), target, shape, group)
    if isinstance(target, Shard):
        return _ReplicateToShard.apply(tensor, (target.dim, target, shape[target.dim]), group)
    if isinstance(target, Partial):
        return _ReplicateToPartial.apply(tensor, group) if target.reduce_op == "sum" else tensor
    raise RuntimeError(f"Can not redistribute from {source} to {target}")


def _shape_before_sharding(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], number: int
) -> list[int]:
    """Return the shape that mesh dimension `number` shards: the global one, sharded by earlier dimensions."""
    left, place = list(shape), mesh.get_coordinate()
    assert place is not None
    for i, placement in enumerate(placements[:number]):
        if isinstance(placement, Shard):
            left[placement.dim] = placement.sizes(left[placement.dim], mesh.size(i))[place[i]]
    return left


def _get_shard_dim(placement: Placement) -> int | None:
    return placement.dim if isinstance(placement, Shard) else None


def redistribute_local_tensor(
    tensor: torch.Tensor,
    shape: Sequence[int],
    mesh: DeviceMesh,
    source: Sequence[Placement],
    target: Sequence[Placement],
    later: Later = None,
) -> torch.Tensor:
    """Redistribute the local tensor of a tensor of `shape` from `source` to `target` placements.

    A list as `later` gets functions that wait for the last messages; the data are complete after them.
    """
    now = list(source)
    if now == list(target) or mesh.get_coordinate() is None:
        return tensor
    # A sharding is redone if an earlier mesh dimension starts or stops sharding the same tensor dimension.
    steps: list[tuple[int, Placement]] = []
    planned = list(now)
    for number in reversed(range(1, mesh.ndim)):
        moved = {_get_shard_dim(p) for i in range(number) if planned[i] != target[i] for p in (planned[i], target[i])}
        if isinstance(planned[number], Shard) and _get_shard_dim(planned[number]) in moved:
            planned[number] = Replicate()
            steps.append((number, Replicate()))
    steps += [(number, target[number]) for number in range(mesh.ndim) if planned[number] != target[number]]
    for step, (number, placement) in enumerate(steps, 1):
        before = _shape_before_sharding(shape, mesh, now, number)
        waits = later if step == len(steps) else None
        tensor = redistribute_dim(tensor, now[number], placement, before, mesh.get_group(number), waits)
        now[number] = placement
    return tensor
