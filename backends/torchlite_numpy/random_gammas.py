"""Gamma and Dirichlet variates by PyTorch's method, value by value: how much of the stream a value takes depends on
what was drawn.

G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", 2000, in double precision: a normal and
a uniform for each attempt, and for a shape below 1 a uniform before them.
"""

from __future__ import annotations

import math

import numpy as np

from .mt19937 import Engine
from .random_counts import _Uniforms

THIRD = np.float32(1.0 / 3.0)  # PyTorch's constant has single precision


def _drawn(shapes: np.ndarray, engine: Engine) -> np.ndarray:
    """Gamma variates of these shapes and rate 1, as doubles; what does not depend on draws is rounded to the dtype of
    `shapes`.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        small = shapes < 1
        exponents = np.where(small, np.where(shapes >= 0, 1 / shapes, np.nan), 0).astype(np.float64)
        means = (np.where(small, shapes + 1, shapes).astype(shapes.dtype) - THIRD).astype(np.float64)
        slopes = 1.0 / np.sqrt(9.0 * means)
    uniform = _Uniforms(engine)
    kept = engine.next_normal  # the second of a pair of normals
    log, log1p, sqrt = math.log, math.log1p, math.sqrt
    values = []
    for exponent, d, c in zip(exponents.tolist(), means.tolist(), slopes.tolist(), strict=True):
        scale = 1.0
        if exponent:
            if exponent == math.inf:  # a shape of 0
                values.append(0.0)
                continue
            scale = (1.0 - uniform()) ** exponent
        while True:
            root = -1.0
            while root <= 0.0:
                if kept is None:
                    u, v = uniform(), uniform()
                    radius, angle = sqrt(-2.0 * log1p(-v)), 2.0 * math.pi * u
                    x, kept = radius * math.cos(angle), radius * math.sin(angle)
                else:
                    x, kept = kept, None
                root = 1.0 + c * x
            v = root * root * root
            u = 1.0 - uniform()
            square = x * x
            if u < 1.0 - 0.0331 * square * square or log(u) < 0.5 * square + d * (1.0 - v + log(v)):
                values.append(scale * d * v)
                break
    engine.next_normal = kept
    uniform.close()
    return np.array(values)


def random_gamma(concentration, generator: Engine):
    kind = concentration.dtype
    values = _drawn(concentration.ravel(), generator)
    return np.fmax(values.astype(kind), np.finfo(kind).tiny).reshape(concentration.shape)


def random_dirichlet(concentration, generator: Engine):
    kind = concentration.dtype
    values = _drawn(concentration.astype(np.float64).ravel(), generator).reshape(concentration.shape)
    values /= values.sum(-1, keepdims=True)
    limits = np.finfo(kind)
    return np.clip(values.astype(kind), limits.tiny, np.nextafter(kind.type(1), kind.type(0)))
