"""Differentiation through sparse tensors: two functions that are each other's derivative. Other gradient rules use
these and ops on dense tensors, except the few whose gradients are dense in PyTorch.
"""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .._dispatch.callbacks import CALLBACKS
from .._dispatch.dispatch_state import MODE
from ..autograd.function import Function
from .sparse_tensor import SparseData, wrap_sparse


class _GetValues(Function):
    """The values of a sparse tensor; their gradient has the same indices."""

    @staticmethod
    def forward(ctx, tensor):
        ctx.places = tensor._tl_array
        return tensor._tl_array.values.detach()

    @staticmethod
    def backward(ctx, g):
        places = ctx.places
        if places.layout is not torch.sparse_coo or places.coalesced:
            return with_values(places, g)
        # Values at equal indices are summed, so each gets the gradient at that index, counted once.
        index, where = CALLBACKS.sparse("unique_indices")(places)
        count = torch.bincount(where).to(g.dtype).reshape(-1, *[1] * (g.ndim - 1))
        new = g.new_zeros((index.shape[1], *g.shape[1:])).index_add(0, where, g) / count
        return with_values(SparseData(places.layout, places.shape, (index,), new.detach(), True), new)


class _FromValues(Function):
    """Build a sparse tensor from values; their gradient is the gradient at the specified places."""

    @staticmethod
    def forward(ctx, values, places):
        ctx.places = places
        return wrap_sparse(places.over(values.detach()))

    @staticmethod
    def backward(ctx, g):
        return CALLBACKS.sparse("values_at")(g, ctx.places), None


class _ToDense(Function):
    """Convert a sparse tensor to dense; the gradient is sparse at the specified places."""

    @staticmethod
    def forward(ctx, tensor):
        ctx.places = tensor._tl_array
        return CALLBACKS.sparse("densify")(tensor)

    @staticmethod
    def backward(ctx, g):
        return CALLBACKS.sparse("to_layout_of")(g, ctx.places)


_GetValues._backward_cls.__name__ = "ValuesBackward0"
_ToDense._backward_cls.__name__ = "ToDenseBackward0"
_NAMED_FUNCTIONS: dict[tuple[type, str], Any] = {}


def with_node_name(function: type, node: str) -> Any:
    """Return a subclass of a Function with this node name."""
    found: Any = _NAMED_FUNCTIONS.get((function, node))
    if found is None:
        found = _NAMED_FUNCTIONS[function, node] = type(function.__name__, (function,), {})
        found._backward_cls.__name__ = node
    return found


def values_of(tensor):
    """The values of a sparse tensor, with their history."""
    if tensor._tl_node is None or not MODE.grad:
        return tensor._tl_array.values.detach()
    return _GetValues.apply(tensor)


def with_values(places: SparseData, values, name: str = "SparseBackward0"):
    """Return a sparse tensor of these values, with their history; `name` is the node's name."""
    if values._tl_node is None or not MODE.grad:
        return wrap_sparse(places.over(values.detach()))
    return with_node_name(_FromValues, name).apply(values, places)
