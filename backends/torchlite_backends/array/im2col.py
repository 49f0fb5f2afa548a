"""Sliding blocks: im2col (unfold) and col2im (fold)."""

from __future__ import annotations

import math
from itertools import product

import numpy as xp


def _count_sliding_windows(size, kernel, dilation, padding, stride):
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    )


def _im2col(input, kernel_size, dilation, padding, stride):
    out = _count_sliding_windows(input.shape[2:], kernel_size, dilation, padding, stride)
    if min(out) <= 0:
        raise RuntimeError("the blocks do not fit the input")
    x = input
    if max(padding):
        x = xp.zeros(
            (*input.shape[:2], *(n + 2 * p for n, p in zip(input.shape[2:], padding, strict=True))), input.dtype
        )
        x[(..., *(slice(p, p + n) for n, p in zip(input.shape[2:], padding, strict=True)))] = input
    blocks = xp.empty((*input.shape[:2], math.prod(kernel_size), *out), input.dtype)
    for number, place in enumerate(product(*(range(k) for k in kernel_size))):
        blocks[:, :, number] = x[
            (
                ...,
                *(
                    slice(j * d, j * d + (o - 1) * s + 1, s)
                    for j, d, o, s in zip(place, dilation, out, stride, strict=True)
                ),
            )
        ]
    return blocks.reshape(input.shape[0], input.shape[1] * math.prod(kernel_size), math.prod(out))


def _col2im(input, output_size, kernel_size, dilation, padding, stride):
    out = _count_sliding_windows(output_size, kernel_size, dilation, padding, stride)
    taps = math.prod(kernel_size)
    channels = input.shape[1] // taps
    columns = input.reshape(input.shape[0], channels, taps, *out)
    image = xp.zeros(
        (input.shape[0], channels, *(n + 2 * p for n, p in zip(output_size, padding, strict=True))), input.dtype
    )
    for number, place in enumerate(product(*(range(k) for k in kernel_size))):
        image[
            (
                ...,
                *(
                    slice(j * d, j * d + (o - 1) * s + 1, s)
                    for j, d, o, s in zip(place, dilation, out, stride, strict=True)
                ),
            )
        ] += columns[:, :, number]
    if max(padding):
        image = xp.ascontiguousarray(
            image[(..., *(slice(p, p + n) for n, p in zip(output_size, padding, strict=True)))]
        )
    return image
