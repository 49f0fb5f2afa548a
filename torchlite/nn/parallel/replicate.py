"""Replication of a module on several devices."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from torchlite.nn.modules.module import Module

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Returns copies of a model, one for each device.

    Gradients of a copy's parameters flow to the model's parameters.

    Args:
        network: The model.
        devices: The devices.
        detach: Whether the copies' parameters are without history. Default: ``False``.

    Example:
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> for copy in torch.nn.parallel.replicate(layer, ["cpu", "cpu"]):
        ...     copy(torch.ones(1, 2)).sum().backward()
        >>> layer.weight.grad
        tensor([[2., 2.]])
    """
    return [_replicate_module(network, device, detach, {}) for device in devices]


def _replicate_module(module: Module, device: Any, detach: bool, known: dict[int, Any]) -> Module:
    if id(module) in known:
        return known[id(module)]
    replica = known[id(module)] = copy.copy(module)
    replica._modules = {
        name: child if child is None else _replicate_module(child, device, detach, known)
        for name, child in module._modules.items()
    }
    replica._parameters = {}
    for name, value in module._parameters.items():
        if value is not None and id(value) not in known:
            moved = value.to(device)
            known[id(value)] = moved.detach() if detach else moved.view_as(moved)
        found = None if value is None else known[id(value)]
        if found is None:
            replica._parameters[name] = None
        else:
            replica.__dict__[name] = found
    replica._buffers = {
        name: value if value is None else value.detach().to(device) for name, value in module._buffers.items()
    }
    return replica
