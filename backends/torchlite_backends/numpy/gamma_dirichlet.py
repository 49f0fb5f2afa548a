"""Gamma and Dirichlet samples by PyTorch's method, sequentially: a sample's consumption of the stream depends on draws.

G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", 2000, in double precision: a normal and
a uniform for each attempt, and for a shape below 1 a uniform before them. The draws of possible attempts are
precomputed for every position of a piece of the stream, so that the sequential loop only looks numbers up.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from . import bulk_gamma
from .mt19937 import Engine
from .native_sampling import sample_natively
from .normal_deviates import SCALAR_LIMIT, sample_uniform_doubles

THIRD = np.float32(1.0 / 3.0)  # PyTorch's constant has single precision
PIECE = 1 << 14  # uniforms that are looked at in one go
_SHORT_ROW = 8  # NumPy adds the elements of shorter rows one by one
MARGIN = 4  # an attempt takes at most three words, a shape below 1 one before


def _draw_ahead(engine: Engine, count: int) -> tuple[list[float], list[float], list[float]]:
    """Return `count` uniforms, and the pair of normals that begins at each of them but the last one."""
    uniform = sample_uniform_doubles(engine, count)
    if count <= SCALAR_LIMIT:  # by the C library's functions, as PyTorch
        values = uniform.tolist()
        radii = [math.sqrt(-2.0 * math.log1p(-v)) for v in values[1:]]
        angles = [2.0 * math.pi * u for u in values]
        first = [r * math.cos(a) for r, a in zip(radii, angles, strict=False)]
        return values, first, [r * math.sin(a) for r, a in zip(radii, angles, strict=False)]
    radius, angle = np.sqrt(-2.0 * np.log1p(-uniform[1:])), 2.0 * np.pi * uniform[:-1]
    return uniform.tolist(), (radius * np.cos(angle)).tolist(), (radius * np.sin(angle)).tolist()


def _sample_standard_gamma(
    shapes: np.ndarray, exact: bool, engine: Engine
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Return gamma samples of these shapes and rate 1, as doubles, and a function: the logarithms of those in a mask.

    Results that do not depend on draws are rounded to the dtype of `shapes`. Without `exact`, the samples are for
    results of single precision: their last bits as doubles may differ from PyTorch's.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        small = shapes < 1
        if not small.any():
            means = (shapes - THIRD).astype(np.float64)
            means *= _sample_cubes(np.zeros(len(shapes), np.int64), means, exact, engine)[0]
            return means, lambda mask: np.log(means[mask])
        exponents = np.where(small, 1 / shapes, 0).astype(np.float64)
        means = (np.where(small, shapes + 1, shapes).astype(shapes.dtype) - THIRD).astype(np.float64)
        kinds = np.where(small, np.where(shapes == 0, 2, 1), 0)
        cubes, before = _sample_cubes(kinds, means, exact, engine)
        bases = 1.0 - before
        if len(bases) <= SCALAR_LIMIT:
            pairs = zip(bases.tolist(), exponents.tolist(), strict=True)
            scales = np.array([b**e if 0 < e < math.inf else 1.0 for b, e in pairs])
        else:
            scales = np.power(bases, exponents)
        scales[shapes < 0] = math.nan
        means = means * cubes

    def logarithms(mask: np.ndarray) -> np.ndarray:
        factors = np.where(small[mask], np.log(bases[mask]) * exponents[mask], 0.0)
        return factors + np.log(means[mask])

    return scales * means, logarithms


def _sample_cubes(kinds: np.ndarray, means: np.ndarray, exact: bool, engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """Return for each sample the cube it is a multiple of, and its preceding uniform (0 if none).

    The kind of a sample is 0, 1 with a preceding uniform, or 2 if it is 0 and takes no draws.
    """
    found = np.empty(len(kinds)), np.empty(len(kinds))
    per_sample = 2.2 + float(np.count_nonzero(kinds)) / max(len(kinds), 1)
    if sample_natively(engine, per_sample, means, kinds.astype(np.int64, copy=False), int(exact), *found):
        return found
    slopes = 1.0 / np.sqrt(9.0 * means)
    if len(kinds) >= bulk_gamma.MIN_COUNT and kinds.max() < 2 and np.isfinite(means).all():
        return bulk_gamma.sample_cubes(kinds, means, slopes, engine)
    cubes: list[float] = []
    before: list[float] = []
    spare = 8 * MARGIN
    with engine.lock:
        while len(cubes) < len(kinds):
            done, mark = len(cubes), engine.stream_position()
            ahead = _draw_ahead(engine, min(3 * (len(kinds) - done), PIECE) + spare)
            part = slice(done, done + PIECE)
            rest = zip(kinds[part].tolist(), means[part].tolist(), slopes[part].tolist(), strict=True)
            used, engine.next_normal = _consume_draws(rest, ahead, engine.next_normal, cubes, before)
            engine.restore_stream_position(mark)
            engine.words(2 * used)
            if len(cubes) == done:  # a sample used more than was precomputed
                spare *= 2
    return np.array(cubes), np.array(before)


def _consume_draws(
    rest, ahead, kept: float | None, cubes: list[float], before: list[float]
) -> tuple[int, float | None]:
    """Append to `cubes` and `before` as far as the precomputed draws reach.

    `kept` is the second of a pair of normals. Returns the number of used uniforms, and the then pending normal.
    """
    uniform, first, second = ahead
    end, at = len(uniform) - MARGIN, 0
    log = math.log
    for kind, d, c in rest:
        at_start, kept_at_start, boost = at, kept, 0.0
        if kind == 2:
            cubes.append(0.0)
            before.append(0.0)
            continue
        if kind:
            boost = uniform[at]
            at += 1
        while at <= end:
            if kept is None:
                x, kept = first[at], second[at]
                at += 2
            else:
                x, kept = kept, None
            root = 1.0 + c * x
            if root <= 0.0:
                continue
            u = 1.0 - uniform[at]
            at += 1
            v = root * root * root
            square = x * x
            if u < 1.0 - 0.0331 * square * square or log(u) < 0.5 * square + d * (1.0 - v + log(v)):
                cubes.append(v)
                before.append(boost)
                break
        else:
            return at_start, kept_at_start
    return at, kept


def _random_gamma(concentration, generator: Engine):
    kind = concentration.dtype
    values, _ = _sample_standard_gamma(concentration.ravel(), kind.itemsize > 4, generator)
    return np.fmax(values.astype(kind), np.finfo(kind).tiny).reshape(concentration.shape)


def _sum_rows(values: np.ndarray) -> np.ndarray:
    """Return the sums of rows; short ones column by column, in NumPy's order, in a fifth of its time."""
    count = values.shape[-1]
    if not 0 < count < _SHORT_ROW:
        return values.sum(-1)
    total = values[..., 0].copy()
    for column in range(1, count):
        total += values[..., column]
    return total


def _random_dirichlet(concentration, generator: Engine):
    kind = concentration.dtype
    wide = concentration.astype(np.float64).ravel()
    values, logarithms = _sample_standard_gamma(wide, kind.itemsize > 4, generator)
    values = np.fmax(values, np.finfo(np.float64).tiny).reshape(concentration.shape)
    shares = values / _sum_rows(values)[..., None]
    least = values == np.finfo(np.float64).tiny
    if least.any():  # where doubles are too large for a variate, their logarithms decide
        rows = least.any(-1)
        mask = np.broadcast_to(rows[..., None], concentration.shape)
        with np.errstate(divide="ignore"):
            logs = logarithms(mask.ravel()).reshape(-1, concentration.shape[-1])
        with np.errstate(under="ignore"):
            weights = np.exp(logs - logs.max(-1, keepdims=True))
        shares[rows] = weights / weights.sum(-1, keepdims=True)
    limits = np.finfo(kind)
    return np.clip(shares.astype(kind), limits.tiny, np.nextafter(kind.type(1), kind.type(0)))
