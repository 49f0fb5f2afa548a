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
    """Joins parameters into one vector, through which gradients flow.

    Args:
        parameters: An iterable of tensors on one device.

    Returns:
        A vector of all elements, in order.

    Raises:
        TypeError: The tensors are on several devices.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> torch.nn.utils.parameters_to_vector(layer.parameters()).shape
        torch.Size([3])

    See also:
        `vector_to_parameters`.
    """
    parameters = list(parameters)
    _check_device(parameters)
    return torch.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Any, parameters: Any) -> Any:
    """Sets the data of parameters to the parts of a vector.

    The parameters become views of the vector's memory.

    Args:
        vec: A vector with the elements of all parameters, in order.
        parameters: An iterable of the parameters, on one device.

    Raises:
        TypeError: ``vec`` is no tensor, or the parameters are on several devices.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), layer.parameters())
        >>> layer.weight.detach(), layer.bias.detach()
        (tensor([[1., 2.]]), tensor([3.]))

    See also:
        `parameters_to_vector`.
    """
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {torch.typename(vec)}")
    parameters = list(parameters)
    _check_device(parameters)
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
