"""Gradient buckets: assignment of parameters, and flat tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlite as torch

FIRST_BUCKET_BYTES = 1024 * 1024  # of the first bucket, which is small so that communication begins early
BUCKET_CAP_MB = 25


def compute_bucket_assignment(
    tensors: Sequence[Any], limits: Sequence[int], sparse: Sequence[bool] = (), indices: Sequence[int] = ()
) -> list[list[int]]:
    """Assign tensors (by `indices`, or by position) to buckets of one dtype and device, limited in bytes.

    The last limit holds for all further buckets. A sparse gradient has a separate bucket.
    """
    numbers = list(indices) or list(range(len(tensors)))
    done: list[tuple[int, list[int]]] = []
    open_ones: dict[Any, tuple[list[int], list[int]]] = {}
    closed: dict[Any, int] = {}
    for position, (number, tensor) in enumerate(zip(numbers, tensors, strict=True)):
        if sparse and sparse[position]:
            done.append((position, [number]))
            continue
        key = tensor.dtype, tensor.device
        members, size = open_ones.setdefault(key, ([], [0]))
        members.append(number)
        size[0] += tensor.numel() * tensor.element_size()
        count = closed.get(key, 0)
        if size[0] >= limits[min(count, len(limits) - 1)]:
            done.append((position, members))
            del open_ones[key]
            closed[key] = count + 1
    done += [(len(numbers), members) for members, _ in open_ones.values()]
    if indices:
        return [members for _, members in done]  # in the order in which they become full
    return sorted((members for _, members in done), key=min)


class Bucket:
    """Parameters whose gradients are views of one flat tensor."""

    def __init__(self, index: int, numbers: list[int], parameters: list[Any], sparse: bool, dtype: Any = None) -> None:
        self.index, self.numbers, self.parameters, self.sparse = index, numbers, parameters, sparse
        self.left: set[int] = set()
        self.sparse_gradient: Any = None
        self.buffer: Any = None
        self.views: list[Any] = []
        self.used: list[bool] = []
        first = parameters[0]
        if not sparse:
            sizes = [parameter.numel() for parameter in parameters]
            self.buffer = torch.zeros(sum(sizes), dtype=dtype or first.dtype, device=first.device)
            self.views = bucket_views(self.buffer, parameters)

    @property
    def nbytes(self) -> int:
        """Return the bytes of its gradients."""
        return sum(parameter.numel() * parameter.element_size() for parameter in self.parameters)

    def reset(self) -> None:
        """Reset: wait for all gradients again."""
        self.left = set(self.numbers)
        self.sparse_gradient = None


def bucket_views(buffer: Any, parameters: Sequence[Any]) -> list[Any]:
    """Return consecutive views of a flat tensor, with the parameters' strides if these have no gaps."""
    views, start = [], 0
    for parameter in parameters:
        shape, stride, count = parameter.shape, parameter.stride(), parameter.numel()
        if _is_dense(shape, stride):
            views.append(buffer.as_strided(shape, stride, buffer.storage_offset() + start))
        else:
            views.append(buffer[start : start + count].view(shape))
        start += count
    return views


def _is_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    expected = 1
    for step, size in sorted((step, size) for size, step in zip(shape, stride, strict=True) if size != 1):
        if step != expected:
            return False
        expected *= size
    return True
