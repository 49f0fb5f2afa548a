"""Advanced indexing: reads and writes by slices, integer arrays and masks."""

from __future__ import annotations

from typing import Any

from ..core.array import Array, empty, make_view
from ..core.broadcasting import broadcast_shape
from ..core.contiguous_copy import clone_row_major
from ..core.copy_fill import copy_into, fill_with
from ..core.device_asserts import INDEXED, encode_error
from ..core.pointwise_dispatch import cast
from ..core.views import expand, index_without_copy, permute
from .creation import full
from .device_cache import get_cached_scalar
from .gather_scatter_launch import (
    ThreeDimView,
    as_3d_view_or_copy,
    as_contiguous_index,
    compute_flat_indices,
    scatter_3d,
    scatter_in_float32,
    take_slices,
    try_as_3d,
)
from .masks import assign_where_masked, compress_by_mask, find_flat_true_indices, find_true_indices


class _AdvancedIndex:
    """Index with arrays over an array of a shape.

    `dims` is the order of the array's dimensions with the indexed ones adjacent, from `first` to `last`; `arrays` are
    their index arrays, `shape` the broadcast shape of these, `lead` and `rest` the shapes before and after.
    """

    def __init__(self, shape, index):
        arrays: list[Array] = []
        axes: list[int] = []
        axis = 0
        self.is_mask = False
        for item in index:
            if item.__class__ is not Array:
                axis += 1
            elif item.kind == "b8":
                _check_mask(item, shape, axis)
                self.is_mask = item.ndim > 0 and sum([i.__class__ is Array for i in index]) == 1
                arrays += [find_flat_true_indices(item)] if self.is_mask else find_true_indices(item)
                axes += range(axis, axis + item.ndim)
                axis += item.ndim
            else:
                arrays.append(item)
                axes.append(axis)
                axis += 1
        try:
            self.shape = broadcast_shape([a.shape for a in arrays])
        except RuntimeError:
            shapes = ", ".join(str(list(i.shape)) for i in index if i.__class__ is Array)
            raise IndexError(
                f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
            ) from None
        self.arrays, self.axes = arrays, axes
        together = axes == list(range(axes[0], axes[-1] + 1))
        others = [d for d in range(len(shape)) if d not in axes]
        self.first = axes[0] if together else 0
        self.last = self.first + len(axes)
        self.dims = (*others[: self.first], *axes, *others[self.first :])
        self.lead, self.rest = (
            tuple([shape[d] for d in self.dims[: self.first]]),
            tuple([shape[d] for d in self.dims[self.last :]]),
        )

    @property
    def result_shape(self) -> tuple[int, ...]:
        return (*self.lead, *self.shape, *self.rest)

    def permute_indexed_dims_first(self, x: Array) -> Array:
        return x if self.dims == tuple(range(x.ndim)) else permute(x, self.dims)

    def flat_places_in(self, x: Array, planes: ThreeDimView) -> tuple[Array, int, bool]:
        """Return one index array for the middle of a 3-d view, its length, and whether it may count from the end."""
        codes = [encode_error(INDEXED, axis) for axis in self.axes]
        if len(self.arrays) == 1:
            return as_contiguous_index(self.arrays[0]), planes.sizes[1], True
        sizes, steps = planes.array.shape[self.first : self.last], planes.array.steps[self.first : self.last]
        return compute_flat_indices(self.arrays, self.shape, sizes, steps, codes), planes.sizes[1], False

    @property
    def code(self) -> int:
        return encode_error(INDEXED, self.axes[0])

    @property
    def is_joined(self) -> bool:
        return len(self.arrays) > 1


def _check_mask(mask: Array, shape, axis: int) -> None:
    if mask.shape != tuple(shape[axis : axis + mask.ndim]):
        at = next((d for d in range(mask.ndim) if axis + d >= len(shape) or mask.shape[d] != shape[axis + d]), 0)
        raise IndexError(
            f"The shape of the mask {list(mask.shape)} at index {at} does not match the shape of the indexed tensor "
            f"{list(shape)} at index {axis + at}"
        )


def _index(input, index):
    first = len(index) - 1
    last = index[first]
    if last.__class__ is not Array or Array in map(type, index[:first]):
        return _index_by_arrays(input, index)
    if last.kind == "b8":
        return (
            compress_by_mask(input, last)
            if not first and last.ndim and last.shape == input.shape
            else _index_by_arrays(input, index)
        )
    shape = input.shape
    out = empty(input.device, (*shape[:first], *last.shape, *shape[first + 1 :]), input.kind)
    return take_slices(
        as_3d_view_or_copy(input, first, first + 1),
        as_contiguous_index(last),
        out,
        shape[first],
        True,
        encode_error(INDEXED, first),
    )


def _index_by_arrays(input, index):
    if Array not in map(type, index):
        return clone_row_major(index_without_copy(input, index))
    where = _AdvancedIndex(input.shape, index)
    x = where.permute_indexed_dims_first(input)
    planes = as_3d_view_or_copy(x, where.first, where.last, where.is_joined)
    places, size, wrap = where.flat_places_in(x, planes)
    return take_slices(planes, places, empty(input.device, where.result_shape, input.kind), size, wrap, where.code)


def _index_backward(input, shape, index):
    if Array not in map(type, index):
        return _slice_index_backward(input, shape, index)
    return scatter_in_float32(
        "add", full(input.device, shape, 0, input.kind), lambda out: _write_at_index(out, index, input, "add")
    )


def _write_at_index(target: Array, index, value: Any, operation: str) -> None:
    """Assign target[index] = value, or combine at repeated indices."""
    if operation == "set" and _write_masked(target, index, value):
        return
    where = _AdvancedIndex(target.shape, index)
    value = _broadcast_value(target, value, where.result_shape)
    x = where.permute_indexed_dims_first(target)
    planes = try_as_3d(x, where.first, where.last, where.is_joined)
    copied = planes is None
    if planes is None:
        planes = as_3d_view_or_copy(x, where.first, where.last, where.is_joined)
    places, _, wrap = where.flat_places_in(x, planes)
    source = as_3d_view_or_copy(value, where.first, where.first + len(where.shape))
    scatter_3d(operation, planes, ThreeDimView(places, source.sizes, (0, 1, 0)), source, wrap, where.code)
    if copied:
        copy_into(x, planes.array)


def _write_masked(target: Array, index, value: Any) -> bool:
    """Assign target[mask] = value for a value with one element per mask element, without computing indices.

    Return False if the value does not allow that.
    """
    masks = [i for i in index if i.__class__ is Array]
    if len(masks) != 1 or masks[0].kind != "b8" or not masks[0].ndim:
        return False
    axis, mask = index.index(masks[0]), masks[0]
    rest = target.ndim - axis - mask.ndim
    if value.__class__ is Array and (axis and value.ndim or value.ndim > rest):
        return False
    _check_mask(mask, target.shape, axis)
    value = _broadcast_value(target, value, target.shape[axis + mask.ndim :])
    assign_where_masked(
        target, make_view(mask, (*mask.shape, *[1] * rest), (*mask.steps, *[0] * rest), mask.offset), value
    )
    return True


def _broadcast_value(target: Array, value: Any, shape) -> Array:
    """Return the value as an array of the target's kind, broadcast to a shape. RuntimeError if it does not fit."""
    if value.__class__ is not Array:
        if isinstance(value, complex) and target.kind[0] != "c":
            fill_with(target, value)  # raises the error
        value = get_cached_scalar(target.device, value, target.kind)
    elif value.kind != target.kind:
        value = cast(value, target.kind)
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = make_view(value, value.shape[1:], value.steps[1:], value.offset)
    try:
        return expand(value, shape)
    except RuntimeError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of "
            f"shape {list(shape)}"
        ) from None


def _setitem_(input, index, value):
    if Array in map(type, index):
        _write_at_index(input, index, value, "set")
        return
    target = index_without_copy(input, index)
    if value.__class__ is Array:
        while value.ndim > target.ndim and value.shape[0] == 1:
            value = make_view(value, value.shape[1:], value.steps[1:], value.offset)
        expand(value, target.shape)  # raises the error
    copy_into(target, value)


def _setitem(input, index, value):
    out = clone_row_major(input)
    _setitem_(out, index, value)
    return out


def _index_put(input, index, values, accumulate):
    return scatter_in_float32(
        "add" if accumulate else "set",
        clone_row_major(input),
        lambda out: _write_at_index(out, index, values, "add" if accumulate else "set"),
    )


def _index_put_(input, index, values, accumulate):
    if values.buffer is input.buffer:
        values = clone_row_major(values)
    if not accumulate:
        _write_at_index(input, index, values, "set")
        return
    out = scatter_in_float32("add", input, lambda out: _write_at_index(out, index, values, "add"))
    if out is not input:
        copy_into(input, out)


def _slice_index_backward(input, shape, index):
    out = full(input.device, shape, 0, input.kind)
    copy_into(index_without_copy(out, index), input)
    return out
