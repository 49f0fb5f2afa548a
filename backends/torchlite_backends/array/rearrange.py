"""Diagonals, triangles, windows, repetition and reinterpretation of bits."""

import numpy as xp

from torchlite._dispatch.argument_checks import check_roll, check_unfold, diagonal_dims, view_dtype_geometry
from torchlite._dispatch.shapes import contiguous_strides, wrap_dim
from torchlite._types.dtypes import FROM_NUMPY, from_np

from .pointwise import complex_as_real_view
from .storage import base_owner, data_pointer, storage_block, strided_view


def select(input, dim, index):
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    return input[(slice(None),) * dim + (int(index), ...)]


def split_with_sizes(input, split_sizes, dim=0):
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if sum(split_sizes) != input.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {input.shape[dim]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    if any(n < 0 for n in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    before, parts, start = (slice(None),) * dim, [], 0
    for n in split_sizes:
        parts.append(input[(*before, slice(start, start + n))])
        start += n
    return tuple(parts)


def unbind(input, dim=0):
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    before = (slice(None),) * dim
    return tuple(input[(*before, i, ...)] for i in range(input.shape[dim]))


def stack(tensors, dim=0):
    if not len(tensors):
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    for i, t in enumerate(tensors):
        if t.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and {list(t.shape)} "
                f"at entry {i}"
            )
    dim = wrap_dim(dim, len(first) + 1)
    at = (slice(None),) * dim + (None,)
    return xp.concatenate([t[at] for t in tensors], dim)


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
    return xp.tril(input, diagonal)


def triu(input, diagonal=0):
    _check_matrix("triu", input)
    return xp.triu(input, diagonal)


def roll(input, shifts, dims=()):
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    dims = check_roll(input.ndim, shifts, dims)
    if not dims:
        return xp.roll(input.reshape(-1), shifts[0]).reshape(input.shape)
    return xp.roll(input, shifts, dims)


def repeat(input, repeats):
    if len(repeats) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * (len(repeats) - input.ndim) + input.shape
    spaced = tuple(n for pair in zip((1,) * len(shape), shape, strict=True) for n in pair)
    wide = tuple(n for pair in zip(repeats, shape, strict=True) for n in pair)
    return xp.array(xp.broadcast_to(input.reshape(spaced), wide), copy=True).reshape(
        tuple(r * n for r, n in zip(repeats, shape, strict=True))
    )


def unfold(input, dimension, size, step):
    dim = wrap_dim(dimension, input.ndim)
    length = input.shape[dim] if input.ndim else 1
    check_unfold(dim, length, size, step)
    if not input.ndim:
        return input.reshape(1)[:size]
    stride = input.strides[dim]
    shape = (*input.shape[:dim], (length - size) // step + 1, *input.shape[dim + 1 :], size)
    return strided_view(input, shape, (*input.strides[:dim], stride * step, *input.strides[dim + 1 :], stride))


def _unfold_backward(grad, shape, dim, size, step):
    out = xp.zeros(shape, dtype=grad.dtype)
    if not out.ndim:
        return out + (grad.sum() if size else 0)
    dim = wrap_dim(dim, out.ndim)
    count = grad.shape[dim]
    for k in range(size):
        out[(slice(None),) * dim + (slice(k, k + (count - 1) * step + 1, step),)] += grad[..., k]
    return out


# The same bits seen otherwise


def view_as_real(input):
    if input.dtype.kind not in "cW":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return complex_as_real_view(input)


def view_as_complex(input):
    if input.dtype.kind != "f" or input.dtype.itemsize < 2:
        raise RuntimeError("view_as_complex is only supported for floating point tensors")
    if not input.ndim or input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.size and input.strides[-1] != input.dtype.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % (2 * input.dtype.itemsize) for s, n in zip(input.strides[:-1], input.shape[:-1], strict=True) if n > 1):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if (data_pointer(input) - data_pointer(base_owner(input))) % (2 * input.dtype.itemsize):
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return input.view(from_np(input.dtype).to_complex().np)[..., 0]


def _view_dtype(input, dtype):
    old, new = input.dtype, dtype.np
    if old.itemsize == new.itemsize:
        return input.view(new)
    root = base_owner(input)
    begin = 0 if root is input else (data_pointer(input) - data_pointer(root)) // old.itemsize
    steps = [s // old.itemsize for s in input.strides] if input.size else contiguous_strides(input.shape)
    shape, steps, begin = view_dtype_geometry(input.shape, steps, begin, FROM_NUMPY[old], dtype)
    return xp.ndarray(shape, new, storage_block(root), begin * new.itemsize, tuple([s * new.itemsize for s in steps]))
