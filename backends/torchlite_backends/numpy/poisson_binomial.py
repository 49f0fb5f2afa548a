"""Poisson and binomial samples by PyTorch's methods, sequentially: a sample's consumption of the stream depends on
draws. `bulk_binomial` has the binomial ones.

Transformed rejection for large means (W. Hoermann, "The transformed rejection method for generating Poisson random
variables", 1993), products of uniforms for small ones. Except for near-ties of an acceptance test, the values are
PyTorch's.
"""

from __future__ import annotations

import math

import numpy as np

from . import bulk_binomial, equal_poisson
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


def _random_poisson(rate, generator: Engine):
    if rate.size and not rate.min() >= 0:  # or NaN
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    out = np.empty(rate.shape)
    rates = np.ascontiguousarray(rate, np.float64)
    if sample_natively(generator, 1 + min(float(rates.mean()) if rate.size else 0, 10), rates, 0, 0, out):
        return out.astype(rate.dtype)
    first = float(rates.flat[0]) if rate.size >= equal_poisson.MIN_COUNT else 0.0
    if equal_poisson.SMALLEST_RATE <= first < equal_poisson.LARGEST_RATE:
        if (rates == first).all():
            return equal_poisson.sample_poisson(first, rate.size, generator).reshape(rate.shape).astype(rate.dtype)
    if rate.size >= MIN_COUNT and float(rate.max()) < LARGEST_RATE and (sampler := make_numpy_sampler()):
        return sampler.draw(rates.ravel(), generator).reshape(rate.shape).astype(rate.dtype)
    with generator.lock:
        uniform = _Uniforms(generator)
        values = [_sample_poisson(r, uniform) for r in rate.astype(np.float64).ravel().tolist()]
        uniform.close()
    return np.array(values).reshape(rate.shape).astype(rate.dtype)


def _random_binomial(count, prob, generator: Engine):
    # PyTorch computes some constants of a sample in the dtype of its arguments.
    kind = prob.dtype if prob.dtype.itemsize >= 4 else np.dtype(np.float32)
    counts, probs = np.broadcast_arrays(count.astype(kind), prob.astype(kind))
    out = np.empty(counts.shape)
    single = kind == np.float32
    given = np.ascontiguousarray(counts, np.float64), np.ascontiguousarray(probs, np.float64), int(single)
    with np.errstate(invalid="ignore"):
        mean = np.nan_to_num(np.minimum(counts * np.minimum(probs, 1 - probs), 10.0))
    if sample_natively(generator, 2 + float(mean.mean()) if mean.size else 2, *given, out):
        return out.astype(prob.dtype)
    drawn = bulk_binomial.sample_binomials(counts.ravel(), probs.ravel(), generator)
    return drawn.reshape(counts.shape).astype(prob.dtype)
