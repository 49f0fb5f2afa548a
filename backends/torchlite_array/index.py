"""Indexing kernels."""
from __future__ import annotations

from typing import Any

xp: Any = None


def _slice_index(input, index):
    out = input[index]
    return out if out.__class__ is xp.ndarray else input[(*index, ...)]


def _slice_index_backward(input, shape, index):
    out = xp.zeros(shape, dtype=input.dtype)
    out[index] = input
    return out


def _index(input, index):
    return input[index]


def _index_backward(input, shape, index):
    out = xp.zeros(shape, dtype=input.dtype)
    xp.add.at(out, index, input)
    return out


def _setitem(input, index, value):
    out = input.copy()
    _setitem_(out, index, value)
    return out


def _setitem_(input, index, value):
    if getattr(value, "ndim", 0) > 0:
        target = input[index].shape
        while value.ndim > len(target) and value.shape[0] == 1:
            value = value[0]
    try:
        input[index] = value
    except ValueError:
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of shape "
                           f"{list(input[index].shape)}") from None
