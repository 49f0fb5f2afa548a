"""Pooling of large inputs: the shared kernels on blocks of planes that stay in cache, on several threads."""

from __future__ import annotations

import math

import numpy as np

from torchlite_backends.array import pooling as shared

from .cache_blocking import MIN_SIZE_FEWEST_PASSES, run_blocks
from .row_blocks import F32
from .small_arrays import mean

# Elements below which a kernel runs in one piece, and of one block: with few long calls two threads seldom wait for
# each other's GIL (32 planes of 900x120 by 2x2: 1.6 ms with 2^17 elements, 1.07 with 2^19, one thread of a Xeon 1.5).
_SMALL, _BLOCK = 1 << 19, 1 << 19


def _run_by_planes(kernel, count, arrays, *arguments):
    """Run kernel(*arrays, *arguments) on some planes of the leading dimensions at a time.

    `count` is the number of spatial dimensions.
    """
    first = arrays[0]
    largest = max(a.size for a in arrays)
    lead = first.shape[: first.ndim - count]
    planes = math.prod(lead)
    if largest <= _SMALL or planes < 2:
        return kernel(*arrays, *arguments)
    flat = [np.ascontiguousarray(a).reshape(planes, *a.shape[a.ndim - count :]) for a in arrays]
    sample = kernel(*(a[:1] for a in flat), *arguments)
    out = np.empty((*lead, *sample.shape[1:]), sample.dtype)
    into = out.reshape(planes, *sample.shape[1:])

    def run_planes(start, stop):
        into[start:stop] = kernel(*(a[start:stop] for a in flat), *arguments)

    run_blocks(run_planes, planes, largest // planes, _BLOCK, MIN_SIZE_FEWEST_PASSES)
    return out


def _max_pool(input, kernel, stride, padding, dilation, ceil_mode):
    return _run_by_planes(shared._max_pool, len(kernel), (input,), kernel, stride, padding, dilation, ceil_mode)


def _max_pool_backward(grad_output, input, output, kernel, stride, padding, dilation, ceil_mode):
    return _run_by_planes(
        shared._max_pool_backward,
        len(kernel),
        (grad_output, input, output),
        kernel,
        stride,
        padding,
        dilation,
        ceil_mode,
    )


def _avg_pool(input, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return _run_by_planes(
        shared._avg_pool, len(kernel), (input,), kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _adaptive_avg_pool(input, output_size):
    first = input.ndim - len(output_size)
    if input.dtype == F32 and input.size and all(n == 1 for n in output_size):
        return np.asarray(mean(input, tuple(range(first, input.ndim)), True))
    return shared._adaptive_avg_pool(input, output_size)


def _avg_pool_backward(grad_output, size, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return _run_by_planes(
        shared._avg_pool_backward,
        len(kernel),
        (grad_output,),
        size,
        kernel,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )
