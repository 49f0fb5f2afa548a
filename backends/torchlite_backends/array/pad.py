"""Padding: a border with a value, or with elements of the input."""

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


def _source_places(mode, n, before, after):
    """Return the places of a dimension of length n that its padded form has, one after the other."""
    if mode == "circular":  # of what negative padding leaves
        first = max(0, -before)
        return first + xp.arange(-max(0, before), n - first + after) % (n - first - max(0, -after))
    places = xp.arange(-before, n + after)
    if mode == "replicate":
        return xp.clip(places, 0, n - 1)
    places = xp.abs(places)
    return xp.where(places < n, places, 2 * (n - 1) - places)


def _pad_border(input, pad, mode):
    ndim, count = input.ndim, len(pad) // 2
    if min(pad) < 0 or not input.size:
        for i in range(count):
            dim = ndim - 1 - i
            input = input.take(_source_places(mode, input.shape[dim], pad[2 * i], pad[2 * i + 1]), dim)
        return input
    shape, core = list(input.shape), [slice(None)] * ndim
    for i in range(count):
        dim = ndim - 1 - i
        core[dim] = slice(pad[2 * i], pad[2 * i] + shape[dim])
        shape[dim] += pad[2 * i] + pad[2 * i + 1]
    out = xp.empty(shape, input.dtype)
    out[tuple(core)] = input
    for i in range(count):
        dim = ndim - 1 - i
        before, n = pad[2 * i], input.shape[dim]
        core[dim] = slice(None)
        rows = xp.moveaxis(out[tuple(core)], dim, 0)
        inside, top, bottom = rows[before : before + n], rows[:before], rows[before + n :]
        if mode == "replicate":
            top[...], bottom[...] = inside[:1], inside[n - 1 :]
        elif mode == "reflect":
            top[...] = inside[1 : before + 1][::-1]
            bottom[...] = inside[n - 1 - len(bottom) : n - 1][::-1]
        else:
            top[...], bottom[...] = inside[n - before :], inside[: len(bottom)]
    return out


def _pad_border_backward(grad, pad, mode):
    for i in reversed(range(len(pad) // 2)):
        dim, before, after = grad.ndim - 1 - i, pad[2 * i], pad[2 * i + 1]
        if not before and not after:
            continue
        rows = xp.moveaxis(grad, dim, 0)
        shape = list(grad.shape)
        shape[dim] = n = len(rows) - before - after
        grad = xp.empty(shape, grad.dtype) if before >= 0 <= after else xp.zeros(shape, grad.dtype)
        inside = xp.moveaxis(grad, dim, 0)
        first, last = max(0, -before), n - max(0, -after)
        begin = max(0, before)
        inside[first:last] = rows[begin : begin + last - first]
        top, bottom = rows[:begin], rows[len(rows) - max(0, after) :]
        if mode == "replicate":
            if len(top):
                inside[0] += top.sum(0)
            if len(bottom):
                inside[n - 1] += bottom.sum(0)
        elif mode == "reflect":
            inside[1 : 1 + len(top)] += top[::-1]
            inside[n - 1 - len(bottom) : n - 1] += bottom[::-1]
        else:
            inside[last - len(top) : last] += top
            inside[first : first + len(bottom)] += bottom
    return grad
