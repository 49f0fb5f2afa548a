"""Clamps of floats between numbers by NumPy's `clip`: the loops of `maximum` and `minimum` with a number are slow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlite_backends.array import binary as shared


def _are_bounds(input: Any, low: Any, high: Any) -> bool:
    """True for numbers in order; an element that ties with a bound then stays itself, as in PyTorch."""
    return input.dtype.char in "fd" and low.__class__ in (int, float) and high.__class__ in (int, float) and low <= high


def clamp(input, min=None, max=None):
    if (min is not None or max is not None) and _are_bounds(
        input, low := -math.inf if min is None else min, high := math.inf if max is None else max
    ):
        return np.clip(input, low, high)
    return shared.clamp(input, min, max)


def _clamp_scalars(input, min, max):
    return clamp(input, min, max)


def clamp_min(input, min):
    return np.clip(input, min, math.inf) if _are_bounds(input, min, math.inf) else shared.clamp_min(input, min)


def clamp_max(input, max):
    return np.clip(input, -math.inf, max) if _are_bounds(input, -math.inf, max) else shared.clamp_max(input, max)
