"""Convolutions of 8-bit levels with exact sums."""

from __future__ import annotations

import math
from typing import Any

from torchlite._dispatch import REGISTRY, table_of
from torchlite._types.devices import device as torch_device
from torchlite_backends.kernel_sources.quantized import EXACT_TERMS

from ..array_ops.pad import constant_pad_nd
from ..array_ops.pointwise import KERNELS as POINTWISE
from ..core.array import Array
from ..core.pointwise_dispatch import cast
from ..core.views import reshape, slice_view
from ..linalg.quantized import round_to_levels
from .conv import convolution


def _quantized_convolution(
    input, weight, input_zero, weight_zero, bias, scale, out_zero, stride, padding, dilation, groups
):
    taps, per_group, rank = math.prod(weight.shape[2:]), weight.shape[1], len(weight.shape) - 2
    step = EXACT_TERMS // taps
    if not input.size or not step or groups > 1 and per_group > step:
        table = table_of(torch_device(input.device.type, input.device.index))
        return REGISTRY["_quantized_convolution"].composite(
            table, input, weight, input_zero, weight_zero, bias, scale, out_zero, stride, padding, dilation, groups
        )
    image, kernel = _less(input, input_zero, 0), _less(weight, weight_zero, rank + 1)
    begin, end = padding[:rank], padding[rank:]
    if begin != end:
        sides = [n for pair in zip(begin[::-1], end[::-1], strict=True) for n in pair]
        image, begin = constant_pad_nd(image, sides, 0), (0,) * rank
    total: Any = None
    for first in range(0, per_group, step):
        parts = image, kernel
        if per_group > step:
            length = min(step, per_group - first)
            parts = slice_view(image, 1, first, length), slice_view(kernel, 1, first, length)
        sums = cast(convolution(*parts, None, stride, begin, dilation, False, (0,) * rank, groups), "i32")
        total = sums if total is None else POINTWISE["add"](total, sums)
    if bias is not None:
        total = POINTWISE["add"](total, _spread(cast(bias, "i32"), rank))
    if scale is None:
        return total
    out = POINTWISE["mul"](cast(total, "f32"), _spread(cast(scale, "f32"), rank))
    return out if out_zero is None else round_to_levels(out, out_zero)


def _spread(numbers: Array, ndim: int) -> Array:
    """View numbers of channels such that they broadcast along the `ndim` dimensions after."""
    return reshape(numbers, (-1, *(1,) * ndim)) if numbers.shape else numbers


def _less(levels: Array, zero: Array | None, ndim: int) -> Array:
    """Return levels less their zero points as floats."""
    wide = cast(levels, "f32")
    return wide if zero is None else POINTWISE["sub"](wide, _spread(cast(zero, "f32"), ndim))
