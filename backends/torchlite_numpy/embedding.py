"""Embedding: rows of a table by index, and the gradient of the table."""

from __future__ import annotations

import numpy as np

from .picking import rows_at
from .rows import F32, is_half

U64 = np.dtype("u8")


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if weight.ndim != 2:
        raise RuntimeError("embedding: weight must be a matrix")
    if indices.dtype.kind != "i" or indices.dtype.itemsize < 4:
        raise RuntimeError("embedding: indices must be int64 or int32")
    if indices.size:
        top = indices.max() if indices.dtype.itemsize < 8 else indices.view(U64).max()
        if top >= weight.shape[0] or (indices.dtype.itemsize < 8 and indices.min() < 0):
            raise IndexError("index out of range in self")
    return rows_at(weight, indices)


def _embedding_backward(grad, indices, rows, padding_idx, scale_grad_by_freq):
    flat = indices.reshape(-1)
    grad = grad.reshape(flat.size, grad.shape[-1])
    out = np.zeros((rows, grad.shape[1]), grad.dtype)
    if flat.size == 0:
        return out
    order = flat.argsort(kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    used = ordered[starts]
    if starts.size == flat.size:
        out[flat] = grad
    elif is_half(grad.dtype):
        out[used] = np.add.reduceat(grad[order].astype(F32), starts, 0).astype(grad.dtype)
    else:
        out[used] = np.add.reduceat(grad[order], starts, 0)
    if scale_grad_by_freq:
        out[used] /= np.diff(starts, append=flat.size)[:, None].astype(grad.dtype)
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out
