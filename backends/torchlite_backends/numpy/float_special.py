"""Special functions of float32 by polynomials that suffice for it, in double precision; others by the shared kernels.

The shared kernels serve float64 and choose a formula for each element. Here one formula computes all elements of a
block, and the few beyond its domain are computed again. The polynomials are least-squares fits at Chebyshev nodes.
Their relative errors are below 1e-9 (`ERFCX`) and 3e-9 (the others), a twentieth of float32's.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from torchlite_backends.array import special as shared

from .elementwise_partitioning import apply_to_elementwise_parts

MIN_SIZE = 1 << 10  # elements
_BLOCK = 1 << 14  # elements, of which a few arrays of doubles stay in a core's cache
_F32, _F64 = np.dtype("f4"), np.dtype("f8")
_SQRT_HALF = math.sqrt(0.5)

# exp(x^2) erfc(x) (x + 4) for x from 0 to 12, in powers of 1 - 8 / (x + 4)
ERFCX = (
    6.638431701996318e-05, -0.0005718473309353838, -0.0002469685306447189, 0.006189788573700777, -0.02636538531008528,
    0.07636243803596648, -0.17401339196631094, 0.3308536302009502, -0.5408536119201903, 0.7732086199834008,
    -0.9765487331412055, 1.0959956615564108,
)  # fmt: skip
# erfinv(x) / x in powers of w = -log(1 - x^2), up to w = 5
ERFINV = (
    3.6570434400367223e-10, -1.789077984920602e-08, 3.1726116395597277e-07, -2.539947396071584e-06,
    5.977983143512224e-06, 4.019096308114059e-05, -0.00012163203256984949, -0.002338803947007713, 0.011550429040859952,
    0.2320135433983977, 0.8862269277246545,
)  # fmt: skip
# The same in powers of sqrt(w) - 3.25, from w = 4.9 to 17.5. The w of float32 are at most 16 for x, below 1.
ERFINV_TAIL = (
    -3.0887195359667134e-05, 8.379865534624553e-05, 1.850504707588025e-06, -0.00036435070706233137,
    0.0009662621190040799, -0.0016855917108878433, 0.002488065580661793, -0.003751529826856839, 0.00537123562583831,
    1.0052589780364438, 3.0838856055067296,
)  # fmt: skip
# Lanczos' series with g = 7: gamma(x) = sqrt(2 pi) (x + 6.5)^(x - 0.5) exp(-x - 6.5) sum, by partial fractions
LANCZOS = (
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
    -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


def _compute(body: Any, plain: Any, input: np.ndarray) -> np.ndarray:
    """Return a new array filled by `body(x)` over blocks, as doubles, of a large float32 array."""
    if input.dtype != _F32 or input.size < MIN_SIZE:
        return plain(input)
    out = np.empty(input.shape, _F32)

    def block(part: np.ndarray, x: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            part[...] = body(x.astype(_F64))

    apply_to_elementwise_parts(block, out, (input,), _BLOCK)
    return out


def _evaluate(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    out = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        out += coefficient
        out *= x
    out += coefficients[-1]
    return out


def _recompute(out: np.ndarray, places: np.ndarray, function: Any, x: np.ndarray) -> np.ndarray:
    """Set the elements of `out` where `places` to those of a function of float64."""
    if places.any():
        out[places] = function(x[places])
    return out


def _erfc(x: np.ndarray) -> np.ndarray:
    size = np.absolute(x)
    np.minimum(size, 12.0, out=size)
    shift = size + 4.0
    out = _evaluate(ERFCX, 1.0 - 8.0 / shift)
    out /= shift
    size *= size
    np.negative(size, out=size)
    out *= np.exp(size, out=size)
    np.copysign(out, x, out=out)
    out += 2.0 * np.signbit(x)
    return out


def _erfinv(x: np.ndarray) -> np.ndarray:
    w = np.log((1.0 - x) * (1.0 + x))  # 1 - x^2 is exact but for small x, whose erfinv(x) / x is nearly constant
    np.negative(w, out=w)
    return _recompute(_evaluate_erfinv(w) * x, w >= 17.5, shared._erfinv, x)


def _evaluate_erfinv(w: np.ndarray) -> np.ndarray:
    """Return erfinv(x) / x for w = -log(1 - x^2) up to 17.5."""
    out = _evaluate(ERFINV, w)
    far: Any = w >= 5.0
    if far.ndim == 1:
        far = np.flatnonzero(far)
    if far.size:
        out[far] = _evaluate(ERFINV_TAIL, np.sqrt(w[far]) - 3.25)
    return out


def _ndtri(p: np.ndarray) -> np.ndarray:
    w = np.log(4.0 * p * (1.0 - p))
    np.negative(w, out=w)
    out = _evaluate_erfinv(w)
    out *= (2.0 * math.sqrt(2.0)) * p - math.sqrt(2.0)
    return _recompute(out, w >= 17.5, shared._ndtri, p)


def _lgamma(x: np.ndarray) -> np.ndarray:
    total = np.full(x.shape, 0.99999999999980993)
    shifted = x.copy()
    for coefficient in LANCZOS:
        total += coefficient / shifted
        shifted += 1.0
    base = x + 6.5
    out = np.log(base)
    out *= x - 0.5
    out -= base
    out += np.log(total)
    out += 0.5 * math.log(2.0 * math.pi)
    out[(x == 1.0) | (x == 2.0)] = 0.0
    return _recompute(out, ~((x > 0.0) & (x < np.inf)), shared._lgamma, x)


def _trigamma(x: np.ndarray) -> np.ndarray:
    # Six terms 1 / (x + k)^2, two with one quotient each, and the asymptotic series at x + 6.
    total = np.zeros(x.shape)
    for k in (0, 2, 4):
        first, second = x + k, x + (k + 1)
        first *= first
        second *= second
        product = first * second
        first += second
        first /= product
        total += first
    w = 1.0 / (x + 6.0)
    square = w * w
    series = _evaluate((-1 / 30, 1 / 42, -1 / 30, 1 / 6), square)
    series *= square
    series += 0.5 * w
    series += 1.0
    series *= w
    total += series
    # Products of tiny or large numbers leave the range of float64.
    return _recompute(total, ~((x > 1e-18) & (x < 1e18)), shared._trigamma, x)


def polygamma(input, n):
    n = operator.index(n)
    return _compute(_trigamma, lambda x: shared.polygamma(x, n), input) if n == 1 else shared.polygamma(input, n)


def erfc(input):
    return _compute(_erfc, shared.erfc, input)


def erfinv(input):
    return _compute(_erfinv, shared.erfinv, input)


def special_ndtr(input):
    return _compute(lambda x: 0.5 * _erfc(x * -_SQRT_HALF), shared.special_ndtr, input)


def special_ndtri(input):
    return _compute(_ndtri, shared.special_ndtri, input)


def lgamma(input):
    return _compute(_lgamma, shared.lgamma, input)
