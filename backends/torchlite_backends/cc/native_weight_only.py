"""Products of a few rows with weights of half precision, eight and four bits on the engine `cc`, see
`weight_only_source`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlite_backends.device_runtime.core.device import NotBuiltError

from .native_gemm import FORCE_THREADS
from .native_kernel import NativeKernel
from .weight_only_source import WEIGHT_ONLY

_by_rows = {
    np.dtype(code): NativeKernel(WEIGHT_ONLY, f"{name}_weight", "QQQQqqqq")
    for code, name in (("i1", "int8"), ("f2", "half"))
}
_int4 = NativeKernel(WEIGHT_ONLY, "int4_weight", "QQQQqqqq")
_int4_levels = NativeKernel(WEIGHT_ONLY, "int4_levels", "QQQQqqqqq")
# Rows of an item of weights, and of a block of int4 weights; bytes of weights for a second thread.
_PART, _BLOCK, _SHARED = 24, 64, 1 << 19


def _threads(weight: np.ndarray) -> int:
    return FORCE_THREADS if weight.nbytes >= _SHARED else 0


def multiply_rows(device: Any, x: np.ndarray, weight: np.ndarray, scales: np.ndarray) -> np.ndarray | None:
    """Return ``(x @ weight.T) * scales`` of row-major arrays, of which `weight` has int8 or
    float16; None if the kernel is not built."""
    (rows, depth), columns = x.shape, len(weight)
    out = np.empty((rows, columns), np.float32)
    items = -(-columns // _PART)
    try:
        _by_rows[weight.dtype](device, items, _threads(weight), x, weight, scales, out, rows, depth, columns, _PART)
    except NotBuiltError:
        return None
    return out


def multiply_int4(
    device: Any, x: np.ndarray, weight: np.ndarray, group: int, factors: np.ndarray
) -> np.ndarray | None:  # fmt: skip
    """Return the product with packed weights. All arrays are row-major; None if the kernel is not built."""
    (rows, depth), columns = x.shape, len(weight)
    out = np.empty((rows, columns), np.float32)
    items = -(-columns // _BLOCK)
    try:
        _int4(device, items, _threads(weight), x, weight, factors, out, rows, depth, columns, group)
    except NotBuiltError:
        return None
    return out


def multiply_int4_levels(
    device: Any, levels: np.ndarray, packed: np.ndarray, group: int, columns: int
) -> np.ndarray | None:  # fmt: skip
    """Return sums of whole numbers, of int32, with weights of four bits, times the scales of their groups. packed: the
    weights' bytes as float32, and the scales; None if the kernel is not built."""
    rows, depth = levels.shape
    out, size = np.empty((rows, columns), np.float32), columns * depth // 2
    x = np.ascontiguousarray(levels.reshape(rows, -1, 2).swapaxes(1, 2))
    items, threads = -(-columns // _PART), FORCE_THREADS if size * rows >= _SHARED else 0
    scales = packed[size:]
    try:
        _int4_levels(device, items, threads, x, packed, scales, out, rows, depth, columns, group, _PART)
    except NotBuiltError:
        return None
    return out
