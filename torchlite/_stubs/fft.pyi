# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.fft."""

import builtins as _b

from .aliases import DeviceLike, DType, Ints, Layout
from .tensor import Tensor

def fft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    r"""Computes the discrete Fourier transform along a dimension."""

def fft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes the discrete Fourier transform over two dimensions."""

def fftfreq(
    n: _b.int,
    d: _b.float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns the frequencies of the entries of `torch.fft.fft`: 0 and the positive ones, then the negative ones."""

def fftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the discrete Fourier transform over several dimensions."""

def fftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """Moves the entry of frequency 0 to the middle."""

def hfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes the discrete Fourier transform of a Hermitian signal, given by its first half; the result is real."""

def hfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes `torch.fft.hfftn` over two dimensions."""

def hfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Computes `torch.fft.hfft` over the last dimension and `torch.fft.fft` over the others."""

def ifft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    r"""Computes the inverse discrete Fourier transform along a dimension."""

def ifft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes the inverse discrete Fourier transform over two dimensions."""

def ifftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the inverse discrete Fourier transform over several dimensions."""

def ifftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """Reverses `torch.fft.fftshift`."""

def ihfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes the inverse of `torch.fft.hfft`: the first half of the Hermitian signal of a real spectrum."""

def ihfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes the inverse of `torch.fft.hfft2`."""

def ihfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the inverse of `torch.fft.hfftn`."""

def irfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes the inverse of `torch.fft.rfft`: a real signal from half of its spectrum."""

def irfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes the inverse of `torch.fft.rfft2`."""

def irfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the inverse of `torch.fft.rfftn`."""

def rfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes the discrete Fourier transform of a real input: its first ``n // 2 + 1`` entries."""

def rfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Computes the transform of a real input over two dimensions: half of the last one's spectrum."""

def rfftfreq(
    n: _b.int,
    d: _b.float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    requires_grad: _b.bool = False,
) -> Tensor:
    """Returns the frequencies of the entries of `torch.fft.rfft`."""

def rfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Computes the transform of a real input over several dimensions: half of the last one's spectrum."""
