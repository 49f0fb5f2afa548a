"""Poisson samples of one large rate by PyTorch's method, all attempts at once.

A sample takes two uniforms an attempt (`poisson_binomial` has the steps in Python). Except for near-ties, the values
are PyTorch's.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .mt19937 import Engine
from .uniform_pieces import sample_equally

MIN_COUNT = 1 << 10  # samples from which this pays
SMALLEST_RATE, LARGEST_RATE = 10, 1e5
PIECE = 1 << 15  # uniforms that are drawn in one go


def sample_poisson(rate: float, size: int, engine: Engine) -> np.ndarray:
    """Return so many samples of a rate from `SMALLEST_RATE` to `LARGEST_RATE`, as float64."""
    with np.errstate(all="ignore"):
        return sample_equally(engine, size, 2.5, PIECE, functools.partial(_try_attempts, rate))


def _try_attempts(rate: float, uniforms: np.ndarray, wanted: int) -> tuple[np.ndarray, int]:
    """Return the samples of transformed rejection from some uniforms, and how many of them these take."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    log_alpha, sure = math.log(1.1239 + 1.1328 / (b - 3.4)), 0.9277 - 3.6224 / (b - 2)
    u, v = uniforms[: len(uniforms) // 2 * 2 : 2] - 0.5, uniforms[1::2]
    edge = 0.5 - np.abs(u)
    k = np.where(edge > 0, np.floor((2 * a / edge + b) * u + rate + 0.43), -1.0)
    accepted = (edge >= 0.07) & (v <= sure)
    rest = np.flatnonzero(~accepted & (k >= 0) & ((edge >= 0.013) | (v <= edge)))
    x, near = k[rest], edge[rest]
    bound = x * math.log(rate) - rate - _log_factorials(x, rate)
    accepted[rest] = np.log(v[rest]) + log_alpha - np.log(a / (near * near) + b) <= bound
    places = np.flatnonzero(accepted)[:wanted]
    return k[places], 2 * (int(places[-1]) + 1) if len(places) else 0


@functools.lru_cache(maxsize=16)
def _tabulate_log_factorials(rate: float) -> tuple[int, np.ndarray]:
    """Return the first of the numbers about a rate, and the logarithms of their factorials."""
    reach = 12 * math.isqrt(int(rate))
    first = max(int(rate) - reach, 0)
    return first, np.array([math.lgamma(k + 1) for k in range(first, int(rate) + reach)])


def _log_factorials(x: np.ndarray, rate: float) -> np.ndarray:
    first, table = _tabulate_log_factorials(rate)
    places = np.minimum(x - first, len(table)).astype(np.int64)
    out = table.take(places, mode="clip")
    for other in np.flatnonzero((places < 0) | (places == len(table))).tolist():
        out[other] = math.lgamma(float(x[other]) + 1)
    return out
