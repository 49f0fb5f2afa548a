"""Collation of a list of items into a batch."""

from __future__ import annotations

import collections.abc
import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import torchlite as torch

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
_CONVERT_KINDS = "biufc"
np_str_obj_array_pattern = re.compile("[SaUO]")  # packages match it against an array's `dtype.str`


def default_convert(data: Any) -> Any:
    """Converts the NumPy arrays in an item to tensors.

    It is the ``collate_fn`` of a `DataLoader` without batches.

    Args:
        data: The item. Mappings, tuples and sequences are converted field by field; a plain tuple becomes a list.
            Tensors, strings and all other values are unchanged, as are arrays of strings or objects.

    Returns:
        The converted item.

    Example:
        >>> import numpy as np
        >>> torch.utils.data.default_convert({"x": np.array([1, 2]), "name": "a"})
        {'x': tensor([1, 2]), 'name': 'a'}

    See also:
        `default_collate`.
    """
    if isinstance(data, torch.Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return torch.as_tensor(data) if data.dtype.kind in _CONVERT_KINDS else data
    if isinstance(data, collections.abc.Mapping):
        return _rebuild_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild_sequence(data, [default_convert(item) for item in data])
    return data


def _rebuild_mapping(example, values: dict):
    """Return the values in a mapping of the example's type, or in a dict if that type cannot be constructed."""
    try:
        if isinstance(example, collections.abc.MutableMapping):
            out = copy.copy(example)
            out.update(values)
            return out
        return type(example)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _rebuild_sequence(example, values: list):
    try:
        if isinstance(example, collections.abc.MutableSequence):
            out = copy.copy(example)
            for i, value in enumerate(values):
                out[i] = value
            return out
        return type(example)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Stack tensors of one shape."""
    return torch.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Stack arrays of one shape in a tensor; TypeError for text and objects."""
    first = batch[0]
    if first.dtype.kind in "SUO":
        raise TypeError(default_collate_err_msg_format.format(first.dtype))
    if first.shape == ():
        return collate_numpy_scalar_fn(batch)
    if all(type(a) is np.ndarray and a.dtype == first.dtype and a.shape == first.shape for a in batch) and all(
        a.flags.c_contiguous for a in batch
    ):
        return torch.as_tensor(np.stack(batch))
    return torch.stack([torch.as_tensor(item) for item in batch], 0)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """NumPy's numbers in a tensor."""
    return torch.as_tensor(np.stack([np.asarray(item) for item in batch]))


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Numbers in a float64 tensor."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Integers, or booleans, in a tensor."""
    return torch.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Return strings unchanged."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    torch.Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """Collate the items of a batch with the function that `collate_fn_map` has for their class (or a tuple of classes):
    `function(batch, collate_fn_map=...)`. Mappings and sequences of other classes are collated field by field.
    """
    first = batch[0]
    if collate_fn_map is not None:
        found = collate_fn_map.get(type(first))
        if found is None:
            found = next((function for kind, function in collate_fn_map.items() if isinstance(first, kind)), None)
        if found is not None:
            return found(batch, collate_fn_map=collate_fn_map)

    def inner(items):
        return collate(items, collate_fn_map=collate_fn_map)

    if isinstance(first, collections.abc.Mapping):
        return _rebuild_mapping(first, {key: inner([item[key] for item in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(inner(column) for column in zip(*batch, strict=True)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [inner(column) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _rebuild_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def default_collate(batch: Any) -> Any:
    """Makes a batch of a list of items.

    It is the ``collate_fn`` of a `DataLoader` with batches. Tensors and arrays are stacked along a new first dimension.
    Python floats become a float64 tensor and ints an int64 tensor. Strings and bytes stay in a list. Mappings, named
    tuples, tuples and lists are collated field by field; a plain tuple becomes a list.

    Args:
        batch: The items, all of one structure.

    Returns:
        The batch, with the structure of an item.

    Raises:
        RuntimeError: Sequences differ in length, or tensors in shape.
        TypeError: An item has another type.

    Example:
        >>> torch.utils.data.default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
        {'x': tensor([1, 2]), 'name': ['a', 'b']}
        >>> torch.utils.data.default_collate([(torch.zeros(2), 0.5), (torch.ones(2), 1.5)])
        [tensor([[0., 0.],
                [1., 1.]]), tensor([0.5000, 1.5000], dtype=torch.float64)]

    See also:
        `default_convert`.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
