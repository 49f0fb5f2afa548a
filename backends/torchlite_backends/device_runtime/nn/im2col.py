"""Sliding blocks: im2col (unfold) and col2im (fold)."""

from __future__ import annotations

import math

from torchlite_backends.kernel_sources import pooling

from ..array_ops.launch_sizes import choose_work_sizes, copy_kind
from ..core.array import empty
from ..core.contiguous_copy import as_contiguous
from .pooling import pack_window


def _count_sliding_windows(size, kernel, dilation, padding, stride):
    return tuple(
        [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
        ]
    )


def _im2col(input, kernel_size, dilation, padding, stride):
    out = _count_sliding_windows(input.shape[2:], kernel_size, dilation, padding, stride)
    if min(out) <= 0:
        raise RuntimeError("the blocks do not fit the input")
    device, x = input.device, as_contiguous(input)
    blocks = empty(device, (x.shape[0], x.shape[1] * math.prod(kernel_size), math.prod(out)), x.kind)
    if blocks.size:
        take, items, group = choose_work_sizes(device, blocks.size, 256)
        run = device.function(pooling.IM2COL, "im2col", "ppiix", (16,), T=copy_kind(x))
        run(
            items,
            group,
            x,
            blocks,
            blocks.size,
            take,
            pack_window(x.shape[2:], out, kernel_size, stride, padding, dilation),
        )
    return blocks


def _col2im(input, output_size, kernel_size, dilation, padding, stride):
    out = _count_sliding_windows(output_size, kernel_size, dilation, padding, stride)
    device, x = input.device, as_contiguous(input)
    image = empty(device, (x.shape[0], x.shape[1] // math.prod(kernel_size), *output_size), x.kind)
    if image.size:
        take, items, group = choose_work_sizes(device, image.size, 64)
        run = device.function(pooling.COL2IM, "col2im", "ppiix", T=x.kind)
        run(
            items,
            group,
            x,
            image,
            image.size,
            take,
            pack_window(output_size, out, kernel_size, stride, padding, dilation),
        )
    return image
