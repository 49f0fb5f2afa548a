"""Checks of a model's inputs, and its constants."""

from __future__ import annotations

from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor

from .._element_types import NARROW, NarrowTensor


def check_tensor_input(value: Any, name: str, type: str, sizes: list[int | None] | None) -> Any:
    """Check a model input. Raise TypeError for another element type, ValueError for a mismatched shape."""
    if type == "string":
        value = value if isinstance(value, np.ndarray) else np.asarray(value, object)
        shape = value.shape
    else:
        if isinstance(value, (np.ndarray, np.generic)):
            value = torch.as_tensor(value)
        if not isinstance(value, Tensor):
            raise TypeError(f"the input {name!r} is a tensor of {type}, but got {value.__class__.__name__}")
        stored_type = NARROW[type][0] if type in NARROW else type
        if str(value.dtype).rpartition(".")[2] != stored_type:
            raise TypeError(f"the input {name!r} is a tensor of {type}, but got one of {value.dtype}")
        shape = value.shape
    if sizes is not None and (
        len(shape) != len(sizes) or any(n is not None and n != m for n, m in zip(sizes, shape, strict=True))
    ):
        expected = ", ".join("?" if n is None else str(n) for n in sizes)
        raise ValueError(f"the input {name!r} has the shape [{expected}], but got {list(shape)}")
    return NarrowTensor(value, type) if type in NARROW else value


def make_int_tensor(values: list, sizes: list[int], dtype: str) -> Tensor:
    """Return a small integer constant on the host, used in shape computations."""
    return torch.tensor(values, dtype=getattr(torch, dtype)).reshape(sizes)


def make_string_array(values: list[str], sizes: list[int]) -> np.ndarray:
    """Return a string constant."""
    out = np.empty(len(values), object)
    out[:] = values
    return out.reshape(sizes)
