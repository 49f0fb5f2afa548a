"""Views of an array's memory as another dtype: real, complex, or any of the same bits."""

from __future__ import annotations

from torchlite._dispatch.shape_and_value_checks import view_dtype_geometry
from torchlite._types.dtypes import from_np
from torchlite_backends.kernel_sources.dtype_kinds import COMPLEX_KIND, REAL_KIND

from ..core.array import Array, kind_of, make_view, numpy_dtype_of_kind


def _reinterpret(x: Array, kind: str, shape, steps, offset: int) -> Array:
    """View the memory of `x` as elements of another kind."""
    out = make_view(x, tuple(shape), tuple(steps), offset)
    out.kind, out.dtype = kind, numpy_dtype_of_kind(kind)
    return out


def view_as_real(input):
    if input.kind not in REAL_KIND:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return _reinterpret(
        input, REAL_KIND[input.kind], (*input.shape, 2), (*[2 * s for s in input.steps], 1), 2 * input.offset
    )


def view_as_complex(input):
    if input.kind not in ("f16", "f32", "f64"):
        raise RuntimeError("view_as_complex is only supported for floating point tensors")
    if not input.ndim or input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.size and input.steps[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s, n in zip(input.steps[:-1], input.shape[:-1], strict=True) if n > 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if input.offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return _reinterpret(
        input, COMPLEX_KIND[input.kind], input.shape[:-1], [s // 2 for s in input.steps[:-1]], input.offset // 2
    )


def _view_dtype(input, dtype):
    kind = kind_of(dtype.np)
    return _reinterpret(
        input, kind, *view_dtype_geometry(input.shape, input.steps, input.offset, from_np(input.dtype), dtype)
    )
