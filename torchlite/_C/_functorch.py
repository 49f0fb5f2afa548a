"""Queries on `vmap`'s tensors, under the names of PyTorch's compiled module."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ..func._batched_tensor import BatchedTensor
from ..func._vmap import _add_batch_dim, _maybe_remove_batch_dim

__all__ = ["_add_batch_dim", "_remove_batch_dim", "get_unwrapped", "is_batchedtensor"]


def _remove_batch_dim(tensor: Tensor, level: Any, batch_size: int, out_dim: int) -> Tensor:
    """The batch of all examples, along `out_dim`, of a tensor inside of `vmap`."""
    return _maybe_remove_batch_dim("_remove_batch_dim", tensor, level, batch_size, out_dim)


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor is one example of a batch, inside of `vmap`."""
    return isinstance(tensor, BatchedTensor)


def get_unwrapped(tensor: Any) -> Tensor:
    """The batch that a tensor inside of `vmap` is one example of."""
    return tensor._value
