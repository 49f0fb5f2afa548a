# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.fft."""

import builtins as _b

from .aliases import DeviceLike, DType, Ints, Layout
from .tensor import Tensor

def fft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The discrete Fourier transform along `dim` (trimmed or padded with zeros to `n`). Complex; single precision stays
    single.

    `norm`: "backward" (no scale, the default), "forward" (1/n) or "ortho" (1/sqrt(n)).

    >>> torch.fft.fft(torch.tensor([1., 0., 0., 0.])).real
    tensor([1., 1., 1., 1.])
    """

def fft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`fftn` over two dimensions."""

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
    """The frequencies of `fft`'s entries for `n` samples `d` apart: 0 and the positive ones, then the negative ones.

    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """

def fftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform over several dimensions `dim` (all, or as many last ones as `s` has), trimmed or padded with zeros
    to the sizes `s`.

    >>> torch.fft.fftn(torch.ones(2, 2)).real
    tensor([[4., 0.],
            [0., 0.]])
    """

def fftshift(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """The entry of frequency 0 moved to the middle of each of `dim` (all unless given).

    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """

def hfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The real transform of a Hermitian signal, given by its first half."""

def hfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`hfftn` over two dimensions."""

def hfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`hfft` over the last, `fft` over the other dimensions."""

def ifft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of `fft`: scale 1/n ("backward", the default), none ("forward") or 1/sqrt(n) ("ortho")."""

def ifft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of `fft2`."""

def ifftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `fftn`."""

def ifftshift(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `fftshift`."""

def ihfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of `hfft`: half of the Hermitian signal whose transform is the real input."""

def ihfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of `hfft2`."""

def ihfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `hfftn`."""

def irfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of `rfft`: a real signal of `n` entries (2 (m - 1) unless given) from half a spectrum.

    >>> torch.fft.irfft(torch.tensor([4., 0., 0.]))
    tensor([1., 1., 1., 1.])
    """

def irfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The inverse of `rfft2`."""

def irfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `rfftn`; the last dimension has 2 (m - 1) entries by default; see `s`."""

def rfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The first n // 2 + 1 entries of the transform of a real input: the rest are their conjugates. RuntimeError for
    complex input.

    >>> torch.fft.rfft(torch.ones(4)).real
    tensor([4., 0., 0.])
    """

def rfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`rfftn` over two dimensions."""

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
    """The frequencies of `rfft`'s n // 2 + 1 entries.

    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """

def rfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`fftn` of a real input, half of the last dimension's spectrum."""
