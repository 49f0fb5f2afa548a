"""Collectives of pickled objects. Unpickling can run code: communicate only with trusted processes."""

from __future__ import annotations

import functools
import io
import os
import pickle
import sys
from typing import Any

import numpy as np

import torchlite as torch

from . import _collectives as collectives
from ._collectives import resolve_rank
from ._group_registry import _group_or_default, get_rank, get_world_size, is_not_member
from ._p2p import recv, send
from ._process_group import ProcessGroup


def _object_to_tensor(obj: Any, device: Any = None, group: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an object's pickle as a tensor, and its size."""
    file = io.BytesIO()
    pickle.Pickler(file).dump(obj)
    data = torch.from_numpy(np.frombuffer(file.getvalue(), np.uint8).copy())
    return data, torch.tensor([data.numel()], dtype=torch.int64)


def _tensor_to_object(tensor: torch.Tensor, tensor_size: Any, group: Any = None) -> Any:
    """Unpickle a tensor's bytes."""
    return pickle.loads(tensor.cpu().numpy()[: int(tensor_size)].tobytes())


def _concat_bytes(objects: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the concatenated pickles of objects, and the size of each."""
    if not objects:
        return torch.empty(0, dtype=torch.uint8), torch.empty(0, dtype=torch.int64)
    parts = [_object_to_tensor(obj) for obj in objects]
    return torch.cat([data for data, _ in parts]), torch.cat([size for _, size in parts])


def _buffer_size(sizes: torch.Tensor, count: int | None = None) -> int:
    """Return the total size of objects: the sum, or `count` times the longest.

    The sizes come from others: RuntimeError before the allocation for impossible ones.
    """
    declared = [int(size) for size in sizes.tolist()]
    total = sum(declared) if count is None else max(declared) * count
    if any(size < 0 for size in declared) or total > _total_memory():
        raise RuntimeError(
            f"another rank declares objects of {declared} bytes, "
            f"and this machine has {_total_memory()} bytes of memory: "
            "do "
            "all ranks call the same function of objects?"
        )
    return total


@functools.cache
def _total_memory() -> int:
    """Return the machine's memory in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return sys.maxsize


def _split_pickles(data: torch.Tensor, sizes: torch.Tensor, objects: list[Any]) -> None:
    start = 0
    for i, size in enumerate(sizes.tolist()):
        objects[i] = _tensor_to_object(data[start : start + size], size)
        start += size


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Gathers the objects of all ranks in a list, on each.

    The objects are pickled, and unpickling runs code: use it among trusted processes only.

    Args:
        object_list: A list with a place for each rank; receives the objects.
        obj: This rank's object.
        group: The group. Default: the default group.

    Raises:
        RuntimeError: A rank announces more bytes than the machine has.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> every = [None] * dist.get_world_size()
        >>> dist.all_gather_object(every, {"rank": dist.get_rank()})
        >>> every
        [{'rank': 0}]
        >>> dist.destroy_process_group()
    """
    if is_not_member(group, "all_gather_object"):
        return
    data, size = _object_to_tensor(obj)
    count = get_world_size(group)
    sizes = torch.empty(count, dtype=torch.int64)
    collectives.all_gather_into_tensor(sizes, size, group)
    longest = _buffer_size(sizes, count) // count
    padded = torch.zeros(longest, dtype=torch.uint8)
    padded[: data.numel()] = data
    every = torch.empty(longest * count, dtype=torch.uint8)
    collectives.all_gather_into_tensor(every, padded, group)
    for i, length in enumerate(sizes.tolist()):
        object_list[i] = _tensor_to_object(every[i * longest : i * longest + length], length)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Gathers the objects of all ranks in a list on one.

    The objects are pickled, and unpickling runs code: use it among trusted processes only.

    Args:
        obj: This rank's object.
        object_gather_list: On the destination, a list with a place for each rank; ``None`` on the others.
        dst: The destination's rank in the world. Default: 0.
        group: The group. Default: the default group.
        group_dst: The destination's rank in the group, in place of ``dst``.

    Raises:
        ValueError: The destination has no list, or another rank has one.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> every = [None]
        >>> dist.gather_object("model", every, dst=0)
        >>> every
        ['model']
        >>> dist.destroy_process_group()
    """
    found = _group_or_default(group)
    if is_not_member(found, "gather_object"):
        return
    root = resolve_rank(found, 0 if dst is None and group_dst is None else dst, group_dst)
    mine = found.rank() == root
    _check_list(mine, object_gather_list)
    data, size = _object_to_tensor(obj)
    sizes = torch.empty(found.size(), dtype=torch.int64)
    collectives.all_gather_into_tensor(sizes, size, found)
    longest = _buffer_size(sizes, found.size()) // found.size()
    padded = torch.zeros(longest, dtype=torch.uint8)
    padded[: data.numel()] = data
    every = [torch.empty(longest, dtype=torch.uint8) for _ in range(found.size())] if mine else None
    collectives.gather(padded, every, group=found, group_dst=root)
    if mine:
        assert object_gather_list is not None and every is not None
        for i, length in enumerate(sizes.tolist()):
            object_gather_list[i] = _tensor_to_object(every[i], length)


def _check_list(mine: bool, given: list[Any] | None) -> None:
    if mine and not given:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if given and not mine:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Copies a list of objects of one rank to the lists of all.

    The objects are pickled, and unpickling runs code: use it among trusted processes only.

    Args:
        object_list: On the source, the objects; on the others, a list of the same length that receives them.
        src: The source's rank in the world. Default: 0.
        group: The group. Default: the default group.
        device: Has no effect: pickles travel through host memory.
        group_src: The source's rank in the group, in place of ``src``.

    Raises:
        ValueError: Both ranks are given.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> objects = ["model", 3]
        >>> dist.broadcast_object_list(objects, src=0)
        >>> objects
        ['model', 3]
        >>> dist.destroy_process_group()
    """
    found = _group_or_default(group)
    if is_not_member(found, "broadcast_object_list"):
        return
    root = resolve_rank(found, 0 if src is None and group_src is None else src, group_src)
    mine = found.rank() == root
    data, sizes = _concat_bytes(object_list) if mine else (None, torch.empty(len(object_list), dtype=torch.int64))
    collectives.broadcast(sizes, group=found, group_src=root)
    if data is None:
        data = torch.empty(_buffer_size(sizes), dtype=torch.uint8)
    collectives.broadcast(data, group=found, group_src=root)
    if not mine:
        _split_pickles(data, sizes, object_list)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Sends each rank one object of a list that one rank has.

    The objects are pickled, and unpickling runs code: use it among trusted processes only.

    Args:
        scatter_object_output_list: A list whose first place receives this rank's object.
        scatter_object_input_list: On the source, an object for each rank; ``None`` on the others.
        src: The source's rank in the world. Default: 0.
        group: The group. Default: the default group.
        group_src: The source's rank in the group, in place of ``src``.

    Raises:
        ValueError: The output list is empty, or the source has no input list.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> out = [None]
        >>> dist.scatter_object_list(out, [{"part": 0}], src=0)
        >>> out
        [{'part': 0}]
        >>> dist.destroy_process_group()
    """
    found = _group_or_default(group)
    if is_not_member(found, "scatter_object_list"):
        return
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = resolve_rank(found, 0 if src is None and group_src is None else src, group_src)
    mine = found.rank() == root
    if mine and not scatter_object_input_list:
        raise ValueError("source rank must provide non-empty scatter_object_input_list")
    sizes, parts = torch.empty(found.size(), dtype=torch.int64), None
    if mine:
        assert scatter_object_input_list is not None
        every = [_object_to_tensor(obj)[0] for obj in scatter_object_input_list]
        sizes = torch.tensor([data.numel() for data in every], dtype=torch.int64)
    collectives.broadcast(sizes, group=found, group_src=root)
    longest = _buffer_size(sizes, 1)
    if mine:
        parts = [torch.cat([data, data.new_zeros(longest - data.numel())]) for data in every]
    out = torch.empty(longest, dtype=torch.uint8)
    collectives.scatter(out, parts, group=found, group_src=root)
    scatter_object_output_list[0] = _tensor_to_object(out, sizes[found.rank()])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends a list of objects to a rank, which calls `recv_object_list`.

    The objects are pickled, and unpickling runs code: use it among trusted processes only. With two processes::

        if dist.get_rank() == 0:
            dist.send_object_list(["model", 3], dst=1)
        else:
            objects = [None, None]
            dist.recv_object_list(objects, src=0)

    Args:
        object_list: The objects.
        dst: The destination's rank in the world.
        group: The group. Default: the default group.
        device: Has no effect: pickles travel through host memory.
        group_dst: The destination's rank in the group, in place of ``dst``.
        use_batch: Has no effect: there are two messages.

    Raises:
        ValueError: The destination is this rank.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> dist.send_object_list(["model"], dst=0)
        Traceback (most recent call last):
        ValueError: Invalid destination rank: destination rank should not be the same ...
        >>> dist.destroy_process_group()
    """
    found = _group_or_default(group)
    to = resolve_rank(found, dst, group_dst)
    if get_rank(found) == to:
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    data, sizes = _concat_bytes(object_list)
    send(sizes, group=found, group_dst=to)
    send(data, group=found, group_dst=to)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receives a list of objects from a rank, which calls `send_object_list`.

    The objects are pickled, and unpickling runs code: use it among trusted processes only. `send_object_list` has an
    example.

    Args:
        object_list: A list of the same length as the sender's; receives the objects.
        src: The source's rank in the world. Default: any rank.
        group: The group. Default: the default group.
        device: Has no effect: pickles travel through host memory.
        group_src: The source's rank in the group, in place of ``src``.
        use_batch: Has no effect: there are two messages.

    Returns:
        The sender's rank.
    """
    found = _group_or_default(group)
    sizes = torch.empty(len(object_list), dtype=torch.int64)
    sender = recv(sizes, src, found, group_src=group_src)
    data = torch.empty(_buffer_size(sizes), dtype=torch.uint8)
    recv(data, sender, found)
    _split_pickles(data, sizes, object_list)
    return sender
