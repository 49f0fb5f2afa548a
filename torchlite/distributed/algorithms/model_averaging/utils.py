"""Averaging of parameters over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torchlite as torch
import torchlite.distributed as dist

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Any], process_group: Any) -> None:
    """Replaces the parameters of each rank by their mean over the group; other processes keep their own.

    Args:
        params: The parameters.
        process_group: The group; ``None`` for the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.model_averaging import utils
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> utils.average_parameters([weight], None)
        >>> dist.destroy_process_group()
    """
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
    """Returns the parameters that have a gradient.

    Args:
        params: The parameters, or an optimizer's groups.

    Raises:
        NotImplementedError: An item is neither.

    Example:
        >>> from torchlite.distributed.algorithms.model_averaging import utils
        >>> utils.get_params_to_average([torch.nn.Parameter(torch.ones(2))])
        []
    """
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
    """Averages the parameters that have a gradient over a group.

    Args:
        params: The parameters, or an optimizer's groups.
        process_group: The group; ``None`` for the default group.

    Example:
        >>> import torchlite.distributed as dist
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> from torchlite.distributed.algorithms.model_averaging import utils
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> weight.sum().backward()
        >>> utils.average_parameters_or_parameter_groups([weight], None)
        >>> dist.destroy_process_group()
    """
    average_parameters(get_params_to_average(params), process_group)
