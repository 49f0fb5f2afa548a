"""Scaled dot product attention, forward and backward, in cache-sized tiles: some score rows of a few heads.

The score matrix is never stored, so memory does not grow with the square of the length. Keys and values are transposed
once for all rows of a tile: small matrix products are 1.5 times as fast without transposed operands. In the backward
pass the log-sum-exp of each row is an additional column of the queries, and the term subtracted from the weights'
gradients an additional column of the result's: the products do the subtraction.

Half precision is computed in float32. Where PyTorch's kernel of the CPU serves, weights are rounded to half precision
before their product with the values, as there. They are relative to the greatest one so far, by 512 keys.
"""

from __future__ import annotations

import contextlib
import functools
import math

import numpy as np

from torchlite._settings.thread_count import get_threads

from .blas import single_threaded
from .cache_blocking import get_scratch_buffer, parallel_for
from .deterministic_gemm import MAX_GEMV_SIZE
from .half_casts import cast_half
from .row_blocks import F32, is_half, ones

# Maximum score elements of a tile, unless it has the minimum rows: they fit in a core's cache, and with less work per
# call threads wait for each other's GIL. Tiles of causal scores have few rows, since all are computed up to the last
# one's key.
_TILE_SCORES, _MIN_TILE_ROWS = 1 << 17, 16
_CAUSAL_ROWS = 64, 128  # of scores with no more than _NARROW columns, and others
_NARROW = 256
# Minimum tasks of a forward pass if heads make fewer tiles than there are threads: each task transposes its keys, a
# third of its time with 128 of them.
_TASKS = 4
# Minimum rows for which transposing the keys pays.
_TRANSPOSED = 32
# Sums of exp(scores) that are neither too large nor too small to need no largest score subtracted.
_LEAST, _MOST = 1e-8, 1e9
# Keys that PyTorch takes at once, and the factor that splits a number after its first eight bits.
_KEYS, _SPLIT = 512, np.float32(2**16 + 1)
# Sums that are compared one by one: as Python numbers, up to 16 take less time than two reductions.
_FEW_SUMS = 16
_NOTHING = contextlib.nullcontext()
# Multiplications of the scores up to which one thread takes as long as two that wait for each other.
_SMALL = 1 << 22


@functools.lru_cache(16)
def _make_causal_mask(rows, columns, dtype):
    """Return 0 where a query sees a key and minus infinity elsewhere, for queries and keys with the same start."""
    mask = np.zeros((rows, columns), dtype)
    mask[np.arange(columns) > np.arange(rows)[:, None]] = -np.inf
    mask.flags.writeable = False
    return mask


def _as_grouped_heads(x, lead):
    """Return (groups, heads, length, features), with the heads from the last dimension of `lead`."""
    if x.shape[:-2] != lead:
        x = np.broadcast_to(x, lead + x.shape[-2:])
    return x if len(lead) == 2 else x.reshape(math.prod(lead[:-1]), lead[-1] if lead else 1, *x.shape[-2:])


def _split_evenly(length, count):
    return [slice(length * k // count, length * (k + 1) // count) for k in range(count)]


def _choose_tiles(groups, heads, rows, columns, is_causal):
    """Return the heads of tiles, [(slice of the groups, slice of the heads), ...], and the rows of each, [slice,
    ...].
    """
    most = max(_MIN_TILE_ROWS, _TILE_SCORES // max(columns, 1))
    if is_causal:
        most = min(most, _CAUSAL_ROWS[columns > _NARROW])
    chunks = _split_evenly(rows, -(-rows // most))
    together = max(1, _TILE_SCORES // max(min(rows, most) * columns, 1))
    if heads >= together:
        parts, per_group = _choose_part_count(heads, together, groups), groups
    else:
        parts, per_group = 1, _choose_part_count(groups, together // max(heads, 1), 1)
    return [(g, h) for g in _split_evenly(groups, per_group) for h in _split_evenly(heads, parts)], chunks


def _choose_part_count(length, most, times):
    """Return the number of parts of at most `most`; even in total if small, as the thread count mostly is."""
    count = -(-length // most)
    return count + 1 if count * times % 2 and count * times < 8 and count < length else count


class _Attention:
    """Queries, keys and values as (groups, heads, length, features), with their mask."""

    def __init__(self, query, key, value, attn_mask, is_causal, scale, half=None):
        lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        if attn_mask is not None and attn_mask.ndim > 2:
            lead = np.broadcast_shapes(lead, attn_mask.shape[:-2])
        self.lead, self.scale, self.is_causal = lead, query.dtype.type(scale), is_causal
        self.query, self.key, self.value = (_as_grouped_heads(a, lead) for a in (query, key, value))
        self.dtype, self.half = query.dtype, half
        self.rows, self.columns = query.shape[-2], key.shape[-2]
        self.mask = (
            None
            if attn_mask is None
            else _as_grouped_heads(np.broadcast_to(attn_mask, lead + (self.rows, self.columns)), lead)
        )
        if self.mask is not None and self.mask.dtype.kind != "b" and self.mask.dtype != self.dtype:
            self.mask = self.mask.astype(self.dtype)

    @property
    def groups(self):
        return self.query.shape[:2]

    def visible_key_count(self, rows):
        """Return the number of keys that some rows see."""
        return min(self.columns, rows.stop) if self.is_causal else self.columns

    def apply_mask(self, scores, heads, rows, any_score=False):
        """Apply the causal or additive mask to scores. `any_score` says that later ones may be NaN or infinite, to
        which a mask cannot be added.
        """
        if self.is_causal and rows.start < self.columns:
            part = scores[..., rows.start :]
            mask = _make_causal_mask(part.shape[-2], part.shape[-1], self.dtype)
            if any_score:
                np.copyto(part, mask, where=mask < 0)
            else:
                np.add(part, mask, out=part)
        if self.mask is not None:
            part = self.mask[heads][:, :, rows]
            if part.dtype.kind == "b":
                np.copyto(scores, -np.inf, where=~part)
            else:
                np.add(scores, part, out=scores)

    def new_like(self, x, shape):
        """Return a new array (groups, heads, length, features) with the memory order of the argument `x`.

        If the heads of each position are adjacent there, as from a linear layer, they are here.
        """
        if x.ndim == 4 == len(self.lead) + 2 and x.strides[1] < x.strides[2]:
            groups, heads, length, width = shape
            return np.empty((groups, length, heads, width), self.dtype).swapaxes(1, 2)
        return np.empty(shape, self.dtype)

    def is_small(self):
        """True if one tile is as fast as several."""
        scores = math.prod(self.lead) * self.rows * self.columns
        return scores <= _TILE_SCORES and scores * self.query.shape[-1] <= _SMALL


def _transpose_to_scratch(slot, x, one):
    """Return x as (groups, heads, features, length) in scratch memory, with a row of ones below if `one`."""
    groups, heads, length, width = x.shape
    out = get_scratch_buffer(slot, (groups, heads, width + one, length), x.dtype)
    np.copyto(out[:, :, :width], x.swapaxes(-1, -2))
    if one:
        out[:, :, width] = 1
    return out


def _sdpa(query, key, value, attn_mask, is_causal, scale):
    if is_half(query.dtype):
        half = query.dtype if _is_rounded(query, key, value) else None
        out, lse = _attend(*(cast_half(a, F32) for a in (query, key, value)), attn_mask, is_causal, scale, half)
        return cast_half(out, query.dtype), lse
    return _attend(query, key, value, attn_mask, is_causal, scale)


def _is_rounded(query, key, value):
    """True for operands of which PyTorch's kernel of the CPU rounds the weights. It computes others in float32."""
    if query.ndim != 4 or not query.shape[:2] == key.shape[:2] == value.shape[:2]:
        return False
    return query.shape[3] == key.shape[3] == value.shape[3]


def _attend(query, key, value, attn_mask, is_causal, scale, half=None):
    """`_sdpa` of float32 or float64. half: the dtype to which weights are rounded, None for none."""
    if not is_causal and query.ndim == 4 and query.shape[2] < _TRANSPOSED:
        found = _attend_few_rows(query, key, value, attn_mask, query.dtype.type(scale), half)
        if found is not None:
            return found
    a = _Attention(query, key, value, attn_mask, is_causal, scale, half)
    out, lse = a.new_like(query, (*a.query.shape[:3], value.shape[-1])), np.empty(a.lead + (a.rows, 1), a.dtype)
    result = out.reshape(a.lead + out.shape[2:])
    if not a.columns or not out.size:
        result.fill(0)
        lse.fill(0)
        return result, lse
    sums, shifts = _as_grouped_heads(lse, a.lead), []
    if a.is_small():
        with single_threaded:
            _compute_forward_tile(a, out, sums, shifts, (slice(None), slice(None)), [slice(0, a.rows)])
    else:
        tiles, chunks = _choose_tiles(*a.groups, a.rows, a.columns, a.is_causal)
        runs = 1 if len(tiles) >= get_threads() else min(len(chunks), _TASKS // len(tiles))
        # Rows that see the most keys come first, so that threads end at about the same time.
        tasks = [(heads, chunks[k::runs]) for k in reversed(range(runs)) for heads in tiles]
        with single_threaded:
            parallel_for(lambda heads, chunks: _compute_forward_tile(a, out, sums, shifts, heads, chunks), tasks)
    np.log(sums, out=sums)
    for place, shift in shifts:
        np.add(place, shift, out=place)
    return result, lse


def fits(mask, pairs):
    """True if a mask broadcasts to the shape (groups, heads, queries, keys) and does not widen it."""
    shape = mask.shape
    return len(shape) <= 4 and all(n in (1, m) for n, m in zip(shape[::-1], pairs[::-1], strict=False))


def _attend_few_rows(query, key, value, mask, scale, half):
    """`_sdpa` of few queries, as when text is generated: `_compute_forward_tile` for all of them in as few calls.

    None if that is not one tile, if heads broadcast, or if the largest scores are to be subtracted.
    """
    groups, heads, rows, width = query.shape
    columns = key.shape[2]
    if key.shape[:2] != (groups, heads) or value.shape[:3] != key.shape[:3] or not value.shape[3]:
        return None
    if half is not None and columns > _KEYS:
        return None
    if mask is not None and (half is not None or not fits(mask, (groups, heads, rows, columns))):
        return None
    most = rows * columns * max(width, value.shape[3])
    if not 0 < groups * heads * most <= _SMALL or groups * heads * rows * columns > _TILE_SCORES:
        return None
    scaled = query * scale
    if query.strides[1] < query.strides[2]:  # as in `_Attention.new_like`
        out = np.empty((groups, rows, heads, value.shape[3]), query.dtype).swapaxes(1, 2)
    else:
        out = np.empty((groups, heads, rows, value.shape[3]), query.dtype)
    with single_threaded if most >= MAX_GEMV_SIZE else _NOTHING:
        scores = np.matmul(scaled, key.swapaxes(-1, -2))
        if mask is not None and mask.dtype.kind == "b":
            np.copyto(scores, -np.inf, where=~mask)
        elif mask is not None:
            scores += mask
        if half is not None:
            largest = np.maximum.reduce(scores, -1, keepdims=True)
            np.subtract(scores, largest, scores)
        np.exp(scores, scores)
        total = np.vecdot(scores, ones(columns, query.dtype))
        if total.size > _FEW_SUMS:
            moderate = np.minimum.reduce(total, None) > _LEAST and np.maximum.reduce(total, None) < _MOST
        else:
            moderate = all(_LEAST < each < _MOST for each in total.ravel().tolist())
        if not moderate:
            return None
        if half is not None:
            _round_weights(scores, half)
        np.matmul(scores, value, out=out)
    total = total[..., None]
    np.divide(out, total, out)
    return out, np.log(total) if half is None else np.log(total) + largest


def _compute_forward_tile(a, out, sums, shifts, heads, chunks):
    """Compute rows of some heads, and the sums of exp(scores - shift), if a shift is in `shifts`."""
    query, key, value = a.query[heads], a.key[heads], a.value[heads]
    out, sums = out[heads], sums[heads]
    keys = _transpose_to_scratch(0, key, 0) if a.rows >= _TRANSPOSED else key.swapaxes(-1, -2)
    for rows in chunks:
        seen = a.visible_key_count(rows)
        scaled = query[:, :, rows] * a.scale
        scores, total, result = (
            get_scratch_buffer(1, (*scaled.shape[:3], seen), a.dtype),
            sums[:, :, rows],
            out[:, :, rows],
        )
        np.matmul(scaled, keys[..., :seen], out=scores)
        a.apply_mask(scores, heads, rows, any_score=a.half is not None)
        if a.half is not None:
            shifts.append((total, _compute_rounded_numerator(scores, total, a.half)))
        else:
            np.exp(scores, out=scores)
            np.vecdot(scores, ones(seen, a.dtype), out=total[..., 0])
            if not (np.minimum.reduce(total, None) > _LEAST and np.maximum.reduce(total, None) < _MOST):
                np.matmul(scaled, keys[..., :seen], out=scores)
                a.apply_mask(scores, heads, rows, any_score=True)
                shifts.append((total, _compute_softmax_numerator(scores, total)))
        np.matmul(scores, value[:, :, :seen], out=result)
        np.divide(result, total, out=result)
        del scores  # the next rows take its memory


def _compute_softmax_numerator(scores, total):
    """Replace scores by exp(scores - s), s the maximum of each row, and write their sums to `total`; return s.

    A fully masked row gets weights of zero and the sum 1.
    """
    largest = np.maximum.reduce(scores, -1, keepdims=True)
    largest[largest == -np.inf] = 0
    np.subtract(scores, largest, out=scores)
    np.exp(scores, out=scores)
    np.add.reduce(scores, -1, keepdims=True, out=total)
    total[total == 0] = 1
    return largest


def _compute_rounded_numerator(scores, total, half):
    """`_compute_softmax_numerator` with numbers rounded to half precision, relative to the maximum of their run
    of keys and the runs before. The sums are those of numbers that are not rounded.
    """
    runs = [slice(k, k + _KEYS) for k in range(0, scores.shape[-1], _KEYS)]
    maxima, sums = [], []
    for run in runs:
        part = scores[..., run]
        largest = np.maximum.reduce(part, -1, keepdims=True)
        if maxima:
            np.maximum(largest, maxima[-1], out=largest)
        maxima.append(largest)
        np.subtract(part, np.where(largest == -np.inf, F32.type(0), largest), out=part)
        np.exp(part, out=part)
        sums.append(np.vecdot(part, ones(part.shape[-1], F32))[..., None])
    _round_weights(scores, half)
    last = np.where(maxima[-1] == -np.inf, F32.type(0), maxima[-1])
    for run, largest, part in zip(runs[:-1], maxima, sums, strict=False):
        factor = np.exp(largest - last)
        part *= factor
        scores[..., run] *= factor
    np.copyto(total, functools.reduce(np.add, sums))
    total[total == 0] = 1
    return last


def _round_weights(weights, half):
    """Round numbers from 0 to 1, or NaN, to half precision, in place."""
    if half.kind == "f":
        np.copyto(weights, cast_half(cast_half(weights, half), F32))
        return
    # Of bfloat16, which has float32's range, the sum with a multiple of 2**16 leaves the bits (Dekker, 1971).
    wide = get_scratch_buffer(2, weights.shape, F32)
    np.multiply(weights, _SPLIT, out=wide)
    np.subtract(wide, weights, out=weights)
    np.subtract(wide, weights, out=weights)


def _sdpa_backward(grad, query, key, value, attn_mask, out, lse, is_causal, scale, needs, into=None):
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
    given = (query, a.query), (key, a.key), (value, a.value)
    grads = into or tuple(a.new_like(x, b.shape) if need else None for (x, b), need in zip(given, needs, strict=True))
    if not a.columns or not grad.size:
        for g in grads:
            if g is not None:
                g.fill(0)
    else:
        grad, out, lse = (_as_grouped_heads(x, a.lead) for x in (grad, out, lse))
        tiles, chunks = [(slice(None), slice(None))], [slice(0, a.rows)]
        if not a.is_small():
            tiles, chunks = _choose_tiles(*a.groups, a.rows, a.columns, a.is_causal)
        chunks.reverse()  # the last one sees the most keys and initialises the sums
        with single_threaded:
            parallel_for(lambda *heads: _compute_backward_tile(a, grad, out, lse, grads, heads, chunks), tiles)
    return tuple(None if g is None else g.reshape(a.lead + g.shape[2:]) for g in grads)


def _compute_backward_tile(a, grad, out, lse, grads, heads, chunks):
    """Compute the gradients of some heads."""
    query, key, value, grad = a.query[heads], a.key[heads], a.value[heads], grad[heads]
    of_query, of_key, of_value = (None if g is None else g[heads] for g in grads)
    shape = query.shape[:3]
    queries, keys = get_scratch_buffer(2, (*shape, query.shape[-1] + 1), a.dtype), _transpose_to_scratch(0, key, 1)
    np.multiply(query, a.scale, out=queries[..., :-1])
    np.negative(lse[heads], out=queries[..., -1:])
    if of_query is not None or of_key is not None:
        results, values = (
            get_scratch_buffer(4, (*shape, grad.shape[-1] + 1), a.dtype),
            _transpose_to_scratch(3, value, 1),
        )
        np.copyto(results[..., :-1], grad)
        np.negative(np.vecdot(grad, out[heads]), out=results[..., -1])
    else:
        results = values = None
    weights = slopes = None
    for number, rows in enumerate(chunks):
        del weights, slopes  # these rows take their memory
        slopes, seen = None, a.visible_key_count(rows)
        weights = get_scratch_buffer(1, (*shape[:2], rows.stop - rows.start, seen), a.dtype)
        np.matmul(queries[:, :, rows], keys[..., :seen], out=weights)
        a.apply_mask(weights, heads, rows)
        np.exp(weights, out=weights)
        if of_value is not None:
            _add_product(weights, grad[:, :, rows], of_value, seen, number)
        if values is None:
            continue
        slopes = get_scratch_buffer(5, weights.shape, a.dtype)
        np.matmul(results[:, :, rows], values[..., :seen], out=slopes)
        np.multiply(slopes, weights, out=slopes)
        if of_query is not None:
            np.matmul(slopes, key[:, :, :seen], out=of_query[:, :, rows])
        if of_key is not None:
            _add_product(slopes, queries[:, :, rows, :-1], of_key, seen, number)
    if of_query is not None:
        np.multiply(of_query, a.scale, out=of_query)


def _add_product(first, second, target, seen, number):
    """Add first^T second to the first `seen` rows of `target`; the first product initialises it."""
    first = first.swapaxes(-1, -2)
    part = target[:, :, :seen]
    if number:
        product = get_scratch_buffer(6, part.shape, part.dtype)
        np.matmul(first, second, out=product)
        np.add(part, product, out=part)
    else:
        np.matmul(first, second, out=part)
        target[:, :, seen:] = 0
