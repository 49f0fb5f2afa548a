"""From a list of items to a batch."""

from __future__ import annotations

import collections.abc
import copy
from typing import Any

import numpy as np

import torchlite as torch

_ERROR = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
_CONVERT_KINDS = "biufc"


def default_convert(data: Any) -> Any:
    """NumPy arrays (also inside containers) as tensors; everything else as it is."""
    if isinstance(data, torch.Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return torch.as_tensor(data) if data.dtype.kind in _CONVERT_KINDS else data
    if isinstance(data, collections.abc.Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(item) for item in data])
    return data


def _like_mapping(example, values: dict):
    """The values in a mapping of the example's type, or in a dict where that type cannot be made so."""
    try:
        if isinstance(example, collections.abc.MutableMapping):
            out = copy.copy(example)
            out.update(values)
            return out
        return type(example)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _like_sequence(example, values: list):
    try:
        if isinstance(example, collections.abc.MutableSequence):
            out = copy.copy(example)
            for i, value in enumerate(values):
                out[i] = value
            return out
        return type(example)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _stack_arrays(batch):
    first = batch[0]
    if first.dtype.kind not in _CONVERT_KINDS:
        raise TypeError(_ERROR.format(first.dtype))
    if isinstance(first, np.generic) or first.shape == ():
        return torch.as_tensor(np.stack([np.asarray(item) for item in batch]))
    return torch.stack([torch.as_tensor(item) for item in batch], 0)


def default_collate(batch: Any) -> Any:
    """The items of a batch put together: tensors, arrays and numbers are stacked along a new first dimension; dicts,
    named tuples, tuples and lists are collated field by field; strings stay in a list.

    RuntimeError for items of unequal length, TypeError for what has no batch.

    >>> from torchlite.utils.data import default_collate
    >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(list(batch), 0)
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (np.str_, np.bytes_)):
        return _stack_arrays(batch)
    if isinstance(first, float):
        return torch.tensor(batch, dtype=torch.float64)
    if isinstance(first, (bool, int)):
        return torch.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return _like_mapping(first, {key: default_collate([item[key] for item in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(column) for column in zip(*batch, strict=True)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _like_sequence(first, columns)
    raise TypeError(_ERROR.format(type(first)))
