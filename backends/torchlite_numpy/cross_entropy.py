"""Fused CPU kernels of linear, embedding, cross entropy and attention, each with its backward."""

from __future__ import annotations

import functools

import numpy as np

from . import blocks
from .activation import (
    F32,
    F64,
    MODERATE,
    SMALL,
    SUM_AT_LEAST,
    _contiguous,
    _is_half,
    exp_and_sums,
    ones,
    refuse,
    row_sums,
    widened,
)
from .blocks import buffer

U64, I64 = np.dtype("u8"), np.dtype("i8")
maximum_of, minimum_of = np.maximum.reduce, np.minimum.reduce

# --- linear ---------------------------------------------------------------------------------------


def linear(input, weight, bias=None):
    dtype = input.dtype
    if dtype is not weight.dtype and dtype != weight.dtype:
        raise RuntimeError("expected m1 and m2 to have the same dtype")
    if dtype is not F32 and _is_half(dtype):
        return widened(linear, input, weight, bias)
    if input.ndim == 2 or weight.ndim == 1:
        out = input.dot(weight.T)
    else:
        out = (
            input.reshape(-1, input.shape[-1]).dot(weight.T).reshape(input.shape[:-1] + weight.shape[:-1])
            if input.size
            else input @ weight.T
        )
    if bias is None:
        return out
    if bias.ndim > 1 or out.ndim == 0:
        return out + bias
    if out.size > SMALL and out.flags.c_contiguous:
        rows = out.reshape(-1, out.shape[-1])

        def block(start, stop):
            rows[start:stop] += bias

        blocks.run(block, *rows.shape)
        return out
    out += bias
    return out


def _linear_input_grad(grad, weight):
    dtype = grad.dtype
    if dtype is not F32 and dtype is not F64:
        return widened(np.matmul, grad, weight) if _is_half(dtype) else grad @ weight.conj()
    if grad.ndim == 2:
        return grad.dot(weight)
    return (
        grad.reshape(-1, grad.shape[-1]).dot(weight).reshape(grad.shape[:-1] + weight.shape[1:])
        if grad.size
        else grad @ weight
    )


def _linear_weight_grad(grad, input):
    if grad.ndim != 2:
        grad = grad.reshape(-1, grad.shape[-1])
    if input.ndim != 2:
        input = input.reshape(-1, input.shape[-1])
    dtype = grad.dtype
    if dtype is not F32 and dtype is not F64:
        return widened(np.matmul, grad.T, input) if _is_half(dtype) else grad.T @ input.conj()
    return grad.T.dot(input)


def _linear_bias_grad(grad):
    if grad.ndim != 2:
        grad = grad.reshape(-1, grad.shape[-1])
    if grad.dtype is F32 or grad.dtype is F64:
        return ones(grad.shape[0], grad.dtype).dot(grad)
    return np.add.reduce(grad.astype(F32), 0).astype(grad.dtype) if _is_half(grad.dtype) else np.add.reduce(grad, 0)


# --- embedding ------------------------------------------------------------------------------------


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if indices.dtype.kind != "i" or indices.dtype.itemsize < 4:
        raise RuntimeError("embedding: indices must be int64 or int32")
    if indices.size:
        top = indices.max() if indices.dtype.itemsize < 8 else indices.view(U64).max()
        if top >= weight.shape[0] or (indices.dtype.itemsize < 8 and indices.min() < 0):
            raise IndexError("index out of range in self")
    return weight.take(indices, 0)


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
    elif _is_half(grad.dtype):
        out[used] = np.add.reduceat(grad[order].astype(F32), starts, 0).astype(grad.dtype)
    else:
        out[used] = np.add.reduceat(grad[order], starts, 0)
    if scale_grad_by_freq:
        out[used] /= np.diff(starts, append=flat.size)[:, None].astype(grad.dtype)
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


# --- cross entropy --------------------------------------------------------------------------------


@functools.lru_cache(64)
def _row_starts(rows, columns):
    starts = np.arange(0, rows * columns, columns) if columns else np.zeros(rows, np.int64)
    starts.flags.writeable = False
    return starts


def _class_rows(input, target):
    """Logits as rows (sample, class) and targets as a vector."""
    if input.ndim == 2:
        return _contiguous(input), target.reshape(-1)
    if input.ndim == 1:
        return input.reshape(1, -1), target.reshape(-1)
    return np.moveaxis(input, 1, -1).reshape(-1, input.shape[1]), target.reshape(-1)


def _counted(target, classes, ignore_index):
    """None when every target is a class; else which are, with 0 for those that are ignored. IndexError for one that is
    out of range.
    """
    if target.dtype != np.int64:
        target = target.astype(np.int64)
    if target.size == 0 or (np.maximum.reduce(target.view(U64)) < classes and not 0 <= ignore_index < classes):
        return target, None
    counts = target != ignore_index
    target = np.where(counts, target, 0)
    wrong = (target < 0) | (target >= classes)
    if wrong.any():
        raise IndexError(f"Target {target[wrong][0]} is out of bounds.")
    return target, counts


def _log_sums(x):
    """The log of the sum of exp of each row."""
    lse = np.empty(x.shape[0], x.dtype)

    def block(start, stop):
        rows = x[start:stop]
        total, shift = exp_and_sums(rows, buffer(0, rows.shape, x.dtype))
        np.log(total, out=total)
        np.add(total, shift, out=lse[start:stop, None])

    blocks.run(block, *x.shape)
    return lse


def _sample_weights(target, counts, weight):
    if weight is None:
        return counts
    weights = weight[target]
    return weights if counts is None else weights * counts


def _plain(input, target, weight, ignore_index):
    """The positions of the chosen logits in the common case (small float32 rows, no weight, every target a class), else
    None.
    """
    if weight is not None or input.dtype is not F32 or input.ndim != 2 or input.size > SMALL or target.dtype is not I64:
        return None
    rows, classes = input.shape
    if (
        target.shape != (rows,)
        or not rows
        or maximum_of(target.view(U64)) >= classes
        or 0 <= ignore_index < classes
        or not input.flags.c_contiguous
    ):
        return None
    return _row_starts(rows, classes) + target


def _small_log_sums(x):
    """`_log_sums` for few float32 rows: as few calls as can be."""
    one = ones(x.shape[1], F32)
    if maximum_of(x, None) < MODERATE:
        sums = np.exp(x).dot(one)
        if minimum_of(sums) > SUM_AT_LEAST:
            return np.log(sums, sums)
    largest = maximum_of(x, 1, None, None, True)
    sums = np.exp(x - largest).dot(one)
    np.log(sums, sums)
    sums += largest[:, 0]
    return sums


def _cross_entropy(input, target, weight, ignore_index, reduction):
    dtype = input.dtype
    chosen = _plain(input, target, weight, ignore_index)
    if chosen is not None:
        lse = _small_log_sums(input)
        losses = lse - input.take(chosen)
        if reduction == "none":
            return losses, lse
        total = losses.dot(ones(chosen.size, F32))
        return (total / chosen.size if reduction == "mean" else total), lse
    if dtype != F32 and dtype != F64:
        if not _is_half(dtype):
            refuse(input, "log_softmax_lastdim_kernel_impl")
        loss, lse = _cross_entropy(
            input.astype(F32), target, None if weight is None else weight.astype(F32), ignore_index, reduction
        )
        return np.asarray(loss).astype(dtype), lse
    shape = target.shape
    x, target = _class_rows(input, target)
    if target.size != x.shape[0]:
        raise ValueError("batch sizes differ")
    target, counts = _counted(target, x.shape[1], ignore_index)
    lse = _log_sums(x)
    losses = lse - x.take(_row_starts(*x.shape) + target)
    weights = _sample_weights(target, counts, weight)
    if weights is not None:
        losses *= weights
        if counts is not None:
            losses[~counts] = 0
    lse = lse.reshape(shape)
    if reduction == "none":
        return losses.reshape(shape), lse
    total = np.add.reduce(losses)
    if reduction == "mean":
        count = losses.size if weights is None else np.add.reduce(weights, dtype=dtype)
        total = total / count if count else dtype.type(np.nan)
        return dtype.type(total), lse
    return total, lse


def _cross_entropy_backward(grad, input, target, weight, lse, ignore_index, reduction):
    dtype = input.dtype
    if _is_half(dtype):
        weight = None if weight is None else weight.astype(F32)
        return _cross_entropy_backward(
            grad.astype(F32), input.astype(F32), target, weight, lse, ignore_index, reduction
        ).astype(dtype)
    chosen = _plain(input, target, weight, ignore_index)
    if chosen is not None:
        out = input - lse[:, None]
        np.exp(out, out)
        flat = out.reshape(-1)
        flat.put(chosen, flat.take(chosen) - 1)
        out *= grad / chosen.size if reduction == "mean" else grad if reduction == "sum" else grad[:, None]
        return out
    x, target = _class_rows(input, target)
    target, counts = _counted(target, x.shape[1], ignore_index)
    weights = _sample_weights(target, counts, weight)
    lse = lse.reshape(-1, 1)
    scale = _row_scales(grad, weights, x.shape[0], reduction, dtype)
    out = np.empty_like(x)
    chosen = _row_starts(*x.shape) + target
    width = x.shape[1]

    def block(start, stop):
        rows = out[start:stop]
        np.subtract(x[start:stop], lse[start:stop], out=rows)
        np.exp(rows, out=rows)
        out.reshape(-1)[chosen[start:stop]] -= 1
        np.multiply(rows, scale if scale.ndim == 0 else scale[start:stop], out=rows)
        if counts is not None and not counts[start:stop].all():
            rows[~counts[start:stop]] = 0

    blocks.run(block, x.shape[0], width)
    if input.ndim <= 2:
        return out.reshape(input.shape)
    moved = (input.shape[0], *input.shape[2:], width)
    return np.moveaxis(out.reshape(moved), -1, 1)


def _row_scales(grad, weights, rows, reduction, dtype):
    """What each row's gradient is multiplied by: 0-d, or a column."""
    grad = np.asarray(grad)
    if reduction == "none":
        scale = grad.reshape(-1)
        return (scale if weights is None else scale * weights).astype(dtype, copy=False)[:, None]
    if weights is None:
        return np.asarray(grad / max(rows, 1) if reduction == "mean" else grad, dtype)
    if reduction == "mean":
        grad = grad / np.add.reduce(weights, dtype=dtype)
    return np.asarray(grad * weights, dtype)[:, None]


# --- attention ------------------------------------------------------------------------------------


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
    return x.reshape(-1, *x.shape[-2:])


def _tiles(heads, rows, columns):
    """(first head, last head, first row, last row) of pieces whose score matrices fit in cache."""
    if rows * columns <= blocks.BLOCK:
        step = max(1, blocks.BLOCK // max(rows * columns, 1))
        return [(h, min(h + step, heads), 0, rows) for h in range(0, heads, step)]
    step = max(1, blocks.BLOCK // columns)
    return [(h, h + 1, r, min(r + step, rows)) for h in range(heads) for r in range(0, rows, step)]


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
        np.matmul(self.query[h0:h1, r0:r1] * self.scale, self.key[h0:h1, :seen].swapaxes(-1, -2), out=scores)
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
        for tile in self.tiles:
            work(tile)


def _sdpa(query, key, value, attn_mask, is_causal, scale):
    if _is_half(query.dtype):
        out, lse = _sdpa(*(a.astype(F32) for a in (query, key, value)), attn_mask, is_causal, scale)
        return out.astype(query.dtype), lse
    a = _Attention(query, key, value, attn_mask, is_causal, scale)
    out = np.empty((a.query.shape[0], a.rows, a.value.shape[2]), a.dtype)
    lse = np.empty((a.query.shape[0], a.rows, 1), a.dtype)
    if a.columns == 0:
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
        np.matmul(weights, a.value[h0:h1, :seen], out=result)
        np.divide(result, total, out=result)
        np.log(total, out=total)
        np.add(total, largest, out=lse[h0:h1, r0:r1])

    a.each(work)
    return out.reshape(a.lead + out.shape[1:]), lse.reshape(a.lead + lse.shape[1:])


def _sdpa_backward(grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs):
    if _is_half(query.dtype):
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

    def work(tile):
        h0, h1, r0, r1 = tile
        weights, seen = a.scores(tile, 0)
        np.subtract(weights, lse[h0:h1, r0:r1], out=weights)
        np.exp(weights, out=weights)
        g = grad[h0:h1, r0:r1]
        if needs[2]:
            grad_value[h0:h1, :seen] += weights.swapaxes(-1, -2) @ g
        if not (needs[0] or needs[1]):
            return
        slopes = buffer(1, weights.shape, a.dtype)
        np.matmul(g, a.value[h0:h1, :seen].swapaxes(-1, -2), out=slopes)
        np.subtract(slopes, dot[h0:h1, r0:r1], out=slopes)
        np.multiply(slopes, weights, out=slopes)
        np.multiply(slopes, a.scale, out=slopes)
        if needs[0]:
            np.matmul(slopes, a.key[h0:h1, :seen], out=grad_query[h0:h1, r0:r1])
        if needs[1]:
            grad_key[h0:h1, :seen] += slopes.swapaxes(-1, -2) @ a.query[h0:h1, r0:r1]

    a.each(work)
    shaped = (
        (g.reshape(a.lead + g.shape[1:]) if need else None)
        for g, need in zip((grad_query, grad_key, grad_value), needs, strict=True)
    )
    return tuple(shaped)
