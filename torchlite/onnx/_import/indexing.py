"""ONNX gather, scatter, TopK, Unique and related ops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor

from .._element_types import NarrowTensor
from .op_registry import Number, op, single_number
from .resource_limits import check_elements, check_work, dtype_width


def _wrap_negative(indices: Tensor, length: int) -> Tensor:
    """Return indices with negative ones wrapped."""
    indices = indices.to(torch.int64)
    return torch.where(indices < 0, indices + length, indices)


@op("Gather")
def gather(x: Any, indices: Tensor, *, axis: int = 0) -> Any:
    if isinstance(x, NarrowTensor):
        return NarrowTensor(gather(x.values, indices, axis=axis), x.type)
    check_elements(
        "Gather", *indices.shape, math.prod(x.shape) // max(x.shape[axis], 1),
        each=1 if isinstance(x, np.ndarray) else dtype_width(x.dtype),
    )  # fmt: skip
    if isinstance(x, np.ndarray):
        return np.asarray(np.take(x, indices.cpu().numpy(), axis), object)
    axis %= x.ndim
    flat = torch.index_select(x, axis, _wrap_negative(indices.reshape(-1), x.shape[axis]))
    return flat.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))


@op("GatherElements")
def gather_elements(x: Tensor, indices: Tensor, *, axis: int = 0) -> Tensor:
    return torch.gather(x, axis, _wrap_negative(indices, x.shape[axis]))


@op("GatherND")
def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    depth, b = indices.shape[-1], batch_dims
    lead = tuple(x.shape[:b])
    count = math.prod(lead)
    place = _to_flat_indices(indices.reshape(count, -1, depth), x.shape[b : b + depth])
    rest = tuple(x.shape[b + depth :])
    check_elements("GatherND", place.numel(), *rest, each=dtype_width(x.dtype))
    flat = x.reshape(count, math.prod(x.shape[b : b + depth]), math.prod(rest))
    taken = torch.gather(flat, 1, place.unsqueeze(2).expand(-1, -1, flat.shape[2]))
    return taken.reshape((*lead, *indices.shape[b:-1], *rest))


def _to_flat_indices(indices: Tensor, sizes: Any) -> Tensor:
    """Return index tuples as flat indices, too large if out of range."""
    place = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=indices.device)
    outside = torch.zeros_like(place, dtype=torch.bool)
    for i, n in enumerate(sizes):
        index = _wrap_negative(indices[..., i], n)
        place = place * n + index
        outside |= (index < 0) | (index >= n)
    return torch.where(outside, math.prod(sizes), place)


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@op("ScatterElements", "Scatter")
def scatter_elements(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    places = _wrap_negative(indices, x.shape[axis])
    if reduction == "none":
        return torch.scatter(x, axis, places, updates)
    return torch.scatter_reduce(x, axis, places, updates, _REDUCTIONS[reduction], include_self=True)


@op("ScatterND")
def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    depth = indices.shape[-1]
    place = _to_flat_indices(indices.reshape(-1, depth), x.shape[:depth])
    width = math.prod(x.shape[depth:])
    flat, new = x.reshape(-1, width), updates.reshape(-1, width)
    place = place.unsqueeze(1).expand(-1, width)
    if reduction == "none":
        out = torch.scatter(flat, 0, place, new)
    else:
        out = torch.scatter_reduce(flat, 0, place, new, _REDUCTIONS[reduction], include_self=True)
    return out.reshape(x.shape)


@op("TensorScatter")
def tensor_scatter(
    cache: Tensor, update: Tensor, places: Tensor | None = None, *, axis: int = -2, mode: str = "linear"
) -> Tensor:
    axis %= cache.ndim
    batch, length, new = cache.shape[0], cache.shape[axis], update.shape[axis]
    if places is not None and places.numel() != batch:
        raise ValueError(f"TensorScatter: {places.numel()} places for a batch of {batch}")
    starts = torch.zeros(batch, dtype=torch.int64, device=cache.device) if places is None else places.to(torch.int64)
    at = starts.reshape(-1, 1) + torch.arange(new, device=cache.device)
    at = at % length if mode == "circular" else at
    sizes = [batch if d == 0 else new if d == axis else 1 for d in range(cache.ndim)]
    return torch.scatter(cache, axis, at.reshape(sizes).expand(update.shape), update)


@op("OneHot")
def one_hot(indices: Tensor, depth: Number, values: Tensor, *, axis: int = -1) -> Tensor:
    n = int(single_number(depth))
    if values.numel() != 2 or n < 0:
        raise ValueError(f"OneHot: {values.numel()} values, not two, or a negative depth ({n})")
    check_elements("OneHot", indices.numel(), n, each=dtype_width(values.dtype))
    axis = axis + indices.ndim + 1 if axis < 0 else axis
    places = torch.remainder(indices.to(torch.int64), n) if n else indices.to(torch.int64)
    inside = (indices >= -n) & (indices < n)
    steps = torch.arange(n, device=indices.device).reshape([-1 if d == axis else 1 for d in range(indices.ndim + 1)])
    hot = (places.unsqueeze(axis) == steps) & inside.unsqueeze(axis)
    return torch.where(hot, values[1], values[0])


@op("NonZero")
def non_zero(x: Tensor) -> Tensor:
    check_elements("NonZero", int(torch.count_nonzero(x)), max(x.ndim, 1), each=2)
    return torch.nonzero(x).t() if x.ndim else torch.nonzero(x.reshape(1)).t()[:0]


@op("Compress")
def compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    places = torch.nonzero(condition).reshape(-1)
    return torch.index_select(x, axis, places[places < x.shape[axis]])


@op("TopK")
def top_k(x: Tensor, k: Number = None, *, axis: int = -1, largest: int = 1, sorted: int = 1, outputs: int = 2) -> Any:
    count = int(single_number(k))
    check_work("TopK", 16 * x.numel())
    if x.dtype in (torch.uint64, torch.uint32, torch.uint16):
        found = torch.sort(x.to(torch.int64), dim=axis, descending=bool(largest), stable=True)
        places = found.indices.narrow(axis, 0, count)
        values = torch.gather(x.to(torch.int64), axis, places).to(x.dtype)
    else:
        # Stable for equal elements.
        found = torch.sort(x, dim=axis, descending=bool(largest), stable=True)
        values, places = found.values.narrow(axis, 0, count), found.indices.narrow(axis, 0, count)
    return (values, places) if outputs > 1 else values


@op("ArgMax")
def arg_max(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg_extreme(torch.argmax, x, axis, keepdims, select_last_index)


@op("ArgMin")
def arg_min(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg_extreme(torch.argmin, x, axis, keepdims, select_last_index)


def _arg_extreme(function: Any, x: Tensor, axis: int, keepdims: int, last: int) -> Tensor:
    check_work("ArgMax", x.numel())
    if not last:
        return function(x, axis, keepdim=bool(keepdims))
    return x.shape[axis] - 1 - function(torch.flip(x, [axis]), axis, keepdim=bool(keepdims))


@op("Unique")
def unique(x: Tensor, *, axis: int | None = None, sorted: int = 1, outputs: int = 1) -> Any:
    check_work("Unique", 16 * check_elements("Unique", x.numel(), each=8))
    array = x.detach().cpu().numpy()
    found, first, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:  # in order of appearance
        order = np.argsort(first)
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        found, first, counts = np.take(found, order, axis or 0), first[order], counts[order]
        inverse = back[inverse]
    rest = (torch.from_numpy(np.asarray(part, np.int64)).to(x.device) for part in (first, inverse, counts))
    results = (torch.from_numpy(np.ascontiguousarray(found)).to(x.device), *rest)
    return results if outputs > 1 else results[0]
