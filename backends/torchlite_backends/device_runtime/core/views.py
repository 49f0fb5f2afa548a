"""Views: other shapes and strides on the same memory."""

from __future__ import annotations

import builtins
import functools
import math
import operator

from torchlite._dispatch.shape_and_value_checks import check_in_bounds_for_storage
from torchlite._dispatch.shapes import infer_expand_geometry, infer_size, wrap_dim

from .array import Array, is_row_major, make_view, row_major_layout, storage_nbytes
from .contiguous_copy import clone_row_major

_ALL = builtins.slice(None)


def _steps_of_reshaped_view(
    shape: tuple[int, ...], old_shape: tuple[int, ...], steps: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return strides for a view with another shape, None if the memory does not allow it."""
    if is_row_major(old_shape, steps):
        return row_major_layout(shape)[1]
    old = [(n, s) for n, s in zip(old_shape, steps, strict=True) if n != 1]
    new, i, j = [0] * len(shape), 0, 0
    while i < len(old) and j < len(shape):
        first_i, first_j, count_old, count_new = i, j, old[i][0], shape[j]
        while count_old != count_new:
            if count_old < count_new:
                i += 1
                count_old *= old[i][0]
            else:
                j += 1
                count_new *= shape[j]
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(first_i, i)):
            return None
        step = old[i][1]
        for k in range(j, first_j - 1, -1):
            new[k] = step
            step *= shape[k]
        i, j = i + 1, j + 1
    for k in range(j, len(shape)):
        new[k] = 1
    return tuple(new)


@functools.lru_cache(16384)
def _infer_view_shape(
    shape: tuple[int, ...], old_shape: tuple[int, ...], steps: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return a shape with its -1 inferred, and its strides, None if a view is impossible."""
    shape = infer_size(shape, math.prod(old_shape))
    return shape, _steps_of_reshaped_view(shape, old_shape, steps)


def reshape(input, shape):
    shape, steps = _infer_view_shape((shape,) if shape.__class__ is int else tuple(shape), input.shape, input.steps)
    if steps is None:
        input = clone_row_major(input)
        steps = row_major_layout(shape)[1]
    return make_view(input, shape, steps, input.offset)


def _view(input, shape):
    shape, steps = _infer_view_shape((shape,) if shape.__class__ is int else tuple(shape), input.shape, input.steps)
    if steps is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return make_view(input, shape, steps, input.offset)


def permute(input, dims):
    shape, steps = input.shape, input.steps
    ndim = len(shape)
    if len(dims) != ndim or len({d % ndim for d in dims}) != ndim:
        raise ValueError("dims must name each dimension once")
    return make_view(input, tuple([shape[d] for d in dims]), tuple([steps[d] for d in dims]), input.offset)


def transpose(input, dim0, dim1):
    shape, steps = list(input.shape), list(input.steps)
    if shape:
        shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
        steps[dim0], steps[dim1] = steps[dim1], steps[dim0]
    else:
        wrap_dim(dim0, 0), wrap_dim(dim1, 0)
    return make_view(input, tuple(shape), tuple(steps), input.offset)


def expand(input, size):
    shape, steps = infer_expand_geometry(input.shape, input.steps, size)
    return make_view(input, tuple(map(operator.index, shape)), tuple(steps), input.offset)


def broadcast_view(x: Array, shape: tuple[int, ...]) -> Array:
    """View `x` broadcast to a shape."""
    return x if x.shape == shape else expand(x, shape)


def squeeze(input, dim=None):
    if dim is None:
        kept = [d for d, n in enumerate(input.shape) if n != 1]
    else:
        dims = {wrap_dim(d, input.ndim) for d in ((dim,) if dim.__class__ is int else dim)}
        if dim.__class__ is not int and len(dims) != len(dim):
            raise ValueError("repeated dimension")
        kept = [d for d, n in enumerate(input.shape) if n != 1 or d not in dims]
    return make_view(input, tuple([input.shape[d] for d in kept]), tuple([input.steps[d] for d in kept]), input.offset)


def unsqueeze(input, dim):
    dim = wrap_dim(dim, input.ndim + 1)
    shape, steps = input.shape, input.steps
    step = shape[dim] * steps[dim] if dim < len(shape) else 1
    return make_view(input, (*shape[:dim], 1, *shape[dim:]), (*steps[:dim], step, *steps[dim:]), input.offset)


def _as_strided(input, size, stride, offset=None, input_stride=None):
    size, stride, offset = tuple(size), tuple(stride), offset or 0
    start = input.offset + offset
    check_in_bounds_for_storage(size, stride, start, input.itemsize, storage_nbytes(input))
    return make_view(input, size, stride, start)


def slice_view(x: Array, dim: int, start: int, length: int, step: int = 1) -> Array:
    """View `length` elements from `start` along a dimension."""
    shape, steps = list(x.shape), list(x.steps)
    offset = x.offset + start * steps[dim] if length else x.offset
    shape[dim] = length
    steps[dim] *= step
    return make_view(x, tuple(shape), tuple(steps), offset)


def _slice(input, dim=0, start=None, stop=None, step=1):
    dim = wrap_dim(dim, input.ndim)
    first, last, step = builtins.slice(start, stop, step).indices(input.shape[dim])
    return slice_view(input, dim, first, len(range(first, last, step)), step)


def _narrow(input, dim, start, length):
    return _slice(input, dim, start, start + length)


def select(input, dim, index):
    if not input.shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, index = wrap_dim(dim, input.ndim), operator.index(index)
    shape, steps = input.shape, input.steps
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")
    index = index + shape[dim] if index < 0 else index
    return make_view(
        input, shape[:dim] + shape[dim + 1 :], steps[:dim] + steps[dim + 1 :], input.offset + index * steps[dim]
    )


def unbind(input, dim=0):
    dim = wrap_dim(dim, input.ndim)
    if not input.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return tuple([select(input, dim, i) for i in range(input.shape[dim])])


def split_with_sizes(input, split_sizes, dim=0):
    dim = wrap_dim(dim, input.ndim)
    if not input.shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if sum(split_sizes) != input.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {input.shape[dim]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    if min(split_sizes, default=0) < 0:
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(split_sizes)}"
        )
    out, at = [], 0
    for n in split_sizes:
        out.append(slice_view(input, dim, at, n))
        at += n
    return tuple(out)


def index_without_copy(x: Array, index) -> Array:
    """Return `x[index]` for an index (or a tuple) of integers, slices, None, bools and one Ellipsis.

    IndexError for an integer out of bounds.
    """
    index = index if index.__class__ is tuple else (index,)
    taken = sum([item is not None and item is not Ellipsis and item.__class__ is not bool for item in index])
    ellipses = index.count(Ellipsis)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not ellipses:
        index = (*index, Ellipsis)
    shape, steps, offset, d = [], [], x.offset, 0
    for item in index:
        if item is None or item.__class__ is bool:
            shape.append(0 if item is False else 1)
            steps.append(0)
        elif item is Ellipsis:
            for _ in range(x.ndim - taken):
                shape.append(x.shape[d])
                steps.append(x.steps[d])
                d += 1
        elif item.__class__ is builtins.slice:
            first, last, step = item.indices(x.shape[d])
            length = len(range(first, last, step))
            offset += first * x.steps[d] if length else 0
            shape.append(length)
            steps.append(step * x.steps[d])
            d += 1
        else:
            at, n = item.__index__(), x.shape[d]
            if not -n <= at < n:
                raise IndexError(f"index {at} is out of bounds for dimension {d} with size {n}")
            offset += (at % n) * x.steps[d]
            d += 1
    return make_view(x, tuple(shape), tuple(steps), offset)


def _slice_index(input, index):
    return index_without_copy(input, index)
