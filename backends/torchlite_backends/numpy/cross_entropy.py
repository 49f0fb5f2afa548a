"""Cross entropy with class indices, forward and backward."""

from __future__ import annotations

import functools
import math

import numpy as np

from . import cache_blocking
from .cache_blocking import get_scratch_buffer
from .deterministic_gemm import deterministic_dot
from .row_blocks import (
    F32,
    F64,
    MODERATE,
    SMALL,
    SUM_AT_LEAST,
    as_contiguous,
    compute_exp_and_sums,
    is_half,
    ones,
    raise_not_implemented,
)

U64, I64 = np.dtype("u8"), np.dtype("i8")
maximum_of, minimum_of = np.maximum.reduce, np.minimum.reduce


@functools.lru_cache(64)
def _compute_row_starts(rows, columns):
    starts = np.arange(0, rows * columns, columns) if columns else np.zeros(rows, np.int64)
    starts.flags.writeable = False
    return starts


def _flatten_to_class_rows(input, target):
    """Return logits as rows (sample, class) and targets as a vector."""
    if input.ndim == 2:
        return as_contiguous(input), target.reshape(-1)
    if input.ndim == 1:
        return input.reshape(1, -1), target.reshape(-1)
    return np.moveaxis(input, 1, -1).reshape(-1, input.shape[1]), target.reshape(-1)


def _check_targets(target, classes, ignore_index):
    """Return None if every target is a class; else a mask of those that are, with 0 for the ignored ones.

    IndexError for one that is out of range.
    """
    if target.dtype is not I64:
        target = target.astype(I64)
    if target.size == 0 or (np.maximum.reduce(target.view(U64)) < classes and not 0 <= ignore_index < classes):
        return target, None
    counts = target != ignore_index
    target = np.where(counts, target, 0)
    wrong = (target < 0) | (target >= classes)
    if wrong.any():
        raise IndexError(f"Target {target[wrong][0]} is out of bounds.")
    return target, counts


def _logsumexp_rows(x):
    """Return the log-sum-exp of each row in float64."""
    lse = np.empty(x.shape[0])

    def compute_rows(start, stop):
        rows = x[start:stop]
        total, shift = compute_exp_and_sums(rows, get_scratch_buffer(0, rows.shape, x.dtype))
        np.add(np.log(total, dtype=F64), shift, out=lse[start:stop, None])

    cache_blocking.run_blocks(compute_rows, *x.shape)
    return lse


# Losses below this are computed again about the largest logit: the log-sum-exp rounds by about the last bit of 1.
_NEAR_ZERO = 2.0**-10


def _subtract_chosen(x, lse, chosen):
    """Return the losses of rows, lse - x[chosen], in the dtype of `x`."""
    losses = lse - x.take(chosen)
    if losses.size and minimum_of(losses) < _NEAR_ZERO:
        near = np.flatnonzero(losses < _NEAR_ZERO)
        rows = x[near]
        shifted = rows - maximum_of(rows, 1, None, None, True)
        own = shifted.take(_compute_row_starts(*rows.shape) + chosen[near] % x.shape[1])
        losses[near] = np.log(np.add.reduce(np.exp(shifted), 1, F64)) - own
    return losses.astype(x.dtype, copy=False)


def _sample_weights(target, counts, weight):
    if weight is None:
        return counts
    weights = weight[target]
    return weights if counts is None else weights * counts


def _find_target_positions(input, target, weight, ignore_index):
    """Return the positions of the target logits in the common case, else None.

    That is small float32 rows, no weight, and every target a class.
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
    return _compute_row_starts(rows, classes) + target


def _logsumexp_few_rows(x):
    """`_logsumexp_rows` for few float32 rows, in as few calls as possible."""
    one = ones(x.shape[1], F32)
    if maximum_of(x, None) < MODERATE:
        sums = deterministic_dot(np.exp(x), one)
        if minimum_of(sums) > SUM_AT_LEAST:
            return np.log(sums, dtype=F64)
    largest = maximum_of(x, 1, None, None, True)
    return np.log(deterministic_dot(np.exp(x - largest), one), dtype=F64) + largest[:, 0]


def _cross_entropy(input, target, weight, ignore_index, reduction):
    dtype = input.dtype
    chosen = _find_target_positions(input, target, weight, ignore_index)
    if chosen is not None:
        lse = _logsumexp_few_rows(input)
        losses, lse = _subtract_chosen(input, lse, chosen), lse.astype(F32)
        if reduction == "none":
            return losses, lse
        total = deterministic_dot(losses, ones(chosen.size, F32))
        return (total / chosen.size if reduction == "mean" else total), lse
    if dtype != F32 and dtype != F64:
        if not is_half(dtype):
            raise_not_implemented(input, "log_softmax_lastdim_kernel_impl")
        loss, lse = _cross_entropy(
            input.astype(F32), target, None if weight is None else weight.astype(F32), ignore_index, reduction
        )
        return np.asarray(loss).astype(dtype), lse
    shape = target.shape
    x, target = _flatten_to_class_rows(input, target)
    if target.size != x.shape[0]:
        raise ValueError("batch sizes differ")
    target, counts = _check_targets(target, x.shape[1], ignore_index)
    lse = _logsumexp_rows(x)
    losses = _subtract_chosen(x, lse, _compute_row_starts(*x.shape) + target)
    weights = _sample_weights(target, counts, weight)
    if weights is not None:
        losses *= weights
        if counts is not None:
            losses[~counts] = 0
    lse = lse.astype(dtype, copy=False).reshape(shape)
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
    if is_half(dtype):
        weight = None if weight is None else weight.astype(F32)
        return _cross_entropy_backward(
            grad.astype(F32), input.astype(F32), target, weight, lse, ignore_index, reduction
        ).astype(dtype)
    chosen = _find_target_positions(input, target, weight, ignore_index)
    if chosen is not None:
        out = input - lse[:, None]
        np.exp(out, out)
        flat = out.reshape(-1)
        flat.put(chosen, flat.take(chosen) - 1)
        out *= grad / chosen.size if reduction == "mean" else grad if reduction == "sum" else grad[:, None]
        return out
    x, target = _flatten_to_class_rows(input, target)
    target, counts = _check_targets(target, x.shape[1], ignore_index)
    weights = _sample_weights(target, counts, weight)
    lse = lse.reshape(-1, 1)
    scale = _compute_row_scales(grad, weights, x.shape[0], reduction, dtype)
    out = np.empty(x.shape, dtype)  # rows one after the other, however those of x lie: it is written as one row
    chosen = _compute_row_starts(*x.shape) + target
    width = x.shape[1]

    def compute_rows(start, stop):
        rows = out[start:stop]
        np.subtract(x[start:stop], lse[start:stop], out=rows)
        np.exp(rows, out=rows)
        out.reshape(-1)[chosen[start:stop]] -= 1
        np.multiply(rows, scale if scale.ndim == 0 else scale[start:stop], out=rows)
        if counts is not None and not counts[start:stop].all():
            rows[~counts[start:stop]] = 0

    cache_blocking.run_blocks(compute_rows, x.shape[0], width)
    if input.ndim <= 2:
        return out.reshape(input.shape)
    moved = (input.shape[0], *input.shape[2:], width)
    return np.moveaxis(out.reshape(moved), -1, 1)


def _compute_row_scales(grad, weights, rows, reduction, dtype):
    """Return the factor of each row's gradient: 0-d, or a column."""
    grad = np.asarray(grad)
    if reduction == "none":
        scale = grad.reshape(-1)
        return (scale if weights is None else scale * weights).astype(dtype, copy=False)[:, None]
    if weights is None:
        return np.asarray(grad / max(rows, 1) if reduction == "mean" else grad, dtype)
    if reduction == "mean":
        grad = grad / np.add.reduce(weights, dtype=dtype)
    return np.asarray(grad * weights, dtype)[:, None]


def _find_class_positions(shape, target):
    """Return where the targets' elements lie in row-major memory of this shape, (N, C, *) or (C,)."""
    if len(shape) <= 2:
        return target if len(shape) == 1 else _compute_row_starts(*shape) + target
    inner = math.prod(shape[2:])
    places = target.reshape(shape[0], inner) * inner
    places += np.arange(inner)
    places += _compute_row_starts(shape[0], shape[1] * inner)[:, None]
    return places.reshape(-1)


def _nll_loss(input, target, weight, ignore_index, reduction):
    dtype, shape = input.dtype, target.shape
    target, counts = _check_targets(target.reshape(-1), input.shape[min(input.ndim - 1, 1)], ignore_index)
    losses = as_contiguous(input).reshape(-1).take(_find_class_positions(input.shape, target))
    if dtype == F32 and weight is None and counts is None and reduction != "none" and 0 < losses.size <= SMALL:
        total = 0.0 - losses.astype(F64).dot(ones(losses.size, F64))
        return np.array(total / losses.size if reduction == "mean" else total, F32)
    if is_half(dtype):
        losses, weight = losses.astype(F32), None if weight is None else weight.astype(F32)
    np.negative(losses, out=losses)
    weights = _sample_weights(target, counts, weight)
    if weights is not None:
        losses *= weights
        if counts is not None:
            losses[~counts] = 0
    if reduction == "none":
        return losses.astype(dtype, copy=False).reshape(shape)
    total = np.add.reduce(losses, dtype=F64) + 0.0  # a sum of -0 is 0
    if reduction == "mean":
        count = losses.size if weights is None else np.add.reduce(weights, dtype=F64)
        total = total / count if count else F64.type(np.nan)
    return total.astype(dtype)


def _nll_loss_backward(grad, target, weight, shape, ignore_index, reduction):
    dtype = grad.dtype
    if is_half(dtype):
        grad, weight = grad.astype(F32), None if weight is None else weight.astype(F32)
    target, counts = _check_targets(target.reshape(-1), shape[min(len(shape) - 1, 1)], ignore_index)
    weights = _sample_weights(target, counts, weight)
    scale = _compute_row_scales(grad, weights, target.size, reduction, grad.dtype)
    out = np.zeros(shape, dtype)
    places, values = _find_class_positions(shape, target), -scale.reshape(-1)
    if counts is not None:
        places, values = places[counts], values[counts] if values.size == counts.size else values
    out.reshape(-1)[places] = values
    return out
