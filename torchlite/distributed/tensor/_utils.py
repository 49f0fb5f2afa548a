"""Local shapes, offsets and strides of DTensors, and global ones from local tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlite as torch

from ..device_mesh import DeviceMesh
from .placement_types import Placement, Shard, _StridedShard

__all__ = [
    "compute_global_tensor_info", "compute_global_tensor_shape", "compute_local_shape_and_global_offset",
    "compute_local_stride", "compute_local_tensor_info", "normalize_to_torch_size",
]  # fmt: skip


def local_ranges(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], place: Sequence[int] | None = None
) -> list[list[tuple[int, int]]]:
    """Return, for each dimension, the ranges (start, stop) of a process's shard, in memory order.

    `place` is the process's coordinate, by default this one's.
    """
    where = mesh.get_coordinate() if place is None else place
    held: list[list[tuple[int, int]]] = [[(0, size)] for size in global_shape]
    if where is None:
        return [[] for _ in global_shape]
    for i, placement in enumerate(placements):
        if isinstance(placement, Shard):
            held[placement.dim] = _shard_ranges(held[placement.dim], placement, mesh.size(i), where[i])
    return held


def _shard_ranges(held: list[tuple[int, int]], placement: Shard, count: int, mine: int) -> list[tuple[int, int]]:
    """Return the subranges of consecutive ranges that a process has after one more sharding."""
    size = sum(stop - start for start, stop in held)
    found: list[tuple[int, int]] = []
    for first, last in placement.pieces(size, count)[mine]:
        begin = 0
        for start, stop in held:
            low, high = max(first, begin), min(last, begin + stop - start)
            if low < high:
                if found and found[-1][1] == start + low - begin:
                    found[-1] = (found[-1][0], start + high - begin)
                else:
                    found.append((start + low - begin, start + high - begin))
            begin += stop - start
    return found


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return this process's local shape, and its offset in each dimension.

    A process outside the mesh has ((0,), ()). The offset of an empty shard is the size of the dimension.
    """
    if mesh.get_coordinate() is None:
        return (0,), ()
    held = local_ranges(global_shape, mesh, placements)
    shape = tuple(sum(stop - start for start, stop in part) for part in held)
    if skip_offset:
        return shape, ()
    return shape, tuple(part[0][0] if part else size for part, size in zip(held, global_shape, strict=True))


def compute_local_shape(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[int, ...]:
    """Return this process's local shape."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements, True)[0]


def compute_local_stride(global_stride: Sequence[int], local_shape: Sequence[int]) -> tuple[int, ...]:
    """Return strides of a local tensor with the memory order of the global one."""
    order = sorted(range(len(local_shape)), key=lambda dim: (global_stride[dim], -dim))
    strides, step = [0] * len(local_shape), 1
    for dim in order:
        strides[dim] = step
        step *= max(local_shape[dim], 1)
    return tuple(strides)


def compute_local_tensor_info(
    global_tensor: torch.Tensor, mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[list[int], list[int]]:
    """Return shape and strides of this process's local tensor."""
    shape = compute_local_shape(global_tensor.shape, mesh, placements)
    return list(shape), list(compute_local_stride(global_tensor.stride(), shape))


def compute_global_tensor_info(
    tensor: Any, mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[list[int], list[int]]:
    """Return global shape and strides, if all local tensors are as large as this one.

    RuntimeError for a sharded dimension that does not exist, or several mesh dimensions that stride one.
    """
    shape, stride = list(tensor.shape), list(tensor.stride())
    for i, placement in enumerate(placements):
        if isinstance(placement, Shard):
            if placement.dim < 0:
                raise AssertionError(
                    "Shard placements should have negative dims normalized in the user-facing APIs: " + repr(placement)
                )
            dim = placement.dim
            if dim >= len(shape):
                raise AssertionError(
                    f"Sharding dim {dim} greater than tensor ndim {len(shape)} for placement number {i}."
                )
            step = stride[dim]
            before = shape[dim]
            shape[dim] *= mesh.size(i)
            for other in range(len(stride)):
                if other != dim and stride[other] >= step and stride[other] and before:
                    if stride[other] > step or (stride[other] == step and other < dim):
                        stride[other] *= mesh.size(i)
        elif not placement.is_replicate() and not placement.is_partial():
            raise RuntimeError(f"placement type {type(placement)} not supported!")
    return shape, stride


def compute_global_tensor_shape(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> torch.Size:
    """Return the global shape from local shapes, which the processes exchange.

    NotImplementedError for meshes of several dimensions. RuntimeError if local shapes differ in another dimension than
    the sharded one.
    """
    if len(placements) != 1:
        raise NotImplementedError("compute_global_tensor_shape only supports 1 placement for now.")
    placement = placements[0]
    if placement.is_replicate():
        return torch.Size(shape)
    if not isinstance(placement, Shard) or isinstance(placement, _StridedShard):
        raise NotImplementedError(f"Placement type {type(placement)} not supported.")
    from .. import distributed_c10d as dist

    every: list[Any] = [None] * mesh.size()
    dist.all_gather_object(every, tuple(shape), group=mesh.get_group())
    whole = list(shape)
    for other in every:
        if any(a != b for dim, (a, b) in enumerate(zip(other, shape, strict=True)) if dim != placement.dim):
            raise RuntimeError("Non-sharded dimensions should have identical size across ranks.")
    whole[placement.dim] = sum(other[placement.dim] for other in every)
    return torch.Size(whole)


def normalize_to_torch_size(size: Any) -> torch.Size:
    """Return the size of `f(2, 3)`, `f((2, 3))` and `f(2)`."""
    if isinstance(size, torch.Size):
        return size
    if isinstance(size, int):
        return torch.Size([size])
    if len(size) == 1 and isinstance(size[0], Sequence):
        return torch.Size(size[0])
    return torch.Size(size)
