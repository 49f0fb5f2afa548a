"""Containers of layers that quantization treats as one: a table of their names and layers."""

from __future__ import annotations

import inspect
from typing import Any

from torchlite import Tensor, nn
from torchlite.nn.utils.parametrize import type_before_parametrizations

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d",
    "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearLeakyReLU",
    "LinearReLU", "LinearTanh",
]  # fmt: skip
_MAKERS = {
    "Conv1d": "Conv1d(2, 3, 1)", "Conv2d": "Conv2d(2, 3, 1)", "Conv3d": "Conv3d(2, 3, 1)", "Linear": "Linear(2, 3)",
    **{f"BatchNorm{d}d": f"BatchNorm{d}d(3)" for d in (1, 2, 3)},
}  # fmt: skip


class _FusedModule(nn.Sequential):
    """The base class of containers that quantization treats as one layer."""


def _container(name: str, **kinds: Any) -> Any:
    """A class of containers of layers of given classes, which are its parameters."""
    parameters = [inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD) for key in kinds]
    signature = inspect.Signature(parameters)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        modules = signature.bind(*args, **kwargs).args
        found = [type_before_parametrizations(module) for module in modules]
        if found != list(kinds.values()):
            names = " and ".join(kind.__name__ for kind in found)
            raise AssertionError(f"Incorrect types for input modules: {names}")
        super(made, self).__init__(*modules)

    layers = [kind.__name__ for kind in kinds.values()]
    example = ", ".join(f"torch.nn.{_MAKERS.get(layer, layer + '()')}" for layer in layers)
    arguments = "\n".join(f"        {key}: A `torch.nn.{layer}`." for key, layer in zip(kinds, layers, strict=True))
    made: Any = type(name, (_FusedModule,), {"__init__": __init__, "__module__": __name__})
    made.__signature__ = signature
    made.__doc__ = f"""A sequence of {", ".join(layers[:-1])} and {layers[-1]} that quantization treats as one layer.

    Args:
{arguments}

    Raises:
        AssertionError: A layer is another one.

    Example:
        >>> len(torch.ao.nn.intrinsic.{name}({example}))
        {len(layers)}
    """
    return made


ConvReLU1d = _container("ConvReLU1d", conv=nn.Conv1d, relu=nn.ReLU)
ConvReLU2d = _container("ConvReLU2d", conv=nn.Conv2d, relu=nn.ReLU)
ConvReLU3d = _container("ConvReLU3d", conv=nn.Conv3d, relu=nn.ReLU)
LinearReLU: Any = _container("LinearReLU", linear=nn.Linear, relu=nn.ReLU)
ConvBn1d = _container("ConvBn1d", conv=nn.Conv1d, bn=nn.BatchNorm1d)
ConvBn2d = _container("ConvBn2d", conv=nn.Conv2d, bn=nn.BatchNorm2d)
ConvBn3d = _container("ConvBn3d", conv=nn.Conv3d, bn=nn.BatchNorm3d)
ConvBnReLU1d = _container("ConvBnReLU1d", conv=nn.Conv1d, bn=nn.BatchNorm1d, relu=nn.ReLU)
ConvBnReLU2d = _container("ConvBnReLU2d", conv=nn.Conv2d, bn=nn.BatchNorm2d, relu=nn.ReLU)
ConvBnReLU3d = _container("ConvBnReLU3d", conv=nn.Conv3d, bn=nn.BatchNorm3d, relu=nn.ReLU)
BNReLU2d = _container("BNReLU2d", batch_norm=nn.BatchNorm2d, relu=nn.ReLU)
BNReLU3d = _container("BNReLU3d", batch_norm=nn.BatchNorm3d, relu=nn.ReLU)
LinearBn1d = _container("LinearBn1d", linear=nn.Linear, bn=nn.BatchNorm1d)
LinearLeakyReLU = _container("LinearLeakyReLU", linear=nn.Linear, leaky_relu=nn.LeakyReLU)
LinearTanh = _container("LinearTanh", linear=nn.Linear, tanh=nn.Tanh)


class ConvAdd2d(_FusedModule):
    """A convolution, and a sum with a second input.

    Args:
        conv: The convolution.
        add: A function of two tensors.

    Example:
        >>> layer = torch.ao.nn.intrinsic.ConvAdd2d(torch.nn.Conv2d(1, 1, 1), torch.add)
        >>> layer(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 2, 2])
    """

    def __init__(self, conv: Any, add: Any) -> None:
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:  # type: ignore[override]
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A convolution, a sum with a second input, and the positive part of it.

    Args:
        conv: The convolution.
        add: A function of two tensors.
        relu: A function of a tensor.

    Example:
        >>> layer = torch.ao.nn.intrinsic.ConvAddReLU2d(torch.nn.Conv2d(1, 1, 1), torch.add, torch.nn.ReLU())
        >>> layer(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 2, 2])
    """

    def __init__(self, conv: Any, add: Any, relu: Any) -> None:
        super().__init__(conv)
        self.add = add
        self.relu = relu

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:  # type: ignore[override]
        return self.relu(self.add(self[0](x1), x2))
