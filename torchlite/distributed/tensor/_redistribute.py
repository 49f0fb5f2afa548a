"""From one way in which a tensor lies over a mesh to another: steps along one dimension of the mesh at a time, on this
process's part, which gradients follow.

What gradients are: that of a tensor that is cut is cut in the same way, that of a replicated one is replicated, and
that of one whose summands lie on the processes is replicated as well (a summand's derivative is the sum's). So each
step below is the transpose of another, and a second derivative is made of the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlite as torch
from torchlite.autograd import Function

from ..device_mesh import DeviceMesh
from ._collective_utils import all_gather_dim, all_reduce_tensor, all_to_all_dims, reduce_scatter_dim
from .placement_types import Partial, Placement, Replicate, Shard, concat_ranges

# (dimension, placement, whole size): what says how a dimension is cut.
DimShard = tuple[int, Shard, int]


class _ShardToReplicate(Function):
    """Cut to replicated."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, cut: DimShard, group: Any) -> torch.Tensor:
        ctx.cut, ctx.group = cut, group
        return all_gather_dim(tensor, *cut, group)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _ReplicateToShard.apply(grad, ctx.cut, ctx.group), None, None


class _ReplicateToShard(Function):
    """Replicated to cut."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, cut: DimShard, group: Any) -> torch.Tensor:
        ctx.cut, ctx.group = cut, group
        dim, placement, size = cut
        return concat_ranges(tensor, dim, placement.pieces(size, group.size())[group.rank()]).clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _ShardToReplicate.apply(grad, ctx.cut, ctx.group), None, None


class _PartialToReplicate(Function):
    """Summands to their sum."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return all_reduce_tensor(tensor, "sum", group)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _SumGradients.apply(grad, ctx.group), None


class _SumGradients(Function):
    """A replicated tensor where each process does something else with it: the gradients add up."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _PartialToReplicate.apply(grad, ctx.group), None


class _PartialToShard(Function):
    """Summands to their sum, cut."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, cut: DimShard, group: Any) -> torch.Tensor:
        ctx.cut, ctx.group = cut, group
        return reduce_scatter_dim(tensor, cut[0], cut[1], "sum", group)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _SumGradients.apply(_ShardToReplicate.apply(grad, ctx.cut, ctx.group), ctx.group), None, None


class _ShardToShard(Function):
    """Cut in one dimension to cut in another."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, source: DimShard, target: DimShard, group: Any) -> torch.Tensor:
        ctx.source, ctx.target, ctx.group = source, target, group
        return all_to_all_dims(tensor, source, target, group)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _ShardToShard.apply(grad, ctx.target, ctx.source, ctx.group), None, None, None


class _ReplicateToPartial(Function):
    """A replicated tensor as summands: the first process's, and zeros."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return tensor.clone() if group.rank() == 0 else torch.zeros_like(tensor)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _PartialGradient.apply(grad, ctx.group), None


class _PartialGradient(Function):
    """The transpose of `_AsSummand`: the gradient of a sum is that of each summand."""

    @staticmethod
    def forward(ctx: Any, grad: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return grad.view_as(grad)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _ReplicateToPartial.apply(grad, ctx.group), None


class _ExtremeToReplicate(Function):
    """The largest or smallest over the processes; equal ones share the gradient."""

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
    """A replicated tensor that each process of the group uses in its own way."""
    return _SumGradients.apply(tensor, group) if tensor.requires_grad else tensor


def partial_gradient(gradient: torch.Tensor, group: Any) -> torch.Tensor:
    """The gradient of a summand as that of the sum, which is replicated."""
    return _PartialGradient.apply(gradient, group) if gradient.requires_grad else gradient


def _reduced(tensor: torch.Tensor, reduce_op: str, group: Any) -> torch.Tensor:
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
    tensor: torch.Tensor, source: Placement, target: Placement, shape: Sequence[int], group: Any
) -> torch.Tensor:
    """This process's part after one step along one dimension of the mesh, whose line is `group`; `shape` is what the
    tensor would be without that dimension's cut. RuntimeError where there is no way to the target.
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
            return _ShardToShard.apply(tensor, cut, (target.dim, target, shape[target.dim]), group)
        whole = _ShardToReplicate.apply(tensor, cut, group)
        return whole if target.is_replicate() else redistribute_dim(whole, Replicate(), target, shape, group)
    if isinstance(source, Partial):
        if isinstance(target, Shard) and source.reduce_op == "sum":
            return _PartialToShard.apply(tensor, (target.dim, target, shape[target.dim]), group)
        whole = _reduced(tensor, source.reduce_op, group)
        return whole if target.is_replicate() else redistribute_dim(whole, Replicate(), target, shape, group)
    if isinstance(target, Shard):
        return _ReplicateToShard.apply(tensor, (target.dim, target, shape[target.dim]), group)
    if isinstance(target, Partial):
        return _ReplicateToPartial.apply(tensor, group) if target.reduce_op == "sum" else tensor
    raise RuntimeError(f"Can not redistribute from {source} to {target}")


def _shape_before(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], number: int) -> list[int]:
    """The shape that dimension `number` of the mesh cuts: the whole's, after those before it."""
    left, place = list(shape), mesh.get_coordinate()
    assert place is not None
    for i, placement in enumerate(placements[:number]):
        if isinstance(placement, Shard):
            left[placement.dim] = placement.sizes(left[placement.dim], mesh.size(i))[place[i]]
    return left


def _is_shard(placement: Placement) -> int | None:
    return placement.dim if isinstance(placement, Shard) else None


def redistribute_local_tensor(
    tensor: torch.Tensor,
    shape: Sequence[int],
    mesh: DeviceMesh,
    source: Sequence[Placement],
    target: Sequence[Placement],
) -> torch.Tensor:
    """This process's part of a tensor of `shape` that lay as `source` says and is to lie as `target` says."""
    now = list(source)
    if now == list(target) or mesh.get_coordinate() is None:
        return tensor

    def go(number: int, placement: Placement) -> None:
        nonlocal tensor
        if now[number] != placement:
            before = _shape_before(shape, mesh, now, number)
            tensor = redistribute_dim(tensor, now[number], placement, before, mesh.get_group(number))
            now[number] = placement

    # What a dimension of the mesh cuts is cut anew where one that stands before it begins or ends to cut the same.
    for number in reversed(range(1, mesh.ndim)):
        moved = {_is_shard(p) for i in range(number) if now[i] != target[i] for p in (now[i], target[i])}
        if isinstance(now[number], Shard) and _is_shard(now[number]) in moved:
            go(number, Replicate())
    for number in range(mesh.ndim):
        go(number, target[number])
    return tensor
