"""Random kernels on NumPy: PyTorch's CPU distributions over its MT19937 stream.

Every kernel takes a generator's engine (`mt19937.Engine`) as its last argument and advances it exactly as PyTorch does.
The words of one call are consecutive, whatever other threads draw: a kernel that reads more than once locks the engine
from the first read to the last.

Results in float32 and of integer or bool dtype are PyTorch's bit for bit, as are float16 and bfloat16; in float64
`log`, `log1p`, `cos`, `sin` and `tan` of larger arrays are NumPy's, which may differ from the C library's by one unit
in the last place.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from torchlite_backends.cpu_engines.engine_selection import find_native

from .mt19937 import WORDS, Engine
from .normal_deviates import (
    LOW21,
    SCALAR_LIMIT,
    SCALE24,
    fill_block_normals,
    fused_multiply_add_into,
    sample_block_normals_double,
    sample_buffered_normals,
    sample_serial_normals,
    sample_uniform_doubles,
)

CHUNK = 1 << 15  # values computed at a time, so that temporaries stay in cache
SINGLE, DOUBLE, INT32 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int32)
LOW24, STEP = np.uint32(0xFFFFFF), np.float32(SCALE24)
MIN_PERMUTATION = 64  # entries for an engine's kernel
SWAPS = 1 << 11  # permutations of up to so many entries are computed by successive exchanges
STEPS = 1 << 14  # exchanges per step
SHORT_ROW = 1 << 10  # draws of a row, from which `searchsorted` of each row pays
_FEW_ENTRIES, _MANY_ENTRIES = 32, 1 << 10  # of a row: draws are compared with each, or bisected all at once
WIDE = 1 << 28  # spans from this size take a 64-bit draw each


def _veltkamp_split(x):
    """Split a double into the sum of two of 26 bits (Veltkamp)."""
    c = x * 134217729.0
    high = c - (c - x)
    return high, x - high


def _fused_multiply_add(x, factor: float, term: float):
    """Return x * factor + term in float64 with one rounding, as PyTorch's compiled loops do.

    The errors of the product (Dekker) and the sum (Knuth) are added back.
    """
    product = x * factor
    if not (math.isfinite(factor) and math.isfinite(term)):
        return product + term
    (xh, xl), (fh, fl) = _veltkamp_split(x), _veltkamp_split(factor)
    error = ((xh * fh - product) + xh * fl + xl * fh) + xl * fl
    total = product + term
    back = total - product
    return total + ((product - (total - back)) + (term - back) + error)


@functools.lru_cache(maxsize=256)
def _uniform_scale_and_offset(low: float, high: float, kind: np.dtype) -> tuple[float, float, np.generic | None]:
    """Return scale of a 24-bit draw and offset of uniforms in [low, high); and `high` in the dtype if rounding can
    reach it.
    """
    bottom, top = np.float32(low), np.float32(high)
    span, start = float(top - bottom), float(bottom)
    end = top.astype(kind)
    return span * SCALE24, start, end if np.float32((1.0 - SCALE24) * span + start).astype(kind) >= end else None


def _random_uniform(size, dtype, low, high, generator: Engine):
    kind = dtype.np
    if kind is DOUBLE:
        out = np.empty(size, kind)
        if out.size <= CHUNK:
            _fill_uniform_double(out.reshape(-1), float(low), float(high), generator)
        else:
            with generator.lock:
                _fill_uniform_double(out.reshape(-1), float(low), float(high), generator)
        return out
    unit = low == 0 and high == 1 and kind is SINGLE
    return _draw_in_chunks(
        size, kind, generator, lambda count: _words_to_uniform_float32(generator.words(count), unit, low, high, kind)
    )


def _words_to_uniform_float32(words, unit: bool, low, high, kind: np.dtype) -> np.ndarray:
    bits = words & LOW24
    if unit:
        out = bits.astype(SINGLE)
        out *= STEP
        return out
    scale, start, end = _uniform_scale_and_offset(low, high, kind)
    values = bits * scale
    values += start
    out = values.astype(SINGLE)
    if kind is not SINGLE:
        out = out.astype(kind)
    if end is not None:
        out[out >= end] = low  # PyTorch returns the other end for values rounded to the excluded one
    return out


def _fill_uniform_double(out: np.ndarray, low: float, high: float, generator: Engine) -> None:
    for begin in range(0, out.size, CHUNK):
        part = out[begin : begin + CHUNK]
        values = sample_uniform_doubles(generator, part.size)
        if high - low == 1.0 and low == 0.0:
            part[...] = values
            continue
        part[...] = _fused_multiply_add(values, high - low, low)
        part[part >= high] = low


def _random_normal(size, dtype, mean, std, serial, generator: Engine):
    """Return normals. `serial`: PyTorch would draw one by one, since the tensor to fill is not contiguous."""
    count = math.prod(size)
    kind = dtype.np
    narrow = kind.itemsize <= 4
    known = None
    if count % 16 == 0 and not serial and narrow and 0 < count <= WORDS:
        known = sample_buffered_normals(generator, count)
        if known is not None and mean == 0 and std == 1 and kind is SINGLE:
            return known.reshape(size).copy()
    out = np.empty(size, kind)
    flat = out.reshape(-1)
    mean, std = float(mean), float(std)
    if known is not None:
        fused_multiply_add_into(flat, known, float(np.float32(std)), float(np.float32(mean)))
    elif serial or count < 16:
        values = sample_serial_normals(generator, count, flat.dtype is DOUBLE)
        flat[...] = _round_to(
            values if mean == 0.0 and std == 1.0 else _fused_multiply_add(values, std, mean), flat.dtype
        )
    elif not narrow:
        values = sample_block_normals_double(generator, count)
        flat[...] = values if mean == 0.0 and std == 1.0 else _fused_multiply_add(values, std, mean)
    else:
        fill_block_normals(generator, flat, float(np.float32(mean)), float(np.float32(std)))
    return out


def _round_to(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Round doubles to `dtype`: dtypes below float32 are rounded twice, as in C conversions."""
    return values.astype(np.float32) if dtype.itemsize < 4 else values


def _random_integers(size, dtype, low, span, generator: Engine):
    """Return low + draw % span, of 32-bit draws for a span below 2**28, else of 64-bit ones."""
    count = math.prod(size)
    if span < WIDE:
        draws = generator.words(count) % np.uint32(span)
        if low:
            draws = draws.astype(np.int64) + low
        return draws.astype(dtype.np).reshape(size)
    words = generator.words(2 * count)
    draws = words[0::2].astype(np.uint64) << np.uint64(32)
    draws |= words[1::2]
    if span < 1 << 64:
        draws %= np.uint64(span)
    if low:
        draws += np.uint64(low & 0xFFFFFFFFFFFFFFFF)
    return _from_bits(draws, low, dtype.np).reshape(size)


def _from_bits(draws: np.ndarray, low: int, dtype: np.dtype) -> np.ndarray:
    return draws.astype(dtype) if low >= 0 and dtype.kind in "fcV" else draws.view(np.int64).astype(dtype)


def _random_bits(size, dtype, span, generator: Engine):
    """Return draw % span of 32-bit draws, for any span."""
    return (generator.words(math.prod(size)) % np.uint64(span)).astype(dtype.np).reshape(size)


def _random_permutation(size, dtype, generator: Engine):
    """Fisher-Yates shuffle: exchange entry i with entry i + draw % (n - i)."""
    n = size[0]
    if n <= 1:
        return np.arange(n, dtype=dtype.np)
    short = n < 0xFFFFFFFF // 20
    words = generator.words(n - 1 if short else 2 * (n - 1))
    if n >= MIN_PERMUTATION and (native := find_native("permutation")):
        order = np.empty(n, np.int64)
        if native(words, order):
            return order.astype(dtype.np, copy=False)
    if short:
        distance = words % np.arange(n, 1, -1, dtype=np.uint32)
    else:
        words = words.astype(np.uint64)
        distance = ((words[0::2] << np.uint64(32)) | words[1::2]) % np.arange(n, 1, -1, dtype=np.uint64)
    target = np.arange(n)
    target[:-1] += distance.astype(np.int64)
    if n <= SWAPS:
        entries = list(range(n))
        for i, j in enumerate(target.tolist()):
            entries[i], entries[j] = entries[j], entries[i]
        return np.array(entries, dtype.np)
    order, last = np.arange(n), np.full(n, -1)
    for start in range(0, n, STEPS):
        _swap_entries(order, last, start, target[start : start + STEPS])
    return order.astype(dtype.np, copy=False)


def _swap_entries(order: np.ndarray, last: np.ndarray, start: int, target: np.ndarray) -> None:
    """Exchange entry i with entry ``target[i - start] >= i``, for each i from `start` on, vectorised.

    Entry i ends with the value at its target before step i: the one that the last earlier step with the same target
    moved there, or else the current one. A step moves the value at its own position, which in turn came from the last
    step with this position as target. Positions therefore form chains that end at one that no earlier step targets.
    `last` has the last step that targets a position.
    """
    here = np.arange(start, start + len(target))
    last[target[::-1]] = here[::-1]
    repeated = np.flatnonzero(last[target] != here)
    before = np.full(len(here), -1)  # the step before with the same target
    while repeated.size:  # `last` has the first, second ... step of each target
        place = target[repeated]
        earlier = last[place]
        last[place[::-1]] = here[repeated[::-1]]
        next_one = last[place] == here[repeated]
        before[repeated[next_one]] = earlier[next_one]
        repeated = repeated[~next_one]
    source = last[start : start + len(here)]
    source = np.where(source == here, before, source) - start
    linked = np.flatnonzero(source >= 0)
    origin = np.arange(len(here))
    while linked.size:
        origin[linked] = source[linked]
        further = source[origin[linked]]
        going = further >= 0
        source[linked[going]] = further[going]
        linked = linked[going]
    brought = order[here[origin]]
    found = order[target]
    known = np.flatnonzero(before >= 0)
    found[known] = brought[before[known] - start]
    order[target] = brought
    order[start : start + len(here)] = found


@functools.lru_cache(maxsize=256)
def _bernoulli_limit_words(p: float) -> tuple[np.uint32, np.uint32]:
    """Return the smallest integer not below p * 2**53, in two words."""
    high, low = divmod(math.ceil(p * 2.0**53), 1 << 32)
    return np.uint32(high), np.uint32(low)


def _draw_uniforms_below(generator: Engine, count: int, p: float) -> np.ndarray:
    """Return where 53-bit uniforms are below p. Nearly always the upper word decides."""
    words = generator.words(2 * count)
    high, low = _bernoulli_limit_words(p)
    upper = words[0::2] & LOW21
    below = upper < high
    if low:
        tied = upper == high
        if tied.any():
            below |= tied & (words[1::2] < low)
    return below


@functools.lru_cache(maxsize=256)
def _compute_dropout_scale(p: float, dtype: np.dtype) -> np.generic:
    kind = np.float64 if dtype is DOUBLE else np.float32
    return (kind(1) / kind(1.0 - p)).astype(dtype)


def _random_bernoulli(size, dtype, p, generator: Engine):
    """Return 1 where a 53-bit uniform is below `p`, else 0."""
    return _draw_in_chunks(size, dtype.np, generator, lambda count: _draw_uniforms_below(generator, count, p))


def _random_keep_mask(size, dtype, p, generator: Engine):
    """Return dropout's factors: 1 / (1 - p) with probability 1 - p, else 0."""
    scale = _compute_dropout_scale(p, dtype.np)
    return _draw_in_chunks(
        size, dtype.np, generator, lambda count: _draw_uniforms_below(generator, count, 1.0 - p) * scale
    )


def _draw_in_chunks(size, dtype: np.dtype, generator: Engine, draw) -> np.ndarray:
    """Return an array of `draw(count)` for parts that stay in cache."""
    count = math.prod(size)
    if count <= CHUNK:
        return draw(count).astype(dtype, copy=False).reshape(size)
    out = np.empty(count, dtype)
    with generator.lock:
        for begin in range(0, count, CHUNK):
            part = out[begin : begin + CHUNK]
            part[...] = draw(part.size)
    return out.reshape(size)


def _random_bernoulli_each(p, dtype, generator: Engine):
    """Return 1 where a uniform is below the entry of `p`: of 53 bits for float64 probabilities, else of 24."""
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    if p.dtype is DOUBLE:
        uniform = sample_uniform_doubles(generator, p.size)
    else:
        uniform = (generator.words(p.size) & 0xFFFFFF) * SCALE24
    return (uniform.reshape(p.shape) < p.astype(np.float64)).astype(dtype.np)


def _reshape_result(values: np.ndarray, size, dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return _round_to(values, dtype).astype(dtype).reshape(size)


def _apply_libm(function, values: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Apply the C library's function to a few doubles, as PyTorch does, if the result's dtype shows the difference."""
    if dtype.itemsize < 8 or values.size > SCALAR_LIMIT:
        return None
    return np.array([function(v) for v in values.tolist()])


def _random_exponential(size, dtype, lambd, generator: Engine):
    values = -sample_uniform_doubles(generator, math.prod(size))
    logs = _apply_libm(math.log1p, values, dtype.np)
    if logs is None:
        logs = np.log1p(values)
    logs *= -1.0 / float(lambd)
    return _reshape_result(logs, size, dtype.np)


def _random_cauchy(size, dtype, median, sigma, generator: Engine):
    angle = (sample_uniform_doubles(generator, math.prod(size)) - 0.5) * math.pi
    values = _apply_libm(math.tan, angle, dtype.np)
    return _reshape_result(
        _fused_multiply_add(np.tan(angle) if values is None else values, float(sigma), float(median)), size, dtype.np
    )


def _random_geometric(size, dtype, p, generator: Engine):
    uniform = sample_uniform_doubles(generator, math.prod(size))
    with np.errstate(divide="ignore"):
        return _reshape_result(np.ceil(np.log(uniform) / math.log1p(-float(p))), size, dtype.np)


def _random_log_normal(size, dtype, mean, std, generator: Engine):
    values = _fused_multiply_add(
        sample_serial_normals(generator, math.prod(size), dtype.np is DOUBLE), float(std), float(mean)
    )
    with np.errstate(over="ignore"):
        result = _apply_libm(_exp_or_infinity, values, dtype.np)
        return _reshape_result(np.exp(values) if result is None else result, size, dtype.np)


def _exp_or_infinity(x: float) -> float:
    return math.exp(x) if x < 709.0 else float(np.exp(x))


def _random_multinomial(weights, num_samples, generator: Engine):
    """Draw with replacement from the rows of `weights`, by bisection of the cumulative sum."""
    rows = weights.reshape(-1, weights.shape[-1])
    kind = np.float32 if rows.dtype.itemsize < 4 else rows.dtype
    cumulative = np.cumsum(rows, axis=1, dtype=kind)
    cumulative /= cumulative[:, -1:].copy()
    cumulative[:, -1] = 1
    uniform = sample_uniform_doubles(generator, len(rows) * num_samples).reshape(len(rows), num_samples)
    if len(rows) > 4 and num_samples < SHORT_ROW and rows.shape[1] <= _MANY_ENTRIES:
        return _bisect_rows(cumulative, uniform).reshape(*weights.shape[:-1], num_samples)
    out = [
        np.searchsorted(row, draws, side="left")
        for row, draws in zip(cumulative.astype(np.float64), uniform, strict=True)
    ]
    return np.array(out, np.int64).reshape(*weights.shape[:-1], num_samples)


def _bisect_rows(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return how many entries of an ascending row are below each value of the same row of `values`. The last entry is
    below none.
    """
    count, length = rows.shape
    rows = rows.astype(np.float64)  # the dtype of the values: NumPy compares others in twice the time
    if length <= _FEW_ENTRIES:
        below = np.zeros(values.shape, np.uint8)
        for entry in rows.T[:-1]:
            below += entry[:, None] < values
        return below.astype(np.int64)
    width = 1 << (length - 1).bit_length()
    padded = np.full((count, width), np.inf)
    padded[:, :length] = rows
    start = np.arange(0, padded.size, width)[:, None]
    place = start + np.zeros(values.shape, np.int64)  # one bisection for all
    step = width >> 1
    while step:
        place += (padded.take(place + (step - 1)) < values) * step
        step >>= 1
    return np.subtract(place, start, out=place)


def _random_slopes(input, lower, upper, generator: Engine):
    """Draw slopes for non-positive elements only, in row-major order."""
    drawn = input <= 0
    out = np.ones(input.shape, input.dtype)
    if input.dtype is not DOUBLE:
        lower, upper = float(np.float32(lower)), float(np.float32(upper))
    out[drawn] = _fused_multiply_add(
        sample_uniform_doubles(generator, int(np.count_nonzero(drawn))), upper - lower, lower
    )
    return out
