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
    found = _clip(input, min, max)
    return shared.clamp(input, min, max) if found is None else found


def _clip(input: Any, low: Any, high: Any, out: Any = None) -> Any:
    """Return the clamp between numbers, one of which may be None, in `out`; None where `clip` is not to serve."""
    if low is None and high is None:
        return None
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return input.clip(low, high, out) if _are_bounds(input, low, high) else None


def _clamp_scalars(input, min, max):
    return clamp(input, min, max)


def clamp_min(input, min):
    return input.clip(min, math.inf) if _are_bounds(input, min, math.inf) else shared.clamp_min(input, min)


def clamp_max(input, max):
    return input.clip(-math.inf, max) if _are_bounds(input, -math.inf, max) else shared.clamp_max(input, max)


def _clamp_scalars_(target, min, max):
    if _clip(target, min, max, target) is None:
        np.copyto(target, clamp(target, min, max), casting="unsafe")


def _clamp_tensors_(target, min, max):
    _clamp_scalars_(target, min, max)


def clamp_min_(target, min):
    if _clip(target, min, None, target) is None:
        np.copyto(target, clamp_min(target, min), casting="unsafe")


def clamp_max_(target, max):
    if _clip(target, None, max, target) is None:
        np.copyto(target, clamp_max(target, max), casting="unsafe")
