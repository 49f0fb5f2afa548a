"""Constructors of fake values of graph nodes: tensors without elements, and sizes."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite._dispatch import call, table_of
from torchlite._dispatch.meta_backend import MetaArray


def new_fake_tensor(dtype: Any, sizes: Any, strides: Any, device: Any, requires_grad: bool = False) -> Any:
    """A fake tensor: a size, whose parts may be expressions, strides, a dtype and a device, but no elements."""
    from torchlite._subclasses.fake_tensor import FakeTensor

    where: Any = torch.device("meta")
    numbers = tuple(int(n) for n in sizes), tuple(int(n) for n in strides)
    plain = call.wrap_array(table_of(where), MetaArray(numbers[0], dtype, numbers[1]), dtype)
    return FakeTensor._of(plain, sizes, strides, device, requires_grad)


def fake_tensor_like(tensor: Any, sizes: Any = None, strides: Any = None) -> Any:
    """A fake tensor like a tensor."""
    return new_fake_tensor(
        tensor.dtype,
        tensor.shape if sizes is None else sizes,
        tensor.stride() if strides is None else strides,
        tensor.device,
        tensor.requires_grad,
    )
