"""Embeddings whose gradients are sparse: of the rows that were looked up alone."""

from __future__ import annotations

import torchlite as torch

from .._dispatch.runtime import GLOBALS, MODE
from ..autograd.function import Function
from .data import SparseData
from .history import with_values


class _Embedding(Function):
    """Rows of a table; the gradient has those rows, one entry for each time that one was looked up."""

    @staticmethod
    def forward(ctx, weight, indices, padding_idx, scale_grad_by_freq):
        GLOBALS["SPARSE"] = True  # backward will make one
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


_Embedding._backward_cls.__name__ = "EmbeddingBackward0"


def embedding(weight, indices, padding_idx: int, scale_grad_by_freq: bool):
    """The rows of `weight` that `indices` name, whose gradient is sparse where one is wanted."""
    if weight._node is None or not MODE.grad:
        return torch.embedding(weight, indices, padding_idx)
    return _Embedding.apply(weight, indices, padding_idx, scale_grad_by_freq)
