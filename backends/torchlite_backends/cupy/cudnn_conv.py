"""Convolutions through cuDNN with gradients: one to three spatial dimensions, transposed, grouped.

Arrays are row-major or channels-last.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchlite._settings.backend_flags import FLAGS
from torchlite_backends.device_runtime.array_ops.pointwise import KERNELS as POINTWISE
from torchlite_backends.device_runtime.array_ops.reduce import sum as reduced_sum
from torchlite_backends.device_runtime.core.array import Array, empty, make_view, row_major_layout
from torchlite_backends.device_runtime.core.contiguous_copy import clone_row_major
from torchlite_backends.device_runtime.core.copy_fill import (
    compute_channels_last_steps,
    empty_channels_last,
    to_channels_last,
)
from torchlite_backends.device_runtime.nn import conv_depthwise
from torchlite_backends.device_runtime.nn.conv import validate_gradient, validate_shape
from torchlite_backends.device_runtime.nn.conv_shape import ConvShape

from .cudnn import TYPES, Graph, Library, Tensor, get_library, is_aligned, is_deterministic

# Operation that computes y from (x, weight), x from (y, weight) and the weight from (x, y).
_CALLS = {
    "forward": ("conv_fprop", "image", "weight"),
    "backward": ("conv_dgrad", "loss", "filter"),
    "weight": ("conv_wgrad", "image", "loss"),
}


def _is_supported(g: ConvShape, kind: str) -> bool:
    """True if cuDNN should compute a convolution. Depthwise ones are excluded: their compilation takes up to ten
    seconds.
    """
    return kind in TYPES and 1 <= len(g.size) <= 3 and not conv_depthwise.is_supported(g, kind)


def _is_channels_last(*arrays: Array) -> bool:
    """True if the result is channels-last: by PyTorch's rule, if one of the operands is."""
    return any(x.ndim > 3 and not x.contiguous and _has_steps(x, compute_channels_last_steps(x.shape)) for x in arrays)


def _has_steps(x: Array, steps: tuple[int, ...]) -> bool:
    return all(n == 1 or a == b for n, a, b in zip(x.shape, x.steps, steps, strict=True))


def _as_aligned_layout(x: Array, last: bool) -> Array:
    """Return `x` in a memory format, aligned."""
    if last:
        return x if is_aligned(x) and _has_steps(x, compute_channels_last_steps(x.shape)) else to_channels_last(x)
    return x if is_aligned(x) and x.contiguous else clone_row_major(x)


def _tensor_descriptor(shape: tuple[int, ...], kind: str, last: bool) -> Tensor:
    """Return the tensor of an array. One spatial dimension becomes two."""
    shape = (*shape[:2], 1, shape[2]) if len(shape) == 3 else shape
    return Tensor(shape, compute_channels_last_steps(shape) if last else row_major_layout(shape)[1], kind)


def describe_convolution(graph: Graph, what: str, g: ConvShape, kind: str, last: bool) -> None:
    """Add "forward", "backward" or "weight" to a graph."""
    x, y = (
        _tensor_descriptor((g.batch, g.channels, *g.size), kind, last),
        _tensor_descriptor((g.batch, g.filters, *g.out), kind, last),
    )
    weight = _tensor_descriptor((g.filters, g.channels // g.groups, *g.kernel), kind, last)
    first, second, out = {"forward": (x, weight, y), "backward": (y, weight, x), "weight": (x, y, weight)}[what]
    padding, stride, dilation = (
        [fill] * (len(g.size) == 1) + list(given) for fill, given in ((0, g.padding), (1, g.stride), (1, g.dilation))
    )
    call, first_name, second_name = _CALLS[what]
    operands = {first_name: graph.take(first), second_name: graph.take(second)}
    result = getattr(graph.made, call)(
        **operands,
        pre_padding=padding,
        post_padding=padding,
        stride=stride,
        dilation=dilation,
        compute_data_type=graph.float,
    )
    graph.give(result, out)


def _run_conv(
    cudnn: Library, what: str, g: ConvShape, first: Array, second: Array, shape: tuple[int, ...], last: bool
) -> Array | None:
    """Return one array of a convolution, None if cuDNN does not compute it."""
    kind = first.kind
    key = (what, g, kind, last, kind == "f32" and FLAGS.tf32("conv"), is_deterministic(), FLAGS.cudnn_benchmark)
    out = (empty_channels_last if last else empty)(first.device, shape, kind)
    arrays = [_as_aligned_layout(first, last), _as_aligned_layout(second, last), out]
    return out if cudnn.run(key, kind, lambda graph: describe_convolution(graph, what, g, kind, last), arrays) else None


def convolution(ours: Callable, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    given = (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    cudnn = get_library(input.device) if input.kind in TYPES else None
    if cudnn is None:
        return ours(*given)
    g, shape = validate_shape(*given)
    last = _is_channels_last(input, weight)
    if not _is_supported(g, input.kind) or not (input.size and weight.size and min(shape)):
        return ours(*given)
    out = _run_conv(cudnn, "backward" if transposed else "forward", g, input, weight, shape, last)
    if out is None:
        return ours(*given)
    if bias is not None:
        POINTWISE["add_"](
            out, make_view(bias, (bias.shape[0],) + (1,) * len(g.size), bias.steps + (0,) * len(g.size), bias.offset)
        )
    return out


def _convolution_backward(
    ours: Callable, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs
):
    cudnn = get_library(input.device) if input.kind in TYPES else None
    g, x, y = validate_gradient(grad_output, input, weight, stride, padding, dilation, transposed, groups)
    last = _is_channels_last(input, weight)
    gradients: list[Any] = [None, None, None]
    if cudnn is not None and _is_supported(g, input.kind) and input.size and weight.size and grad_output.size:
        grad_output = _as_aligned_layout(grad_output, last)
        x, y = (grad_output, input) if transposed else (input, grad_output)
        if needs[0]:
            gradients[0] = _run_conv(
                cudnn, "forward" if transposed else "backward", g, grad_output, weight, input.shape, last
            )
        if needs[1]:
            gradients[1] = _run_conv(cudnn, "weight", g, x, y, weight.shape, last)
        if needs[2]:
            gradients[2] = reduced_sum(grad_output, (0, *range(2, grad_output.ndim)))
    rest = tuple(bool(need) and found is None for need, found in zip(needs, gradients, strict=True))
    if any(rest):
        others = ours(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, rest)
        gradients = [found if other is None else other for found, other in zip(gradients, others, strict=True)]
    return tuple(gradients)


def kernels(table: dict[str, Any]) -> dict[str, Any]:
    """Return convolution kernels that try cuDNN first and fall back to those of `table`."""
    return {
        kernel.__name__: functools.partial(kernel, table[kernel.__name__])
        for kernel in (convolution, _convolution_backward)
    }
