"""Binomial samples by PyTorch's methods, with what can be computed for many of them at once.

Transformed rejection for large means (W. Hoermann, "The generation of binomial random variates", 1993), sums of
geometric variates for small ones. Equal samples of transformed rejection are vectorised: they take two uniforms an
attempt. Variates of one probability are summed by NumPy's sampler of Poisson numbers. Other samples follow each other
in a loop. The constants of all samples and the logarithms of uniforms are computed before it. Except
for near-ties of an acceptance test, the values are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .bulk_poisson import Sampler, make_numpy_sampler
from .mt19937 import Engine
from .normal_deviates import LOW53, SCALE53
from .uniform_pieces import UniformPieces, sample_equally

MIN_EQUAL = 64  # equal samples from which vectors pay
PIECE, _EQUAL_PIECE = 1 << 14, 1 << 17  # uniforms that are drawn in one go, for different and for equal samples
_LARGEST_COUNT = float(1 << 50)  # of equal samples
_MOST_VARIATES, _LARGEST_RATE = 1e8, 9.5  # the count up to which, and the rate with which NumPy's sampler sums
_NEVER = -1e18  # in place of the logarithm of 0
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def sample_binomials(counts: np.ndarray, probs: np.ndarray, engine: Engine) -> np.ndarray:
    """Return samples of counts and probabilities, both float32 or both float64, of one dimension, as float64."""
    with np.errstate(all="ignore"):
        trivial = np.where((counts <= 0) | (probs <= 0), 0, np.where(probs >= 1, counts, math.nan))
        out = trivial.astype(np.float64)
        chosen = np.flatnonzero((counts > 0) & (probs > 0) & (probs < 1))
        if not chosen.size:
            return out
        n, p = counts[chosen], probs[chosen]
        rare = np.where(p <= 0.5, p, 1 - p)
        large = n * rare >= 10
        alike = len(n) >= MIN_EQUAL and bool((p == p[0]).all())
        if alike and large[0] and (n == n[0]).all() and n[0] < _LARGEST_COUNT:
            drawn = _sample_equal(n[:1], rare[:1], len(n), engine)
        elif alike and not large.any() and n.max() < _MOST_VARIATES and (sampler := make_numpy_sampler()):
            drawn = _sum_geometric_variates(n, float(rare[0]), sampler, engine)
        else:
            constants = _large_constants(n[large], rare[large])
            large_ones = zip(*(row.tolist() for row in constants), strict=True)
            scales = np.minimum(np.log1p(-rare[~large].astype(np.float64)), -1e-200)  # quotients stay finite
            small_ones = zip(n[~large].tolist(), scales.tolist(), strict=True)
            drawn = _sample_different(large.tolist(), large_ones, small_ones, engine)
        out[chosen] = np.where(p <= 0.5, drawn, n - drawn)
    return out


def _large_constants(count: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the constants of transformed rejection, each as float64: products of the arguments have their dtype."""
    deviation = np.sqrt(count * p * (1 - p)).astype(np.float64)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p.astype(np.float64)
    odds = (p / (1 - p)).astype(np.float64)
    mode = np.floor((count + 1) * p).astype(np.float64)
    centre = (count * p).astype(np.float64) + 0.5
    count = count.astype(np.float64)
    above = count - mode + 1
    top = (mode + 0.5) * np.log((mode + 1) / (odds * above)) + _remainders(mode) + _remainders(count - mode)
    return count, a, b, centre, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation, odds, above, top


def _remainder(k: float) -> float:
    """Return log(k!) minus Stirling's approximation about k + 1."""
    if k <= 9:
        return math.lgamma(k + 1) - (_HALF_LOG_2PI + (k + 0.5) * math.log(k + 1) - (k + 1))
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


_REMAINDERS = np.array([_remainder(k) for k in range(10)])


def _remainders(k: np.ndarray) -> np.ndarray:
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return np.where(k <= 9, _REMAINDERS[np.clip(k, 0, 9).astype(np.int64)], series)


# --- samples that differ -----------------------------------------------------------------------------


def _sample_different(
    large: list[bool], large_ones: Iterator[tuple], small_ones: Iterator[tuple], engine: Engine
) -> np.ndarray:
    """Return the samples in their order: `large` says which of the two iterators has a sample's constants."""
    out: list[float] = []
    log, floor, ceil, append = math.log, math.floor, math.ceil, out.append
    with engine.lock:
        pieces = UniformPieces(engine)
        at, end = 0, 0
        uniform: list[float] = []
        logs: list[float] = []

        def draw(used: int) -> tuple[list[float], list[float], int]:
            size = min(8 * (len(large) - len(out)) + 64, PIECE)
            piece = pieces.draw(used, size)
            return piece.tolist(), np.where(piece > 0, np.log(piece), _NEVER).tolist(), len(piece)

        for is_large in large:
            if is_large:
                count, a, b, centre, sure, alpha, odds, above, top = next(large_ones)
                while True:
                    if at + 2 > end:
                        uniform, logs, end = draw(at)
                        at = 0
                    u, v = uniform[at] - 0.5, uniform[at + 1]
                    at += 2
                    edge = 0.5 - abs(u)
                    k = floor((2 * a / edge + b) * u + centre) if edge else -1
                    if k < 0 or k > count:
                        continue
                    if edge >= 0.07 and v <= sure:
                        break
                    bound = (
                        top
                        + (count + 1) * log(above / (count - k + 1))
                        + (k + 0.5) * log(odds * (count - k + 1) / (k + 1))
                        - _remainder(k)
                        - _remainder(count - k)
                    )
                    scaled = v * alpha / (a / (edge * edge) + b)
                    if scaled <= 0 or log(scaled) <= bound:
                        break
                append(float(k))
            else:
                count, scale = next(small_ones)
                total, found = 0.0, -1
                while total <= count:
                    if at == end:
                        uniform, logs, end = draw(at)
                        at = 0
                    total += ceil(logs[at] / scale)
                    at += 1
                    found += 1
                append(float(found))
        pieces.close(at)
    return np.array(out)


# --- equal samples -----------------------------------------------------------------------------------


def _sample_equal(count: np.ndarray, p: np.ndarray, size: int, engine: Engine) -> np.ndarray:
    """Return so many samples of one count and probability (arrays of one element) with a large mean."""
    constants = tuple(float(row[0]) for row in _large_constants(count, p))
    return sample_equally(engine, size, 2.5, _EQUAL_PIECE, lambda *of: _try_large(constants, *of))


def _try_large(constants: tuple[float, ...], uniforms: np.ndarray, wanted: int) -> tuple[np.ndarray, int]:
    """Return the samples of transformed rejection from some uniforms, and how many of them these take.

    An attempt takes two, whether it is accepted or not.
    """
    count, a, b, centre, sure, alpha, odds, above, top = constants
    u, v = uniforms[: len(uniforms) // 2 * 2 : 2] - 0.5, uniforms[1::2]
    edge = 0.5 - np.abs(u)
    k = np.where(edge > 0, np.floor((2 * a / edge + b) * u + centre), -1.0)
    possible = (k >= 0) & (k <= count)
    accepted = possible & (edge >= 0.07) & (v <= sure)
    rest = np.flatnonzero(possible & ~accepted)
    x, near = k[rest], edge[rest]
    bound = (
        top
        + (count + 1) * np.log(above / (count - x + 1))
        + (x + 0.5) * np.log(odds * (count - x + 1) / (x + 1))
        - _remainders(x)
        - _remainders(count - x)
    )
    accepted[rest] = np.log(v[rest] * alpha / (a / (near * near) + b)) <= bound
    places = np.flatnonzero(accepted)[:wanted]
    return k[places], 2 * (int(places[-1]) + 1) if len(places) else 0


def _sum_geometric_variates(counts: np.ndarray, p: float, sampler: Sampler, engine: Engine) -> np.ndarray:
    """Return samples of counts and one small probability.

    A sample is the number of geometric variates whose sum does not exceed the count. NumPy's sampler multiplies
    uniforms as long as their product exceeds exp(-rate). Here it gets exp(-scale * variate) in place of uniforms.
    """
    limits = counts.astype(np.float64)
    most = float(limits.max())
    scale, logarithm = _LARGEST_RATE / (most + 0.5), math.log1p(-p)

    def write(pairs: np.ndarray, words: np.ndarray) -> None:
        uniforms = (pairs & LOW53).view(np.int64) * SCALE53
        variates = np.log(uniforms, out=uniforms)
        variates /= logarithm
        np.ceil(variates, out=variates)
        np.minimum(variates, most + 1, out=variates)
        variates *= -scale
        np.exp(variates, out=variates)
        variates *= 2.0**53
        np.left_shift(variates.astype(np.int64).view(np.uint64), 11, out=words)

    return sampler.draw_from((limits + 0.5) * scale, 1 + limits * p, engine, write).astype(np.float64)
