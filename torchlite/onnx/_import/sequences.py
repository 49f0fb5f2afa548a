"""ONNX sequences (lists) and optionals (None or a value)."""

from __future__ import annotations

from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor

from .op_registry import Ints, Number, ints, op, single_number, to_common_device
from .resource_limits import TrackedSequence, check_elements, check_objects, check_work, count_elements


@op("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> list:
    return []


@op("SequenceConstruct")
def sequence_construct(*values: Any) -> list:
    return [check_sequence_element("SequenceConstruct", value) for value in values]


def check_sequence_element(what: str, value: Any) -> Any:
    """Return a value as a sequence element. Raise ValueError for a nested sequence."""
    if isinstance(value, list):
        raise ValueError(f"{what}: an element of a sequence is a tensor, and no sequence")
    return value


@op("SequenceInsert")
def sequence_insert(values: list, value: Any, position: Number = None) -> list:
    check_work("SequenceInsert", len(values))
    out = TrackedSequence(values)
    at = len(out) if position is None else int(single_number(position))
    out.insert(at + len(out) if at < 0 else at, check_sequence_element("SequenceInsert", value))
    return out


@op("SequenceErase")
def sequence_erase(values: list, position: Number = None) -> list:
    check_work("SequenceErase", len(values))
    out = TrackedSequence(values)
    del out[-1 if position is None else int(single_number(position))]
    return out


@op("SequenceAt")
def sequence_at(values: list, position: Number) -> Any:
    return values[int(single_number(position))]


@op("SequenceLength")
def sequence_length(values: list) -> Tensor:
    return torch.tensor(len(values), dtype=torch.int64)


@op("ConcatFromSequence")
def concat_from_sequence(values: list, *, axis: int, new_axis: int = 0) -> Any:
    check_elements("ConcatFromSequence", count_elements(values))
    if values and isinstance(values[0], np.ndarray):
        return np.stack(values, axis) if new_axis else np.concatenate(values, axis)
    parts = list(to_common_device(*values))
    return torch.stack(parts, axis) if new_axis else torch.cat(parts, axis)


@op("SplitToSequence")
def split_to_sequence(x: Any, split: Tensor | None = None, *, axis: int = 0, keepdims: int = 1) -> list:
    length = x.shape[axis]
    if split is None:
        check_objects("SplitToSequence", length)
        sizes = [1] * length
    elif split.ndim == 0:
        part = int(split.item())
        if part < 1:
            raise ValueError(f"SplitToSequence: parts of {part} elements")
        check_objects("SplitToSequence", -(-length // part))
        sizes = [min(part, length - i) for i in range(0, length, part)]
    else:
        check_objects("SplitToSequence", split.numel())
        sizes = ints(split) or []
    parts: Any = np.split(x, np.cumsum(sizes)[:-1], axis) if isinstance(x, np.ndarray) else torch.split(x, sizes, axis)
    squeezed = [part.squeeze(axis) for part in parts] if split is None and not keepdims else parts
    return TrackedSequence(squeezed, objects=len(sizes))


@op("Optional")
def optional(value: Any = None, *, type: Any = None) -> Any:
    return value


@op("OptionalHasElement")
def optional_has_element(value: Any = None) -> Tensor:
    return torch.tensor(value is not None)


@op("OptionalGetElement")
def optional_get_element(value: Any) -> Any:
    if value is None:
        raise ValueError("OptionalGetElement: there is no element")
    return value


def sparse_to_dense(values: Tensor, indices: Tensor, sizes: Ints) -> Tensor:
    """Return a sparse tensor of a file as dense."""
    shape = ints(sizes) or []
    check_elements("a sparse tensor", *shape)
    place = indices
    if indices.ndim == 2:
        place = torch.zeros(indices.shape[0], dtype=torch.int64, device=indices.device)
        for d, n in enumerate(shape):
            place = place * n + indices[:, d]
    flat = torch.zeros(int(np.prod(shape, dtype=np.int64)), dtype=values.dtype, device=values.device)
    return torch.scatter(flat, 0, place, values).reshape(shape)
