"""Discrete Fourier transforms over several dimensions. `scale` is what the unnormalised sum is multiplied with."""

from __future__ import annotations

from typing import Any

xp: Any = None


def _scaled(x, scale, kind):
    if scale != 1:
        x = x * scale
    return x if x.dtype == kind else x.astype(kind)


def fft_c2c(input, dim, scale, forward):
    if not dim or not input.size:
        return _scaled(input, scale, input.dtype)
    out = xp.fft.fftn(input, axes=dim, norm="backward") if forward else xp.fft.ifftn(input, axes=dim, norm="forward")
    return _scaled(out, scale, input.dtype)


def fft_r2c(input, dim, scale, onesided):
    kind = xp.complex64 if input.dtype == xp.float32 else xp.complex128
    if onesided:
        return _scaled(xp.fft.rfftn(input, axes=dim, norm="backward"), scale, kind)
    return _scaled(xp.fft.fftn(input, axes=dim, norm="backward"), scale, kind)


def fft_c2r(input, dim, scale, last_size):
    kind = xp.float32 if input.dtype == xp.complex64 else xp.float64
    if len(dim) > 1:
        input = xp.fft.ifftn(input, axes=dim[:-1], norm="forward")
    return _scaled(xp.fft.irfft(input, n=last_size, axis=dim[-1], norm="forward"), scale, kind)
