"""Converts nested Python data that NumPy does not accept directly, with PyTorch's rules and errors.

The first items determine the sizes; then a dtype is inferred from all items; then each item is converted.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from itertools import chain
from typing import Any

import numpy as np

from .._dispatch import call
from .._dispatch.dispatch_state import GLOBALS
from .._dispatch.type_promotion import cast_scalar, scalar_dtype
from .._types import dtypes
from .._types.dtypes import from_np, get_default_dtype
from .._types.package_name import is_torchlite_object

_ITEMS = (list, tuple, range, np.ndarray)
_NUMBERS = (bool, int, float, complex, np.generic)
_LISTS, _PLAIN_NUMBERS = {list, tuple}, {bool, int, float, complex}
_NUMPY_NUMBERS = {np.dtype(code).type for code in "?bhilqBHILQefdFD"}
_BOOL, _LONG, _DOUBLE, _COMPLEX = map(np.dtype, ("?", "i8", "f8", "c16"))
_TOO_LARGE = 1 << 64
_HEAP_TYPE = 1 << 9  # of Python's type flags: a class that was not written in C
_MAX_DEPTH = 128  # lists in lists: PyTorch's limit
_has_warned = False


def type_name(value: Any) -> str:
    """The C name of a value's type: with its module if it is implemented in C."""
    cls = type(value)
    module = getattr(cls, "__module__", "builtins")
    if is_torchlite_object(cls):
        return f"torch.{cls.__name__}"
    return cls.__name__ if cls.__flags__ & _HEAP_TYPE or module == "builtins" else f"{module}.{cls.__name__}"


def is_sequence(value: Any) -> bool:
    """True if a value supports C's sequence protocol (and is not a Tensor)."""
    return isinstance(value, _ITEMS) or (
        not isinstance(value, (call.Tensor, dict, *_NUMBERS))
        and not isinstance(value, type)
        and hasattr(type(value), "__getitem__")
        and hasattr(type(value), "__len__")
        and not hasattr(type(value), "keys")
    )


def compute_sizes(data: Any) -> list[int]:
    """The sizes of the first items. ValueError for items that cannot be had and for too many dimensions."""
    sizes: list[int] = []
    while is_sequence(data):
        if isinstance(data, str):
            raise ValueError("too many dimensions 'str'")
        sizes.append(len(data))
        if len(sizes) > _MAX_DEPTH:
            raise ValueError(f"too many dimensions '{type_name(data)}'")
        if not sizes[-1]:
            break
        try:
            data = data[0]
        except Exception as error:  # the item's own __getitem__ may raise anything
            raise ValueError(f"could not determine the shape of object type '{type_name(data)}'") from error
    if isinstance(data, str):  # also NumPy's
        raise ValueError("too many dimensions 'str'")
    return sizes


def infer_dtype(data: Any, outer: tuple[int, ...] = ()) -> dtypes.dtype:
    """The dtype to which all items promote. `outer`: the ids of the sequences around."""
    if isinstance(data, call.Tensor):
        return data.dtype
    if isinstance(data, (np.ndarray, np.generic)):
        return from_np(data.dtype)
    if isinstance(data, _NUMBERS):
        return scalar_dtype(data)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type_name(data)}")
    if id(data) in outer:
        raise TypeError("new(): self-referential lists are incompatible")
    found = [infer_dtype(item, (*outer, id(data))) for item in data]
    return functools.reduce(dtypes.promote_types, found) if found else get_default_dtype()


def number_of_tensor(tensor: Any, d: dtypes.dtype) -> Any:
    """The number for a tensor among the items of a list. TypeError unless it is one integer where the dtype is
    integral or bool, ValueError for several elements, RuntimeError for an imaginary part that the dtype does not have.
    """
    if d.category in (dtypes.BOOL, dtypes.INT):
        return operator.index(tensor)
    if tensor.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if tensor.dtype.is_floating_point:
        return tensor._host_array(force=True).reshape(())[()]
    return float(tensor) if tensor.dtype.is_complex and not d.is_complex else tensor.item()


def _to_python_number(value: Any, d: dtypes.dtype) -> Any:
    if isinstance(value, call.Tensor):
        return number_of_tensor(value, d)
    if isinstance(value, _NUMBERS):
        return value
    if d.category in (dtypes.BOOL, dtypes.INT):
        return operator.index(value)
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return float(value)


def _store_items(array: np.ndarray, data: Any, d: dtypes.dtype, dim: int) -> None:
    if not is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != array.shape[0]:
        raise ValueError(f"expected sequence of length {array.shape[0]} at dim {dim} (got {len(data)})")
    for place, item in enumerate(data):
        if array.ndim == 1:
            array[place] = _to_python_number(item, d)
        else:
            _store_items(array[place], item, d, dim + 1)


def to_array(data: Any, d: dtypes.dtype | None) -> np.ndarray:
    """Convert the data to an array of the dtype, or of the inferred one. RuntimeError if none can be inferred,
    TypeError for items that are not numbers, ValueError for ragged sequences and for tensors of several elements.
    """
    sizes = compute_sizes(data)
    d = infer_dtype(data) if d is None else d
    array = np.empty(sizes, d.np)
    if not sizes:
        array[()] = _to_python_number(data, d)
    elif array.size:
        _store_items(array, data, d, 0)
    return array


def flatten(data: Any) -> tuple[list | tuple, list[int], set[type]] | None:
    """The items of nested lists of equal lengths, the sizes, and the items' classes. None for other data."""
    first, depth = data, 0
    while first.__class__ in _LISTS and first:  # a list in itself has no end
        first, depth = first[0], depth + 1
        if depth > _MAX_DEPTH:
            return None
    sizes, items = [len(data)], data
    kinds = set(map(type, items))
    while kinds <= _LISTS and items:
        lengths = set(map(len, items))
        if len(lengths) > 1 or len(sizes) == _MAX_DEPTH:
            return None
        sizes += lengths
        items = list(chain.from_iterable(items))
        kinds = set(map(type, items))
    return None if kinds & _LISTS else (items, sizes, kinds)


def from_plain_items(data: list | tuple, d: dtypes.dtype | None) -> tuple[np.ndarray, dtypes.dtype] | None:
    """Python's numbers, NumPy's of one class, or tensors of one element and dtype, in nested lists: an array that holds
    them until it is cast, and its dtype. None for other data, and for items that raise.
    """
    found = flatten(data)
    if found is None or not found[2]:
        return None
    items, sizes, kinds = found
    if kinds <= _PLAIN_NUMBERS:
        return _from_plain_numbers(items, sizes, kinds, d)
    if kinds == {call.Tensor}:
        return _from_plain_tensors(items, sizes, d)
    return _from_numpy_numbers(items, sizes, kinds.pop(), d) if len(kinds) == 1 and kinds <= _NUMPY_NUMBERS else None


def _from_numpy_numbers(items, sizes, kind, d):
    own = from_np(np.dtype(kind))
    if d is not None and d is not own and not d.category == own.category == dtypes.FLOAT:
        return None  # the other function has the errors of numbers that the dtype does not hold
    return np.array(items, own.np).reshape(sizes), d or own


def _from_plain_tensors(items, sizes, d):
    arrays, kinds = [item._tl_array for item in items], {item.dtype for item in items}
    if GLOBALS["INTERCEPTORS"] or len(kinds) > 1 or any(a.__class__ is not np.ndarray or a.size != 1 for a in arrays):
        return None
    kind = kinds.pop()
    if d is not None and kind.category > max(d.category, dtypes.INT):
        return None  # no number of the dtype
    return np.concatenate(arrays, None).reshape(sizes), d or kind


def _from_plain_numbers(items, sizes, kinds, d):
    if d is None:
        d = dtypes.int64 if int in kinds else dtypes.bool_
        if float in kinds or complex in kinds:
            d = get_default_dtype().to_complex() if complex in kinds else get_default_dtype()
    if complex in kinds and d.category != dtypes.COMPLEX:
        return None
    if d is dtypes.uint64 and float in kinds:
        return None
    if d.category == dtypes.INT and float in kinds and int in kinds:  # a float would round the others
        low = -math.inf if d.is_signed else 0
        items = [int(x) if x.__class__ is int or math.isfinite(x) and x >= low else _TOO_LARGE for x in items]
        kinds = {int}
    held = d.np if d.np.char in "fdFD" else _DOUBLE if float in kinds else _LONG if int in kinds else _BOOL
    if d is dtypes.uint64 and int in kinds:
        held = d.np
    try:
        with np.errstate(over="ignore"):
            array = np.array(items, held if complex not in kinds or held.kind == "c" else _COMPLEX)
    except OverflowError:
        return None
    return array.reshape(sizes), d


def numbers_to_array(values: list, d: dtypes.dtype) -> np.ndarray:
    """Convert the results of a Python function to an array of the dtype. TypeError for results that are not numbers,
    RuntimeError for values that the dtype cannot represent.
    """
    array = np.empty(len(values), d.np)
    for place, value in enumerate(values):
        number = _to_python_number(value, d)
        if isinstance(number, complex) and d.category == dtypes.FLOAT:
            raise TypeError("must be real number, not complex")
        array[place] = cast_scalar(number, d, d.name, infinite=True)
    return array


def warn_list_of_arrays(data: Any) -> None:
    """PyTorch's warning of a list of arrays, once in a process."""
    global _has_warned
    if not _has_warned and isinstance(data, list) and data and isinstance(data[0], np.ndarray):
        _has_warned = True
        warnings.warn(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to "
            "a single numpy.ndarray with numpy.array() before converting to a tensor.",
            UserWarning,
            stacklevel=5,
        )
