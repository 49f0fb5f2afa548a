"""Threaded elementwise kernels for large arrays: one part per thread.

A ufunc runs on one core, however large its arrays are, and two cores have nearly twice the memory bandwidth. Only large
arrays get here (`large_kernels` of the backend): NumPy's ufuncs, and the shared kernels made of them. Cache-sized parts
are slower: a single pass reads no element twice. Results do not depend on the parts.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

import numpy as np

import torchlite_backends.array
from torchlite._dispatch.shapes import contiguous_strides
from torchlite._types.layouts import contiguous_format, preserve_format
from torchlite_backends.array.copy_fill import _copy_ as _shared_copy_
from torchlite_backends.array.dim_checks import wrap_dims
from torchlite_backends.array.gather_scatter import _masked_fill as _shared_masked_fill
from torchlite_backends.array.pointwise import to as _shared_to
from torchlite_backends.array.rearrange import repeat as _shared_repeat
from torchlite_backends.array.reduce import argmax as _shared_argmax
from torchlite_backends.array.reduce import argmin as _shared_argmin
from torchlite_backends.array.reduce import sum as _shared_sum
from torchlite_backends.array.shape import clone as _shared_clone
from torchlite_backends.array.shape import copy_preserving_strides, set_strides, set_strides_like
from torchlite_backends.array.statistics import _max_dim as _shared_max_dim
from torchlite_backends.array.statistics import _min_dim as _shared_min_dim
from torchlite_backends.array.statistics import prod as _shared_prod

from . import large_pointwise
from .cache_blocking import can_share_work, parallel_for, run_blocks
from .elementwise_partitioning import apply_to_elementwise_parts, choose_axis_to_cut
from .half_arithmetic import replace_half_kernels
from .half_casts import cast_by_bits, copy_half, native_halves
from .large_pointwise import _where as _by_bits
from .small_arrays import cat as _small_cat
from .small_arrays import is_joined_row_major
from .small_arrays import sum as _plain_sum
from .threaded_copy import copy_row_major
from .threaded_reductions import (
    can_argextreme,
    compute_reduced_shape,
    find_argextreme,
    make_threaded_functions,
    make_threaded_reduce,
)

# Minimum elements for waking a thread: that takes 30 to 60 us on a virtual machine (Zen 4), as long as a cheap pass
# over 400,000 floats in cache or an expensive one over 40,000. Parts of flat arrays are multiples of a step, to end at
# cache lines.
MIN_SIZE_CHEAP, MIN_SIZE_EXPENSIVE, _STEP = 1 << 19, 1 << 16, 1 << 12
_BY_BITS = frozenset(("ef", "fe"))
# An axis this long is cut evenly enough for any number of cores.
_LONG = 64
_CHEAP_UFUNCS = frozenset(
    """absolute add bitwise_and bitwise_or bitwise_xor conjugate copysign divide equal fabs greater greater_equal invert
    isfinite isinf isnan less less_equal logical_and logical_not logical_or logical_xor maximum minimum multiply
    negative not_equal positive reciprocal sign signbit square subtract""".split()
)
_OWN_KERNELS = """large__copy large_clone large_cat large_flip large_repeat large_sum large_argmax large_argmin
    large__max_dim large__min_dim large__masked_fill large_prod""".split()
_MODULES = "pointwise", "binary", "unary", "reduce", "statistics"
_REDUCE = frozenset("add maximum minimum multiply".split())
_METHODS = "accumulate", "at", "outer", "reduce", "reduceat", "resolve_dtypes"
_ndarray = np.ndarray


def make_large_kernels(small: dict[str, Any]) -> dict[str, Any]:
    """Return {op name: kernel} for large arrays, replacing NumPy's functions and shared kernels that call them."""
    ufuncs = _make_threaded_functions()
    xp: Any = torchlite_backends.array.Namespace(np, **ufuncs, **make_threaded_functions(ufuncs), where=_where)
    shared = {op: getattr(xp, name) for op, name in torchlite_backends.array.NUMPY_NAMES.items()}
    scopes: dict[str, dict] = {}
    for name in _MODULES:
        shared.update(
            torchlite_backends.array.bind_module(
                importlib.import_module(f"torchlite_backends.array.{name}"), xp, scopes
            )
        )
    table = {op: kernel for op, kernel in shared.items() if _is_shared(small.get(op))}
    for op, kernel in list(table.items()):
        if hasattr(kernel, "ufunc"):
            table.setdefault(op + "_", _make_in_place_kernel(kernel))
    own = torchlite_backends.array.rebind_globals(sys.modules[__name__], xp, scopes)
    table.update({name.removeprefix("large_"): own[name] for name in _OWN_KERNELS})
    for op in ("abs", "log10", "atan2", "angle"):  # for dtypes that need no wider computation the threaded function
        table[op] = functools.partial(getattr(large_pointwise, op), plain=shared[op])
    table.setdefault("relu", small["relu"])
    replace_half_kernels(table, small)
    return table


def _is_shared(kernel: Any) -> bool:
    """True if a kernel is a NumPy function or shared by NumPy and CuPy, so that there is no better one."""
    return isinstance(kernel, np.ufunc) or getattr(kernel, "__module__", "").startswith("torchlite_backends.array.")


def _make_threaded_functions() -> dict[str, Any]:
    """Return NumPy's ufuncs of one or two operands and one result, threaded, by name."""
    return {
        name: make_threaded_ufunc(value)
        for name, value in vars(np).items()
        if isinstance(value, np.ufunc) and value.nin < 3 and value.nout == 1 and value.signature is None
    }


def make_threaded_ufunc(ufunc: np.ufunc) -> Any:
    """Return a ufunc as a threaded function, with the ufunc's methods."""
    least = MIN_SIZE_CHEAP if ufunc.__name__ in _CHEAP_UFUNCS else MIN_SIZE_EXPENSIVE
    call: Any = (_make_threaded_unary if ufunc.nin == 1 else _make_threaded_binary)(ufunc, least)
    for name in _METHODS:
        setattr(call, name, getattr(ufunc, name))
    if ufunc.__name__ in _REDUCE:
        call.reduce = make_threaded_reduce(ufunc)
    call.takes_out = True
    call.ufunc, call.__name__, call.__qualname__ = ufunc, ufunc.__name__, ufunc.__name__
    return call


def _where(condition, input, other):
    return _by_bits(condition, input, other) if condition.__class__ is _ndarray else np.where(condition, input, other)


def _make_threaded_unary(ufunc: np.ufunc, least: int):
    def call(x, out=None, **options):
        if x.__class__ is not _ndarray or x.size < least or options or not can_share_work():
            return ufunc(x, out=out, **options)
        return _run_threaded(ufunc, (x,), out)

    return call


def _make_threaded_binary(ufunc: np.ufunc, least: int):
    def call(first, second, out=None, **options):
        largest = first if first.__class__ is _ndarray else second
        if largest.__class__ is not _ndarray or options or not can_share_work():
            return ufunc(first, second, out=out, **options)
        if largest.size < least and (second.__class__ is not _ndarray or second.size < least):
            return ufunc(first, second, out=out)
        return _run_threaded(ufunc, (first, second), out)

    return call


def _make_in_place_kernel(kernel: Any):
    """Return the in-place kernel of a threaded ufunc."""

    def call(target, *others):
        kernel(target, *others, out=target)

    return call


def _run_threaded(ufunc: np.ufunc, operands: tuple, out: np.ndarray | None) -> np.ndarray:
    arrays = [a for a in operands if a.__class__ is _ndarray and a.ndim]
    dtype = None
    if out is None:
        try:
            dtype = ufunc.resolve_dtypes((*[getattr(a, "dtype", type(a)) for a in operands], None))[-1]
            out = allocate_result(arrays, dtype)
        except (TypeError, ValueError):  # the ufunc raises the error
            return ufunc(*operands)
    elif not _can_write_in_parts(out, arrays):
        return ufunc(*operands, out=out)
    apply_to_elementwise_parts(lambda part, *parts: ufunc(*parts, out=part), out, operands)
    return out


def allocate_result(arrays: list[np.ndarray], dtype: Any) -> np.ndarray:
    """Return a new array for an elementwise result, in the memory order of a ufunc's result."""
    first = arrays[0]
    if all(a.flags.c_contiguous and a.shape == first.shape for a in arrays):
        return np.empty(first.shape, dtype)
    flags: Any = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    given: Any = [*arrays, None]
    made = np.nditer(given, ["zerosize_ok"], flags, [None] * len(arrays) + [dtype])
    return made.operands[-1]


def _can_write_in_parts(out: np.ndarray, arrays: list[np.ndarray]) -> bool:
    """True if operands fit the result, and each part of it overlaps at most the same part of an operand."""
    if 0 in out.strides:
        return False
    return all(
        a is out or is_same_memory(a, out) or _has_result_layout(a, out) and not np.may_share_memory(a, out)
        for a in arrays
    )


def _has_result_layout(a: np.ndarray, out: np.ndarray) -> bool:
    lead = out.ndim - a.ndim
    return (
        a.shape == out.shape or lead >= 0 and all(m in (1, n) for m, n in zip(a.shape, out.shape[lead:], strict=True))
    )


def is_same_memory(a: np.ndarray, b: np.ndarray) -> bool:
    return (
        a.shape == b.shape
        and a.strides == b.strides
        and a.itemsize == b.itemsize
        and a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    )


# --- copies and casts --------------------------------------------------------------------------------


def to(input, dtype):
    source, target = input.dtype, dtype.np
    if source == target:
        return input
    if native_halves.cast is not None and {source.itemsize, target.itemsize} == {2, 4}:
        out = native_halves.cast(input, target)
        if out is not None:
            return out
    if source.char + target.char in _BY_BITS and input.flags.c_contiguous:
        return cast_by_bits(input, target)
    if source.kind in "cWV" or target.kind == "V":
        return _shared_to(input, dtype)
    if input.size < MIN_SIZE_CHEAP or 0 in input.strides or not can_share_work():
        return copy_preserving_strides(input, target)
    return _copy_in_parts(input, target)


def _copy_parts(out: np.ndarray, source: np.ndarray) -> None:
    apply_to_elementwise_parts(lambda part, given: np.copyto(part, given, casting="unsafe"), out, (source,))


def _copy_(input, src):
    if copy_half(input, src):
        return None
    if (
        input.size < MIN_SIZE_CHEAP
        or src.dtype.kind in "cWV"
        or input.dtype.kind == "V"
        or not can_share_work()
        or not _can_write_in_parts(input, [src])
    ):
        return _shared_copy_(input, src)
    _copy_parts(input, src)
    return None


def large__copy(input, src):
    out = np.empty(input.shape, input.dtype)
    _copy_(out, src)
    return out


def large_clone(input, *, memory_format=None):
    preserves = memory_format is None or memory_format is preserve_format
    if (
        input.size < MIN_SIZE_CHEAP
        or not preserves
        and memory_format is not contiguous_format
        or 0 in input.strides
        or not can_share_work()
    ):
        return _shared_clone(input, memory_format=memory_format)
    if not preserves:
        return set_strides(copy_row_major(input), contiguous_strides(input.shape))
    return _copy_in_parts(input, input.dtype)


def _copy_in_parts(input, dtype):
    out = np.empty_like(input, dtype)
    _copy_parts(out, input)
    return set_strides_like(out, input)


def large_flip(input, dims):
    return copy_row_major(np.flip(input, wrap_dims(dims, input.ndim) if dims else ()))


def large_repeat(input, repeats):
    lead = len(repeats) - input.ndim
    if lead < 0 or min(repeats) < 1:
        return _shared_repeat(input, repeats)
    shape = (1,) * lead + input.shape
    out = np.empty([n for pair in zip(repeats, shape, strict=True) for n in pair], input.dtype)
    source = input.reshape([n for pair in zip((1,) * len(shape), shape, strict=True) for n in pair])
    apply_to_elementwise_parts(np.copyto, out, (np.broadcast_to(source, out.shape),))
    return out.reshape([r * n for r, n in zip(repeats, shape, strict=True)])


def large_cat(tensors, dim=0):
    kept = [t for t in tensors if t.shape != (0,)]
    if (
        sum(t.size for t in kept) < MIN_SIZE_CHEAP
        or not can_share_work()
        or not is_joined_row_major(kept, dim)
        or len({t.shape[: dim % t.ndim] + t.shape[dim % t.ndim + 1 :] for t in kept}) > 1
    ):
        return _small_cat(tensors, dim)
    shape = list(kept[0].shape)
    shape[dim] = sum(t.shape[dim] for t in kept)
    out = np.empty(shape, kept[0].dtype)
    places, start = np.swapaxes(out, 0, dim), 0
    jobs = []
    for t in kept:
        target = np.swapaxes(places[start : start + t.shape[dim]], 0, dim)
        start += t.shape[dim]
        jobs.extend(_copy_chunks(target, t))
    parallel_for(np.copyto, jobs)
    return out


def _copy_chunks(out: np.ndarray, source: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of parts of a copy, each of about `MIN_SIZE_CHEAP` elements."""
    if out.size <= MIN_SIZE_CHEAP:
        return [(out, source)]
    axis = choose_axis_to_cut(out)
    count = min(-(-out.size // MIN_SIZE_CHEAP), out.shape[axis])
    return list(zip(np.array_split(out, count, axis), np.array_split(source, count, axis), strict=True))


def large__masked_fill(input, mask, value):
    return _shared_masked_fill(input, mask, value)


# --- reductions --------------------------------------------------------------------------------------


def large_sum(input, dim=None, keepdim=False, *, dtype=None):
    if input.dtype.kind not in "biu" or input.size < MIN_SIZE_CHEAP or dtype is not None and dtype.np.kind not in "iu":
        return _plain_sum(input, dim, keepdim, dtype=dtype)
    return _shared_sum(input, dim, keepdim, dtype=dtype)


def large_argmax(input, dim=None, keepdim=False):
    if not can_argextreme(input, dim):
        return _shared_argmax(input, dim, keepdim)
    return find_argextreme(input, dim, True)[1].reshape(compute_reduced_shape(input, dim, keepdim))


def large_argmin(input, dim=None, keepdim=False):
    if not can_argextreme(input, dim):
        return _shared_argmin(input, dim, keepdim)
    return find_argextreme(input, dim, False)[1].reshape(compute_reduced_shape(input, dim, keepdim))


def large__max_dim(input, dim, keepdim=False):
    if not can_argextreme(input, dim):
        return _shared_max_dim(input, dim, keepdim)
    return tuple(a.reshape(compute_reduced_shape(input, dim, keepdim)) for a in find_argextreme(input, dim, True))


def large__min_dim(input, dim, keepdim=False):
    if not can_argextreme(input, dim):
        return _shared_min_dim(input, dim, keepdim)
    return tuple(a.reshape(compute_reduced_shape(input, dim, keepdim)) for a in find_argextreme(input, dim, False))


def large_prod(input, dim=None, keepdim=False, *, dtype=None):
    if (
        dtype is not None
        or dim not in (-1, input.ndim - 1)
        or not (can_argextreme(input, dim) and input.dtype.kind == "f")
    ):
        return _shared_prod(input, dim, keepdim, dtype=dtype)
    rows = input.reshape(-1, input.shape[-1])
    out = np.empty(len(rows), input.dtype)

    def multiply_rows(start: int, stop: int) -> None:
        out[start:stop] = _shared_prod(rows[start:stop], 1)

    run_blocks(multiply_rows, *rows.shape)
    return out.reshape(compute_reduced_shape(input, dim, keepdim))
