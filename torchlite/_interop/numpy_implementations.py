"""NumPy's functions implemented with torch's. Each has NumPy's name, parameters and meaning, takes Tensors and is
differentiable. It returns NotImplemented for an option that ops do not support, which leaves the call to NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dispatch import call
from .._dispatch.public_functions import torch
from .._types import dtypes
from .._types.dtypes import float64, from_np

Function = Callable[..., Any]
IMPLEMENTATIONS: dict[str, Function] = {}


def implements(*names: str) -> Callable[[Function], Function]:
    """Enters a function under NumPy's names: "sum", "linalg.norm"."""

    def register(function: Function) -> Function:
        for name in names:
            IMPLEMENTATIONS[name] = function
        return function

    return register


# -- arguments ----------------------------------------------------------------------------------------


class UnsupportedArgument(Exception):
    """Arguments that ops cannot take: NumPy shall have them."""


def dtype_of(d: Any) -> Any:
    """A torch dtype for what NumPy takes as one. Unsaid where torch has none."""
    try:
        return d if isinstance(d, dtypes.dtype) else from_np(np.dtype(d))
    except TypeError:
        raise UnsupportedArgument from None


def to_tensor(value: Any, like: Any = None) -> Any:
    """A Tensor for an array, a list or a number, with NumPy's dtype."""
    if isinstance(value, call.Tensor):
        return value
    from .._tensor.creation import as_tensor

    array = call.to_native_strides(np.array(value))
    dtype_of(array.dtype)
    return as_tensor(array, device=None if like is None else like.device)


def to_tensors(values: Any) -> list[Any]:
    """Several, on the device of the first Tensor, in the dtype that NumPy brings them to."""
    like = next(v for v in values if isinstance(v, call.Tensor))
    found = [to_tensor(v, like) for v in values]
    kind = result_dtype(found)
    return [v.to(kind) for v in found]


def result_dtype(values: Any) -> Any:
    """The dtype to which NumPy promotes arrays, regardless of their dimensions."""
    kind = values[0].dtype
    for v in values[1:]:
        if v.dtype is not kind:
            try:
                kind = dtype_of(np.promote_types(kind.np, v.dtype.np))
            except TypeError:  # NumPy knows no dtype for half and bfloat16
                kind = dtypes.promote_types(kind, v.dtype)
    return kind


def to_real_float(x: Any) -> Any:
    """A Tensor of floating point: integers become float64, as in NumPy."""
    return x.to(float64) if x.dtype.category < dtypes.FLOAT else x


def normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as a tuple: all for None."""
    found = range(ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(np.lib.array_utils.normalize_axis_index(int(a), ndim) for a in found)


def flatten(x: Any) -> Any:
    return x.reshape(-1)


def merge_axes(x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The elements along some axes in one last dimension, and the shape that a reduction keeps."""
    axes = normalize_axes(axis, x.ndim)
    rest = [d for d in range(x.ndim) if d not in axes]
    kept = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    moved = x.permute(*rest, *axes) if x.ndim else x
    return moved.reshape(*(x.shape[d] for d in rest), math.prod(x.shape[d] for d in axes)), kept


# -- arrangement --------------------------------------------------------------------------------------


@implements("transpose", "permute_dims")
def transpose(a, axes=None):
    return a.permute(*(normalize_axes(axes, a.ndim) if axes is not None else reversed(range(a.ndim))))


@implements("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x, /):
    return x.transpose(-1, -2)


@implements("reshape")
def reshape(a, /, shape=None, order="C", *, copy=None, newshape=None):
    shape = newshape if shape is None else shape
    if order not in ("C", "A") or copy is not None or not isinstance(shape, (int, tuple, list)):
        return NotImplemented
    return a.reshape([shape] if isinstance(shape, int) else shape)


@implements("ravel")
def ravel(a, order="C"):
    return flatten(a) if order == "C" else NotImplemented


@implements("squeeze")
def squeeze(a, axis=None):
    if axis is None:
        return a.squeeze()
    axes = normalize_axes(axis, a.ndim)
    if any(a.shape[d] != 1 for d in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return a.reshape([n for d, n in enumerate(a.shape) if d not in axes])


@implements("expand_dims")
def expand_dims(a, axis):
    axes = normalize_axes(axis, a.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1))
    for d in sorted(axes):
        a = a.unsqueeze(d)
    return a


implements("moveaxis")(lambda a, source, destination: a.movedim(source, destination))
implements("swapaxes")(lambda a, axis1, axis2: a.transpose(axis1, axis2))
implements("copy")(lambda a, order="K", subok=False: a.clone())
implements("rot90")(lambda m, k=1, axes=(0, 1): torch.rot90(m, k, list(axes)))
implements("fliplr")(lambda m: m.flip(1))
implements("flipud")(lambda m: m.flip(0))
implements("tril")(lambda m, k=0: torch.tril(m, k))
implements("triu")(lambda m, k=0: torch.triu(m, k))
implements("diag")(lambda v, k=0: torch.diag(v, k))
implements("diagflat")(lambda v, k=0: torch.diagflat(v, k))
implements("diagonal")(lambda a, offset=0, axis1=0, axis2=1: torch.diagonal(a, offset, axis1, axis2))
implements("linalg.diagonal")(lambda x, /, *, offset=0: torch.diagonal(x, offset, -2, -1))
implements("real")(lambda val: val.real)
implements("imag")(lambda val: val.imag if val.is_complex() else torch.zeros_like(val))
implements("astype")(lambda x, dtype, /, *, copy=True, device=None: x.to(dtype_of(dtype), copy=copy))
implements("tile")(lambda A, reps: torch.tile(A, (reps,) if isinstance(reps, int) else tuple(reps)))


@implements("flip")
def flip(m, axis=None):
    return m.flip(normalize_axes(axis, m.ndim)) if m.ndim else m.clone()


@implements("roll")
def roll(a, shift, axis=None):
    if isinstance(shift, (tuple, list)) != isinstance(axis, (tuple, list)):
        return NotImplemented  # they broadcast
    return torch.roll(a, shift, () if axis is None else axis)


@implements("repeat")
def repeat(a, repeats, axis=None):
    if not isinstance(repeats, (int, call.Tensor)):
        repeats = to_tensor(repeats, a)
    return torch.repeat_interleave(a, repeats, axis)


def _make_at_least_nd(ndim: int, grow: Function) -> Function:
    def function(*arys):
        like = next(a for a in arys if isinstance(a, call.Tensor))
        found = tuple(a if a.ndim >= ndim else grow(a) for a in (to_tensor(a, like) for a in arys))
        return found[0] if len(found) == 1 else found

    return function


implements("atleast_1d")(_make_at_least_nd(1, lambda a: a.reshape(1)))
implements("atleast_2d")(_make_at_least_nd(2, lambda a: a.reshape(1, -1)))
implements("atleast_3d")(_make_at_least_nd(3, lambda a: a.reshape(1, -1, 1) if a.ndim < 2 else a.unsqueeze(-1)))


@implements("broadcast_to")
def broadcast_to(array, shape, subok=False):
    return array.expand((shape,) if isinstance(shape, int) else shape)


@implements("broadcast_arrays")
def broadcast_arrays(*args, subok=False):
    like = next(a for a in args if isinstance(a, call.Tensor))
    return tuple(torch.broadcast_tensors(*(to_tensor(a, like) for a in args)))


def _make_join(name: str) -> None:
    @implements(name)
    def join_arrays(tup, *, dtype=None, casting="same_kind"):
        return getattr(torch, name)(
            to_tensors(tup) if dtype is None else [to_tensor(a).to(dtype_of(dtype)) for a in tup]
        )


for _name in ("vstack", "hstack", "dstack", "column_stack"):
    _make_join(_name)


@implements("concatenate", "concat")
def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    arrays = to_tensors(arrays)
    if axis is None:
        arrays, axis = [flatten(a) for a in arrays], 0
    if len({a.ndim for a in arrays}) > 1:
        raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    result = torch.cat(arrays, axis)
    return result if dtype is None else result.to(dtype_of(dtype))


@implements("stack")
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    result = torch.stack(to_tensors(list(arrays)), axis)
    return result if dtype is None else result.to(dtype_of(dtype))


@implements("append")
def append(arr, values, axis=None):
    arr, values = to_tensors([arr, values])
    return torch.cat([flatten(arr), flatten(values)]) if axis is None else torch.cat([arr, values], axis)


@implements("unstack")
def unstack(x, /, *, axis=0):
    return tuple(x.unbind(axis))


def _split_array(ary, indices_or_sections, axis, strict):
    if strict and isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    if not isinstance(indices_or_sections, int):
        indices_or_sections = [int(i) for i in indices_or_sections]
    return list(torch.tensor_split(ary, indices_or_sections, axis))


implements("array_split")(lambda ary, indices_or_sections, axis=0: _split_array(ary, indices_or_sections, axis, False))
implements("split")(lambda ary, indices_or_sections, axis=0: _split_array(ary, indices_or_sections, axis, True))


def _split_along(name, axis, least):
    """NumPy's split along the first, second or third dimension, of arrays with so many at least."""

    def split(ary, indices_or_sections):
        if ary.ndim < least:
            raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
        return _split_array(ary, indices_or_sections, min(axis, ary.ndim - 1), True)

    implements(name)(split)


_split_along("vsplit", 0, 2)
_split_along("hsplit", 1, 1)
_split_along("dsplit", 2, 3)


@implements("meshgrid")
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    like = next(x for x in xi if isinstance(x, call.Tensor))
    xi = tuple(flatten(to_tensor(x, like)) for x in xi)
    n = len(xi)
    places = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    found = [x.reshape([-1 if d == p else 1 for d in range(n)]) for x, p in zip(xi, places, strict=True)]
    if not sparse:
        found = list(torch.broadcast_tensors(*found))
    return tuple(x.clone() for x in found) if copy else tuple(found)


def _like_options(a: Any, dtype: Any, order: str, shape: Any) -> dict[str, Any] | None:
    """The arguments of functions such as `zeros_like`; None for an order other than C."""
    if order not in ("K", "C", "A"):
        return None
    size = a.shape if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    return {"size": size, "dtype": a.dtype if dtype is None else dtype_of(dtype), "device": a.device}


@implements("empty_like")
def empty_like(prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None):
    asked = _like_options(prototype, dtype, order, shape)
    return torch.empty(**asked) if asked else NotImplemented


@implements("zeros_like")
def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    asked = _like_options(a, dtype, order, shape)
    return torch.zeros(**asked) if asked else NotImplemented


@implements("ones_like")
def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    asked = _like_options(a, dtype, order, shape)
    return torch.ones(**asked) if asked else NotImplemented


@implements("full_like")
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    asked = _like_options(a, dtype, order, shape)
    return torch.zeros(**asked) + to_tensor(fill_value, a).to(asked["dtype"]) if asked else NotImplemented


# -- choosing -----------------------------------------------------------------------------------------


@implements("take")
def take(a, indices, axis=None, out=None, mode="raise"):
    if mode != "raise":
        return NotImplemented
    indices = to_tensor(indices, a)
    x, axis = (flatten(a), 0) if axis is None else (a, normalize_axes(axis, a.ndim)[0])
    return x[(slice(None),) * axis + (indices.long(),)]


@implements("take_along_axis")
def take_along_axis(arr, indices, axis=-1):
    if axis is None:
        arr, axis = flatten(arr), 0
    n = arr.shape[axis]
    return torch.take_along_dim(arr, torch.where(indices < 0, indices + n, indices).long(), axis)


@implements("where")
def where(condition, x=None, y=None, /):
    like = next(v for v in (condition, x, y) if isinstance(v, call.Tensor))
    condition = to_tensor(condition, like).bool()
    if x is None and y is None:
        return nonzero(torch.atleast_1d(condition))
    return torch.where(condition, *_promote_operands(x, y, like))


def _promote_operands(x: Any, y: Any, like: Any) -> tuple[Any, Any]:
    """Promote two values to NumPy's common dtype; a Python number of the same kind does not change the other's."""
    numbers = [type(v) in (bool, int, float, complex) for v in (x, y)]
    found = [to_tensor(v, like) for v in (x, y)]
    given = [v if n else t.dtype.np for v, n, t in zip((x, y), numbers, found, strict=True)]
    kind = dtype_of(np.result_type(*given))
    return found[0].to(kind), found[1].to(kind)


@implements("clip")
def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None, **kwargs):
    if kwargs:
        return NotImplemented
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if low is None and high is None:
        return a.clone()
    bounds = [b if b is None or isinstance(b, (int, float)) else to_tensor(b, a) for b in (low, high)]
    kinds = [b if isinstance(b, (int, float)) else b.dtype.np for b in bounds if b is not None]
    kind = dtype_of(np.result_type(a.dtype.np, *kinds))
    if any(isinstance(b, call.Tensor) for b in bounds):
        bounds = [b if b is None else to_tensor(b, a).to(kind) for b in bounds]
    return torch.clamp(a.to(kind), *bounds)


@implements("nonzero")
def nonzero(a):
    """The places of nonzero elements, which index arrays and Tensors. An array takes a tuple of one Tensor with one
    element for an integer, so places of the CPU are arrays.
    """
    if not a.ndim:
        return NotImplemented
    places = torch.nonzero(a, as_tuple=True)
    return tuple(place.numpy() if place.device.type == "cpu" else place for place in places)


implements("argwhere")(lambda a: torch.nonzero(a))
implements("flatnonzero")(lambda a: nonzero(flatten(a))[0])


@implements("sort")
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    x, axis = (flatten(a), 0) if axis is None else (a, axis)
    return torch.sort(x, axis, stable=True)[0]


@implements("argsort")
def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    x, axis = (flatten(a), 0) if axis is None else (a, axis)
    return torch.argsort(x, axis, stable=True)


@implements("nan_to_num")
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    return torch.nan_to_num(x, nan, posinf, neginf) if copy else NotImplemented


@implements("pad")
def pad(array, pad_width, mode="constant", *, constant_values=0, **kwargs):
    if mode != "constant" or kwargs or not isinstance(constant_values, (int, float)) or isinstance(pad_width, dict):
        return NotImplemented
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))
    return torch.constant_pad_nd(array, [int(n) for pair in widths[::-1] for n in pair], constant_values)


# -- rounding, and other values ------------------------------------------------------------------------


@implements("round", "around")
def round_(a, decimals=0, out=None):
    if a.dtype.category < dtypes.FLOAT:
        return a.clone() if decimals >= 0 and a.dtype.category else NotImplemented
    return NotImplemented if a.is_complex() else torch.round(a, decimals=decimals) if decimals else torch.round(a)


implements("fix")(lambda x, out=None: torch.trunc(x))
implements("sinc")(lambda x: torch.sinc(to_real_float(x)))
implements("i0")(lambda x: torch.i0(to_real_float(x)))
implements("angle")(lambda z, deg=False: torch.angle(to_real_float(z)) * (180 / math.pi if deg else 1))
implements("iscomplexobj")(lambda x: x.is_complex())
implements("isrealobj")(lambda x: not x.is_complex())
implements("isposinf")(lambda x, out=None: torch.isposinf(x))
implements("isneginf")(lambda x, out=None: torch.isneginf(x))


# -- reductions ---------------------------------------------------------------------------------------


def _restore_dims(result: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    if not keepdims:
        return result
    axes = normalize_axes(axis, x.ndim)
    return result.reshape([1 if d in axes else n for d, n in enumerate(x.shape)])


def _sum_or_prod(name: str) -> None:
    @implements(name)
    def reduce(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
        if initial is not None or where is not None:
            return NotImplemented
        if name.startswith("nan") and a.dtype.category >= dtypes.FLOAT:
            a = torch.where(torch.isnan(a), torch.full_like(a, int("prod" in name)), a)
        unsigned = a.dtype.category == dtypes.INT and not a.dtype.is_signed
        kind = dtype_of(dtype) if dtype is not None else dtypes.uint64 if unsigned else None
        if axis == ():
            return a.to(kind or (dtypes.int64 if a.dtype.category < dtypes.FLOAT else a.dtype))
        if "sum" in name:
            return torch.sum(a, axis, bool(keepdims), dtype=kind)
        flat_, kept = merge_axes(a, axis)
        result = torch.prod(flat_, -1, dtype=kind)
        return result.reshape(kept) if keepdims else result


for _name in ("sum", "prod", "nansum", "nanprod"):
    _sum_or_prod(_name)


@implements("mean")
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    if where is not None:
        return NotImplemented
    x = to_real_float(a) if dtype is None else a.to(dtype_of(dtype))
    return x.clone() if axis == () else torch.mean(x, axis, bool(keepdims))


@implements("nanmean")
def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    if where is not None or axis == ():
        return NotImplemented
    return torch.nanmean(to_real_float(a) if dtype is None else a.to(dtype_of(dtype)), axis, bool(keepdims))


def _make_var_or_std(name: str) -> None:
    @implements(name)
    def var_or_std(
        a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None, correction=None
    ):
        if where is not None or mean is not None or axis == ():
            return NotImplemented
        x = to_real_float(a) if dtype is None else a.to(dtype_of(dtype))
        free = ddof if correction is None else correction
        return getattr(torch, name)(x, axis, correction=free, keepdim=bool(keepdims))


_make_var_or_std("std")
_make_var_or_std("var")


def _make_max_or_min(names: tuple[str, ...], function_name: str) -> None:
    @implements(*names)
    def max_or_min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
        if initial is not None or where is not None or axis == () or a.is_complex() or 0 in a.shape:
            return NotImplemented
        return getattr(torch, function_name)(a, normalize_axes(axis, a.ndim), bool(keepdims))

    @implements("nan" + names[0])
    def max_or_min_without_nan(a, axis=None, out=None, keepdims=False, initial=None, where=None):
        if a.is_floating_point() and bool(torch.isnan(a).any()):
            return NotImplemented
        return max_or_min(a, axis, None, keepdims, initial, where)


_make_max_or_min(("max", "amax"), "amax")
_make_max_or_min(("min", "amin"), "amin")


@implements("ptp")
def ptp(a, axis=None, out=None, keepdims=False):
    if 0 in a.shape:
        return NotImplemented
    axes = normalize_axes(axis, a.ndim)
    return torch.amax(a, axes, bool(keepdims)) - torch.amin(a, axes, bool(keepdims))


def _all_or_any(name: str) -> None:
    @implements(name)
    def truth(a, axis=None, out=None, keepdims=False, *, where=None):
        if where is not None or axis == ():
            return NotImplemented
        return getattr(torch, name)(a.bool(), normalize_axes(axis, a.ndim), bool(keepdims)) if a.ndim else a.bool()


_all_or_any("all")
_all_or_any("any")


def _make_argmax_or_argmin(name: str) -> None:
    @implements(name)
    def argmax_or_argmin(a, axis=None, out=None, *, keepdims=False):
        if a.is_complex() or 0 in a.shape:
            return NotImplemented
        result = getattr(torch, name)(a if a.dtype.category else a.to(dtypes.uint8), axis)
        return _restore_dims(result, a, axis, keepdims)


_make_argmax_or_argmin("argmax")
_make_argmax_or_argmin("argmin")


@implements("count_nonzero")
def count_nonzero(a, axis=None, *, keepdims=False):
    return torch.sum(a != 0, normalize_axes(axis, a.ndim), bool(keepdims))


def _make_cumulative(name: str, function_name: str) -> None:
    @implements(name)
    def cumulate(a, axis=None, dtype=None, out=None):
        if a.dtype.category == dtypes.INT and not a.dtype.is_signed and dtype is None:
            dtype = np.uint64
        x, axis = (flatten(a), 0) if axis is None else (a, axis)
        return getattr(torch, function_name)(x, axis, dtype=None if dtype is None else dtype_of(dtype))


_make_cumulative("cumsum", "cumsum")
_make_cumulative("cumprod", "cumprod")


def _make_array_api_cumulative(name: str, whole: str) -> None:
    @implements(name)
    def cumulate(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        if axis is None and x.ndim != 1:
            return NotImplemented
        result = IMPLEMENTATIONS[whole](x, 0 if axis is None else axis, dtype)
        if not include_initial:
            return result
        first = torch.full_like(result.narrow(0 if axis is None else axis, 0, 1), int("prod" in name))
        return torch.cat([first, result], 0 if axis is None else axis)


_make_array_api_cumulative("cumulative_sum", "cumsum")
_make_array_api_cumulative("cumulative_prod", "cumprod")


def _compute_quantile(a: Any, q: Any, axis: Any, keepdims: bool) -> Any:
    x, kept = merge_axes(to_real_float(a), axis)
    number = isinstance(q, (int, float))
    places = torch.full((), q, dtype=x.dtype, device=x.device) if number else to_tensor(q, a).to(x.dtype)
    if places.ndim > 1 or a.is_complex() or not x.shape[-1] or x.dtype not in (dtypes.float32, float64):
        return NotImplemented
    result = torch.quantile(x, places, -1)
    return result.reshape((*places.shape, *kept)) if keepdims else result


@implements("quantile")
def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    if method != "linear" or weights is not None or not isinstance(a, call.Tensor):
        return NotImplemented
    return _compute_quantile(a, q, axis, keepdims)


@implements("percentile")
def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    if method != "linear" or weights is not None or not isinstance(a, call.Tensor):
        return NotImplemented
    return _compute_quantile(
        a, q / 100 if isinstance(q, (int, float)) else to_tensor(q, a).to(float64) / 100, axis, keepdims
    )


@implements("median")
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    return _compute_quantile(a, 0.5, axis, keepdims)


@implements("average")
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    if isinstance(axis, (tuple, list)) or not isinstance(a, call.Tensor):
        return NotImplemented
    x = to_real_float(a)
    if weights is None:
        result = mean(x, axis, keepdims=keepdims)
        total = torch.full_like(result, x.numel() / max(result.numel(), 1))
        return (result, total) if returned else result
    w = to_real_float(to_tensor(weights, a))
    kind = result_dtype([x, w])
    x, w = x.to(kind), w.to(kind)
    if w.shape != x.shape:
        if axis is None or w.ndim != 1 or w.shape[0] != x.shape[axis]:
            return NotImplemented
        w = w.reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)])
    total = torch.sum(w.expand(x.shape), axis, bool(keepdims))
    if bool((total == 0).any()):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    result = torch.sum(x * w, axis, bool(keepdims)) / total
    return (result, total) if returned else result


@implements("diff")
def diff(a, n=1, axis=-1, prepend=None, append=None):
    if prepend is not None or append is not None:
        return NotImplemented
    return torch.diff(a, n, axis) if n else a


@implements("trapezoid")
def trapezoid(y, x=None, dx=1.0, axis=-1):
    if not isinstance(y, call.Tensor) or x is not None:
        return NotImplemented
    y = to_real_float(y)
    parts = y.narrow(axis, 1, y.shape[axis] - 1) + y.narrow(axis, 0, y.shape[axis] - 1)
    return torch.sum(parts * (dx / 2.0), axis)


# -- questions ----------------------------------------------------------------------------------------

implements("shape")(lambda a: tuple(a.shape))
implements("ndim")(lambda a: a.ndim)
implements("array_repr")(lambda arr, max_line_width=None, precision=None, suppress_small=None: repr(arr))
implements("array_str")(lambda a, max_line_width=None, precision=None, suppress_small=None: str(a))


@implements("size")
def size(a, axis=None):
    return math.prod(a.shape[d] for d in normalize_axes(axis, a.ndim))


@implements("result_type")
def result_type(*arrays_and_dtypes):
    return np.result_type(*(a.dtype.np if isinstance(a, call.Tensor) else a for a in arrays_and_dtypes))


@implements("array_equal")
def array_equal(a1, a2, equal_nan=False):
    if equal_nan:
        return NotImplemented
    like = a1 if isinstance(a1, call.Tensor) else a2
    a1, a2 = to_tensor(a1, like), to_tensor(a2, like)
    return a1.shape == a2.shape and bool(torch.eq(a1, a2).all())


@implements("isclose")
def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    if not isinstance(rtol, float) or not isinstance(atol, float):
        return NotImplemented
    return torch.isclose(*torch.broadcast_tensors(*to_tensors([a, b])), rtol, atol, equal_nan)


@implements("allclose")
def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    found = isclose(a, b, rtol, atol, equal_nan)
    return NotImplemented if found is NotImplemented else bool(found.all())
