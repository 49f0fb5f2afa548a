"""Orthogonal polynomials by their three-term recurrences, in double precision."""

import numpy as np

from .special import evaluate_blockwise

xp = np


def _evaluate_recurrence(x, n, first, step):
    """Return p_n(x) for p_0 = 1, p_1 = first, p_{k+1} = step(k, x, p_k, p_{k-1}).

    n, of all elements or of each, is truncated to an integer; p_n = 0 for n < 0 and for n not finite.
    """
    if n.__class__ is int:
        return _evaluate_degree(x, n, first, step)
    n = xp.trunc(xp.where(xp.abs(n) < 2.0**63, n, -1.0))
    before, now = xp.ones_like(x), first
    value = xp.where(n < 0, 0.0, xp.where(n == 0, before, now))
    for k in range(1, int(n.max()) if n.size else 0):
        before, now = now, step(k, x, now, before)
        value = xp.where(n == k + 1, now, value)
        if k % 16 == 0 and not xp.isfinite(before[n > k]).any():
            # an element that overflowed twice stays NaN
            return xp.where(n > k + 1, xp.nan, value)
    return value


def _evaluate_degree(x, n, first, step):
    """`_evaluate_recurrence` for one degree."""
    if n <= 0:
        return xp.full_like(x, 0.0 if n < 0 else 1.0)
    before, now = xp.ones_like(x), first
    for k in range(1, n):
        before, now = now, step(k, x, now, before)
        if k % 16 == 0 and not xp.isfinite(before).any():
            return xp.full_like(x, xp.nan)
    return now


def _evaluate_polynomial(f, input, n):
    """Evaluate in double precision; where the result overflows the dtype, return the recurrence's value in that
    dtype.
    """
    arrays = input, n
    if not getattr(n, "ndim", 0) and getattr(input, "ndim", 0):
        degree, g = float(n), f
        degree = int(degree) if abs(degree) < 2.0**63 else -1
        arrays, f = (input,), lambda x: g(x, degree)
    value = evaluate_blockwise(f, *arrays)
    if value.dtype != xp.float64 and not xp.isfinite(value).all():
        return xp.where(xp.isfinite(value), value, evaluate_blockwise(f, *arrays, wide=False))
    return value


def _chebyshev_step(k, x, now, before):
    return _less(x + x, now, before)


def _less(factor, now, before):
    """Return factor * now - before."""
    out = factor * now
    out -= before
    return out


def _chebyshev_t(x, n):
    return _evaluate_recurrence(x, n, x, _chebyshev_step)


def _chebyshev_u(x, n):
    return _evaluate_recurrence(x, n, x + x, _chebyshev_step)


def _chebyshev_v(x, n):
    return _evaluate_recurrence(x, n, x + x - 1, _chebyshev_step)


def _chebyshev_w(x, n):
    return _evaluate_recurrence(x, n, x + x + 1, _chebyshev_step)


def _hermite_h(x, n):
    return _evaluate_recurrence(x, n, x + x, lambda k, x, now, before: (x + x) * now - (2 * k) * before)


def _hermite_he(x, n):
    return _evaluate_recurrence(x, n, x, lambda k, x, now, before: x * now - k * before)


def _laguerre(x, n):
    return _evaluate_recurrence(x, n, 1 - x, lambda k, x, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1))


def _legendre(x, n):
    return _evaluate_recurrence(x, n, x, lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1))


def special_chebyshev_polynomial_t(input, n):
    return _evaluate_polynomial(_chebyshev_t, input, n)


def special_chebyshev_polynomial_u(input, n):
    return _evaluate_polynomial(_chebyshev_u, input, n)


def special_chebyshev_polynomial_v(input, n):
    return _evaluate_polynomial(_chebyshev_v, input, n)


def special_chebyshev_polynomial_w(input, n):
    return _evaluate_polynomial(_chebyshev_w, input, n)


def special_shifted_chebyshev_polynomial_t(input, n):
    return _evaluate_polynomial(lambda x, n: _chebyshev_t(x + x - 1, n), input, n)


def special_shifted_chebyshev_polynomial_u(input, n):
    return _evaluate_polynomial(lambda x, n: _chebyshev_u(x + x - 1, n), input, n)


def special_shifted_chebyshev_polynomial_v(input, n):
    return _evaluate_polynomial(lambda x, n: _chebyshev_v(x + x - 1, n), input, n)


def special_shifted_chebyshev_polynomial_w(input, n):
    return _evaluate_polynomial(lambda x, n: _chebyshev_w(x + x - 1, n), input, n)


def special_hermite_polynomial_h(input, n):
    return _evaluate_polynomial(_hermite_h, input, n)


def special_hermite_polynomial_he(input, n):
    return _evaluate_polynomial(_hermite_he, input, n)


def special_laguerre_polynomial_l(input, n):
    return _evaluate_polynomial(_laguerre, input, n)


def special_legendre_polynomial_p(input, n):
    return _evaluate_polynomial(_legendre, input, n)
