"""Discrete Fourier transforms: Stockham's self-sorting radices 2, 3, 4, 5 and odd primes to 31, else Bluestein.

See Van Loan, "Computational Frameworks for the Fast Fourier Transform" (1992). An axis is transformed in place of a
transposition: the stages of an (outer, n, inner) array also iterate over `inner`.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from torchlite_backends.kernel_sources.dtype_kinds import COMPLEX_KIND, REAL_KIND
from torchlite_backends.kernel_sources.fft import BLUESTEIN_AND_REAL, TRANSFORM

from ..array_ops.creation import full
from ..array_ops.pointwise import KERNELS
from ..core.array import Array, empty, make_view, numpy_dtype_of_kind, row_major_layout
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device
from ..core.host_transfer import from_numpy
from ..core.pointwise_dispatch import cast
from .matrix_launch import build_matrix_kernel, choose_group_size, count_elements, launch_per_element, launch_per_matrix

_MAX_RADIX = 31  # the greatest prime with a direct stage
_KEPT = 64  # plans that a device keeps


# --- plans ---


class _FFTPlan(NamedTuple):
    """FFT tables of a length: roots of unity and radices, or the chirp and its padded spectrum."""

    roots: Array
    radices: tuple[int, ...]
    stages: Array
    chirp: Array | None = None
    filter: Array | None = None
    padded: int = 0


@functools.cache
def factor_into_radices(n: int) -> tuple[int, ...]:
    """Return the radices of a length's stages; () if a prime factor is too large."""
    found = []
    for radix in (4, 2, 3, 5, *range(7, _MAX_RADIX + 1, 2)):
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return tuple(found) if n == 1 else ()


def _roots_of_unity(n: int, kind: str) -> np.ndarray:
    return np.exp(-2j * math.pi / n * np.arange(n)).astype(np.complex64 if kind == "c64" else np.complex128)


def _choose_padded_length(n: int) -> int:
    """Return a length of at least 2 n - 1 with small prime factors."""
    return min(k << max(0, (-(-(2 * n - 1) // k) - 1).bit_length()) for k in (1, 3, 5))


def _get_fft_plan(device: Device, n: int, kind: str) -> _FFTPlan:
    plans = device.kept("fft", _KEPT)
    found = plans.get((n, kind))
    if found is None:
        radices = factor_into_radices(n)
        roots, stages = (
            from_numpy(_roots_of_unity(n, kind), device),
            from_numpy(np.array(radices or (1,), np.int32), device),
        )
        found = (
            _FFTPlan(roots, radices, stages)
            if radices or n == 1
            else _make_bluestein_plan(device, n, kind, roots, stages)
        )
        plans[n, kind] = found
    return found


def _make_bluestein_plan(device: Device, n: int, kind: str, roots: Array, stages: Array) -> _FFTPlan:
    padded = _choose_padded_length(n)
    squares = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
    chirp = np.exp(-1j * math.pi / n * squares)
    kernel = np.zeros(padded, np.complex128)
    kernel[:n] = chirp.conj()
    kernel[padded - n + 1 :] = chirp[:0:-1].conj()
    on_device = from_numpy(kernel.astype(roots.dtype), device)
    return _FFTPlan(
        roots,
        (),
        stages,
        from_numpy(chirp.astype(roots.dtype), device),
        _run_fft(on_device, 1, padded, 1, 1, 1.0),
        padded,
    )


# --- one axis ---


def _run_fft(x: Array, outer: int, n: int, inner: int, sign: int, scale: float) -> Array:
    """Transform a contiguous (outer, n, inner) array out of place. `sign` is 1 forward, -1 inverse."""
    device, kind = x.device, x.kind
    plan, number = _get_fft_plan(device, n, kind), "d" if kind == "c128" else "f"
    if plan.filter is not None:
        return _run_bluestein_fft(x, plan, outer, n, inner, sign, scale)
    if n == 1:
        return KERNELS["mul"](x, scale)
    out, between = empty(device, x.shape, kind), empty(device, x.shape, kind)
    if outer >= 2 * device.units or n * inner < 4096:
        launch_per_matrix(
            device,
            kind,
            TRANSFORM,
            "rows",
            f"pppppiiii{number}",
            outer,
            x,
            out,
            between,
            plan.roots,
            plan.stages,
            n,
            inner,
            len(plan.radices),
            sign,
            scale,
        )
        return out
    stage = build_matrix_kernel(device, kind, TRANSFORM, "stage", f"pppiiiiiii{number}")
    m, s, left = n, inner, len(plan.radices)
    for radix in plan.radices:
        m //= radix
        to = out if left % 2 else between
        parts = 4 * device.units if choose_group_size(device) == 1 else min(m * s, 1 << 16)
        stage(
            (outer * parts,), None, x, to, plan.roots, radix, n, inner, m, s, parts, sign, scale if left == 1 else 1.0
        )
        x, s, left = to, s * radix, left - 1
    return out


def _run_bluestein_fft(x: Array, plan: _FFTPlan, outer: int, n: int, inner: int, sign: int, scale: float) -> Array:
    """Transform by Bluestein's convolution with a chirp."""
    device, kind, m = x.device, x.kind, plan.padded
    y, out = empty(device, (outer, m, inner), kind), empty(device, x.shape, kind)
    launch_per_element(
        device, kind, BLUESTEIN_AND_REAL, "chirped", "pppiiiii", y.size, x, plan.chirp, y, n, m, inner, sign
    )
    y = _run_fft(y, outer, m, inner, 1, 1.0)
    launch_per_element(device, kind, BLUESTEIN_AND_REAL, "spectrum", "ppiiii", y.size, y, plan.filter, m, inner, sign)
    y = _run_fft(y, outer, m, inner, -1, scale / m)
    launch_per_element(
        device,
        kind,
        BLUESTEIN_AND_REAL,
        "unchirped",
        f"pppiiii{'d' if kind == 'c128' else 'f'}i",
        out.size,
        y,
        plan.chirp,
        out,
        n,
        m,
        inner,
        sign,
        1.0,
    )
    return out


def _split_shape(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    return count_elements(shape[:dim]), shape[dim], count_elements(shape[dim + 1 :])


def _with_size(shape: tuple[int, ...], dim: int, n: int) -> tuple[int, ...]:
    return (*shape[:dim], n, *shape[dim + 1 :])


def _run_fft_over_dims(x: Array, dim, sign: int, scale: float) -> Array:
    """Transform over several dimensions."""
    for d in dim:
        x = _run_fft(x, *_split_shape(x.shape, d), sign, scale)
        scale = 1.0
    return x


# --- the three kernels ---


def _fft_c2c_core(input, dim, scale, forward):
    if not dim or not input.size:
        return KERNELS["mul"](input, float(scale))
    return _run_fft_over_dims(as_contiguous(input), tuple(dim), 1 if forward else -1, float(scale))


def _cast_to_complex(x: Array) -> Array:
    return cast(x, COMPLEX_KIND[x.kind])


def _slice_dim_to_length(x: Array, dim: int, n: int) -> Array:
    return as_contiguous(make_view(x, _with_size(x.shape, dim, n), x.steps, x.offset))


def _fft_r2c_core(input, dim, scale, onesided):
    kind, last = COMPLEX_KIND[input.kind], dim[-1]
    n = input.shape[last]
    size = n // 2 + 1 if onesided else n
    if not input.size:
        return empty(input.device, _with_size(input.shape, last, size), kind)
    x = as_contiguous(input)
    outer, _, inner = _split_shape(x.shape, last)
    if inner == 1 and n % 2 == 0 and x.offset % 2 == 0:
        z = _run_fft(_view_pairs_as_complex(x, kind, n // 2), outer, n // 2, 1, 1, float(scale))
        out = empty(x.device, _with_size(x.shape, last, size), kind)
        launch_per_element(
            x.device,
            kind,
            BLUESTEIN_AND_REAL,
            "halves",
            "pppiii",
            out.size,
            z,
            _get_fft_plan(x.device, n, kind).roots,
            out,
            n,
            size,
        )
    else:
        out = _run_fft(_cast_to_complex(x), outer, n, inner, 1, float(scale))
        out = out if size == n else _slice_dim_to_length(out, last, size)
    return _run_fft_over_dims(out, tuple(dim[:-1]), 1, 1.0)


def _view_pairs_as_complex(x: Array, kind: str, n: int) -> Array:
    """View contiguous real pairs as complex numbers."""
    shape = (x.size // n // 2, n)
    out = make_view(x, shape, (n, 1), x.offset // 2)
    out.kind, out.dtype = kind, numpy_dtype_of_kind(kind)
    return out


def _fft_c2r_core(input, dim, scale, last_size):
    device, kind, last = input.device, input.kind, dim[-1]
    real, n = REAL_KIND[kind], last_size
    shape = _with_size(input.shape, last, n)
    if not input.size or not count_elements(shape):
        return full(device, shape, 0, real)
    x = _run_fft_over_dims(as_contiguous(input), tuple(dim[:-1]), -1, 1.0)
    outer, size, inner = _split_shape(x.shape, last)
    if inner == 1 and n % 2 == 0:
        z = empty(device, (outer, n // 2), kind)
        launch_per_element(
            device,
            kind,
            BLUESTEIN_AND_REAL,
            "joined",
            "pppiii",
            z.size,
            x,
            _get_fft_plan(device, n, kind).roots,
            z,
            n,
            size,
        )
        return _view_complex_as_real(_run_fft(z, outer, n // 2, 1, -1, float(scale)), real, shape)
    y = empty(device, shape, kind)
    launch_per_element(device, kind, BLUESTEIN_AND_REAL, "whole", "ppiiii", y.size, x, y, n, size, inner)
    return KERNELS["real"](_run_fft(y, outer, n, inner, -1, float(scale)))


def _view_complex_as_real(z: Array, kind: str, shape: tuple[int, ...]) -> Array:
    """View a module-owned complex array as real parts."""
    z.kind, z.dtype, z.shape, z.steps, z.size = (
        kind,
        numpy_dtype_of_kind(kind),
        shape,
        row_major_layout(shape)[1],
        count_elements(shape),
    )
    return z
