"""Casts between half precision and float32, and matrix products of half precision, which are rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .deterministic_gemm import deterministic_matmul

_SINGLE = np.dtype("f4")
# Elements from which an engine's cast takes less time than its call.
_LARGE = 4096


class _NativeHalves:
    """An engine's casts, `(array, dtype) -> array`, and its products `(lines, row) -> float32 vector`; each gives None
    where NumPy is to compute.
    """

    cast: Callable[..., np.ndarray | None] | None = None
    gemv: Callable[..., np.ndarray | None] | None = None


native_halves = _NativeHalves()


def cast_half(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return half precision in float32, or the reverse."""
    if x.size >= _LARGE and native_halves.cast is not None:
        out = native_halves.cast(x, dtype)
        if out is not None:
            return out
    return x.astype(dtype)


def half_gemv(lines: np.ndarray, row: np.ndarray) -> np.ndarray | None:
    """Return `lines @ row` in float32 for half precision; None where a product in float32 is to serve."""
    if native_halves.gemv is None or lines.size < _LARGE or lines.dtype != row.dtype or lines.shape[1] != row.size:
        return None
    return native_halves.gemv(lines, row.astype(_SINGLE))


def half_matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return `np.matmul` of half precision, summed in float32."""
    out = None
    if a.ndim == 2 and b.ndim == 1:
        out = half_gemv(a, b)
    elif b.ndim == 2 and a.size == b.shape[0]:
        out = half_gemv(b.T, a.reshape(-1))
        out = None if out is None else out.reshape(*a.shape[:-1], -1)
    if out is None:
        out = deterministic_matmul(cast_half(a, _SINGLE), cast_half(b, _SINGLE))
    return cast_half(out, a.dtype) if out.__class__ is np.ndarray else out.astype(a.dtype)
