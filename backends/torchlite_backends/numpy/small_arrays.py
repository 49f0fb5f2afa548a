"""Low-overhead kernels for small arrays: direct array methods in place of the shared kernels' Python code."""

from __future__ import annotations

import builtins
import math

import numpy as np

from torchlite._dispatch.memory_layout import mark_strides_applied, strides_of, suggests_channels_last
from torchlite._dispatch.shape_and_value_checks import check_trace
from torchlite._dispatch.shapes import infer_expand_geometry, wrap_dims
from torchlite._types import opaque_dtypes
from torchlite_backends.array.matmul import matmul as _shared_matmul
from torchlite_backends.array.pointwise import to
from torchlite_backends.array.rearrange import stack as _shared_stack
from torchlite_backends.array.reduce import mean as _shared_mean
from torchlite_backends.array.shape import cat as _shared_cat
from torchlite_backends.array.storage import strided_view

from .deterministic_gemm import MAX_GEMV_SIZE, SMALL, matmul_bias
from .half_precision import run_in_float32
from .norms import dot_vectors
from .row_blocks import ones
from .threaded_sums import sum_complex, sum_threaded

_add_reduce, _all = np.add.reduce, np.logical_and.reduce
_SINGLE, _DOUBLE = np.dtype("float32"), np.dtype("float64")
# The dtypes in which sums of others are added up. Rows and columns of at most so many numbers lose nothing in their
# own: BLAS adds up the elements of a column, and those of a row in a product with a vector, one after the other.
_WIDE = {_SINGLE: _DOUBLE, np.dtype("complex64"): np.dtype("complex128")}
_SHORT_COLUMN, _SHORT_ROW = 128, 256
# Elements from which arrays are compared in parts, and complex ones added up by their parts. Elements of a part that is
# compared, which stays in the cache.
_LONG, _COMPARED = 256, 1 << 15
# Elements of the first of several arrays up to which they are joined as bytes or parts of a list, and arrays that make
# up for the test of their dimensions.
_SHORT_PART, _FEW_PARTS = 256, 4


def _full(size, value, dtype):
    kind = dtype._np
    if kind is None:
        kind = dtype.np
        if kind.names:
            return opaque_dtypes.full(size, value, dtype)
    out = np.empty(size, kind)
    out.fill(value)
    return out


def expand(input, size):
    if input.__class__ is not np.ndarray:
        input = np.asarray(input)
    if not input.ndim and (not size or min(size) >= 0):  # a number
        return np.ndarray(size, input.dtype, input, 0, (0,) * len(size))
    shape, strides = infer_expand_geometry(input.shape, input.strides, size)
    if not input.flags.forc:
        return strided_view(input, shape, strides)
    return np.ndarray(shape, input.dtype, input, 0, strides)


# Short vectors of ones in float32, by length: a dictionary answers in a quarter of the time of a cached call.
_ones: dict[int, np.ndarray] = {}


def _get_cached_ones(count, kind):
    found = ones(count, kind)
    if kind is _SINGLE and count <= 1024:
        _ones[count] = found
    return found


def sum(input, dim=None, keepdim=False, *, dtype=None):
    kind = input.dtype
    if dtype is not None or kind is not _SINGLE and kind is not _DOUBLE:
        if kind.kind == "c" and kind.itemsize > 4 and dtype is None and input.size >= _LONG:
            total = sum_complex(input, _axes_argument(input, dim), keepdim)
            if total is not None:
                return total
        return run_in_float32(_sum)(input, dim, keepdim, dtype=dtype)
    if input.size >= MAX_GEMV_SIZE:
        return sum_threaded(input, _axes_argument(input, dim), keepdim)
    # A product with ones takes a third of the time. That of one element keeps -0, whose sum is 0.
    if dim.__class__ is int and not keepdim and input.ndim == 2 and input.size > 1:
        if dim == 0 or dim == -2:
            count = len(input)
            if count > _SHORT_COLUMN and kind is _SINGLE:
                return ones(count, _DOUBLE).dot(input.astype(_DOUBLE)).astype(_SINGLE)
            return (_ones[count] if kind is _SINGLE and count in _ones else _get_cached_ones(count, kind)).dot(input)
        if dim == 1 or dim == -1:
            count = input.shape[1]
            if count > _SHORT_ROW:
                return np.vecdot(input, ones(count, kind))
            return input.dot(_ones[count] if kind is _SINGLE and count in _ones else _get_cached_ones(count, kind))
    count = input.size
    if dim is None and not keepdim and count > 1 and input.flags.c_contiguous:
        return input.ravel().dot(_ones[count] if kind is _SINGLE and count in _ones else _get_cached_ones(count, kind))
    if dim.__class__ is not int and dim is not None and len(dim) == 1:
        return sum(input, dim[0], keepdim)  # to the same bits
    last = input.ndim - 1
    if input.flags.c_contiguous and (dim == -1 or dim == last or _count_along(input, dim) <= _SHORT_COLUMN):
        return _add_reduce(input, _axes_argument(input, dim), None, None, keepdim)
    return _sum(input, dim, keepdim, None)


def _count_along(input, dim):
    """Return the number of elements of a sum."""
    shape = input.shape
    return (
        shape[dim]
        if dim.__class__ is int and shape
        else input.size
        if not dim or not shape
        else math.prod([shape[d] for d in dim])
    )


def _sum(input, dim, keepdim, dtype):
    if dtype is not None:
        input = to(input, dtype)
    kind = input.dtype
    # NumPy's default widens the requested dtype of integers.
    wide = _WIDE.get(kind) or (kind if kind.kind not in "iub" else np.int64 if dtype is None else dtype.np)
    total = _add_reduce(input, _axes_argument(input, dim), wide, None, keepdim)
    if kind in _WIDE:
        return total.astype(kind, order="C")
    return total.copy(order="C") if total.ndim > 1 and not total.flags.c_contiguous else total


def nansum(input, dim=None, keepdim=False, *, dtype=None):
    if input.dtype.kind in "cW":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    total = sum(input, dim, keepdim, dtype=dtype)
    # A sum without NaN is one of no NaN, unless it is cast first.
    if input.dtype.kind in "fV" and (total.dtype.kind not in "fV" or np.isnan(total).any()):
        return sum(np.where(np.isnan(input), np.zeros((), input.dtype), input), dim, keepdim, dtype=dtype)
    return total


def trace(input):
    check_trace(input.ndim)
    kind, diagonal = input.dtype, input.diagonal()
    if kind is _SINGLE:
        return np.array(diagonal.astype(_DOUBLE).dot(ones(len(diagonal), _DOUBLE)) + 0.0, kind)  # no -0
    if kind.kind in "iub":
        return _add_reduce(diagonal, dtype=np.int64)
    if kind.itemsize == 2:
        diagonal = diagonal.astype(_SINGLE)
    return _add_reduce(diagonal, dtype=_WIDE.get(diagonal.dtype)).astype(kind)


def _equal(input, other):
    size = input.size
    if size > _LONG and input.shape == other.shape and input.dtype.kind in "biufc":
        for place in (0, size // 2, size - 1):  # most unequal arrays differ here
            if input.item(place) != other.item(place):
                return np.False_
        if input.flags.c_contiguous and other.flags.c_contiguous:
            first, second = input.reshape(-1), other.reshape(-1)
            for start in range(0, size, _COMPARED):
                here = slice(start, start + _COMPARED)
                if not _all(np.equal(first[here], second[here])):
                    return np.False_
            return np.True_
    return _all(np.equal(input, other), None)


def mean(input, dim=None, keepdim=False, *, dtype=None):
    kind = input.dtype
    if dtype is not None or kind is not _SINGLE and kind is not _DOUBLE or not input.size:
        if kind.kind == "c" and kind.itemsize > 4 and dtype is None and input.size:
            total = sum(input, dim, keepdim)
            return total / (input.size // total.size)
        return _shared_mean(input, dim, keepdim, dtype=dtype)
    if input.size >= MAX_GEMV_SIZE:
        total = sum_threaded(input, _axes_argument(input, dim), keepdim, True)
        return (total / (input.size // total.size)).astype(kind, copy=False)
    total = sum(input, dim, keepdim)
    count = input.size // total.size
    return total / count if count > 1 else total + 0.0  # a sum of one -0 is 0


def _axes_argument(input, dim):
    """Return `dim` as an axis argument: None for all; 0-d input takes 0 and -1."""
    if dim is None:
        return None
    if not input.ndim:
        wrap_dims(dim, 0)
        return None
    return dim if dim.__class__ is int else tuple(dim) or None


def cat(tensors, dim=0):
    first = tensors[0]
    if first.ndim == 1 and (dim == 0 or dim == -1):
        if 0 < first.size <= _SHORT_PART and len(tensors) >= _FEW_PARTS and first.dtype.kind in "biufc":
            if [t.ndim for t in tensors].count(1) == len(tensors):
                try:  # as bytes, in a quarter of the time that NumPy takes to choose its loops
                    return np.frombuffer(b"".join(tensors), first.dtype).copy()
                except TypeError:
                    pass  # one is not row-major
        try:
            return np.concatenate(tensors)
        except (TypeError, ValueError):
            pass  # the other kernel's error
    elif dim.__class__ is int and first.flags.c_contiguous:
        try:
            out = np.concatenate(tensors, dim)
        except ValueError:
            pass  # an error, or empty vectors beside other arrays
        else:
            if out.flags.c_contiguous:
                return out
    # NumPy orders the result's memory like the operands', which takes another copy to undo.
    kept = [t for t in tensors if t.shape != (0,)]
    if not is_joined_row_major(kept, dim):
        return _shared_cat(tensors, dim)
    shape = list(kept[0].shape)
    shape[dim] = builtins.sum([t.shape[dim] for t in kept])
    return np.concatenate(kept, dim, out=np.empty(shape, kept[0].dtype))


def stack(tensors, dim=0):
    first = tensors[0]
    if dim.__class__ is int and not dim and first.size <= _SHORT_PART and first.dtype.kind in "biufc":
        try:
            out = np.array(tensors)  # which compares the shapes
        except ValueError:
            return _shared_stack(tensors, dim)  # the error of shapes that differ
        if out.ndim == first.ndim + 1:
            return out
    return _shared_stack(tensors, dim)


def is_joined_row_major(kept, dim) -> bool:
    """True if arrays can be joined in a row-major array, which PyTorch's result is unless all are channels last."""
    if not kept or dim.__class__ is not int:
        return False
    first = kept[0]
    if not -first.ndim <= dim < first.ndim:
        return False
    for each in kept:
        if each.ndim != first.ndim or each.dtype is not first.dtype:
            return False
    return first.flags.c_contiguous or not suggests_channels_last(first.shape, strides_of(first))


@mark_strides_applied
def matmul(input, other):
    # An array's own `dot` starts BLAS in a third of the time of np.matmul, and two thirds of that of np.dot.
    kind = input.dtype
    if input.ndim == 2 and other.ndim == 2 and kind is other.dtype and (kind is _SINGLE or kind is _DOUBLE):
        terms = len(other)
        if terms > 1:
            return input.dot(other) if input.size < SMALL > other.size else matmul_bias(input, other)
        return (
            np.multiply(input, other) if terms == 1 == input.shape[1] and len(input) > 1 else matmul_bias(input, other)
        )
    if input.ndim == 1 and input.shape == other.shape and kind is other.dtype and (kind is _SINGLE or kind is _DOUBLE):
        return dot_vectors(input, other)
    return np.asarray(_shared_matmul(input, other), order="C")
