"""Lookup ops with a sparse gradient, such as `embedding(sparse=True)` and `gather(sparse_grad=True)`."""

from __future__ import annotations

from typing import Any

import torchlite as torch

from .._dispatch import call
from .._dispatch.dispatch_state import GLOBALS, MODE
from ..autograd.function import Function
from .differentiable_values import with_values
from .layout_conversion import unflatten_indices
from .sparse_tensor import SparseData


class _Embedding(Function):
    """Embedding lookup; the gradient has one entry for each row looked up."""

    @staticmethod
    def forward(ctx, weight, indices, padding_idx, scale_grad_by_freq):
        ctx.save_for_backward(indices)
        ctx.padding_idx, ctx.scale, ctx.shape = padding_idx, scale_grad_by_freq, tuple(weight.shape)
        return torch.embedding(weight, indices, padding_idx)

    @staticmethod
    def backward(ctx, g):
        if ctx.scale:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        (indices,) = ctx.saved_tensors
        rows = indices.reshape(-1).to(torch.int64, copy=True)
        values = g.reshape(rows.shape[0], *ctx.shape[1:])
        if ctx.padding_idx >= 0:
            kept = (rows != ctx.padding_idx).nonzero().reshape(-1)
            rows, values = rows.index_select(0, kept), values.index_select(0, kept)
        places = SparseData(torch.sparse_coo, ctx.shape, (rows.unsqueeze(0),), values)
        return with_values(places, values), None, None, None


class _Gather(Function):
    """Elements along a dimension; the gradient has an entry for each."""

    @staticmethod
    def forward(ctx, input, dim, index):
        ctx.save_for_backward(index)
        ctx.dim, ctx.shape = dim, tuple(input.shape)
        return torch.gather(input, dim, index)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        count = index.numel()
        values = g.reshape(count)
        # a 0-d index is a vector with one element
        place = unflatten_indices(torch.arange(count, device=g.device), index.shape or (1,))
        if ctx.shape:
            place[ctx.dim] = index.reshape(count)
        data = SparseData(torch.sparse_coo, ctx.shape, (place[: len(ctx.shape)],), values, count < 2)
        return with_values(data, values), None, None


_Embedding._backward_cls.__name__ = "EmbeddingBackward0"
_Gather._backward_cls.__name__ = "GatherBackward0"
_FUNCTIONS: dict[str, Any] = {"embedding": _Embedding, "gather": _Gather}


def lookup_with_sparse_grad(op, values: list):
    """Run a lookup op whose gradient is sparse. `values` are those of its parameters; the last is the sparse flag."""
    *values, _ = values
    if values[0]._tl_node is None or not MODE.grad:
        return call.execute(op, [*values, False])
    GLOBALS["SPARSE"] = True  # backward will create one
    return _FUNCTIONS[op.name].apply(*values)
