"""Functional collectives: they return new tensors, are differentiable, and accept a group, ranks, or a mesh.

Results are complete when a call returns; `wait_tensor` exists for compatibility.
"""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite.autograd import Function

from . import distributed_c10d as dist
from .device_mesh import DeviceMesh
from .distributed_c10d import ProcessGroup, ReduceOp

__all__ = [
    "AsyncCollectiveTensor", "all_gather_into_tensor_coalesced", "all_gather_tensor", "all_gather_tensor_autograd",
    "all_reduce", "all_reduce_coalesced", "all_to_all_single", "all_to_all_single_autograd", "broadcast",
    "permute_tensor", "reduce_scatter_tensor", "reduce_scatter_tensor_autograd", "reduce_scatter_tensor_coalesced",
    "wait_tensor",
]  # fmt: skip

_OPS = {
    "sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "product": ReduceOp.PRODUCT, "min": ReduceOp.MIN, "max": ReduceOp.MAX,
    "band": ReduceOp.BAND, "bor": ReduceOp.BOR, "bxor": ReduceOp.BXOR,
}  # fmt: skip


class AsyncCollectiveTensor(torch.Tensor):
    """Type of pending results, for isinstance tests: no tensor is one."""


def wait_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor, which is complete."""
    return tensor


def _reduce_op(name: str) -> Any:
    found = _OPS.get(name.lower())
    if found is None:
        raise ValueError(f"Unsupported reduce op: {name}")
    return found


def _to_process_group(of: Any, tag: str = "") -> ProcessGroup:
    """Return the group of a group, its name, ranks, lists of ranks, a mesh, or a mesh and a dimension."""
    if isinstance(of, ProcessGroup):
        return of
    if isinstance(of, str):
        return dist._resolve_process_group(of)
    if isinstance(of, DeviceMesh):
        if of.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return of.get_group()
    if isinstance(of, tuple) and len(of) == 2 and isinstance(of[0], DeviceMesh):
        return of[0].get_group(of[1])
    if isinstance(of, list):
        lists = of if of and isinstance(of[0], list) else [of]
        if len({len(ranks) for ranks in lists}) != 1:
            raise ValueError("group sizes must be identical")
        return dist._find_or_create_pg_by_ranks_and_tag(tag, [rank for ranks in lists for rank in ranks], len(lists[0]))
    raise ValueError("Invalid type for group, must be one of List, Processgroup, DeviceMesh or (DeviceMesh, int).")


def _resolve_group(group: Any, tag: str = "") -> ProcessGroup:
    return _to_process_group(group, tag)


def _resolve_group_name(group: Any, tag: str = "") -> str:
    return _to_process_group(group, tag).group_name


def _expand_group(group: Any, tag: str = "") -> tuple[str, list[int], int]:
    """Return tag, ranks and size of a group."""
    found = _to_process_group(group, tag)
    ranks = dist.get_process_group_ranks(found)
    return tag or dist._get_group_tag(found), ranks, len(ranks)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, op: str, group: Any) -> torch.Tensor:
        ctx.op, ctx.group = op, group
        out = tensor.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(out, _reduce_op(op), group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        _check_sum("all_reduce", ctx.op)
        return _AllReduce.apply(grad, "sum", ctx.group), None, None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        shape = [group.size() * (tensor.shape[0] if tensor.dim() else 1), *tensor.shape[1:]]
        out = tensor.new_empty(shape)
        dist.all_gather_into_tensor(out, tensor.contiguous(), group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _ReduceScatter.apply(grad, "sum", ctx.group), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, op: str, group: Any) -> torch.Tensor:
        ctx.op, ctx.group = op, group
        out = tensor.new_empty([tensor.shape[0] // group.size(), *tensor.shape[1:]])
        dist.reduce_scatter_tensor(out, tensor.contiguous(), _reduce_op(op), group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        _check_sum("reduce_scatter_tensor", ctx.op)
        return _Gather.apply(grad, ctx.group), None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, into: Any, counts: Any, group: Any) -> torch.Tensor:
        ctx.into, ctx.counts, ctx.group = into, counts, group
        rows = sum(into) if into else tensor.shape[0]
        out = tensor.new_empty([rows, *tensor.shape[1:]])
        dist.all_to_all_single(out, tensor.contiguous(), into, counts, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return _AllToAll.apply(grad, ctx.counts, ctx.into, ctx.group), None, None, None


def _check_sum(call: str, op: str) -> None:
    if op != "sum":
        raise RuntimeError(f"{call} backward only supports 'sum' reduction, got '{op}'")


def broadcast(self: torch.Tensor, src: int, group: Any, tag: str = "") -> torch.Tensor:
    """Return the tensor of the rank `src`."""
    out = self.detach().clone(memory_format=torch.contiguous_format)
    dist.broadcast(out, src, _to_process_group(group, tag))
    return out


def all_reduce(self: torch.Tensor, reduceOp: str, group: Any, tag: str = "") -> torch.Tensor:
    """Return the reduction ("sum", "avg", "max" ...) of the tensors of all."""
    return _AllReduce.apply(self, reduceOp.lower(), _to_process_group(group, tag))


def all_gather_tensor(self: torch.Tensor, gather_dim: int, group: Any, tag: str = "") -> torch.Tensor:
    """Return the tensors of all, concatenated along a dimension."""
    found = _to_process_group(group, tag)
    out = _Gather.apply(self, found)
    return torch.cat(out.chunk(found.size(), 0), gather_dim) if gather_dim and found.size() > 1 else out


def reduce_scatter_tensor(
    self: torch.Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> torch.Tensor:
    """Return this rank's part, along a dimension, of the reduction of the tensors of all."""
    found = _to_process_group(group, tag)
    size = found.size()
    if self.shape[scatter_dim] % size:
        raise AssertionError(f"input dimension 0 ({self.shape[0]} must be a multiple of group_size {size})")
    parts = torch.cat(self.chunk(size, scatter_dim)) if scatter_dim and size > 1 else self
    return _ReduceScatter.apply(parts, reduceOp.lower(), found)


def all_to_all_single(
    self: torch.Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> torch.Tensor:
    """Return the rows that each rank has for this one: evenly split, or by the split sizes."""
    if output_split_sizes is None or input_split_sizes is None:
        if output_split_sizes is not None or input_split_sizes is not None:
            raise AssertionError(
                "output_split_sizes and input_split_sizes must either be specified together or both set to None"
            )
    return _AllToAll.apply(self, output_split_sizes, input_split_sizes, _to_process_group(group, tag))


all_gather_single = all_gather_single_autograd = all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_single = reduce_scatter_single_autograd = reduce_scatter_tensor_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single


def all_reduce_coalesced(self: list[torch.Tensor], reduceOp: str, group: Any, tag: str = "") -> list[torch.Tensor]:
    """`all_reduce` of several tensors."""
    return [all_reduce(tensor, reduceOp, group, tag) for tensor in self]


def all_gather_into_tensor_coalesced(self: list[torch.Tensor], group: Any, tag: str = "") -> list[torch.Tensor]:
    """`all_gather_tensor` of several tensors along their first dimension."""
    return [all_gather_tensor(tensor, 0, group, tag) for tensor in self]


def reduce_scatter_tensor_coalesced(
    inputs: list[torch.Tensor], reduceOp: str, scatter_dim: list[int], group: Any, tag: str = ""
) -> list[torch.Tensor]:
    """`reduce_scatter_tensor` of several tensors."""
    return [
        reduce_scatter_tensor(tensor, reduceOp, dim, group, tag)
        for tensor, dim in zip(inputs, scatter_dim, strict=True)
    ]


def permute_tensor(self: torch.Tensor, src_dst: list[int], group: Any, tag: str = "") -> torch.Tensor:
    """Send rank i's tensor to the rank `src_dst[i]` of the group; return the received one."""
    found = _to_process_group(group, tag)
    rank, size = found.rank(), found.size()
    counts, into = [0] * size, [0] * size
    counts[src_dst[rank]] = into[src_dst.index(rank)] = self.numel()
    flat = _AllToAll.apply(self.reshape(-1), into, counts, found)
    return flat.reshape(self.shape)
