"""ONNX signal ops: Fourier transforms, windows, mel filter banks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor

from .._element_types import dtype_of
from .op_registry import Number, op, single_number
from .resource_limits import check_broadcast, check_elements, check_work


def _cosine_window(size: Number, periodic: int, output_datatype: int, terms: tuple[float, ...]) -> Tensor:
    n = check_elements("a window", int(single_number(size)), each=6)
    turn = np.arange(n) * (2 * math.pi / (n if periodic else n - 1))
    values = sum(a * np.cos(i * turn) for i, a in enumerate(terms))
    return torch.tensor(np.asarray(values, np.float64)).to(dtype_of(output_datatype))


@op("HannWindow")
def hann_window(size: Number, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _cosine_window(size, periodic, output_datatype, (0.5, -0.5))


@op("HammingWindow")
def hamming_window(size: Number, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _cosine_window(size, periodic, output_datatype, (25 / 46, -21 / 46))


@op("BlackmanWindow")
def blackman_window(size: Number, *, output_datatype: int = 1, periodic: int = 1) -> Tensor:
    return _cosine_window(size, periodic, output_datatype, (0.42, -0.5, 0.08))


def _compute_dft(x: Tensor, length: Any, axis: int, inverse: int, onesided: int) -> Tensor:
    axis %= x.ndim
    whole = x[..., 0] if x.shape[-1] == 1 else torch.complex(x[..., 0].contiguous(), x[..., 1].contiguous())
    n = None if length is None else int(single_number(length))
    # Lengths with large prime factors need several longer transforms.
    check_elements("DFT", *(n if d == axis and n is not None else size for d, size in enumerate(x.shape)), each=4)
    check_work("DFT", 32 * x.numel() // x.shape[axis] * (x.shape[axis] if n is None else n) if x.numel() else 0)
    if inverse and onesided:
        return torch.fft.irfft(whole, n if n is not None else 2 * (x.shape[axis] - 1), axis).unsqueeze(-1).to(x.dtype)
    if inverse:
        return torch.view_as_real(torch.fft.ifft(whole, n, axis)).to(x.dtype)
    out = torch.fft.fft(whole, n, axis)
    if onesided:
        out = out.narrow(axis, 0, out.shape[axis] // 2 + 1)
    return torch.view_as_real(out.contiguous()).to(x.dtype)


@op("DFT")
def dft_opset17(x: Tensor, length: Number = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Tensor:
    return _compute_dft(x, length, axis, inverse, onesided)


@op("DFT", since=20)
def dft(x: Tensor, length: Number = None, axis: Number = None, *, inverse: int = 0, onesided: int = 0) -> Tensor:
    return _compute_dft(x, length, -2 if axis is None else int(single_number(axis)), inverse, onesided)


@op("STFT")
def stft(x: Tensor, step: Number, window: Tensor | None = None, length: Number = None, *, onesided: int = 1) -> Tensor:
    size = int(single_number(length)) if length is not None else x.shape[1] if window is None else window.shape[0]
    real = x.ndim == 2 or x.shape[-1] == 1
    signal = x.reshape(x.shape[0], x.shape[1]) if real else torch.view_as_complex(x.contiguous())
    stride = int(single_number(step))
    if stride > 0:
        check_elements("STFT", signal.shape[0], max((signal.shape[1] - size) // stride + 1, 0), size, each=4)
    frames = signal.unfold(1, size, stride)
    if window is not None:
        check_broadcast("STFT", frames, window)
        frames = frames * window
    out = torch.fft.fft(frames, dim=-1)
    if onesided:
        out = out[..., : size // 2 + 1]
    return torch.view_as_real(out.contiguous()).to(x.dtype)


@op("MelWeightMatrix")
def mel_weights(
    bins: Number, length: Number, rate: Number, low: Number, high: Number, *, output_datatype: int = 1
) -> Tensor:
    count, n = int(single_number(bins)), int(single_number(length))
    check_elements("MelWeightMatrix", count + 2, n // 2 + 1, each=8)
    first, last = (2595 * math.log10(1 + float(single_number(v)) / 700) for v in (low, high))
    mel = first + np.arange(count + 2) * ((last - first) / (count + 2))
    at = ((n + 1) * (700 * (10 ** (mel / 2595) - 1)) // int(single_number(rate))).astype(np.int64)
    rows = np.arange(n // 2 + 1)[:, None]
    begin, middle, end = at[:-2], at[1:-1], at[2:]
    rising = np.where(middle == begin, rows == middle, (rows - begin) / np.where(middle == begin, 1, middle - begin))
    falling = (end - rows) / np.where(end == middle, 1, end - middle)
    out = np.where((rows >= begin) & (rows <= middle), rising, 0.0)
    out = np.where((rows >= middle) & (rows < end) & (end > middle), falling, out)
    return torch.tensor(out).to(dtype_of(output_datatype))
