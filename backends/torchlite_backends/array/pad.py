"""Constant padding."""

from __future__ import annotations

import numpy as xp


def constant_pad_nd(input, pad, value=0):
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    before, after = [0] * input.ndim, [0] * input.ndim
    for i in range(len(pad) // 2):
        before[-1 - i], after[-1 - i] = pad[2 * i], pad[2 * i + 1]
    x = input[tuple(slice(max(0, -b), n - max(0, -a)) for b, a, n in zip(before, after, input.shape, strict=True))]
    shape = tuple(n + b + a for n, b, a in zip(input.shape, before, after, strict=True))
    if min(shape, default=0) < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if x.shape == shape:
        return x.copy()
    out = xp.zeros(shape, input.dtype) if not value else xp.full(shape, value, dtype=input.dtype)
    if x.size:
        out[tuple(slice(max(0, b), max(0, b) + n) for b, n in zip(before, x.shape, strict=True))] = x
    return out
