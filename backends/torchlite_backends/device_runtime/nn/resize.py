"""Resampling of images on a grid (interpolate), with antialiasing, and its backward pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlite._types.dtypes import from_np, iinfo
from torchlite_backends.array import resize as shared
from torchlite_backends.kernel_sources import pooling
from torchlite_backends.kernel_sources.dtype_kinds import CATEGORY

from ..array_ops.creation import full
from ..array_ops.device_cache import get_device_cached
from ..array_ops.gather_scatter_ops import index_select
from ..array_ops.launch_sizes import choose_work_sizes
from ..core.array import Array, empty
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.device_asserts import check_takes
from ..core.host_transfer import from_numpy
from ..core.views import reshape

# Resampling: for each axis a table of the input positions (out, taps) and their weights, cached on the device


_MOST_KEPT = 1 << 18  # positions of a table that stays on the device


def _get_table(device, family: str, key: tuple, make_table: Callable[[], tuple]) -> tuple:
    """Return the table of a key, which begins with an axis' lengths before and after. Small ones are cached."""
    return make_table() if max(key[:2]) > _MOST_KEPT else get_device_cached(device, family, key, make_table)


def _get_resampling_table(device, n: int, out: int, how: Any, real, transposed: bool) -> tuple[Array, Array]:
    """Return positions and weights of an axis of `n` elements resampled to `out`, or of its transpose."""

    def make_table():
        places, weights = shared._compute_taps_and_weights(n, out, *how, real=real)
        weights = np.ones(places.shape, real) if weights is None else np.asarray(weights, real)
        if transposed:
            places, weights = shared._transpose_table(places, weights, n, out, real)
        return from_numpy(places.astype(np.int32), device), from_numpy(np.ascontiguousarray(weights), device)

    return _get_table(device, "resampling", (n, out, how, real, transposed), make_table)


def _resample_axis(x: Array, axis: int, length: int, table: tuple[Array, Array], kind: str) -> Array:
    """Resample `x` along an axis, as elements of a kind."""
    device, (places, weights) = x.device, table
    out = empty(device, (*x.shape[:axis], length, *x.shape[axis + 1 :]), kind)
    if not out.size:
        return out
    inner, real = math.prod(x.shape[axis + 1 :]), "double" if weights.kind == "f64" else "float"
    whole = CATEGORY[kind] in "ib"
    wide = device.is_cpu and inner >= 16 and not whole and CATEGORY[x.kind] != "c"
    text = f"#define W16 {real}16\n#define convert_W16 convert_{real}16\n" + ("#define WIDE\n" if wide else "")
    if whole:
        limits = iinfo(from_np(x.dtype if CATEGORY[x.kind] == "i" else out.dtype)) if kind != "b8" else None
        low, high = (limits.min, limits.max) if limits else (0, 1)
        suffix = "" if real == "double" else "f"
        text += f"#define ROUNDED\n#define LOWEST {float(low)!r}{suffix}\n#define HIGHEST {float(high)!r}{suffix}\n"
    defines: dict[str, Any] = {"T": x.kind, "O": kind, "W": real, **({"UNUSED": "f64"} if real == "double" else {})}
    take, items, group = choose_work_sizes(device, out.size, 64)
    run = device.function(text + pooling.RESAMPLE, "resample", "ppppiiiiii", (16,) if wide else (), **defines)
    run(items, group, x, places, weights, out, out.size, take, x.shape[axis], length, inner, places.shape[1])
    return out


def _resample_last_dims(x: Array, lengths, mode: str, how, factors, antialias: bool, transposed: bool) -> Array:
    """Resample the last dimensions of `x` to lengths, first to last, with vectors along the others.

    Half precision and integers are computed in float32.
    """
    check_takes(x, "fi", "upsample_cpu")
    count = len(lengths)
    nearest = mode in ("nearest", "nearest-exact")
    work = x.kind if x.kind in ("f64", "f32") or nearest and not transposed else "f32"
    sizes = [(x.shape[x.ndim - count + i], lengths[i]) for i in range(count)]
    todo = [i for i in range(count) if not shared._is_identity(*sizes[i], factors[i])]
    if not todo:
        return clone_row_major(x)
    out, real = as_contiguous(x), np.float64 if x.kind == "f64" else np.float32
    for at, i in enumerate(todo):
        n, length = sizes[i]
        a, b = (length, n) if transposed else (n, length)
        table = _get_resampling_table(x.device, a, b, (mode, how, factors[i], antialias), real, transposed)
        kind = x.kind if at == len(todo) - 1 else work
        if nearest and not transposed:
            out = index_select(out, out.ndim - count + i, _single_tap_positions(table[0]))
        else:
            out = _resample_axis(out, out.ndim - count + i, length, table, kind)
    return out


def _get_byte_table(device, n: int, out: int, how: Any) -> tuple[Array, Array, int]:
    """Return positions and integer weights of an axis of bytes, and the bits of the weights."""

    def make_table():
        places, weights = shared._compute_taps_and_weights(n, out, *how, real=np.float64)
        weights, bits = shared._quantize_weights(places, weights)
        return from_numpy(places.astype(np.int32), device), from_numpy(np.ascontiguousarray(weights), device), bits

    return _get_table(device, "resampling of bytes", (n, out, how), make_table)


def _resize_bytes(x: Array, size, mode: str, align_corners, factors, antialias: bool) -> Array:
    """Resize images of bytes as PyTorch does: integer sums, rounded to bytes after the rows and after the columns."""
    device, out = x.device, as_contiguous(x)
    for axis in (x.ndim - 1, x.ndim - 2):
        n, length, factor = x.shape[axis], size[axis - x.ndim], factors[axis - x.ndim]
        if n == length:
            continue
        places, weights, bits = _get_byte_table(device, n, length, (mode, align_corners, factor, antialias))
        source, out = out, empty(device, (*out.shape[:axis], length, *out.shape[axis + 1 :]), x.kind)
        inner = math.prod(out.shape[axis + 1 :])
        if not out.size:
            continue
        take, items, group = choose_work_sizes(device, out.size, 64)
        run = device.function(pooling.RESAMPLE_BYTES, "resample_bytes", "ppppiiiiiii", (), T=x.kind)
        run(items, group, source, places, weights, out, out.size, take, n, length, inner, places.shape[1], bits)
    return clone_row_major(x) if out is x else out


def _single_tap_positions(places: Array) -> Array:
    """Return the positions of a table with one tap."""
    return reshape(places, (places.size,))


def _resize(input, size, mode, align_corners, factors, antialias):
    if input.kind == "u8" and len(size) == 2 and mode in ("bilinear", "bicubic", "lanczos"):
        return _resize_bytes(input, size, mode, align_corners, factors, antialias)
    return _resample_last_dims(input, tuple(size), mode, align_corners, factors, antialias, False)


def _resize_backward(grad_output, size, mode, align_corners, factors, antialias):
    if not grad_output.size:
        return full(
            grad_output.device, (*grad_output.shape[: grad_output.ndim - len(size)], *size), 0, grad_output.kind
        )
    return _resample_last_dims(grad_output, tuple(size), mode, align_corners, factors, antialias, True)
