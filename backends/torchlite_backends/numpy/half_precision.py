"""Half-precision ops computed in float32 and rounded once at the end."""

from __future__ import annotations

import functools

import numpy as np

from torchlite._dispatch.numpy_errors import run_quietly

from .half_casts import cast_half, native_halves
from .half_tables import look_up

_SINGLE = np.dtype("f4")
_FLOAT_DTYPES = (_SINGLE, np.dtype("f8"))
_ARRAYS = (np.ndarray, np.generic)


def find_common_half_dtype(values):
    """Return the common half-precision dtype of all floating arrays; None if they differ or have none."""
    found = None
    for value in values:
        if isinstance(value, _ARRAYS):
            dtype = value.dtype
            if dtype.kind not in "fV" or value.itemsize == 1:
                if dtype.kind in "cW":
                    return None
            elif value.itemsize != 2 or found is not None and dtype != found:
                return None
            else:
                found = dtype
    return found


def to_float32(value, half):
    """Convert an array of the half-precision dtype to float32; return anything else unchanged."""
    if not isinstance(value, _ARRAYS) or value.dtype != half:
        return value
    return cast_half(value, _SINGLE) if value.__class__ is np.ndarray else value.astype(_SINGLE)


def to_half(value, half):
    """Convert float32 results, one or several, back to half precision."""
    if value.__class__ is tuple or value.__class__ is list:
        return tuple(to_half(one, half) for one in value)
    if value.__class__ is np.ndarray:
        return cast_half(value, half) if value.dtype == _SINGLE else value
    if value.__class__ is np.float32:
        return value.astype(half)
    return value


_WITH_NUMBER = frozenset(("add", "sub", "mul", "div"))
_LARGE = 4096  # elements from which an engine's kernel takes less time than its call


@functools.lru_cache(1024)
def run_in_float32(kernel):
    """Return a kernel that computes in float32 if its arrays have half precision.

    With a requested dtype the input is rounded to it first, as in PyTorch. The kernel's attribute
    `write(target, number)` computes in the place of its first operand.
    """
    name = getattr(kernel, "__name__", "")
    takes_number = name in _WITH_NUMBER

    def with_number(args, out=None):
        """The result for an array of half precision and a number, in `out`; None if `widened` is to serve."""
        if native_halves.number is not None:
            return native_halves.number(name, *args, out)
        return look_up(name, widened, args, out)

    def call(*args, **kwargs):
        if not kwargs and _is_half_and_number(args):
            out = with_number(args)
            if out is not None:
                return out
        return widened(*args, **kwargs)

    def write(target, number):
        if (
            not (takes_number and _is_half_and_number((target, number)))
            or with_number((target, number), target) is None
        ):
            np.copyto(target, widened(target, number), casting="unsafe")

    def widened(*args, **kwargs):
        first = args[0]
        if first.__class__ is np.ndarray and first.dtype in _FLOAT_DTYPES and kwargs.get("dtype") is None:
            return kernel(*args, **kwargs)
        half = find_common_half_dtype(args)
        if kwargs.get("dtype") is not None:
            to = kwargs["dtype"].np
            if to.itemsize != 2 or to.kind not in "fV" or args[0].dtype.kind in "cW":
                return kernel(*args, **kwargs)
            half, args, kwargs = to, (args[0].astype(to), *args[1:]), {**kwargs, "dtype": None}
        if half is None:
            return kernel(*args, **kwargs)
        return to_half(kernel(*[to_float32(a, half) for a in args], **kwargs), half)

    call = functools.wraps(kernel)(call if takes_number else widened)
    call.write = write
    return call


def _is_half_and_number(args):
    """Whether these are a large array of half precision and a Python number, in either order."""
    if len(args) != 2:
        return False
    array, number = args if args[0].__class__ is np.ndarray else args[::-1]
    return (
        array.__class__ is np.ndarray
        and array.itemsize == 2
        and array.size >= _LARGE
        and (number.__class__ is float or number.__class__ is int)
    )


def run_backward_in_float32(backward, table, g, node, get, get_out, wide=to_float32, narrowed=to_half):
    """Run a node's backward in float32 if the gradient and all saved tensors have half precision.

    wide, narrowed: the casts; a recorder of kernels replaces them.
    """
    half = find_common_half_dtype([g, *(getattr(value, "_tl_array", None) for value in node._saved or ())])
    if half is None:
        return backward(table, g, node, get, get_out)
    grads = backward(table, wide(g, half), node, lambda *a: wide(get(*a), half), lambda *a: wide(get_out(*a), half))
    return run_quietly(narrowed, grads, half)
