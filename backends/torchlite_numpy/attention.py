"""Scaled dot product attention and its backward pass, in tiles that stay in cache."""

from __future__ import annotations

import functools
import math

import numpy as np

from . import blocks
from .blas import single_threaded
from .blocks import buffer, share
from .products import steady_matmul
from .rows import F32, is_half, row_sums


@functools.lru_cache(16)
def _causal(first, rows, columns, dtype):
    """0 where a query sees a key and minus infinity where it does not, for the queries from `first`."""
    mask = np.zeros((rows, columns), dtype)
    mask[np.arange(columns) > np.arange(first, first + rows)[:, None]] = -np.inf
    mask.flags.writeable = False
    return mask


def _heads(x, lead):
    """(heads, length, features)."""
    if x.shape[:-2] != lead:
        x = np.broadcast_to(x, lead + x.shape[-2:])
    return x.reshape(math.prod(lead), *x.shape[-2:])


def _tiles(heads, rows, columns):
    """Lists of (first head, last head, first row, last row), pieces whose score matrices fit in cache: those of the
    same heads are in one list.
    """
    if rows * columns <= blocks.BLOCK:
        step = max(1, blocks.BLOCK // max(rows * columns, 1))
        return [[(h, min(h + step, heads), 0, rows)] for h in range(0, heads, step)]
    step = max(1, blocks.BLOCK // columns)
    return [[(h, h + 1, r, min(r + step, rows)) for r in range(0, rows, step)] for h in range(heads)]


class _Attention:
    """Queries, keys and values as (heads, length, features), with their mask, and the tiles to work in."""

    def __init__(self, query, key, value, attn_mask, is_causal, scale):
        lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        if attn_mask is not None and attn_mask.ndim > 2:
            lead = np.broadcast_shapes(lead, attn_mask.shape[:-2])
        self.lead, self.scale, self.is_causal = lead, query.dtype.type(scale), is_causal
        self.query, self.key, self.value = (_heads(a, lead) for a in (query, key, value))
        self.dtype = query.dtype
        self.rows, self.columns = query.shape[-2], key.shape[-2]
        self.mask = (
            None if attn_mask is None else _heads(np.broadcast_to(attn_mask, lead + (self.rows, self.columns)), lead)
        )
        if self.mask is not None and self.mask.dtype.kind != "b" and self.mask.dtype != self.dtype:
            self.mask = self.mask.astype(self.dtype)
        self.tiles = _tiles(self.query.shape[0], self.rows, self.columns)

    def scores(self, tile, slot):
        """Scaled and masked scores of a tile, in scratch memory; causal tiles stop at the last key
        that a query sees.
        """
        h0, h1, r0, r1 = tile
        seen = min(self.columns, r1) if self.is_causal else self.columns
        scores = buffer(slot, (h1 - h0, r1 - r0, seen), self.dtype)
        steady_matmul(self.query[h0:h1, r0:r1] * self.scale, self.key[h0:h1, :seen].swapaxes(-1, -2), out=scores)
        if self.is_causal:
            scores += _causal(r0, r1 - r0, seen, self.dtype)
        if self.mask is not None:
            part = self.mask[h0:h1, r0:r1]
            if part.dtype.kind == "b":
                np.copyto(scores, -np.inf, where=~part)
            else:
                scores += part
        return scores, seen

    def each(self, work):
        """`work(tile)` for all tiles: those of the same heads, which add to the same gradients, one after the other."""
        with single_threaded:
            share(lambda *tiles: [work(tile) for tile in tiles], self.tiles)


def _sdpa(query, key, value, attn_mask, is_causal, scale):
    if is_half(query.dtype):
        out, lse = _sdpa(*(a.astype(F32) for a in (query, key, value)), attn_mask, is_causal, scale)
        return out.astype(query.dtype), lse
    a = _Attention(query, key, value, attn_mask, is_causal, scale)
    out = np.empty((a.query.shape[0], a.rows, a.value.shape[2]), a.dtype)
    lse = np.empty((a.query.shape[0], a.rows, 1), a.dtype)
    if not a.columns or not out.size:
        return np.zeros(a.lead + out.shape[1:], a.dtype), np.zeros(a.lead + lse.shape[1:], a.dtype)

    def work(tile):
        h0, h1, r0, r1 = tile
        weights, seen = a.scores(tile, 0)
        largest = np.maximum.reduce(weights, -1, keepdims=True)
        if a.mask is not None:
            largest[largest == -np.inf] = 0
        np.subtract(weights, largest, out=weights)
        np.exp(weights, out=weights)
        total = row_sums(weights)
        if a.mask is not None:
            total[total == 0] = 1
        result = out[h0:h1, r0:r1]
        steady_matmul(weights, a.value[h0:h1, :seen], out=result)
        np.divide(result, total, out=result)
        np.log(total, out=total)
        np.add(total, largest, out=lse[h0:h1, r0:r1])

    a.each(work)
    return out.reshape(a.lead + out.shape[1:]), lse.reshape(a.lead + lse.shape[1:])


def _sdpa_backward(grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs):
    if is_half(query.dtype):
        grads = _sdpa_backward(
            *(x.astype(F32) for x in (grad, query, key, value)),
            attn_mask,
            out.astype(F32),
            lse,
            is_causal,
            scale,
            needs,
        )
        return tuple(None if g is None else g.astype(query.dtype) for g in grads)
    a = _Attention(query, key, value, attn_mask, is_causal, scale)
    grad, lse = _heads(grad, a.lead), _heads(lse, a.lead)
    dot = np.vecdot(grad, _heads(out, a.lead))[..., None]
    grad_query, grad_key, grad_value = (np.zeros(x.shape, a.dtype) for x in (a.query, a.key, a.value))
    if not a.columns or not grad.size:
        a.tiles = []

    def work(tile):
        h0, h1, r0, r1 = tile
        weights, seen = a.scores(tile, 0)
        np.subtract(weights, lse[h0:h1, r0:r1], out=weights)
        np.exp(weights, out=weights)
        g = grad[h0:h1, r0:r1]
        if needs[2]:
            grad_value[h0:h1, :seen] += steady_matmul(weights.swapaxes(-1, -2), g)
        if not (needs[0] or needs[1]):
            return
        slopes = buffer(1, weights.shape, a.dtype)
        steady_matmul(g, a.value[h0:h1, :seen].swapaxes(-1, -2), out=slopes)
        np.subtract(slopes, dot[h0:h1, r0:r1], out=slopes)
        np.multiply(slopes, weights, out=slopes)
        np.multiply(slopes, a.scale, out=slopes)
        if needs[0]:
            steady_matmul(slopes, a.key[h0:h1, :seen], out=grad_query[h0:h1, r0:r1])
        if needs[1]:
            grad_key[h0:h1, :seen] += steady_matmul(slopes.swapaxes(-1, -2), a.query[h0:h1, r0:r1])

    a.each(work)
    shaped = (
        (g.reshape(a.lead + g.shape[1:]) if need else None)
        for g, need in zip((grad_query, grad_key, grad_value), needs, strict=True)
    )
    return tuple(shaped)
