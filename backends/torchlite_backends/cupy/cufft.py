"""Fourier transforms through cuFFT for long inputs.

Short ones, and those during graph capture, use `torchlite_backends.device_runtime.linalg.fft`.
"""

from __future__ import annotations

from typing import Any

from torchlite_backends.device_runtime.array_ops.pointwise import KERNELS
from torchlite_backends.device_runtime.core.array import Array, row_major_layout
from torchlite_backends.device_runtime.linalg import fft as own

from .array_interop import from_cupy, to_cupy

MIN_SIZE = 1 << 14  # elements
_KINDS = ("f32", "f64", "c64", "c128")  # cuFFT has half precision for powers of two only, and no bfloat16


def _is_faster(input: Array, dim: Any) -> bool:
    device: Any = input.device
    return input.size >= MIN_SIZE and bool(dim) and input.kind in _KINDS and not device.capturing


def _run_transform(input: Array, name: str, scale: float, **how: Any) -> Array:
    """Call one of CuPy's unnormalised transforms and multiply by `scale`."""
    device: Any = input.device
    out = from_cupy(device, device.driver.run_fft(name, to_cupy(input), **how))
    return out if scale == 1 else KERNELS["mul"](out, float(scale))


def _fft_c2c_core(input, dim, scale, forward):
    if not _is_faster(input, dim):
        return own._fft_c2c_core(input, dim, scale, forward)
    return _run_transform(
        input, "fftn" if forward else "ifftn", scale, axes=tuple(dim), norm="backward" if forward else "forward"
    )


def _fft_r2c_core(input, dim, scale, onesided):
    if not onesided or not _is_faster(input, dim):
        return own._fft_r2c_core(input, dim, scale, onesided)
    return _run_transform(input, "rfftn", scale, axes=tuple(dim), norm="backward")


def _fft_c2r_core(input, dim, scale, last_size):
    shape = list(input.shape)
    if dim:
        shape[dim[-1]] = last_size
    if not _is_faster(input, dim) or not row_major_layout(tuple(shape))[0]:
        return own._fft_c2r_core(input, dim, scale, last_size)
    if len(dim) > 1:
        input = _run_transform(input, "ifftn", 1, axes=tuple(dim[:-1]), norm="forward")
    return _run_transform(input, "irfft", scale, n=last_size, axis=dim[-1], norm="forward")


def kernels(device: Any) -> dict[str, Any]:
    """Return kernels that replace ours by cuFFT; an empty dict if the library is not installed."""
    return (
        {"_fft_c2c_core": _fft_c2c_core, "_fft_r2c_core": _fft_r2c_core, "_fft_c2r_core": _fft_c2r_core}
        if device.driver.has_transforms()
        else {}
    )
