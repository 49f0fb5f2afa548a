# Made by tools/make_stubs.py from the op records: do not edit.
"""The functions of torchlite.fft."""

import builtins as _b

from .aliases import DeviceLike, DType, Ints, Layout
from .tensor import Tensor

def fft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def fft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def fftfreq(
    n: _b.int,
    d: _b.float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    requires_grad: _b.bool = False,
) -> Tensor: ...
def fftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def fftshift(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor: ...
def hfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def hfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def hfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def ifft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def ifft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def ifftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def ifftshift(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor: ...
def ihfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def ihfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def ihfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def irfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def irfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def irfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
def rfft(
    input: Tensor, n: _b.int | None = None, dim: _b.int = -1, norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def rfft2(
    input: Tensor, s: Ints | None = None, dim: Ints = ..., norm: _b.str | None = None, *, out: Tensor | None = None
) -> Tensor: ...
def rfftfreq(
    n: _b.int,
    d: _b.float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike = None,
    requires_grad: _b.bool = False,
) -> Tensor: ...
def rfftn(
    input: Tensor,
    s: Ints | None = None,
    dim: Ints | None = None,
    norm: _b.str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
