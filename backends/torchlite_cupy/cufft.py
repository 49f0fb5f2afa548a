"""Fourier transforms through cuFFT where they are long enough to pay: the kernels of `torchlite_device.linalg.fft` in
its place elsewhere, and while a graph is captured.
"""

from __future__ import annotations

from typing import Any

from torchlite_device.elements.pointwise import KERNELS
from torchlite_device.linalg import fft as own
from torchlite_device.machinery.array import Array, row_major

from .interchange import array_of, foreign_of

LEAST = 1 << 14  # elements
_KINDS = ("f32", "f64", "c64", "c128")  # cuFFT has half precision for powers of two only, and no bfloat16


def _pays(input: Array, dim: Any) -> bool:
    device: Any = input.device
    return input.size >= LEAST and bool(dim) and input.kind in _KINDS and not device.capturing


def _transformed(input: Array, name: str, scale: float, **how: Any) -> Array:
    """One of CuPy's transforms, none of which divides by the length, times a number."""
    device: Any = input.device
    out = array_of(device, device.driver.transformed(name, foreign_of(input), **how))
    return out if scale == 1 else KERNELS["mul"](out, float(scale))


def _fft_c2c_core(input, dim, scale, forward):
    if not _pays(input, dim):
        return own._fft_c2c_core(input, dim, scale, forward)
    return _transformed(
        input, "fftn" if forward else "ifftn", scale, axes=tuple(dim), norm="backward" if forward else "forward"
    )


def _fft_r2c_core(input, dim, scale, onesided):
    if not onesided or not _pays(input, dim):
        return own._fft_r2c_core(input, dim, scale, onesided)
    return _transformed(input, "rfftn", scale, axes=tuple(dim), norm="backward")


def _fft_c2r_core(input, dim, scale, last_size):
    shape = list(input.shape)
    if dim:
        shape[dim[-1]] = last_size
    if not _pays(input, dim) or not row_major(tuple(shape))[0]:
        return own._fft_c2r_core(input, dim, scale, last_size)
    if len(dim) > 1:
        input = _transformed(input, "ifftn", 1, axes=tuple(dim[:-1]), norm="forward")
    return _transformed(input, "irfft", scale, n=last_size, axis=dim[-1], norm="forward")


def kernels(device: Any) -> dict[str, Any]:
    """The kernels that take cuFFT's place of ours; none where the library is not installed."""
    return {"_fft_c2c_core": _fft_c2c_core, "_fft_r2c_core": _fft_r2c_core, "_fft_c2r_core": _fft_c2r_core} if device.driver.has_transforms() else {}
