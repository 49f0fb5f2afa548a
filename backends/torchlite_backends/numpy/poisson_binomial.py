"""Poisson and binomial samples by PyTorch's methods, sequentially: a sample's consumption of the stream depends on
draws.

Transformed rejection for large means (W. Hoermann, "The transformed rejection method for generating Poisson random
variables", 1993, and "The generation of binomial random variates", 1993), products of uniforms or sums of geometric
variates for small ones. Except for near-ties of an acceptance test, the values are PyTorch's.
"""

from __future__ import annotations

import math

import numpy as np

from .bulk_poisson import LARGEST_RATE, MIN_COUNT, make_numpy_sampler
from .mt19937 import Engine
from .native_sampling import sample_natively
from .normal_deviates import SCALE53, sample_uniform_doubles


class _Uniforms:
    """Uniform doubles of an engine, one per call. `close` records how many words were used.

    The creator locks the engine until it is closed.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.values: list[float] = []
        self.used = 0
        self.counted = 0  # values already counted in the engine's position

    def __call__(self) -> float:
        if self.used == len(self.values):
            self._refill()
        value = self.values[self.used]
        self.used += 1
        return value

    def _refill(self) -> None:
        self.close()
        words = self.engine.unread_words()
        if len(words) < 2:
            self.values, self.counted = sample_uniform_doubles(self.engine, 1).tolist(), 1
        else:
            words = words[: len(words) & ~1].astype(np.uint64)
            bits = ((words[0::2] & np.uint64(0x1FFFFF)) << np.uint64(32)) | words[1::2]
            self.values, self.counted = (bits * SCALE53).tolist(), 0
        self.used = 0

    def close(self) -> None:
        self.engine.position += 2 * (self.used - self.counted)
        self.values, self.used, self.counted = [], 0, 0


def _log_or_minus_infinity(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def _sample_poisson(rate: float, uniform: _Uniforms) -> float:
    if rate == 0:
        return 0.0
    if rate < 10:
        bound, product, count = math.exp(-rate), uniform(), 0
        while product > bound:
            product *= uniform()
            count += 1
        return float(count)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    log_alpha = math.log(1.1239 + 1.1328 / (b - 3.4))
    sure = 0.9277 - 3.6224 / (b - 2)
    log_rate = math.log(rate)
    while True:
        u, v = uniform() - 0.5, uniform()
        edge = 0.5 - abs(u)
        k = math.floor((2 * a / edge + b) * u + rate + 0.43) if edge else -1
        if edge >= 0.07 and v <= sure:
            return float(k)
        if k < 0 or (edge < 0.013 and v > edge):
            continue
        if _log_or_minus_infinity(v) + log_alpha - math.log(
            a / (edge * edge) + b
        ) <= -rate + k * log_rate - math.lgamma(k + 1):
            return float(k)


def _stirling_remainder(k: float) -> float:
    """Return log(k!) minus Stirling's approximation about k + 1."""
    if k <= 9:
        return math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1))
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _sample_large_binomial(count: float, p: float, uniform: _Uniforms) -> float:
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = count * p + 0.5
    sure = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((count + 1) * p)
    while True:
        u, v = uniform() - 0.5, uniform()
        edge = 0.5 - abs(u)
        k = math.floor((2 * a / edge + b) * u + centre) if edge else -1
        if k < 0 or k > count:
            continue
        if edge >= 0.07 and v <= sure:
            return float(k)
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * math.log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + _stirling_remainder(mode)
            + _stirling_remainder(count - mode)
            - _stirling_remainder(k)
            - _stirling_remainder(count - k)
        )
        if _log_or_minus_infinity(v * alpha / (a / (edge * edge) + b)) <= bound:
            return float(k)


def _sample_small_binomial(count: float, p: float, uniform: _Uniforms) -> float:
    scale = math.log1p(-p)
    total, found = 0.0, 0
    while True:
        u = uniform()
        total += math.ceil(math.log(u) / scale) if u > 0 else math.inf
        if total > count:
            return float(found)
        found += 1


def _sample_equal_binomials(count: float, p: float, size: int, engine: Engine) -> np.ndarray:
    """Return samples of one count and probability: all attempts of a piece of the stream at once."""
    rare = p if p <= 0.5 else 1 - p
    attempt = _try_large_binomials if count * rare >= 10 else _count_small_binomials
    parts, missing, spare = [], size, 64
    with engine.lock:
        while missing:
            mark = engine.stream_position()
            uniforms = sample_uniform_doubles(engine, 2 * (min(missing, 1 << 16) + spare))
            found, used = attempt(count, rare, uniforms, missing)
            engine.restore_stream_position(mark)
            engine.words(2 * used)
            if not len(found):
                spare *= 4
            parts.append(found)
            missing -= len(found)
    drawn = np.concatenate(parts)
    return drawn if p <= 0.5 else count - drawn


def _try_large_binomials(count: float, p: float, uniforms: np.ndarray, wanted: int) -> tuple[np.ndarray, int]:
    """Return the samples of `_sample_large_binomial` from some uniforms, and how many of them these take.

    An attempt takes two, whether it is accepted or not.
    """
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((count + 1) * p)
    u, v = uniforms[0::2] - 0.5, uniforms[1::2]
    edge = 0.5 - np.abs(u)
    with np.errstate(divide="ignore", invalid="ignore"):
        k = np.where(edge > 0, np.floor((2 * a / edge + b) * u + (count * p + 0.5)), -1.0)
        possible = (k >= 0) & (k <= count)
        accepted = possible & (edge >= 0.07) & (v <= 0.92 - 4.2 / b)
        rest = np.flatnonzero(possible & ~accepted)
        x, near = k[rest], edge[rest]
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * np.log((count - mode + 1) / (count - x + 1))
            + (x + 0.5) * np.log(odds * (count - x + 1) / (x + 1))
            + _stirling_remainder(mode)
            + _stirling_remainder(count - mode)
            - _stirling_remainders(x)
            - _stirling_remainders(count - x)
        )
        accepted[rest] = np.log(v[rest] * alpha / (a / (near * near) + b)) <= bound
    places = np.flatnonzero(accepted)[:wanted]
    return k[places], 2 * (int(places[-1]) + 1) if len(places) else 0


def _stirling_remainders(k: np.ndarray) -> np.ndarray:
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return np.where(k <= 9, _REMAINDERS[np.minimum(k, 9).astype(np.int64)], series)


_REMAINDERS = np.array([_stirling_remainder(k) for k in range(10)])


def _count_small_binomials(count: float, p: float, uniforms: np.ndarray, wanted: int) -> tuple[np.ndarray, int]:
    """Return the samples of `_sample_small_binomial` from some uniforms, and how many of them these take.

    A sample counts the geometric variates whose sum does not exceed the count: the sums of all of the stream say where
    the sample that begins at a place ends.
    """
    with np.errstate(divide="ignore"):
        steps = np.minimum(np.ceil(np.log(uniforms) / math.log1p(-p)), count + 1)
    sums = np.concatenate([np.zeros(1), np.cumsum(steps)])
    ends = np.searchsorted(sums, sums + count, side="right").tolist()
    places, at, size = [0], 0, len(uniforms)
    while len(places) <= wanted and (at := ends[at]) <= size:
        places.append(at)
    starts = np.array(places)
    return np.diff(starts) - 1.0, places[-1]


def _sample_binomial(count: float, p: float, uniform: _Uniforms) -> float:
    if count <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return count
    if math.isnan(p) or math.isnan(count):
        return math.nan
    rare = p if p <= 0.5 else 1 - p
    drawn = (
        _sample_large_binomial(count, rare, uniform)
        if count * rare >= 10
        else _sample_small_binomial(count, rare, uniform)
    )
    return drawn if p <= 0.5 else count - drawn


def _random_poisson(rate, generator: Engine):
    if rate.size and rate.min() < 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    out = np.empty(rate.shape)
    rates = np.ascontiguousarray(rate, np.float64)
    if sample_natively(generator, 1 + min(float(rates.mean()) if rate.size else 0, 10), rates, 0, out):
        return out.astype(rate.dtype)
    if rate.size >= MIN_COUNT and float(rate.max()) < LARGEST_RATE and (sampler := make_numpy_sampler()):
        return sampler.draw(rate.astype(np.float64).ravel(), generator).reshape(rate.shape).astype(rate.dtype)
    with generator.lock:
        uniform = _Uniforms(generator)
        values = [_sample_poisson(r, uniform) for r in rate.astype(np.float64).ravel().tolist()]
        uniform.close()
    return np.array(values).reshape(rate.shape).astype(rate.dtype)


def _random_binomial(count, prob, generator: Engine):
    counts, probs = np.broadcast_arrays(count.astype(np.float64), prob.astype(np.float64))
    out = np.empty(counts.shape)
    given = np.ascontiguousarray(counts), np.ascontiguousarray(probs)
    if sample_natively(generator, 5, *given, out):
        return out.astype(prob.dtype)
    if counts.size >= MIN_COUNT and counts.min() == counts.max() and probs.min() == probs.max():
        n, p = float(counts.flat[0]), float(probs.flat[0])
        if n > 0 and 0 < p < 1 and n < 1 << 50:
            return _sample_equal_binomials(n, p, counts.size, generator).reshape(counts.shape).astype(prob.dtype)
    pairs = zip(counts.ravel().tolist(), probs.ravel().tolist(), strict=True)
    with generator.lock:
        uniform = _Uniforms(generator)
        values = [_sample_binomial(n, p, uniform) for n, p in pairs]
        uniform.close()
    return np.array(values).reshape(counts.shape).astype(prob.dtype)
