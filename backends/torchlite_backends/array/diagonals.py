"""Diagonals and triangular parts of matrices."""

import operator

import numpy as xp

from torchlite._dispatch.shape_and_value_checks import diagonal_dims
from torchlite._dispatch.shapes import wrap_dim

from .storage import strided_view


def diagonal(input, offset=0, dim1=0, dim2=1):
    first, second = diagonal_dims(input.ndim, dim1, dim2)
    rows, columns = input.shape[first], input.shape[second]
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = [slice(None)] * input.ndim
    if length:
        start[first], start[second] = slice(max(-offset, 0), None), slice(max(offset, 0), None)
    part = input[tuple(start)]
    kept = [a for a in range(input.ndim) if a not in (first, second)]
    return strided_view(
        part,
        tuple(input.shape[a] for a in kept) + (length,),
        tuple(input.strides[a] for a in kept) + (input.strides[first] + input.strides[second],),
    )


def _diagonal_backward(grad, shape, offset, dim1, dim2):
    out = xp.zeros(shape, dtype=grad.dtype)
    diagonal(out, offset, dim1, dim2)[...] = grad
    return out


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    out = input.copy()
    part = diagonal(out, offset, dim1, dim2)
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(part.shape)}"
        )
    part[...] = src
    return out


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    ndim = input.ndim + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = input.shape[-1] + abs(offset)
    shape, kept = [size] * ndim, iter(input.shape[:-1])
    for axis in range(ndim):
        if axis not in (first, second):
            shape[axis] = next(kept)
    return _diagonal_backward(input, shape, offset, first, second)


def _check_matrix(name, x):
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


def tril(input, diagonal=0):
    _check_matrix("tril", input)
    return xp.tril(input, operator.index(diagonal))


def triu(input, diagonal=0):
    _check_matrix("triu", input)
    return xp.triu(input, operator.index(diagonal))
