"""Conversion between parameters and one vector."""

from __future__ import annotations

from typing import Any

import torchlite as torch

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_device(parameters):
    devices = {parameter.device for parameter in parameters}
    if len(devices) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")


def parameters_to_vector(parameters: Any) -> Any:
    """Return all parameters in one vector (differentiable)."""
    parameters = list(parameters)
    _check_device(parameters)
    return torch.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Any) -> Any:
    """Split a vector into the parameters' data, which become views of it."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {torch.typename(vec)}")
    parameters = list(parameters)
    _check_device(parameters)
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
