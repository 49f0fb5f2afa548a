"""Convolutions of volumes by convolutions of images, so that each algorithm for images serves for volumes too.

An output slice of a volume reads as many input slices as the kernel is deep. Side by side, as channels, these slices
are an image (channels * depth of the kernel, high, wide), and its convolution with the same weights is the output
slice. So a volume is a batch of such images, which are gathered for some slices at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import conv_cpu_engine
from .conv_geometry import BLOCK, get_conv_geometry

# Elements of the images that are gathered at a time, about. With fewer, weights are prepared more often.
_GATHERED = 1 << 22

# (first image, one past the last, first output slice, one past the last)
_Part = tuple[int, int, int, int]


def is_faster(plan: Any, dtype: np.dtype) -> bool:
    """True if images are faster than im2col of the volume: with compiled kernels (0.6 to 0.8), depthwise (0.1 to 0.25),
    and where the columns of an output slice are no longer in cache. Otherwise the copies cost 1.05 to 1.25.
    """
    if len(plan.size) < 3 or plan.taps == plan.kernel[0]:
        return False
    if plan.channels == plan.groups > 1 or plan.channels * plan.taps * plan.places > plan.out[0] * BLOCK:
        return True
    return dtype.char == "f" and conv_cpu_engine.selected_engine() is not None


def _parts(plan: Any) -> Iterator[_Part]:
    slice_size = max(1, plan.channels * plan.kernel[0] * plan.size[1] * plan.size[2])
    slices = max(1, min(plan.out[0], _GATHERED // slice_size))
    slices = -(-plan.out[0] // -(-plan.out[0] // slices))  # even shares
    images = max(1, min(plan.batch, _GATHERED // (slice_size * slices))) if slices == plan.out[0] else 1
    for first in range(0, plan.batch, images):
        for top in range(0, plan.out[0], slices):
            yield first, min(first + images, plan.batch), top, min(top + slices, plan.out[0])


def _plan_of_slices(plan: Any, part: _Part) -> Any:
    """Return the geometry of a part's images."""
    count = (part[1] - part[0]) * (part[3] - part[2])
    return get_conv_geometry(
        count, plan.channels * plan.kernel[0], plan.filters, plan.size[1:], plan.kernel[1:], plan.stride[1:],
        plan.padding[1:], plan.dilation[1:], plan.groups,
    )  # fmt: skip


def _reached(plan: Any, k: int, top: int, bottom: int) -> tuple[slice, slice]:
    """Return the output slices, from `top`, that kernel slice `k` reaches inside of the volume, and the input slices
    there.
    """
    stride, offset = plan.stride[0], k * plan.dilation[0] - plan.padding[0]
    first = max(top, -(offset // stride))
    last = max(first, min(bottom, (plan.size[0] - 1 - offset) // stride + 1))
    return slice(first - top, last - top), slice(first * stride + offset, (last - 1) * stride + offset + 1, stride)


def _gather(x: np.ndarray, plan: Any, part: _Part) -> np.ndarray:
    """Return the images of a part."""
    first, last, top, bottom = part
    count, depth = bottom - top, plan.kernel[0]
    images = np.empty((last - first, count, plan.channels, depth, *plan.size[1:]), x.dtype)
    for k in range(depth):
        to, source = _reached(plan, k, top, bottom)
        images[:, : to.start, :, k] = 0
        images[:, to.stop :, :, k] = 0
        if to.stop > to.start:
            images[:, to, :, k] = x[first:last, :, source].swapaxes(1, 2)
    return images.reshape((last - first) * count, plan.channels * depth, *plan.size[1:])


def _slices(g: np.ndarray, part: _Part) -> np.ndarray:
    """Return an output-shaped array's slices of a part as images."""
    first, last, top, bottom = part
    images = np.ascontiguousarray(g[first:last, :, top:bottom].swapaxes(1, 2))
    return images.reshape(-1, g.shape[1], *g.shape[3:])


def _weights(weight: np.ndarray) -> np.ndarray:
    return weight.reshape(len(weight), -1, *weight.shape[3:])


def conv_forward(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, plan: Any, out: np.ndarray, convolve: Callable
) -> np.ndarray:
    """Forward pass into `out`. `convolve` is that of images."""
    flat = _weights(weight)
    for part in _parts(plan):
        first, last, top, bottom = part
        made = convolve(_gather(x, plan, part), flat, bias, _plan_of_slices(plan, part))
        slices = made.reshape(last - first, bottom - top, plan.filters, *plan.out[1:])
        out[first:last, :, top:bottom] = slices.swapaxes(1, 2)
    return out


def conv_transpose(g: np.ndarray, weight: np.ndarray, plan: Any, out: np.ndarray, transpose: Callable) -> np.ndarray:
    """Transpose of `conv_forward` into `out`. `transpose` is that of images."""
    flat = _weights(weight)
    out[...] = 0
    for part in _parts(plan):
        first, last, top, bottom = part
        made = transpose(_slices(g, part), flat, None, _plan_of_slices(plan, part))
        images = made.reshape(last - first, bottom - top, plan.channels, plan.kernel[0], *plan.size[1:])
        for k in range(plan.kernel[0]):
            source, to = _reached(plan, k, top, bottom)
            if source.stop > source.start:
                out[first:last, :, to] += images[:, source, :, k].swapaxes(1, 2)
    return out


def weight_gradient(g: np.ndarray, x: np.ndarray, gradient: np.ndarray, plan: Any, compute: Callable) -> np.ndarray:
    """Gradient of the weight into `gradient`. `compute` is that of images."""
    result = _weights(gradient)
    for number, part in enumerate(_parts(plan)):
        made = compute(_slices(g, part), _gather(x, plan, part), result.shape, _plan_of_slices(plan, part))
        if number:
            result += made
        else:
            result[...] = made
    return gradient
