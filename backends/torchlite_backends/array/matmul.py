"""Matrix products: matmul, bmm, addmm and relatives, tensordot."""

from __future__ import annotations

from typing import Any

from torchlite._dispatch.shape_and_value_checks import (
    check_batched_matrices,
    check_matmul_dtypes,
    check_ndims,
    split_at_ends,
)
from torchlite._dispatch.type_promotion import cast_scalar
from torchlite._types.dtypes import from_np

xp: Any = None


def _cast_half_to_float(a):
    """Convert half precision to float32: products are summed in single precision."""
    return a.dtype.itemsize < 4 and a.dtype.kind not in "biu"


def _matmul_in_float32(a, b):
    if _cast_half_to_float(a):
        if "half_matmul" in vars(xp):
            return xp.half_matmul(a, b)
        return xp.matmul(a.astype(xp.float32), b.astype(xp.float32)).astype(a.dtype)
    return xp.matmul(a, b)


def matmul(input, other):
    kind = input.dtype
    if kind is not other.dtype or kind.itemsize < 4 or (kind.itemsize == 4 and kind.kind in "cW"):
        check_matmul_dtypes(input, other, "dot" if input.ndim == other.ndim == 1 else "addmm_impl_cpu_")
        return _matmul_in_float32(input, other)
    if input.ndim <= 2 and other.ndim <= 2:
        if not input.ndim or not other.ndim:
            raise RuntimeError("matmul of a number")
        return xp.dot(input, other)
    if other.ndim == 2:
        return (
            xp.dot(input.reshape(-1, input.shape[-1]), other).reshape(*input.shape[:-1], other.shape[-1])
            if input.size
            else xp.matmul(input, other)
        )
    return xp.matmul(input, other)


def mm(input, mat2):
    check_ndims(input, mat2, (2, 2))
    kind = input.dtype
    if kind is not mat2.dtype or kind.itemsize < 4 or (kind.itemsize == 4 and kind.kind in "cW"):
        check_matmul_dtypes(input, mat2)
        return _matmul_in_float32(input, mat2)
    return xp.dot(input, mat2)


def bmm(input, mat2):
    check_batched_matrices(input, mat2, "bmm")
    return _matmul_in_float32(input, mat2)


def _grouped_mm(input, mat2, offs=None, bias=None, out_dtype=None):
    if offs is None:
        return bmm(input, mat2)
    sums = input.ndim == mat2.ndim == 2  # the groups split the dimension that is summed over
    along = mat2.shape[1] if input.ndim == 3 else input.shape[-1 if sums else 0]
    shape = (input.shape[-2], mat2.shape[-1])
    out = xp.zeros((*offs.shape, *shape) if sums else shape, input.dtype)
    for i, (start, length) in enumerate(split_at_ends(offs.tolist(), along)):
        rows = slice(start, start + length)
        if sums:
            out[i] = mm(input[:, rows], mat2[rows])
        elif input.ndim == 2:
            out[rows] = mm(input[rows], mat2[i])
        else:
            out[:, rows] = mm(input[i], mat2[:, rows])
    return out


def mv(input, vec):
    check_ndims(input, vec, (2, 1))
    check_matmul_dtypes(input, vec, "addmv_impl_cpu")
    return _matmul_in_float32(input, vec)


def _check_vectors(name, a, b):
    check_ndims(a, b, (1, 1))
    check_matmul_dtypes(a, b, name)


def _factor(value, dtype):
    """A factor of the array's dtype; an unsigned dtype takes negative integers of its size."""
    return dtype.type(cast_scalar(value, from_np(dtype)) if dtype.kind == "u" else value)


def _add_scaled_product(input, product, beta, alpha, terms=1):
    """Return beta * input + alpha * product; with beta 0 the input is ignored, NaN included.

    terms: of the product's sums. Zeros that are sums of nothing change no -0.
    """
    if input.dtype != product.dtype:
        raise RuntimeError("operands of several dtypes")
    if alpha != 1:
        product = product * _factor(alpha, product.dtype)
    if beta == 0:
        return product
    return xp.add(input if beta == 1 else input * _factor(beta, input.dtype), product if terms else -product)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return _add_scaled_product(input, mm(mat1, mat2), beta, alpha, mat1.shape[1])


def addmv(input, mat, vec, *, beta=1, alpha=1):
    if input.ndim > 1:
        raise RuntimeError("addmv adds to a vector")
    return _add_scaled_product(input, mv(mat, vec), beta, alpha, len(vec))


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    check_ndims(batch1, batch2, (3, 3))
    check_matmul_dtypes(batch1, batch2, "bmm")
    if batch1.shape[0] != batch2.shape[0] or batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError("batches that do not fit")
    return _add_scaled_product(input, _tensordot_by_matmul(batch1, batch2), beta, alpha)


def _tensordot_by_matmul(a, b):
    """Contract by one matrix product."""
    count, rows, inner = a.shape
    return mm(xp.swapaxes(a, 0, 1).reshape(rows, count * inner), b.reshape(count * inner, b.shape[2]))


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    check_matmul_dtypes(batch1, batch2, "baddbmm")
    return _add_scaled_product(input, bmm(batch1, batch2), beta, alpha, batch1.shape[2])
