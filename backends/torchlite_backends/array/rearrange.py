"""Rearranging kernels: select, split, stack, roll, repeat, unfold."""

import operator

import numpy as xp

from torchlite._dispatch.shape_and_value_checks import check_roll, check_unfold
from torchlite._dispatch.shapes import wrap_dim

from .storage import strided_view


def select(input, dim, index):
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    return input[(slice(None),) * dim + (operator.index(index), ...)]


def split_with_sizes(input, split_sizes, dim=0):
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if sum(split_sizes) != input.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {input.shape[dim]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    if split_sizes and min(split_sizes) < 0:
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
    dim = wrap_dim(dim, len(first) + 1)
    if not dim and first and len({t.shape[:1] for t in tensors}) == 1:  # concatenate compares the other sizes
        try:
            return xp.concatenate(tensors).reshape(len(tensors), *first)
        except ValueError:
            pass
    for i, t in enumerate(tensors):
        if t.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and {list(t.shape)} "
                f"at entry {i}"
            )
    if dim < len(first):
        shape = (*first[:dim], len(tensors), *first[dim:])
        return xp.concatenate(tensors, dim).reshape(shape)
    return xp.concatenate([t[..., None] for t in tensors], dim)


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
