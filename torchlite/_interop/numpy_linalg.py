"""NumPy's products, `numpy.linalg` and `numpy.fft` implemented with torch's functions; extends
`numpy_implementations`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import fft as torch_fft
from .. import linalg as torch_linalg
from .._dispatch.public_functions import torch
from .._types.dtypes import COMPLEX
from .numpy_implementations import IMPLEMENTATIONS, Function, flatten, implements, to_real_float, to_tensors

# -- products -----------------------------------------------------------------------------------------


def _promote_pair(a: Any, b: Any) -> list[Any]:
    return to_tensors([a, b])


@implements("dot")
def dot(a, b, out=None):
    a, b = _promote_pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if a.ndim <= 2 and b.ndim <= 2:
        return torch.matmul(a, b)
    return torch.tensordot(a, b, ([a.ndim - 1], [max(b.ndim - 2, 0)]))


@implements("inner")
def inner(a, b, /):
    a, b = _promote_pair(a, b)
    return torch.inner(a, b) if a.ndim and b.ndim else a * b


@implements("vdot")
def vdot(a, b, /):
    a, b = _promote_pair(a, b)
    return torch.vdot(flatten(a), flatten(b))


@implements("outer")
def outer(a, b, out=None):
    a, b = _promote_pair(a, b)
    return flatten(a).unsqueeze(1) * flatten(b)


@implements("linalg.outer")
def linalg_outer(x1, x2, /):
    return torch.outer(*_promote_pair(x1, x2))


@implements("tensordot")
def tensordot(a, b, axes=2):
    a, b = _promote_pair(a, b)
    if not isinstance(axes, int):
        axes = tuple([x] if isinstance(x, int) else [int(d) for d in x] for x in axes)
    return torch.tensordot(a, b, axes)


implements("linalg.tensordot")(lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes))
implements("kron")(lambda a, b: torch.kron(*_promote_pair(a, b)))
implements("linalg.matmul")(lambda x1, x2, /: torch.matmul(*_promote_pair(x1, x2)))
implements("linalg.multi_dot")(lambda arrays, *, out=None: torch_linalg.multi_dot(to_tensors(arrays)))
implements("linalg.vecdot")(lambda x1, x2, /, *, axis=-1: torch_linalg.vecdot(*_promote_pair(x1, x2), dim=axis))


@implements("einsum")
def einsum(*operands, out=None, optimize=False, **kwargs):
    if kwargs or not isinstance(operands[0], str):
        return NotImplemented
    return torch.einsum(operands[0], *to_tensors(operands[1:]))


@implements("trace")
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    return IMPLEMENTATIONS["sum"](torch.diagonal(a, offset, axis1, axis2), -1, dtype)


implements("linalg.trace")(lambda x, /, *, offset=0, dtype=None: trace(x, offset, -2, -1, dtype))


@implements("cross")
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _promote_pair(a, b)
    a, b = a.movedim(axisa, -1), b.movedim(axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        return NotImplemented
    result = torch_linalg.cross(*torch.broadcast_tensors(a, b))
    return result.movedim(-1, axisc)


implements("linalg.cross")(lambda x1, x2, /, *, axis=-1: cross(x1, x2, axis=axis))


# NumPy's named tuples, whose fields its callers ask for.
_QRResult: Any = type(np.linalg.qr(np.eye(1)))
_SVDResult: Any = type(np.linalg.svd(np.eye(1)))


# -- linear algebra -----------------------------------------------------------------------------------


def _make_matrix_function(name: str) -> Function:
    return lambda a: getattr(torch_linalg, name)(to_real_float(a))


for _name in ("det", "inv", "slogdet"):
    implements(f"linalg.{_name}")(_make_matrix_function(_name))


def _all_real(a, values) -> bool:
    """True if NumPy returns real eigenvalues: those of a real matrix without imaginary parts."""
    return a.dtype.category < COMPLEX and not values.imag.any()


@implements("linalg.eigvals")
def eigvals(a):
    values = torch_linalg.eigvals(to_real_float(a))
    return values.real if _all_real(a, values) else values


@implements("linalg.eig")
def eig(a):
    found: Any = torch_linalg.eig(to_real_float(a))
    return type(found)([t.real for t in found]) if _all_real(a, found[0]) else found


@implements("linalg.norm")
def norm(x, ord=None, axis=None, keepdims=False):
    return torch_linalg.norm(to_real_float(x), ord, axis, bool(keepdims))


@implements("linalg.vector_norm")
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    return torch_linalg.vector_norm(to_real_float(x), ord, axis, bool(keepdims))


@implements("linalg.matrix_norm")
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    return torch_linalg.matrix_norm(to_real_float(x), ord, (-2, -1), bool(keepdims))


@implements("linalg.solve")
def solve(a, b):
    a, b = (to_real_float(t) for t in _promote_pair(a, b))
    return torch_linalg.solve(a, b.unsqueeze(-1)).squeeze(-1) if b.ndim == 1 else torch_linalg.solve(a, b)


@implements("linalg.cholesky")
def cholesky(a, /, *, upper=False):
    return torch_linalg.cholesky(to_real_float(a), upper=upper)


@implements("linalg.qr")
def qr(a, mode="reduced"):
    if mode not in ("reduced", "complete", "r"):
        return NotImplemented
    found = torch_linalg.qr(to_real_float(a), "reduced" if mode == "r" else mode)
    return found[1] if mode == "r" else _QRResult(*found)


@implements("linalg.svd")
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    if not compute_uv:
        return torch_linalg.svdvals(to_real_float(a))
    return _SVDResult(*torch_linalg.svd(to_real_float(a), full_matrices))


implements("linalg.svdvals")(lambda x, /: torch_linalg.svdvals(to_real_float(x)))
implements("linalg.eigh")(lambda a, UPLO="L": torch_linalg.eigh(to_real_float(a), UPLO))
implements("linalg.eigvalsh")(lambda a, UPLO="L": torch_linalg.eigvalsh(to_real_float(a), UPLO))
implements("linalg.matrix_power")(lambda a, n: torch_linalg.matrix_power(a, n))


# -- Fourier transforms ---------------------------------------------------------------------------------


def _make_transform(name: str) -> None:
    @implements(f"fft.{name}")
    def transform(a, n=None, axis=-1, norm=None, out=None):
        return getattr(torch_fft, name)(to_real_float(a), n, axis, norm)


def _make_transform_of_several_axes(name: str, axes_: Any) -> None:
    @implements(f"fft.{name}")
    def transform(a, s=None, axes=axes_, norm=None, out=None):
        return getattr(torch_fft, name)(to_real_float(a), s, axes, norm)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _make_transform(_name)
for _name in ("fft", "ifft", "rfft", "irfft"):
    _make_transform_of_several_axes(_name + "n", None)
    _make_transform_of_several_axes(_name + "2", (-2, -1))
implements("fft.fftshift")(lambda x, axes=None: torch_fft.fftshift(x, axes))
implements("fft.ifftshift")(lambda x, axes=None: torch_fft.ifftshift(x, axes))
