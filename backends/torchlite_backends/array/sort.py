"""Sorting, selection by rank, searchsorted and unique."""

import numpy as xp

from torchlite._dispatch.memory_layout import warn_of_strides_in_search
from torchlite._dispatch.shape_and_value_checks import check_search, check_sorter, searches_right
from torchlite._dispatch.shapes import wrap_dim
from torchlite._types.dtypes import from_np

from .dim_checks import prod


def bfloat16_to_float32(x):
    """Convert bfloat16 to float32, in which NaN sorts last."""
    return x.astype(xp.float32) if x.dtype.kind == "V" else x


def take_along_last(x, index):
    """Return the elements of `x` at `index` along the last dimension, the only one whose length may differ."""
    if x.ndim == 1:
        return x[index]
    if not x.size:
        return xp.empty(index.shape, dtype=x.dtype)
    rows = xp.arange(0, x.size, x.shape[-1]).reshape(*x.shape[:-1], 1)
    return x.reshape(-1)[index + rows]


def take_along(x, dim, index):
    """Like `take_along_last`, along any dimension."""
    if dim == x.ndim - 1:
        return take_along_last(x, index)
    return take_along_last(x.swapaxes(dim, -1), index.swapaxes(dim, -1)).swapaxes(dim, -1)


def _move_last_to(x, dim):
    """Move the last dimension back to `dim`, contiguous, with row-major strides at dimensions of size 1 too."""
    if dim == x.ndim - 1:
        return xp.ascontiguousarray(x)
    return xp.ascontiguousarray(x.swapaxes(dim, -1)).reshape(-1).reshape(x.swapaxes(dim, -1).shape)


def _argsort_last_axis(x, stable):
    """Argsort ascending along the last axis, stably. Without ties the quick sort is several times faster."""
    if not stable and x.dtype.kind == "f" and x.dtype.itemsize >= 4 and x.shape[-1] > 64:
        order = x.argsort(-1)
        ranked = take_along_last(x, order)
        if not (ranked[..., 1:] == ranked[..., :-1]).any():
            return order, ranked
    order = bfloat16_to_float32(x).argsort(-1, kind="stable")
    return order, take_along_last(x, order)


def sort(input, dim=-1, descending=False, stable=False):
    if input.dtype.kind in "cW":
        raise RuntimeError("Sort does not support complex dtypes on CPU")
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return input.copy(), xp.zeros((), dtype=xp.int64)
    x = input.swapaxes(dim, -1)
    if not descending:
        order, ranked = _argsort_last_axis(x, stable)
    else:
        order, ranked = _argsort_last_axis(x[..., ::-1], stable)
        order, ranked = (x.shape[-1] - 1) - order[..., ::-1], ranked[..., ::-1]
    return _move_last_to(ranked, dim), _move_last_to(order, dim)


def topk(input, k, dim=-1, largest=True, sorted=True):
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim] if input.ndim else 1
    if not 0 <= k <= size:
        raise RuntimeError("selected index k out of range")
    if not input.ndim:
        return (input.copy(), xp.zeros((), dtype=xp.int64)) if k else (input[None][:0], xp.zeros((0,), dtype=xp.int64))
    if not k:
        shape = (*input.shape[:dim], 0, *input.shape[dim + 1 :])
        return xp.empty(shape, dtype=input.dtype), xp.empty(shape, dtype=xp.int64)
    x = bfloat16_to_float32(input.swapaxes(dim, -1))
    if size <= 3:  # PyTorch inserts so few in their order: the first of equal elements comes first
        order = (x[..., ::-1] if largest else x).argsort(-1, kind="stable")
        chosen = ((size - 1 - order)[..., ::-1] if largest else order)[..., :k].copy()
    elif size <= 128 or k == size:
        order = x.argsort(-1)
        chosen = (order[..., : size - k - 1 if k < size else None : -1] if largest else order[..., :k]).copy()
    else:
        chosen = x.argpartition(size - k if largest else k - 1, -1)
        chosen = chosen[..., size - k :] if largest else chosen[..., :k]
        order = take_along_last(x, chosen).argsort(-1)
        chosen = take_along_last(chosen, order[..., ::-1] if largest else order)
    return _move_last_to(take_along_last(input.swapaxes(dim, -1), chosen), dim), _move_last_to(chosen, dim)


def kthvalue(input, k, dim=-1, keepdim=False):
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim] if input.ndim else 1
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if not input.ndim:
        return input.copy(), xp.zeros((), dtype=xp.int64)
    index = xp.take(bfloat16_to_float32(input).argpartition(k - 1, dim), xp.asarray([k - 1]), axis=dim)
    values = take_along(input, dim, index)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    warn_of_strides_in_search(sorted_sequence, input, sorter)
    right = searches_right(right, side)
    keys, values = bfloat16_to_float32(sorted_sequence), bfloat16_to_float32(xp.asarray(input))
    check_search(keys, values)
    if sorter is not None:
        check_sorter(keys.shape, sorter.shape, from_np(sorter.dtype), sorter)
        keys = xp.take_along_axis(keys, sorter, axis=-1)
    out_dtype = xp.int32 if out_int32 else xp.int64
    if keys.ndim == 1:
        if 8 * values.size > keys.size and _is_ascending(keys):
            return xp.asarray(xp.searchsorted(keys, values, side="right" if right else "left")).astype(out_dtype)
        if not values.ndim:
            return _bisect(keys, values.reshape(1), right).astype(out_dtype).reshape(())
    return _bisect(keys, values, right).astype(out_dtype)


def _is_ascending(keys):
    """True if no key is NaN or less than the one before it, so that every search finds the same place."""
    return not keys.size or bool((keys[:-1] <= keys[1:]).all()) and bool(keys[-1] == keys[-1])


def _bisect(keys, values, right):
    """PyTorch's binary search of `values` in each row of `keys` or in one: it goes on beyond a NaN."""
    low = xp.zeros(values.shape, dtype=xp.int64)
    high = xp.full(values.shape, keys.shape[-1], dtype=xp.int64)
    for _ in range(keys.shape[-1].bit_length()):
        middle = (low + high) // 2
        place = xp.minimum(middle, keys.shape[-1] - 1)
        key = keys[place] if keys.ndim == 1 else xp.take_along_axis(keys, place, axis=-1)
        beyond = (low < high) & ~(key > values if right else key >= values)
        high = xp.where(beyond | (low >= high), high, middle)
        low = xp.where(beyond, middle + 1, low)
    return low


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    if not hasattr(elements, "dtype") and not hasattr(test_elements, "dtype"):
        raise TypeError(
            f"isin() received an invalid combination of arguments - got ({type(elements).__name__}, "
            f"{type(test_elements).__name__}), but expected one of:\n"
            " * (Tensor elements, Tensor test_elements)\n"
            " * (Number element, Tensor test_elements)\n"
            " * (Tensor elements, Number test_element)"
        )
    for side in (elements, test_elements):
        if hasattr(side, "dtype") and side.dtype.kind in "bcW":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {from_np(side.dtype).scalar_name}")
    kind = getattr(elements, "dtype", None)
    if (
        kind == getattr(test_elements, "dtype", None)
        and kind.kind in "iuf"
        and test_elements.size == 1
        and elements.flags.c_contiguous  # the result is row-major
    ):
        return (xp.not_equal if invert else xp.equal)(elements, test_elements.reshape(()))
    return xp.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)


def _make_empty_indices():
    return xp.zeros((0,), dtype=xp.int64)


def _unique_flat(input, return_inverse=False, return_counts=False):
    """Return sorted unique elements, inverse indices and counts (the latter two empty unless requested)."""
    x = bfloat16_to_float32(input)
    found = xp.unique(x, return_inverse=return_inverse, return_counts=return_counts, equal_nan=False)
    found = found if isinstance(found, tuple) else (found,)
    inverse = found[1].reshape(input.shape).astype(xp.int64) if return_inverse else _make_empty_indices()
    return (
        found[0].astype(input.dtype, copy=False),
        inverse,
        found[-1].astype(xp.int64) if return_counts else _make_empty_indices(),
    )


def _unique_rows(input, dim):
    dim = wrap_dim(dim, input.ndim)
    if prod(input.shape) == 0:
        count = input.shape[dim]
        if count and not input.size:
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        return input.copy(), _make_empty_indices(), _make_empty_indices()
    if input.dtype.kind not in "iub" and xp.isnan(input).any():
        return _unique_rows_with_nan(input, dim)
    values, inverse, counts = xp.unique(input, axis=dim, return_inverse=True, return_counts=True)
    return values, inverse.reshape(-1).astype(xp.int64), counts.astype(xp.int64)


def _unique_rows_with_nan(input, dim):
    """Slices with NaN differ from all others, and come after those with a number in its place."""
    x = xp.moveaxis(input, dim, 0)
    order = xp.lexsort(bfloat16_to_float32(x).reshape(x.shape[0], -1).T[::-1])
    values, places, counts = _unique_runs(x[order], 0)
    inverse = xp.empty_like(places)
    inverse[order] = places
    return xp.ascontiguousarray(xp.moveaxis(values, 0, dim)), inverse, counts


def _unique_runs(input, dim=None):
    """Return elements (or slices along `dim`) that differ from the previous one; inverse and counts as for unique."""
    x = input.reshape(-1) if dim is None else xp.moveaxis(input, wrap_dim(dim, input.ndim), 0)
    size = x.shape[0]
    starts = xp.ones((size,), dtype=bool)
    if size > 1:
        differs = x[1:] != x[:-1]
        starts[1:] = differs if x.ndim == 1 else differs.reshape(size - 1, prod(x.shape[1:])).any(axis=1)
    inverse = starts.astype(xp.int64)
    xp.cumsum(inverse, out=inverse)
    inverse -= 1
    where = xp.flatnonzero(starts)
    counts = xp.diff(where, append=size).astype(xp.int64, copy=False)
    found = x.take(where, 0)  # in half the time of a mask
    if dim is None:
        return found, inverse.reshape(input.shape), counts
    return xp.ascontiguousarray(xp.moveaxis(found, 0, dim)), inverse, counts


def _nonzero_indices(input):
    return (
        xp.stack(xp.nonzero(input), axis=1).astype(xp.int64)
        if input.ndim
        else xp.zeros((int(bool(input)), 0), dtype=xp.int64)
    )
