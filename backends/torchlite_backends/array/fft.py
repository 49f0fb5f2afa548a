"""Discrete Fourier transforms over several dimensions. `scale` multiplies the unnormalised sum."""

from __future__ import annotations

from typing import Any

xp: Any = None


def _run_scaled_fft(name, input, scale, kind, **how):
    """Call one of the namespace's transforms, scale the result, and return it as dtype `kind`."""
    with xp.errstate(all="ignore"):
        out = getattr(xp.fft, name)(input, **how)
        if scale != 1:
            out = out * scale
        return out if out.dtype == kind else out.astype(kind)


def _fft_c2c_core(input, dim, scale, forward):
    if not dim or not input.size:
        return input * input.dtype.type(scale)
    if forward:
        return _run_scaled_fft("fftn", input, scale, input.dtype, axes=dim, norm="backward")
    return _run_scaled_fft("ifftn", input, scale, input.dtype, axes=dim, norm="forward")


def _fft_r2c_core(input, dim, scale, onesided):
    kind = xp.complex64 if input.dtype == xp.float32 else xp.complex128
    if onesided or len(dim) > 1:
        return _run_scaled_fft("rfftn" if onesided else "fftn", input, scale, kind, axes=dim, norm="backward")
    half = xp.moveaxis(_run_scaled_fft("rfft", input, scale, kind, axis=dim[0], norm="backward"), dim[0], -1)
    # The other half is its conjugate, backwards: much quicker than a complex transform.
    rest = input.shape[dim[0]] - half.shape[-1]
    return xp.moveaxis(xp.concatenate([half, xp.conj(half[..., rest:0:-1])], axis=-1), -1, dim[0])


def _fft_c2r_core(input, dim, scale, last_size):
    kind = xp.float32 if input.dtype == xp.complex64 else xp.float64
    if len(dim) > 1:
        input = _run_scaled_fft("ifftn", input, 1, input.dtype, axes=dim[:-1], norm="forward")
    return _run_scaled_fft("irfft", input, scale, kind, n=last_size, axis=dim[-1], norm="forward")
