"""Gather, scatter and index ops along a dimension or flattened, and slice scatter."""

from __future__ import annotations

import math

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
from torchlite._dispatch.shapes import wrap_dim
from torchlite._types.dtypes import from_np, iinfo
from torchlite_backends.kernel_sources.dtype_kinds import CATEGORY

from ..core.array import Array, empty, make_view
from ..core.contiguous_copy import as_contiguous, clone_row_major
from ..core.copy_fill import copy_into
from ..core.device_asserts import COPIED, FLAT, INDEXED, SCATTERED, SELECTED, encode_error
from ..core.pointwise_dispatch import apply_pointwise_rule, cast
from ..core.views import select, slice_view
from .creation import full, make_arange
from .device_cache import get_cached_scalar
from .gather_scatter_launch import (
    ThreeDimView,
    as_3d_view_or_copy,
    as_contiguous_index,
    broadcast_scalar_to_3d,
    compute_flat_indices,
    divide_by_count,
    gather_3d,
    scatter_3d,
    scatter_in_float32,
    take_slices,
    try_as_3d,
)
from .pointwise import RULES


def _scalar_type_name(x: Array) -> str:
    return from_np(x.dtype).scalar_name


def _is_integer(x: Array) -> bool:
    return x.kind in ("i64", "i32", "i16", "i8")


def _view_at_least_1d(x: Array) -> Array:
    return x if x.ndim else make_view(x, (1,), (1,), x.offset)


def _view_leading_part(x: Array, shape, but: int = -1) -> Array:
    """View the leading part of `x` with a shape; the dimension `but` keeps its length."""
    shape = tuple([have if d == but else want for d, (want, have) in enumerate(zip(shape, x.shape, strict=True))])
    return x if shape == x.shape else make_view(x, shape, x.steps, x.offset)


# Along a dimension


def gather(input, dim, index, *, sparse_grad=False):
    dim = wrap_dim(dim, input.ndim)
    if index.size == 0:
        return empty(input.device, index.shape, input.kind)
    check_gather(input.shape, dim, index.shape, _is_integer(index))
    x, places = _view_at_least_1d(input), as_contiguous_index(_view_at_least_1d(index))
    out = empty(input.device, index.shape, input.kind)
    gather_3d(
        as_3d_view_or_copy(_view_leading_part(x, places.shape, dim), dim, dim + 1),
        places,
        out,
        encode_error(SCATTERED, dim),
    )
    return out


def _scatter_along_dim(operation: str, out: Array, dim: int, index: Array, src: Array | None, value=None) -> None:
    """Write `src` (or one value) into a contiguous `out` at `index` along `dim`."""
    out, index = _view_at_least_1d(out), _view_at_least_1d(index)
    code = encode_error(SCATTERED, dim)
    part = try_as_3d(_view_leading_part(out, index.shape, dim), dim, dim + 1)
    wrapped = index if index.kind in ("i64", "i32") else cast(index, "i64")
    if part is None:
        places, target = (
            as_3d_view_or_copy(_compute_flat_indices_along(out, dim, wrapped), 0, index.ndim),
            as_3d_view_or_copy(out, 0, out.ndim),
        )
        cut = (0, index.ndim)
    else:
        places, target = as_3d_view_or_copy(wrapped, dim, dim + 1), part
        cut = (dim, dim + 1)
    if src is None:
        source = broadcast_scalar_to_3d(get_cached_scalar(out.device, value, out.kind), places.sizes)
    else:
        source = as_3d_view_or_copy(_view_leading_part(_view_at_least_1d(src), index.shape), *cut)
    scatter_3d(operation, target, places, source, False, code)


def _compute_flat_indices_along(out: Array, dim: int, index: Array) -> Array:
    """Return flat indices for an index smaller than the array in the other dimensions."""
    arrays, sizes, steps = [], [], []
    for d, n in enumerate(index.shape):
        along = index if d == dim else make_arange(out.device, 0, 1, n, "i32")
        arrays.append(
            along if d == dim else make_view(along, (n,) + (1,) * (index.ndim - 1 - d), (1,) * (index.ndim - d), 0)
        )
        sizes.append(out.shape[d])
        steps.append(out.steps[d])
    return compute_flat_indices(
        arrays, index.shape, sizes, steps, [encode_error(SCATTERED, dim)] * len(arrays), wrap=False
    )


def _check_scatter(out: Array, dim: int, index: Array, src: Array | None) -> None:
    shape, same_kind = (None, True) if src is None else (src.shape, out.kind == src.kind)
    check_scatter("scatter", out.shape, dim, index.shape, _is_integer(index), shape, same_kind)


def _scatter_into(out, dim, index, src=None, *, value=None, reduce=None):
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    check_one_source(src, value)
    if src is None:
        src = value
    if src.__class__ is not Array:
        value, src = src, None
    return _scatter_copy(reduce or "set", out, dim, index, src, value)


def _scatter_copy(operation: str, out: Array, dim: int, index: Array, src: Array | None, value=None) -> Array:
    dim = wrap_dim(dim, out.ndim)
    if not index.size:
        return out
    _check_scatter(out, dim, index, src)
    return scatter_in_float32(
        operation, out, lambda target: _scatter_along_dim(operation, target, dim, index, src, value)
    )


def _scatter_add_into(out, dim, index, src):
    return _scatter_copy("add", out, dim, index, src)


_OPERATION = {"sum": "add", "prod": "multiply", "mean": "add", "amax": "amax", "amin": "amin"}


def _reduction_identity_of(reduce: str, x: Array):
    """Return the identity of a reduction, its initial value if the input is excluded."""
    if reduce not in ("amax", "amin"):
        return 1 if reduce == "prod" else 0
    category = CATEGORY[x.kind]
    if category == "f":
        return -math.inf if reduce == "amax" else math.inf
    if category == "b":
        return reduce == "amin"
    limits = iinfo(from_np(x.dtype))
    return limits.min if reduce == "amax" else limits.max


def _scatter_reduce_into(out, dim, index, src, reduce, *, include_self=True):
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in _OPERATION:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    dim = wrap_dim(dim, out.ndim)
    if not index.size:
        return out
    _check_scatter(out, dim, index, src)
    if not include_self:
        _scatter_along_dim("set", out, dim, index, None, _reduction_identity_of(reduce, out))
    out = scatter_in_float32(
        _OPERATION[reduce], out, lambda target: _scatter_along_dim(_OPERATION[reduce], target, dim, index, src)
    )
    if reduce == "mean":
        counts = full(out.device, out.shape, int(include_self), "i32")
        _scatter_along_dim("add", counts, dim, index, None, 1)
        out = divide_by_count(out, counts)
    return out


# Slices along a dimension


def index_select(input, dim, index):
    check_index_vector("index_select", index.shape, from_np(index.dtype))
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        check_selected_number(index.size)
    x = _view_at_least_1d(input)
    out = empty(input.device, (*x.shape[:dim], index.size, *x.shape[dim + 1 :]) if input.ndim else (), input.kind)
    return take_slices(
        as_3d_view_or_copy(x, dim, dim + 1),
        as_contiguous_index(index),
        out,
        x.shape[dim],
        False,
        encode_error(SELECTED),
    )


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if len(weight.shape) != 2 or indices.kind not in ("i32", "i64"):
        raise RuntimeError("embedding: weight must be a matrix, indices int32 or int64")
    out = empty(weight.device, (*indices.shape, *weight.shape[1:]), weight.kind)
    return take_slices(
        as_3d_view_or_copy(weight, 0, 1),
        as_contiguous_index(indices),
        out,
        weight.shape[0],
        False,
        encode_error(SELECTED),
    )


def _write_slices(operation: str, out: Array, dim: int, index: Array, source: Array, wrap: bool, code: int) -> Array:
    """Combine slices of `out` along `dim` with `source` at the vector `index`; a 0-d source is repeated."""

    def write(out):
        target = as_3d_view_or_copy(_view_at_least_1d(out), dim, dim + 1)
        P, _, Q = target.sizes
        values = (
            as_3d_view_or_copy(_view_at_least_1d(source), dim, dim + 1)
            if source.ndim or not out.ndim
            else broadcast_scalar_to_3d(source, (P, index.size, Q))
        )
        scatter_3d(operation, target, ThreeDimView(places, (P, index.size, Q), (0, 1, 0)), values, wrap, code)

    places = as_contiguous_index(index)
    return scatter_in_float32(operation, out, write)


def _index_add_into(input, dim, index, source, *, alpha=1):
    dim = wrap_dim(dim, input.ndim)
    check_index_vector("index_add_", index.shape, from_np(index.dtype))
    check_index_add(input, dim, index.size, source)
    if alpha != 1:
        source = apply_pointwise_rule(RULES["mul"], (source, alpha))
    # PyTorch has another code path for two dimensions
    code = encode_error(SCATTERED if input.ndim == 2 else SELECTED, dim)
    return _write_slices("add", input, dim, index, source, False, code)


def _index_copy_into(input, dim, index, source):
    dim = wrap_dim(dim, input.ndim)
    check_index_vector("index_copy_", index.shape, from_np(index.dtype))
    check_index_copy(input, dim, index.size, source)
    return _write_slices("set", input, dim, index, source, False, encode_error(COPIED, dim))


def _index_fill_into(input, dim, index, value):
    dim = wrap_dim(dim, input.ndim)
    check_index_fill(value)
    check_index_vector("index_fill_", index.shape, from_np(index.dtype))
    value = cast(value, input.kind) if value.__class__ is Array else get_cached_scalar(input.device, value, input.kind)
    return _write_slices("set", input, dim, index, value, True, encode_error(INDEXED, dim))


# Flat indices


def _check_flat_index(name, did, index, size):
    if index.kind != "i64":
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {_scalar_type_name(index)}")
    check_flat_target(name, did, size, index.size)
    return as_contiguous_index(index)


def take(input, index):
    places, x = _check_flat_index("take", "tried to take from", index, input.size), as_contiguous(input)
    return take_slices(
        ThreeDimView(x, (1, x.size, 1), (0, 1, 0)),
        places,
        empty(input.device, index.shape, input.kind),
        x.size,
        True,
        encode_error(FLAT),
    )


def _put_into(input, index, source, accumulate=False):
    check_put(input, index, source)
    places, sizes = _check_flat_index("put_", "Tried to put elements into", index, input.size), (1, index.size, 1)
    values = ThreeDimView(as_contiguous(source), sizes, (0, 1, 0))
    operation = "add" if accumulate else "set"

    def write(out):
        scatter_3d(
            operation,
            ThreeDimView(out, (1, out.size, 1), (0, 1, 0)),
            ThreeDimView(places, sizes, (0, 1, 0)),
            values,
            True,
            encode_error(FLAT),
        )

    return scatter_in_float32(operation, input, write)


# Slices written


def _view_slice(x, dim, start, end, step):
    dim = wrap_dim(dim, x.ndim)
    first, last, _ = slice(start, end).indices(x.shape[dim])
    return slice_view(x, dim, first, len(range(first, max(first, last), step)), step)


def write_view(out: Array, part: Array, src: Array) -> Array:
    """Write `src` into the view `part` of `out`; return `out`. RuntimeError for a source of another shape."""
    check_written_slice(part.shape, src.shape)
    copy_into(part, src)
    return out


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    out = clone_row_major(input)
    return write_view(out, _view_slice(out, dim, start, end, step), src)


def select_scatter(input, src, dim, index):
    dim = wrap_dim(dim, input.ndim)
    check_selected(index, input.shape, dim)
    out = clone_row_major(input)
    return write_view(out, select(out, dim, index), src)


def _select_backward(grad, shape, dim, index):
    out = full(grad.device, shape, 0, grad.kind)
    copy_into(select(out, dim, index), grad)
    return out


# Each in two forms: on a copy, and in place


def _make_out_of_place_kernel(write):
    """Return the out-of-place kernel of an op that `write` does to a contiguous array."""

    def kernel(input, *args, **options):
        return write(clone_row_major(input), *args, **options)

    return kernel


def _make_in_place_kernel(write):
    """Return the in-place kernel, which writes contiguous arrays directly."""

    def kernel(input, *given, **options):
        args = [clone_row_major(a) if a.__class__ is Array and a.buffer is input.buffer else a for a in given]
        out = write(input if input.contiguous else clone_row_major(input), *args, **options)
        if out is not input:
            copy_into(input, out)

    return kernel


_WRITERS = {
    "scatter": _scatter_into,
    "scatter_add": _scatter_add_into,
    "scatter_reduce": _scatter_reduce_into,
    "index_add": _index_add_into,
    "index_copy": _index_copy_into,
    "index_fill": _index_fill_into,
    "put": _put_into,
}
KERNELS = {
    **{name: _make_out_of_place_kernel(write) for name, write in _WRITERS.items()},
    **{f"{name}_": _make_in_place_kernel(write) for name, write in _WRITERS.items()},
}
index_add, scatter_add = KERNELS["index_add"], KERNELS["scatter_add"]  # other modules call these
