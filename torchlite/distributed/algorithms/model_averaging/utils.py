"""Averaging of parameters over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torchlite as torch
import torchlite.distributed as dist

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Any], process_group: Any) -> None:
    """Replace every member's parameters by the mean over the group; a process outside it keeps its own."""
    if dist.distributed_c10d._rank_not_in_group(process_group):
        return
    group: Any = dist.group.WORLD if process_group is None else process_group
    found = list(params)
    with torch.no_grad():
        flat = torch.cat([p.detach().reshape(-1) for p in found]) / group.size()
        dist.all_reduce(flat, group=group)
        start = 0
        for p in found:
            p.copy_(flat[start : start + p.numel()].view(p.shape))
            start += p.numel()


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Return the parameters, or those of an optimizer's groups, that have a gradient."""
    found = []
    for item in params:
        if isinstance(item, torch.nn.Parameter):
            found += [item]
        elif isinstance(item, dict):
            found += item["params"]
        else:
            raise NotImplementedError(f"Parameter input of type {type(item)} is not supported")
    return [p for p in found if p.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """`average_parameters` of those that have a gradient."""
    average_parameters(get_params_to_average(params), process_group)
