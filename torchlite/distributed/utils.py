"""Helpers of `torch.distributed` that packages import by name: synchronisation of module states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torchlite as torch

from . import distributed_c10d as dist

__all__: list[str] = []


def _sync_params_and_buffers(
    process_group: Any, module_states: list[torch.Tensor], broadcast_bucket_size: int, src: int
) -> None:
    """Broadcast the tensors of process `src` in a group."""
    for tensor in module_states:
        dist.broadcast(tensor, src, process_group)


def _sync_module_states(
    module: torch.nn.Module,
    process_group: Any,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Iterable[str] = (),
    broadcast_buffers: bool = True,
) -> None:
    """Broadcast a module's parameters and buffers of the process `src` in a group."""
    ignored = set(params_and_buffers_to_ignore)
    states = [p.detach() for name, p in module.named_parameters() if name not in ignored]
    if broadcast_buffers:
        states += [b.detach() for name, b in module.named_buffers() if name not in ignored]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)
