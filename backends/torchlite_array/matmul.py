"""Matrix product."""
from __future__ import annotations

from typing import Any

xp: Any = None


def matmul(input, other):
    if input.ndim <= 2 and other.ndim <= 2:
        return xp.dot(input, other)
    if other.ndim == 2:
        return xp.dot(input.reshape(-1, input.shape[-1]), other).reshape(*input.shape[:-1], other.shape[-1])
    return xp.matmul(input, other)
