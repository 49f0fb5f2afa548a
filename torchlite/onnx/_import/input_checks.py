"""What stands at a program's beginning: its inputs are asked for their types and shapes; and what constants are."""

from __future__ import annotations

from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor

from .._element_types import NARROW, NarrowTensor


def check_tensor_input(value: Any, name: str, type: str, sizes: list[int | None] | None) -> Any:
    """An input of a program. TypeError for another type of elements, ValueError for a shape that is none of its."""
    if type == "string":
        value = value if isinstance(value, np.ndarray) else np.asarray(value, object)
        shape = value.shape
    else:
        if isinstance(value, (np.ndarray, np.generic)):
            value = torch.as_tensor(value)
        if not isinstance(value, Tensor):
            raise TypeError(f"the input {name!r} is a tensor of {type}, but got {value.__class__.__name__}")
        held = NARROW[type][0] if type in NARROW else type
        if str(value.dtype).rpartition(".")[2] != held:
            raise TypeError(f"the input {name!r} is a tensor of {type}, but got one of {value.dtype}")
        shape = value.shape
    if sizes is not None and (
        len(shape) != len(sizes) or any(n is not None and n != m for n, m in zip(sizes, shape, strict=True))
    ):
        wanted = ", ".join("?" if n is None else str(n) for n in sizes)
        raise ValueError(f"the input {name!r} has the shape [{wanted}], but got {list(shape)}")
    return NarrowTensor(value, type) if type in NARROW else value


def int_constant(values: list, sizes: list[int], dtype: str) -> Tensor:
    """A small constant that stays with the host, where shapes are computed."""
    return torch.tensor(values, dtype=getattr(torch, dtype)).reshape(sizes)


def string_constant(values: list[str], sizes: list[int]) -> np.ndarray:
    """A constant of text."""
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(sizes)
