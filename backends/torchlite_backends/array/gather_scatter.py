"""Gather and scatter kernels: masks, flat indices, slices, and reductions at given indices."""

import math

import numpy as xp

from torchlite._dispatch.shape_and_value_checks import (
    check_flat_target,
    check_gather,
    check_index_add,
    check_index_copy,
    check_index_fill,
    check_index_vector,
    check_one_source,
    check_put,
    check_scatter,
    check_selected,
    check_selected_number,
    check_written_slice,
)
from torchlite._dispatch.shapes import broadcast_shapes, wrap_dim
from torchlite._dispatch.type_promotion import cast_scalar
from torchlite._types.dtypes import from_np

from .dim_checks import check_bounds, prod
from .index import _index, _setitem_, accumulate_at, add_rows, broadcast_error


def _scalar_type_name(x):
    return from_np(x.dtype).scalar_name


def _compute_flat_positions(shape, dim, index):
    """Return flat positions in `shape` that gather and scatter reach by `index` along `dim`."""
    if len(shape) == 2:
        if dim == 0:
            return index * shape[1] + xp.arange(index.shape[1])
        return index + xp.arange(0, index.shape[0] * shape[1], shape[1])[:, None]
    places, step = None, 1
    for axis in range(len(shape) - 1, -1, -1):
        if axis == dim:
            part = index if step == 1 else index * step
        else:
            part = (xp.arange(index.shape[axis]) * step).reshape([-1 if a == axis else 1 for a in range(len(shape))])
        places = part if places is None else places + part
        step *= shape[axis]
    return places


def _scatter_operands(name, input, dim, index, src):
    """Return a contiguous copy of `input`, the flat indices to write, and the values for them."""
    return xp.array(input, order="C", copy=True), *_scattered_values(name, input, dim, index, src)


def _scattered_values(name, input, dim, index, src):
    """Return the flat indices in `input` that are written, and the values for them; None for both without any."""
    dim = wrap_dim(dim, input.ndim)
    if index.size == 0:
        return None, None
    check_scatter(name, input.shape, dim, index.shape, index.dtype.kind == "i", src.shape, input.dtype == src.dtype)
    shape = input.shape or (1,)
    check_bounds(index, shape[dim], dim)
    if not input.ndim or not index.ndim or not src.ndim:
        index, src = index.reshape(-1), src.reshape(-1)
    if src.shape != index.shape:
        src = src[tuple(slice(n) for n in index.shape)]
    if index.dtype != xp.int64:
        index = index.astype(xp.int64)
    return _compute_flat_positions(shape, dim, index).reshape(-1), src.reshape(-1)


def gather(input, dim, index, *, sparse_grad=False):
    dim = wrap_dim(dim, input.ndim)
    if index.size == 0:
        return xp.empty(index.shape, dtype=input.dtype)
    check_gather(input.shape, dim, index.shape, index.dtype.kind == "i")
    check_bounds(index, input.shape[dim] if input.ndim else 1, dim)
    if not input.ndim:
        return xp.broadcast_to(input, index.shape).copy()
    if not index.ndim:
        return input[index]
    if input.ndim == 1:
        return input[index]
    if input.flags.c_contiguous:
        return input.reshape(-1)[_compute_flat_positions(input.shape, dim, index)]
    part = input[tuple(slice(None) if a == dim else slice(n) for a, n in enumerate(index.shape))]
    return xp.take_along_axis(part, index, axis=dim)


def scatter(input, dim, index, src=None, *, value=None, reduce=None):
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    check_one_source(src, value)
    if src is None:
        src = value
    if not hasattr(src, "dtype"):
        src = xp.broadcast_to(xp.asarray(src).astype(input.dtype), index.shape)
    out, places, values = _scatter_operands("scatter", input, dim, index, src)
    if places is None:
        return out
    if reduce is None:
        out.reshape(-1)[places] = values
    else:
        getattr(xp, reduce).at(out.reshape(-1), places, values)
    return out


def _index_put(input, index, values, accumulate_):
    out = input.copy(order="C")
    if accumulate_:
        shape = _index(input, index).shape  # flat indices are not bounds-checked
        try:
            xp.broadcast_to(values, shape)
        except ValueError:
            raise RuntimeError(broadcast_error(list(shape), list(values.shape), True)) from None
        accumulate_at(out, index, values)
    else:
        _setitem_(out, index, values)
    return out


def scatter_add(input, dim, index, src):
    out = xp.array(input, order="C", copy=True)
    add_scattered(out, dim, index, src)
    return out


def add_scattered(out, dim, index, src):
    """Add the values to `out`, a contiguous array."""
    places, values = _scattered_values("scatter", out, dim, index, src)
    if places is not None:
        xp.add.at(out.reshape(-1), places, values)


_COMBINE = {
    "sum": "add", "prod": "multiply", "mean": "add",
    "amax": "maximum", "max": "maximum", "amin": "minimum", "min": "minimum",
}  # fmt: skip


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    if reduce not in _COMBINE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    out, places, values = _scatter_operands("scatter", input, dim, index, src)
    if places is None:
        return out
    flat = out.reshape(-1)
    if not include_self:
        flat[places] = 1 if reduce == "prod" else 0 if reduce in ("sum", "mean") else values
    getattr(xp, _COMBINE[reduce]).at(flat, places, values)
    if reduce == "mean":
        count = xp.bincount(places, minlength=flat.size) + (1 if include_self else 0)
        count = xp.maximum(count, 1)
        flat[...] = flat // count if flat.dtype.kind in "iu" else flat / count.astype(flat.real.dtype)
    return out


def index_select(input, dim, index):
    check_index_vector("index_select", index.shape, from_np(index.dtype))
    dim = wrap_dim(dim, input.ndim)
    size = input.shape[dim] if input.ndim else 1
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        raise IndexError("index out of range in self")
    if not input.ndim:
        check_selected_number(index.size)
        return input.copy()
    return xp.take(input, index.reshape(-1), axis=dim)


def _move_dim_first(x, dim):
    return xp.moveaxis(x, dim, 0) if x.ndim else x.reshape(1)


def index_add(input, dim, index, source, *, alpha=1):
    dim = wrap_dim(dim, input.ndim)
    check_index_vector("index_add_", index.shape, from_np(index.dtype))
    check_index_add(input, dim, index.size, source)
    size = input.shape[dim] if input.ndim else 1
    if input.ndim == 2:  # PyTorch has another code path there, with another message
        check_bounds(index, size, dim)
    elif index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        raise IndexError("index out of range in self")
    out = xp.array(input, order="C", copy=True)
    values = source if alpha == 1 else source * xp.asarray(alpha).astype(source.dtype)
    if input.ndim < 2 or not source.ndim:
        xp.add.at(out.reshape(-1), index.reshape(-1), values.reshape(-1))
    elif dim == 0:
        inner = prod(input.shape[1:])
        add_rows(out.reshape(input.shape[0], inner), index.reshape(-1), values.reshape(index.size, inner))
    else:
        shape = [1] * input.ndim
        shape[dim] = index.size
        along = xp.broadcast_to(index.reshape(shape), source.shape)
        xp.add.at(
            out.reshape(-1),
            _compute_flat_positions(input.shape, dim, along.astype(xp.int64)).reshape(-1),
            values.reshape(-1),
        )
    return out


def index_copy(input, dim, index, source):
    out = input.copy()
    write_slices(out, dim, index, source)
    return out


def write_slices(out, dim, index, source):
    """Replace the slices of `out` along `dim` that `index` names by those of `source`."""
    dim = wrap_dim(dim, out.ndim)
    check_index_vector("index_copy_", index.shape, from_np(index.dtype))
    check_index_copy(out, dim, index.size, source)
    check_bounds(index, out.shape[dim] if out.ndim else 1, dim, IndexError, "index_copy_(): ")
    if index.size == 1 and source.ndim and out.ndim:
        before = (slice(None),) * dim
        out[(*before, index.item())] = source[(*before, 0)]
    else:
        _move_dim_first(out, dim)[index.reshape(-1)] = _move_dim_first(source, dim)


def index_fill(input, dim, index, value):
    dim = wrap_dim(dim, input.ndim)
    check_index_fill(value)
    check_index_vector("index_fill_", index.shape, from_np(index.dtype))
    size = input.shape[dim] if input.ndim else 1
    if index.size and (int(index.min()) < -size or int(index.max()) >= size):
        worst = int(index.min()) if int(index.min()) < -size else int(index.max())
        raise IndexError(f"index {worst} is out of bounds for dimension {dim} with size {size}")
    out = input.copy()
    rows = _move_dim_first(out, dim)
    rows[index.reshape(-1)] = xp.asarray(value).astype(input.dtype)
    return rows.reshape(()) if not input.ndim else out


# Masks


def masked_select(input, mask):
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(mask.shape, input.shape)
    return xp.broadcast_to(input, shape)[xp.broadcast_to(mask, shape)]


def _masked_fill(input, mask, value):
    if mask.dtype.kind != "b":
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{'float' if _scalar_type_name(mask) == 'Float' else mask.dtype}"
        )
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    filled = xp.asarray(value)
    # The dispatcher has compared other numbers with the dtype.
    if (value.__class__ not in (float, int) or not -1e38 < value < 1e38) and filled.dtype.kind in "iufc":
        cast_scalar(filled.item(), from_np(input.dtype))
    return xp.where(mask, filled.astype(input.dtype), input)


_masked_fill_tensor = _masked_fill


def masked_scatter(input, mask, source):
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {_scalar_type_name(mask)}"
        )
    if input.dtype != source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got"
            f"{_scalar_type_name(input)} and {_scalar_type_name(source)}"
        )
    input, mask = xp.broadcast_arrays(input, mask)
    out, count = input.copy(), int(mask.sum())
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    out[mask] = source.reshape(-1)[:count]
    return out


# Flat indices


def _check_flat_index(name, did, index, size):
    if index.dtype.kind != "i" or index.dtype.itemsize != 8:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {_scalar_type_name(index)}")
    check_flat_target(name, did, size, index.size)
    if index.size:
        least, greatest = int(index.min()), int(index.max())
        if least < -size or greatest >= size:
            raise IndexError(
                f"out of range: tried to access index {least if least < -size else greatest} on a tensor of {size} "
                "elements."
            )
    return index


def take(input, index):
    return input.reshape(-1)[_check_flat_index("take", "tried to take from", index, input.size)]


def put(input, index, source, accumulate=False):
    check_put(input, index, source)
    places = _check_flat_index("put_", "Tried to put elements into", index, input.size).reshape(-1)
    out = xp.array(input, order="C", copy=True)
    if accumulate:
        xp.add.at(out.reshape(-1), xp.where(places < 0, places + input.size, places), source.reshape(-1))
    else:
        out.reshape(-1)[places] = source.reshape(-1)
    return out


# Slices written


def _slice_along_dim(x, dim, start, end, step):
    dim = wrap_dim(dim, x.ndim)
    size = x.shape[dim]
    first, last, _ = slice(start, end).indices(size)
    return (slice(None),) * dim + (slice(first, max(first, last), step),)


def _copy_and_assign(input, where, src):
    out = input.copy()
    part = out[where]
    check_written_slice(part.shape, src.shape)
    out[where] = src.astype(input.dtype)
    return out


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    return _copy_and_assign(input, _slice_along_dim(input, dim, start, end, step), src)


def select_scatter(input, src, dim, index):
    dim = wrap_dim(dim, input.ndim)
    check_selected(index, input.shape, dim)
    return _copy_and_assign(input, (slice(None),) * dim + (index,), src)


def _select_backward(grad, shape, dim, index):
    out = xp.zeros(shape, dtype=grad.dtype)
    out[(slice(None),) * wrap_dim(dim, out.ndim) + (index,)] = grad
    return out


def nonzero_static(input, *, size, fill_value=-1):
    found = (
        xp.stack(xp.nonzero(input), axis=1).astype(xp.int64)[:size]
        if input.ndim
        else xp.zeros((min(size, int(bool(input))), 0), dtype=xp.int64)
    )
    out = xp.full((size, input.ndim), math.trunc(fill_value), dtype=xp.int64)
    out[: found.shape[0]] = found
    return out


def _repeat_interleave_indices(repeats):
    """Return the index that repeats element i `repeats[i]` times."""
    if repeats.dtype.kind != "i":
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{_scalar_type_name(repeats)}'")
    if repeats.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.size and int(repeats.min()) < 0:
        raise RuntimeError("repeats can not be negative")
    if repeats.size and int(repeats.max()) >= 1 << 31 and (total := sum(repeats.tolist())) >= 1 << 63:
        wrapped = (total + (1 << 63)) % (1 << 64) - (1 << 63)
        raise RuntimeError(f"Trying to create tensor with negative dimension {wrapped}: [{wrapped}]")
    return xp.repeat(xp.arange(prod(repeats.shape), dtype=repeats.dtype), repeats)
