"""Collectives of DTensors on local tensors of unequal sizes, by padding or size exchange.

A collective that gets a list as `later` returns at once. It appends functions that wait for the data, and put them into
the memory of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torchlite as torch

from .. import distributed_c10d as dist
from .._functional_collectives import _reduce_op
from .placement_types import Shard, concat_ranges, pad_dim

# Called with a collective's name for each that runs (`CommDebugMode`).
OBSERVERS: list[Callable[[str, torch.Tensor], None]] = []

Later = list[Callable[[], object]] | None


def _notify_observers(name: str, tensor: torch.Tensor) -> None:
    for observer in OBSERVERS:
        observer(name, tensor)


def mesh_broadcast(tensor: torch.Tensor, mesh: Any, mesh_dim: int = 0, *, group_src: int = 0) -> None:
    """Broadcast a tensor along a mesh dimension from the process at coordinate `group_src`."""
    group = mesh.get_group(mesh_dim)
    _notify_observers("broadcast_", tensor)
    dist.broadcast(tensor, dist.get_global_rank(group, group_src), group)


def mesh_scatter(
    output: torch.Tensor, scatter_list: list[torch.Tensor], mesh: Any, mesh_dim: int = 0, *, group_src: int = 0
) -> None:
    """Scatter a list along a mesh dimension from the process at coordinate `group_src`."""
    group = mesh.get_group(mesh_dim)
    _notify_observers("scatter_", output)
    mine = group.rank() == group_src
    dist.scatter(output, scatter_list if mine else None, dist.get_global_rank(group, group_src), group)


def _fill_later(later: Later, work: Any, result: torch.Tensor, make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Return `result`, whose elements `make` computes once the messages have arrived."""
    memory = result.detach()

    def fill() -> None:
        work.wait()
        with torch.no_grad():
            memory.copy_(make())

    assert later is not None
    later.append(fill)
    return result


def all_reduce_tensor(tensor: torch.Tensor, reduce_op: str, group: Any, later: Later = None) -> torch.Tensor:
    """Return the reduction of the tensors of all by `reduce_op`."""
    _notify_observers("all_reduce", tensor)
    out = tensor.clone(memory_format=torch.contiguous_format)
    if out.dtype is torch.bool:
        out = out.to(torch.uint8)
        dist.all_reduce(out, _reduce_op(reduce_op), group)
        return out.to(torch.bool)
    work = dist.all_reduce(out, _reduce_op(reduce_op), group, async_op=later is not None)
    if later is not None and work is not None:
        later.append(work.wait)
    return out


def concat_shards(parts: list[torch.Tensor], dim: int, placement: Shard, size: int) -> torch.Tensor:
    """Concatenate the shards of a dimension from all processes."""
    places = [
        (start, stop, rank) for rank, ranges in enumerate(placement.pieces(size, len(parts))) for start, stop in ranges
    ]
    if len(places) == len(parts):
        return torch.cat(parts, dim)
    found, taken = [], [0] * len(parts)
    for start, stop, rank in places:  # of one process its ranges lie in this order
        found.append((start, parts[rank].narrow(dim, taken[rank], stop - start)))
        taken[rank] += stop - start
    return torch.cat([part for _, part in sorted(found, key=lambda item: item[0])], dim)


def all_gather_dim(
    tensor: torch.Tensor, dim: int, placement: Shard, size: int, group: Any, later: Later = None
) -> torch.Tensor:
    """Gather a dimension `dim` of global length `size` that is sharded over a group."""
    _notify_observers("all_gather_into_tensor", tensor)
    sizes = placement.sizes(size, group.size())
    longest = max(sizes)
    sent = pad_dim(tensor, dim, longest).movedim(dim, 0).contiguous()
    out = sent.new_empty([group.size() * longest, *sent.shape[1:]])
    if later is not None:
        sent = sent.clone()  # the program may write into its tensor
    work = dist.all_gather_into_tensor(out, sent, group, async_op=later is not None)

    def make() -> torch.Tensor:
        parts = [out.narrow(0, rank * longest, length) for rank, length in enumerate(sizes)]
        return concat_shards(parts, 0, placement, size)

    if later is None or work is None:
        return make().movedim(0, dim)
    return _fill_later(later, work, out.new_empty([size, *out.shape[1:]]), make).movedim(0, dim)


def reduce_scatter_dim(
    tensor: torch.Tensor, dim: int, placement: Shard, reduce_op: str, group: Any, later: Later = None
) -> torch.Tensor:
    """Return this process's shard, along `dim`, of the reduction of all tensors by `reduce_op`."""
    _notify_observers("reduce_scatter_tensor", tensor)
    first = tensor.movedim(dim, 0)
    size = first.shape[0]
    sizes = placement.sizes(size, group.size())
    longest = max(sizes)
    parts = [pad_dim(concat_ranges(first, 0, ranges), 0, longest) for ranges in placement.pieces(size, group.size())]
    sent = torch.cat(parts)
    out = sent.new_empty([longest, *sent.shape[1:]])
    work = dist.reduce_scatter_tensor(out, sent.contiguous(), _reduce_op(reduce_op), group, async_op=later is not None)
    if later is not None and work is not None:
        later.append(work.wait)
    return out.narrow(0, 0, sizes[group.rank()]).movedim(0, dim)


def all_to_all_dims(
    tensor: torch.Tensor,
    source: tuple[int, Shard, int],
    target: tuple[int, Shard, int],
    group: Any,
    later: Later = None,
) -> torch.Tensor:
    """Change the sharded dimension: each of `source` and `target` is (dimension, placement, global size)."""
    _notify_observers("all_to_all_single", tensor)
    (before, cut_before, size_before), (after, cut_after, size_after) = source, target
    count, mine = group.size(), group.rank()
    lengths = cut_before.sizes(size_before, count)
    parts = [concat_ranges(tensor, after, ranges) for ranges in cut_after.pieces(size_after, count)]
    here = parts[mine].shape[after]
    shapes = []
    for length in lengths:
        shape = list(tensor.shape)
        shape[before], shape[after] = length, here
        shapes.append(shape)
    counts = [math.prod(shape) for shape in shapes]
    sent = torch.cat([part.reshape(-1) for part in parts])
    out = sent.new_empty([sum(counts)])
    work = dist.all_to_all_single(
        out, sent, counts, [part.numel() for part in parts], group, async_op=later is not None
    )

    def make() -> torch.Tensor:
        found = [flat.reshape(shape) for flat, shape in zip(out.split(counts), shapes, strict=True)]
        return concat_shards(found, before, cut_before, size_before)

    if later is None or work is None:
        return make()
    shape = list(tensor.shape)
    shape[before], shape[after] = size_before, here
    return _fill_later(later, work, out.new_empty(shape), make)
