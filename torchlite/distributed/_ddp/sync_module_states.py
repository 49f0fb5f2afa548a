"""Verification and broadcast of a model's parameters and buffers over a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torchlite as torch
import torchlite.distributed as dist

_MAX_BUCKET_BYTES = 250 * 1024 * 1024  # bytes sent at a time


def verify_shapes(group: Any, parameters: Sequence[Any]) -> None:
    """Raise RuntimeError on every rank unless all have as many parameters as rank 0, of the same shapes."""
    rank, size = group.rank(), group.size()
    if size == 1:
        return
    gathered: list[Any] = [None] * size
    dist.all_gather_object(gathered, [tuple(parameter.shape) for parameter in parameters], group=group)
    for other, shapes in enumerate(gathered):
        if len(shapes) != len(gathered[0]):
            me, they = (rank, other) if len(gathered[rank]) != len(shapes) else (0, other)
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {me} has {len(gathered[me])} params, while rank "
                f"{they} "
                f"has inconsistent {len(gathered[they])} params."
            )
    for other, shapes in enumerate(gathered):
        for number, (shape, first) in enumerate(zip(shapes, gathered[0], strict=True)):
            if shape != first:
                raise RuntimeError(
                    f"[{other}]: params[{number}] in this process with sizes {list(shape)} appears not to match sizes "
                    "of the same param in process 0."
                )


def broadcast_coalesced(group: Any, tensors: Iterable[Any], source: int = 0, most: int = _MAX_BUCKET_BYTES) -> None:
    """Broadcast tensors from `source` (a rank of the group), many in a message."""
    if group.size() == 1:
        return
    kinds: dict[Any, list[Any]] = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    origin, mine = dist.get_global_rank(group, source), group.rank() == source
    for members in kinds.values():
        while members:
            size = 0
            part: list[Any] = []
            while members and (not part or size < most):
                part.append(members.pop(0).detach())
                size += part[-1].nbytes
            flat = torch.cat([tensor.reshape(-1) for tensor in part])
            dist.broadcast(flat, origin, group=group)
            if not mine:
                start = 0
                for tensor in part:
                    tensor.copy_(flat[start : start + tensor.numel()].view(tensor.shape))
                    start += tensor.numel()


def sync_module_states(module: Any, group: Any, source: int, ignored: Iterable[str] = (), buffers: bool = True) -> None:
    """Broadcast a module's parameters and buffers from `source`, except names in `ignored`."""
    without = set(ignored)
    states = [value for name, value in module.named_parameters() if name not in without]
    if buffers:
        states += [value for name, value in module.named_buffers() if name not in without]
    with torch.no_grad():
        broadcast_coalesced(group, states, source)
