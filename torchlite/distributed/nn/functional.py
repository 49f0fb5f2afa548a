"""Differentiable collectives: each returns new tensors, and its backward is the transposed collective."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir
from torchlite.autograd import Function

from .. import distributed_c10d as dist
from ..distributed_c10d import ReduceOp, group

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def _group_or_world(of: Any) -> Any:
    return group.WORLD if of is None else of


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: torch.Tensor) -> torch.Tensor:
        ctx.src, ctx.group = src, group
        out = tensor.clone()
        dist.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        given = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        return None, None, given if dist.get_rank() == ctx.src else torch.zeros_like(given)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: torch.Tensor) -> torch.Tensor:
        ctx.dst, ctx.group = dst, group
        out = tensor.clone()
        dist.reduce(out, dst, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: torch.Tensor) -> Any:
        ctx.dst, ctx.group = dst, group
        out = [torch.zeros_like(tensor) for _ in range(dist.get_world_size(group))]
        mine = dist.get_rank() == dst
        dist.gather(tensor.contiguous(), out if mine else None, dst, group)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.src, ctx.group = src, group
        out = torch.zeros_like(tensors[0])
        mine = dist.get_rank() == src
        dist.scatter(out, [tensor.contiguous() for tensor in tensors] if mine else None, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
        ctx.group = group
        out = torch.empty_like(tensor)
        dist.reduce_scatter(out, [part.contiguous() for part in parts], op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: torch.Tensor) -> Any:
        ctx.group = group
        out = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(out, tensor, group)
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        mine = grads[dist.get_rank(ctx.group)]
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, mine, *grads)


class _AllGatherBase(Function):
    @staticmethod
    def forward(ctx: Any, output: torch.Tensor, tensor: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group, ctx.shape = group, tensor.shape
        dist.all_gather_into_tensor(output, tensor.contiguous(), group)
        ctx.mark_dirty(output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        out = grad.new_empty(ctx.shape)
        dist.reduce_scatter_tensor(out, grad.contiguous(), ReduceOp.SUM, ctx.group)
        return None, out, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: list[torch.Tensor], *tensors: torch.Tensor) -> Any:
        ctx.group, ctx.like = group, [tensor.shape for tensor in tensors]
        dist.all_to_all(outputs, [tensor.contiguous() for tensor in tensors], group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        given = [grads[0].new_empty(shape) for shape in ctx.like]
        return None, None, *_AllToAll.apply(ctx.group, given, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Any, output: torch.Tensor, into: Any, counts: Any, tensor: torch.Tensor
    ) -> torch.Tensor:
        ctx.group, ctx.shape, ctx.into, ctx.counts = group, tensor.shape, into, counts
        dist.all_to_all_single(output, tensor.contiguous(), into, counts, group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        given = grad.new_empty(ctx.shape)
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, given, ctx.counts, ctx.into, grad)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: torch.Tensor) -> torch.Tensor:
        ctx.op, ctx.group = op, group
        out = tensor.clone()
        dist.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


def broadcast(tensor: torch.Tensor, src: int, group: Any = None) -> torch.Tensor:
    """Returns the tensor of one rank, differentiably: its gradient is the sum of all ranks' gradients.

    Args:
        tensor: The tensor.
        src: The source's rank in the world.
        group: The group. Default: the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.nn import functional
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = functional.broadcast(x, 0)
        >>> y.sum().backward(); x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _Broadcast.apply(src, _group_or_world(group), tensor)


def gather(tensor: torch.Tensor, dst: int = 0, group: Any = None) -> tuple[torch.Tensor, ...]:
    """Gathers the tensors of all ranks on one, differentiably.

    Args:
        tensor: This rank's tensor.
        dst: The destination's rank in the world. Default: 0.
        group: The group. Default: the default group.

    Returns:
        A tuple of tensors; zeros on the other ranks.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.nn import functional
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = functional.gather(x)
        >>> y[0].sum().backward(); x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _Gather.apply(dst, _group_or_world(group), tensor)


def scatter(tensors: list[torch.Tensor], src: int = 0, group: Any = None) -> torch.Tensor:
    """Returns this rank's part of a list that one rank has, differentiably.

    Args:
        tensors: The tensors, one for each rank.
        src: The source's rank in the world. Default: 0.
        group: The group. Default: the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.nn import functional
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = functional.scatter([x])
        >>> y.sum().backward(); x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _Scatter.apply(src, _group_or_world(group), *tensors)


def reduce(tensor: torch.Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> torch.Tensor:
    """Returns the reduction of the tensors of all ranks on one, differentiably.

    Args:
        tensor: This rank's tensor.
        dst: The destination's rank in the world.
        op: The reduction, one of `ReduceOp`. Default: ``ReduceOp.SUM``.
        group: The group. Default: the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.nn import functional
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = functional.reduce(x, 0)
        >>> y.sum().backward(); x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _Reduce.apply(dst, op, _group_or_world(group), tensor)


def reduce_scatter(
    output: torch.Tensor, input_list: list[torch.Tensor], op: Any = ReduceOp.SUM, group: Any = None
) -> torch.Tensor:
    """Returns this rank's part of the reduction of all ranks' lists, differentiably.

    Args:
        output: A tensor of the part's size and dtype.
        input_list: A tensor for each rank.
        op: The reduction, one of `ReduceOp`. Default: ``ReduceOp.SUM``.
        group: The group. Default: the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.nn import functional
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = functional.reduce_scatter(torch.empty(2), [x])
        >>> y.sum().backward(); x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _ReduceScatter.apply(op, _group_or_world(group), output, *input_list)


def all_gather(tensor: torch.Tensor, group: Any = None) -> tuple[torch.Tensor, ...]:
    """Gathers the tensors of all ranks on each, differentiably.

    Args:
        tensor: This rank's tensor.
        group: The group. Default: the default group.

    Returns:
        A tuple of tensors.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.nn import functional
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = functional.all_gather(x)
        >>> y[0].sum().backward(); x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _AllGather.apply(_group_or_world(group), tensor)


def _all_gather_base(output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any = None) -> torch.Tensor:
    """Return the tensors of all, concatenated."""
    return _AllGatherBase.apply(output_tensor, input_tensor, _group_or_world(group))


def all_to_all(
    output_tensor_list: list[torch.Tensor], input_tensor_list: list[torch.Tensor], group: Any = None
) -> tuple[torch.Tensor, ...]:
    """Sends tensor ``r`` of each rank's list to rank ``r``, differentiably.

    Args:
        output_tensor_list: Tensors of the results' sizes and dtypes.
        input_tensor_list: A tensor for each rank.
        group: The group. Default: the default group.

    Returns:
        A tuple of the received tensors.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.nn import functional
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = functional.all_to_all([torch.empty(2)], [x])
        >>> y[0].sum().backward(); x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _AllToAll.apply(_group_or_world(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: torch.Tensor,
    input: torch.Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> torch.Tensor:
    """Sends part ``r`` of each rank's input to rank ``r``, differentiably.

    Args:
        output: A tensor of the result's size and dtype.
        input: The parts, along dimension 0.
        output_split_sizes: Rows that come from each rank. Default: equal parts.
        input_split_sizes: Rows that go to each rank. Default: equal parts.
        group: The group. Default: the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.nn import functional
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = functional.all_to_all_single(torch.empty(2), x)
        >>> y.sum().backward(); x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _AllToAllSingle.apply(_group_or_world(group), output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: torch.Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> torch.Tensor:
    """Returns the reduction of the tensors of all ranks; its gradient is the reduction of all gradients.

    Args:
        tensor: This rank's tensor.
        op: The reduction, one of `ReduceOp`. Default: ``ReduceOp.SUM``.
        group: The group. Default: the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> from torchlite.distributed.nn import functional
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = functional.all_reduce(x)
        >>> y.sum().backward(); x.grad
        tensor([1., 1.])
        >>> dist.destroy_process_group()
    """
    return _AllReduce.apply(op, _group_or_world(group), tensor)


__dir__ = make_module_dir(globals())
