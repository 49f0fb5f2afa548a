"""Matrix products."""
from __future__ import annotations

from .._dispatch import op
from .._dispatch.shapes import broadcast


def _matmul_shape(input, other):
    a, b = tuple(input.shape), tuple(other.shape)
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D")
    if input.dtype is not other.dtype and input.dtype != other.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {input.dtype.np.name} != {other.dtype.np.name}")
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    if left[-1] != right[-2]:
        if len(a) == 1 and len(b) == 1:
            raise RuntimeError(f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same number of elements, but got {a[0]} and {b[0]} "
                               "elements respectively")
        if len(b) == 1:
            raise RuntimeError(f"size mismatch, got input ({left[-2]}), mat ({left[-2]}x{left[-1]}), vec ({b[0]})")
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({left[-2]}x{left[-1]} and {right[-2]}x{right[-1]})")
    shape = (*broadcast(left[:-2], right[:-2]), *(left[-2:-1] if len(a) > 1 else ()), *(right[-1:] if len(b) > 1 else ()))
    return shape, input.dtype


def _matmul_input(F, g, other, input_shape):
    if len(other.shape) == 1:
        return F.mul(F.unsqueeze(g, -1), F.conj(other)) if len(input_shape) > 1 else F.mul(g, F.conj(other))
    if len(input_shape) == 1:
        return F.squeeze(F.matmul(F.conj(other), F.unsqueeze(g, -1)), -1)
    return F.matmul(g, F.conj(F.transpose(other, -1, -2)))


def _matmul_other(F, g, input, other_shape):
    if len(input.shape) == 1:
        if len(other_shape) == 1:
            return F.mul(g, F.conj(input))
        return F.mul(F.unsqueeze(F.conj(input), -1), F.unsqueeze(g, -2))
    if len(other_shape) == 1:
        return F.squeeze(F.matmul(F.conj(F.transpose(input, -1, -2)), F.unsqueeze(g, -1)), -1)
    if len(other_shape) == 2 and len(input.shape) > 2:
        rows = F.reshape(input, (-1, input.shape[-1]))
        return F.matmul(F.conj(F.transpose(rows, 0, 1)), F.reshape(g, (-1, g.shape[-1])))
    return F.matmul(F.conj(F.transpose(input, -1, -2)), g)


op("matmul(Tensor input, Tensor other)", alias="linalg.matmul", meta=_matmul_shape, vjp={"input": _matmul_input, "other": _matmul_other})
