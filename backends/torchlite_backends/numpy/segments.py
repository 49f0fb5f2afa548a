"""Reductions of consecutive segments of the first dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.array.gather_scatter import scatter_add, scatter_reduce

_UFUNCS = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
_SCATTERED = {"prod": "prod", "max": "amax", "min": "amin"}


def _segments(data: Any, segment: Any, axis: int, segments: int, reduce: str, start: float) -> Any:
    out = np.full((*data.shape[:axis], segments, *data.shape[axis + 1 :]), start, data.dtype)
    if not data.size:
        return out
    if axis or any(step and n > 1 for n, step in zip(segment.shape[1:], segment.strides[1:], strict=True)):
        return _scatter(out, data, segment, axis, reduce)
    numbers = segment[(slice(None),) + (0,) * (data.ndim - 1)]
    later = numbers[1:] != numbers[:-1]
    begins = np.concatenate(([0], np.flatnonzero(later) + 1))
    used = numbers[begins]
    if (used[1:] <= used[:-1]).any():  # elements outside of all segments are before the first
        return _scatter(out, data, segment, axis, reduce)
    ufunc = _UFUNCS[reduce]
    out[used] = ufunc(out[used], ufunc.reduceat(data, begins, 0))
    return out


def _scatter(out: Any, data: Any, segment: Any, axis: int, reduce: str) -> Any:
    if reduce in _SCATTERED:
        return scatter_reduce(out, axis, segment, data, _SCATTERED[reduce])
    return scatter_add(out, axis, segment, data)
