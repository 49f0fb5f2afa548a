"""Export rules of complex numbers and Fourier transforms. A complex value has its parts in a last dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import OnnxExporterError
from .elementwise import atan2, to_float_type
from .graph_builder import REAL_PARTS, OnnxGraphBuilder, WriterValue, translates
from .reductions import reduce_with


def _parts(w: OnnxGraphBuilder, x: WriterValue) -> tuple[WriterValue, WriterValue]:
    """Return the real and imaginary part of a value."""
    if x.dtype not in REAL_PARTS:
        real = to_float_type(w, x)
        return real, WriterValue(w.op("Sub", real, real), real.dtype, x.sizes)
    dtype = REAL_PARTS[x.dtype]
    first, second = (w.op("Gather", x.name, w.constant(i, "int64"), axis=x.ndim) for i in (0, 1))
    return WriterValue(first, dtype, x.sizes), WriterValue(second, dtype, x.sizes)


def _joined(w: OnnxGraphBuilder, real: str, imag: str, ndim: int) -> str:
    return w.op("Concat", w.unsqueeze(real, ndim), w.unsqueeze(imag, ndim), axis=ndim)


@translates(
    "aten.view_as_real", "aten.view_as_real_copy", "aten.view_as_complex", "aten.view_as_complex_copy", complex=True
)
def view_as(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return x.name


@translates(
    "aten.alias.default", "aten.clone.default", "aten.detach.default", "aten.resolve_conj.default",
    "aten.contiguous.default", complex=True,
)  # fmt: skip
def same(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return x.name


@translates("aten.complex", complex=True)
def from_parts(w: OnnxGraphBuilder, x: WriterValue, y: WriterValue) -> str:
    if x.sizes != y.sizes:
        zero = w.op("Mul", w.op("Add", x, y), w.constant(0, x.dtype))
        return _joined(w, w.op("Add", x, zero), w.op("Add", y, zero), max(x.ndim, y.ndim))
    return _joined(w, x.name, y.name, x.ndim)


@translates("aten.polar.default", complex=True)
def polar(w: OnnxGraphBuilder, size: WriterValue, angle: WriterValue) -> str:
    real, imag = (w.op("Mul", size, w.op(kind, angle)) for kind in ("Cos", "Sin"))
    return _joined(w, real, imag, max(size.ndim, angle.ndim))


@translates("aten.conj", "aten._conj", "aten.conj_physical", "aten._conj_physical", complex=True)
def conj(w: OnnxGraphBuilder, x: WriterValue) -> str:
    if x.dtype not in REAL_PARTS:
        return x.name
    return w.op("Mul", x.name, w.constant([1, -1], REAL_PARTS[x.dtype]))


@translates("aten.abs", complex=True)
def absolute(w: OnnxGraphBuilder, x: WriterValue) -> str:
    if x.dtype not in REAL_PARTS:
        return w.op("Abs", x)
    return reduce_with(w, "ReduceL2", x.name, [x.ndim], False)


@translates("aten.angle.default", complex=True)
def angle(w: OnnxGraphBuilder, x: WriterValue) -> str:
    if x.dtype in REAL_PARTS:
        a, b = _parts(w, x)
        return atan2(w, b, a)
    value = to_float_type(w, x)
    turned = w.op("Where", w.op("Less", value, w.constant(0, value.dtype)), w.constant(math.pi, value.dtype),
                  w.constant(0, value.dtype))  # fmt: skip
    return w.op("Where", w.op("IsNaN", value), value, turned)


# -- Fourier transforms ------------------------------------------------------------------------------------------------


def _resized(w: OnnxGraphBuilder, x: str, dim: int, old: int, new: int) -> str:
    """Cut or fill a dimension with zeros; `x` has parts behind it."""
    if new < old:
        return w.slice(x, dim, 0, new)
    if new == old:
        return x
    return w.op("Pad", x, w.constant([0, new - old], "int64"), None, w.constant([dim], "int64"), mode="constant")


def _factor(norm: str | None, inverse: bool, n: int) -> float:
    """Return the factor of a transform, relative to ONNX's: 1, or 1/n of the inverse one."""
    wanted = norm or "backward"
    if wanted == "ortho":
        return math.sqrt(n) if inverse else 1 / math.sqrt(n)
    return {("forward", False): 1 / n, ("forward", True): float(n)}.get((wanted, inverse), 1.0)


class Transform:
    """A value during a transform: its name with parts in a last dimension, its type and fixed sizes."""

    def __init__(self, w: OnnxGraphBuilder, x: WriterValue) -> None:
        self.w, self.is_real = w, x.dtype not in REAL_PARTS
        value = to_float_type(w, x) if self.is_real else x
        self.dtype = value.dtype if self.is_real else REAL_PARTS[x.dtype]
        if any(n is None for n in x.sizes):
            raise OnnxExporterError("fft: a value of no fixed size")
        self.sizes = [n for n in x.sizes if n is not None]
        self.ndim = x.ndim
        self.name: str = w.unsqueeze(value, x.ndim) if self.is_real else x.name

    def resize(self, dim: int, n: int | None) -> int:
        """Cut or fill a dimension; return its size."""
        size = self.sizes[dim] if n is None else n
        self.name, self.sizes[dim] = _resized(self.w, self.name, dim, self.sizes[dim], size), size
        return size

    def along(self, dim: int, inverse: bool, norm: str | None, onesided: bool = False) -> None:
        """Transform a dimension."""
        n = self.sizes[dim]
        options: dict[str, Any] = {"inverse": int(inverse), "onesided": int(onesided)}
        if self.w.version >= 20:
            self.name = self.w.op("DFT", self.name, None, self.w.constant(dim, "int64"), **options)
        else:
            self.name = self.w.op("DFT", self.name, axis=dim, **options)
        self.scale(_factor(norm, inverse, n))
        self.is_real, self.sizes[dim] = False, n // 2 + 1 if onesided else n

    def conj(self) -> None:
        if not self.is_real:
            self.name = self.w.op("Mul", self.name, self.w.constant([1, -1], self.dtype))

    def scale(self, factor: float) -> None:
        if factor != 1:
            self.name = self.w.op("Mul", self.name, self.w.constant(factor, self.dtype))

    def mirror(self, dim: int, n: int) -> None:
        """Complete half of a Hermitian dimension to n elements. The first and the middle one count as real."""
        if self.is_real:
            self.name = self.w.op("Concat", self.name, self.w.op("Sub", self.name, self.name), axis=self.ndim)
            self.is_real = False
        half = n // 2
        self.resize(dim, half + 1)
        places = np.array([k if k <= half else n - k for k in range(n)])
        signs = np.ones((n, 2))
        signs[:, 1] = [0 if k == 0 or 2 * k == n else 1 if k <= half else -1 for k in range(n)]
        shape = [n if d == dim else 1 for d in range(self.ndim)] + [2]
        whole = self.w.op("Gather", self.name, self.w.constant(places, "int64"), axis=dim)
        self.name = self.w.op("Mul", whole, self.w.constant(signs.reshape(shape), self.dtype))
        self.sizes[dim] = n

    def real_part(self) -> str:
        return self.w.op("Gather", self.name, self.w.constant(0, "int64"), axis=self.ndim)


def _dims(x: WriterValue, sizes: Sequence[int] | None, dims: Sequence[int] | None) -> tuple[list[int], list]:
    """Return the dimensions of a transform and their new sizes, None for the old ones."""
    if dims is None:
        dims = range(x.ndim) if sizes is None else range(x.ndim - len(sizes), x.ndim)
    given = [d % x.ndim for d in dims]
    wanted = [None] * len(given) if sizes is None else [None if n == -1 else n for n in sizes]
    return given, wanted


def _to_complex(w: OnnxGraphBuilder, x: WriterValue, sizes: Any, dims: Any, norm: Any, inverse: bool) -> str:
    """Transform all dimensions of a real or complex value."""
    value = Transform(w, x)
    if value.is_real and inverse:  # ONNX's inverse takes complex numbers
        value.name = w.op("Concat", value.name, w.op("Sub", value.name, value.name), axis=x.ndim)
    for dim, n in zip(*_dims(x, sizes, dims), strict=True):
        value.resize(dim, n)
        value.along(dim, inverse, norm)
    return value.name


def _half(w: OnnxGraphBuilder, x: WriterValue, sizes: Any, dims: Any, norm: Any, inverse: bool) -> str:
    """Transform a real value to half of its spectrum; an inverse one is the conjugate of it."""
    value = Transform(w, x)
    pairs = list(zip(*_dims(x, sizes, dims), strict=True))
    for dim, n in pairs:
        value.resize(dim, n)
    flipped = {"forward": "backward", "ortho": "ortho"}.get(norm, "forward") if inverse else norm
    value.along(pairs[-1][0], False, flipped, onesided=True)
    if inverse:
        value.conj()
    for dim, _ in pairs[:-1]:
        value.along(dim, inverse, norm)
    return value.name


def _to_real(w: OnnxGraphBuilder, x: WriterValue, sizes: Any, dims: Any, norm: Any, inverse: bool) -> str:
    """Transform half of a Hermitian spectrum to a real value."""
    value = Transform(w, x)
    pairs = list(zip(*_dims(x, sizes, dims), strict=True))
    for dim, n in pairs[:-1]:
        value.resize(dim, n)
    last, n = pairs[-1]
    size = 2 * (value.sizes[last] - 1) if n is None else n
    if not inverse:
        value.conj()  # a forward transform is an inverse one of the conjugate
        for dim, _ in pairs[:-1]:
            value.conj()
            value.along(dim, False, norm)
            value.conj()
    else:
        for dim, _ in pairs[:-1]:
            if value.is_real:
                value.name = w.op("Concat", value.name, w.op("Sub", value.name, value.name), axis=x.ndim)
                value.is_real = False
            value.along(dim, True, norm)
    value.mirror(last, size)
    flipped = norm if inverse else {"forward": "backward", "ortho": "ortho"}.get(norm, "forward")
    value.along(last, True, flipped)
    return value.real_part()


def _register_transforms(kind: str, run: Any, inverse: bool) -> None:
    """Register a transform of one dimension, of two and of n."""

    @translates(f"aten.fft_{kind}", complex=True)
    def one(w: OnnxGraphBuilder, x: WriterValue, n: int | None = None, dim: int = -1, norm: str | None = None) -> str:
        return run(w, x, None if n is None else [n], [dim], norm, inverse)

    @translates(f"aten.fft_{kind}2", complex=True)
    def two(w: OnnxGraphBuilder, x: WriterValue, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> str:
        return run(w, x, s, dim, norm, inverse)

    @translates(f"aten.fft_{kind}n", complex=True)
    def several(w: OnnxGraphBuilder, x: WriterValue, s: Any = None, dim: Any = None, norm: str | None = None) -> str:
        return run(w, x, s, dim, norm, inverse)


@translates("aten._fft_r2c", "aten._fft_c2c", complex=True)
def transform(w: OnnxGraphBuilder, x: WriterValue, dim: Any, normalization: int, flag: bool) -> str:
    """Transform dimensions. `flag`: the last one gives half of the spectrum, or for complex values it is no inverse."""
    value = Transform(w, x)
    was_real, dims = value.is_real, [d % x.ndim for d in dim]
    inverse = not was_real and not flag
    for d in reversed(dims):
        n = value.sizes[d]
        value.along(d, inverse, "backward", onesided=was_real and flag and d == dims[-1])
        value.scale((float(n) if inverse else 1.0) * {0: 1.0, 1: n**-0.5, 2: 1 / n}[normalization])
    return value.name


_register_transforms("fft", _to_complex, False)
_register_transforms("ifft", _to_complex, True)
_register_transforms("rfft", _half, False)
_register_transforms("ihfft", _half, True)
_register_transforms("irfft", _to_real, True)
_register_transforms("hfft", _to_real, False)
