"""Gradients of convolutions with respect to the input and the weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir
from torchlite.nn import functional as F

if TYPE_CHECKING:
    from torchlite import Tensor
    from torchlite._stubs.aliases import Ints


def _conv_gradient(wanted, convolve, input, weight, grad_output, stride, padding, dilation, groups):
    with torch.enable_grad():
        x = input.detach().requires_grad_(wanted == "input")
        w = weight.detach().requires_grad_(wanted == "weight")
        out = convolve(x, w, None, stride, padding, dilation, groups)
    return torch.autograd.grad(out, x if wanted == "input" else w, grad_output)[0]


def _input_gradient(convolve, input_size, weight, grad_output, *options):
    return _conv_gradient("input", convolve, grad_output.new_zeros(input_size), weight, grad_output, *options)


def _weight_gradient(convolve, input, weight_size, grad_output, *options):
    return _conv_gradient("weight", convolve, input, grad_output.new_zeros(weight_size), grad_output, *options)


def conv1d_input(
    input_size: int,
    weight: Tensor,
    grad_output: Any,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d's input."""
    return _input_gradient(F.conv1d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Any,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d's weight."""
    return _weight_gradient(F.conv1d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: int,
    weight: Tensor,
    grad_output: Any,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d's input."""
    return _input_gradient(F.conv2d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Any,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d's weight."""
    return _weight_gradient(F.conv2d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: int,
    weight: Tensor,
    grad_output: Any,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d's input."""
    return _input_gradient(F.conv3d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Any,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d's weight."""
    return _weight_gradient(F.conv3d, input, weight_size, grad_output, stride, padding, dilation, groups)


__dir__ = make_module_dir(globals())
