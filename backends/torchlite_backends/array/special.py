"""Special functions: error, gamma, zeta, incomplete gamma and Bessel functions over `xp`.

Computation is in double precision, in cache-sized blocks, rounded once to the dtype of the operand. Only `erf` has a
single-precision path, because gelu depends on its speed. tools/make_special_coefficients.py generates the coefficients.
"""

import math
import operator

import numpy as np

from torchlite._types.dtypes import FROM_NUMPY

from . import special_coefficients as T

xp = np

_BLOCK = 8192
_SQRT_HALF = math.sqrt(0.5)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


_SCALAR_LIMIT = 96
# 0-d arrays: NumPy's ufuncs take them twice as fast as Python numbers
_ERF_P = tuple(np.array(c, dtype=np.float32) for c in T.ERF_FLOAT32_P)
_ERF_Q = tuple(np.array(c, dtype=np.float32) for c in T.ERF_FLOAT32_Q)


# Building blocks


def _evaluate_horner(coefficients, x):
    """Horner's rule, highest power first."""
    total = x * coefficients[0]
    for c in coefficients[1:-1]:
        total += c
        total *= x
    total += coefficients[-1]
    return total


def _evaluate_horner_into(coefficients, x, out):
    xp.multiply(x, coefficients[0], out=out)
    for c in coefficients[1:-1]:
        xp.add(out, c, out=out)
        xp.multiply(out, x, out=out)
    xp.add(out, coefficients[-1], out=out)


def _evaluate_rational(numerator, denominator, x):
    top = _evaluate_horner(numerator, x)
    top /= _evaluate_horner(denominator, x)
    return top


def _select_piecewise(mask, yes, no, *args):
    """Select yes(*args) where mask holds and no(*args) elsewhere, each computed on its own elements only."""
    if mask.all():
        return yes(*args)
    if not mask.any():
        return no(*args)
    out = xp.empty(mask.shape, dtype=xp.float64)
    rest = ~mask
    out[mask] = yes(*(a[mask] for a in args))
    out[rest] = no(*(a[rest] for a in args))
    return out


def evaluate_blockwise(f, *arrays, wide=True):
    """Evaluate f over flat double-precision copies of the broadcast operands, block by block; keep their dtype.

    Without `wide`, float32 stays float32, so that a value overflows where it does in PyTorch.
    """
    if len(arrays) > 1:
        dtype = next(a.dtype for a in arrays if hasattr(a, "dtype"))
        arrays = xp.broadcast_arrays(*(a if hasattr(a, "dtype") else xp.asarray(a, dtype=dtype) for a in arrays))
    dtype, shape = arrays[0].dtype, arrays[0].shape
    if dtype.kind in "iubc":
        name = f.__name__.strip("_")
        suffix = "_cpu" if name in ("igamma", "igammac", "zeta", "digamma") else "_vml_cpu"
        raise NotImplementedError(f"\"{name}{suffix}\" not implemented for '{FROM_NUMPY[np.dtype(dtype)].scalar_name}'")
    flat = [a.reshape(-1) for a in arrays]
    size = flat[0].shape[0]
    inner = xp.float64 if wide or dtype == xp.float64 else xp.float32
    if size <= _BLOCK or not isinstance(flat[0], np.ndarray):
        return f(*(a.astype(inner) for a in flat)).astype(dtype, copy=False).reshape(shape)
    out = xp.empty(size, dtype=dtype)
    for start in range(0, size, _BLOCK):
        part = slice(start, start + _BLOCK)
        out[part] = f(*(a[part].astype(inner) for a in flat))
    return out.reshape(shape)


def _map_scalars(f, array):
    """Map a scalar function of `math` over a small array: faster than two dozen ufunc calls."""
    found = np.array([f(v) for v in array.reshape(-1).tolist()], dtype=array.dtype).reshape(array.shape)
    if array.flags.c_contiguous:
        return found
    out = np.empty_like(array)  # in the order of its strides
    out[...] = found
    return out


# Error functions


def _erfcx_positive(x):
    """exp(x*x) erfc(x) for x >= 0: Chebyshev in (x-4)/(x+4), the variable of Schonfelder, Math. Comp. 32 (1978)."""
    return _evaluate_horner(T.ERFCX, 1 - 8 / (x + 4)) / (x + 4)


def _exp_neg_square(x):
    """Return exp(-x*x), the square split so that its rounding error does not reach the result."""
    high = xp.round(x * 32) / 32
    return xp.exp(-high * high) * xp.exp((high - x) * (high + x))


def _erfc_positive(x):
    x = xp.minimum(x, 30.0)
    return _exp_neg_square(x) * _erfcx_positive(x)


def _erf_below_one(x):
    return x * _evaluate_horner(T.ERF_SMALL, x * x)


def _erf_above_one(x):
    return xp.copysign(1 - _erfc_positive(xp.abs(x)), x)


def _erf(x):
    return _select_piecewise(xp.abs(x) < 1, _erf_below_one, _erf_above_one, x)


def _erfc_below_half(x):
    return _select_piecewise(x < -1, lambda v: 2 - _erfc_positive(-v), lambda v: 1 - _erf_below_one(v), x)


def _erfc(x):
    return _select_piecewise(x < 0.5, _erfc_below_half, _erfc_positive, x)


def _erfcx_negative(x):
    return 2 * xp.exp(x * x) - _erfcx_positive(-x)


def _erfcx(x):
    return _select_piecewise(x < 0, _erfcx_negative, _erfcx_positive, x)


def erf_float32(x, out, scratch):
    """Compute x P(x*x)/Q(x*x) on [-4, 4] in single precision, into `out`, with three scratch arrays of its shape."""
    above, below = (_ERF_P, _ERF_Q) if isinstance(x, np.ndarray) else (T.ERF_FLOAT32_P, T.ERF_FLOAT32_Q)
    clipped, square, under = scratch
    xp.clip(x, -4, 4, out=clipped)
    xp.multiply(clipped, clipped, out=square)
    _evaluate_horner_into(above, square, out)
    xp.multiply(out, clipped, out=out)
    _evaluate_horner_into(below, square, under)
    xp.divide(out, under, out=out)
    xp.clip(out, -1, 1, out=out)


def _erf_float32_block(x):
    size = x.shape[0]
    out = xp.empty(size, dtype=xp.float32)
    block = min(size, 4 * _BLOCK) if isinstance(x, np.ndarray) else size
    scratch = [xp.empty(block, dtype=xp.float32) for _ in range(3)]
    for start in range(0, size, block or 1):
        part = out[start : start + block]
        erf_float32(x[start : start + block], part, [s[: part.shape[0]] for s in scratch])
    return out


def erf(input):
    if input.size <= _SCALAR_LIMIT and isinstance(input, np.ndarray) and input.dtype.kind != "c":
        return _map_scalars(math.erf, input)
    if input.dtype == xp.float64 or input.dtype.kind == "c":
        return evaluate_blockwise(_erf, input)
    if input.dtype == xp.float32:
        return _erf_float32_block(input.reshape(-1)).reshape(input.shape)
    return _erf_float32_block(input.reshape(-1).astype(xp.float32)).astype(input.dtype).reshape(input.shape)


def erfc(input):
    if input.size <= _SCALAR_LIMIT and isinstance(input, np.ndarray) and input.dtype.kind != "c":
        return _map_scalars(math.erfc, input)
    return evaluate_blockwise(_erfc, input)


def special_erfcx(input):
    return evaluate_blockwise(_erfcx, input)


def _normal_quantile_ratio(q):
    """Return the normal quantile at 1/2 + q divided by q, |q| <= 0.425 (the split of Wichura's AS 241)."""
    return _evaluate_rational(T.QUANTILE_CENTRE_P, T.QUANTILE_CENTRE_Q, q * q)


def _normal_quantile_tail(p):
    """Return minus the normal quantile at p < 0.075, as a function of sqrt(-log p)."""
    r = xp.sqrt(-xp.log(p))
    near = lambda r: _evaluate_rational(T.QUANTILE_TAIL_P, T.QUANTILE_TAIL_Q, r)
    far = lambda r: _evaluate_rational(T.QUANTILE_FAR_P, T.QUANTILE_FAR_Q, r)
    return xp.where(xp.isinf(r), xp.inf, _select_piecewise(r < 5, near, far, r))


def _erfinv(x):
    a = xp.abs(x)
    centre = lambda x, a: x * (0.5 * _SQRT_HALF * _normal_quantile_ratio(x * 0.5))  # one product: x may be subnormal
    tail = lambda x, a: _SQRT_HALF * xp.copysign(_normal_quantile_tail((1 - a) * 0.5), x)
    return _select_piecewise(a <= 0.85, centre, tail, x, a)


def _ndtri(p):
    q = p - 0.5

    def evaluate_tail(p, q):
        return xp.copysign(_normal_quantile_tail(xp.where(q < 0, p, 1 - p)), q)

    return _select_piecewise(xp.abs(q) <= 0.425, lambda p, q: q * _normal_quantile_ratio(q), evaluate_tail, p, q)


def _log_ndtr(x):
    left = lambda x: xp.log(_erfcx_positive(-x * _SQRT_HALF) * 0.5) - 0.5 * x * x
    return _select_piecewise(x < -1, left, lambda x: xp.log1p(-0.5 * _erfc(x * _SQRT_HALF)), x)


def erfinv(input):
    return evaluate_blockwise(_erfinv, input)


def special_ndtri(input):
    return evaluate_blockwise(_ndtri, input)


def special_ndtr(input):
    return evaluate_blockwise(lambda x: 0.5 * _erfc(-x * _SQRT_HALF), input)


def special_log_ndtr(input):
    return evaluate_blockwise(_log_ndtr, input)


# Gamma functions

_STIRLING = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_DIGAMMA = (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
# B_2j / (2j)!, the weights of the Euler-Maclaurin sum
_EULER_MACLAURIN = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
)  # fmt: skip


def _stirling_tail(x):
    """Return lgamma(x) without its leading terms, for x >= 10."""
    w = 1 / x
    return w * _evaluate_horner(_STIRLING, w * w)


def _lgamma_large(x):
    return (x - 0.5) * (xp.log(x) - 1) + (_LOG_SQRT_2PI - 0.5) + _stirling_tail(x)


def _lgamma_by_recurrence_shift(x):
    """Shift up to x >= 10 by the recurrence, then use Stirling's series."""
    product = xp.ones_like(x)
    for _ in range(10):
        low = x < 10
        product = xp.where(low, product * x, product)
        x = xp.where(low, x + 1, x)
    return _lgamma_large(x) - xp.log(product)


def _lgamma_positive(x):
    # Zero is positive: at 1 the product has the sign of 1 - 2.
    middle = lambda x: (x - 1) * (x - 2) * _evaluate_rational(T.LGAMMA_P, T.LGAMMA_Q, x) + 0.0
    other = lambda x: _select_piecewise(x < 10, _lgamma_by_recurrence_shift, _lgamma_large, x)
    return _select_piecewise((x > 0.75) & (x < 2.5), middle, other, x)


def _lgamma_negative(x):
    fraction = xp.where(xp.isinf(x), 0, x - xp.round(x))
    value = math.log(math.pi) - xp.log(xp.abs(xp.sin(math.pi * fraction))) - _lgamma_positive(1 - x)
    value = xp.where(x > -1e-20, -xp.log(-x), value)  # the sine of a subnormal number loses digits
    return xp.where(fraction == 0, xp.inf, value)  # poles, and numbers so large that they are integers


def _lgamma(x):
    return _select_piecewise(x <= 0, _lgamma_negative, _lgamma_positive, x)


def lgamma(input):
    if input.size <= _SCALAR_LIMIT and isinstance(input, np.ndarray) and input.dtype.kind != "c":
        try:
            return _map_scalars(math.lgamma, input)
        except (ValueError, OverflowError):  # a pole, or beyond the range
            pass
    return evaluate_blockwise(_lgamma, input)


def _digamma_positive(x):
    total = xp.zeros_like(x)
    for _ in range(10):
        low = x < 10
        total = xp.where(low, total - 1 / x, total)
        x = xp.where(low, x + 1, x)
    w = 1 / x
    return total + xp.log(x) - 0.5 * w - w * w * _evaluate_horner(_DIGAMMA, w * w)


def _digamma_negative(x):
    fraction = x - xp.round(x)
    value = _digamma_positive(1 - x) - math.pi / xp.tan(math.pi * fraction)
    return xp.where(x == 0, xp.copysign(xp.inf, -x), xp.where(fraction == 0, xp.nan, value))


def _digamma(x):
    return _select_piecewise(x <= 0, _digamma_negative, _digamma_positive, x)


def digamma(input):
    return evaluate_blockwise(_digamma, input)


def _zeta_positive(s, q):
    """Hurwitz zeta for q > 0, s > 1: ten terms, then the Euler-Maclaurin sum."""
    total = xp.zeros_like(q)
    for k in range(10):
        total += (q + k) ** -s
    w = q + 10
    last = w**-s
    total += w ** (1 - s) / (s - 1)
    tail = last * 0.5
    factor = s * last / w
    for j, weight in enumerate(_EULER_MACLAURIN):
        tail += weight * factor
        factor = factor * (s + (2 * j + 1)) * (s + (2 * j + 2)) / (w * w)
    return total + xp.where(last == 0, 0.0, tail)


def _zeta_negative(s, q):
    """Zeta left of zero: for an integer s the terms are a truncated zeta of 1 - q, up to the sign (-1)**s."""
    fraction = q - xp.floor(q)
    sign = xp.where(s % 2 == 0, 1.0, -1.0)
    value = _zeta_positive(s, fraction) + sign * (_zeta_positive(s, 1 - fraction) - _zeta_positive(s, 1 - q))
    value = xp.where(s == xp.floor(s), value, xp.nan)
    return xp.where(fraction == 0, xp.inf, value)


def _zeta(s, q):
    ordinary = _select_piecewise(q <= 0, _zeta_negative, _zeta_positive, s, q)
    ordinary = xp.where((q <= 0) & ((q == xp.floor(q)) | xp.isinf(s)), xp.inf, ordinary)
    return xp.where(s > 1, ordinary, xp.where((s == 1) & ~xp.isnan(q), xp.inf, xp.nan))


def _trigamma(x):
    def evaluate_negative(x):
        return (math.pi / xp.sin(math.pi * (x - xp.round(x)))) ** 2 - evaluate_positive(1 - x)

    def evaluate_positive(x):
        return xp.where(xp.isinf(x), 0.0, _zeta_positive(xp.full_like(x, 2.0), x))

    return _select_piecewise(x <= 0, evaluate_negative, evaluate_positive, x)


def special_zeta(input, other):
    return evaluate_blockwise(_zeta, input, other)


def polygamma(input, n):
    n = operator.index(n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(input)
    if n == 1:
        return evaluate_blockwise(_trigamma, input)
    scale = math.exp(math.lgamma(n + 1)) if n > 20 else float(math.factorial(n))
    return evaluate_blockwise(lambda x: (scale if n % 2 else -scale) * _zeta(xp.full_like(x, n + 1.0), x), input)


# Incomplete gamma functions


def _log1p_minus_x(x):
    """Return log(1 + x) - x without cancellation for |x| < 0.4, by the series of 2 artanh(x / (2 + x))."""
    r = x / (2 + x)
    square, term, total = r * r, r * r * r, xp.zeros_like(x)
    for k in range(3, 43, 2):
        total += term * (2 / k)
        term *= square
    return total - x * r


def _igamma_prefactor(a, x):
    """Return x**a exp(-x) / gamma(a + 1)."""

    def evaluate_large(a, x):
        mu = (x - a) / a
        decay = _select_piecewise(
            xp.abs(mu) < 0.4, lambda mu, ratio: _log1p_minus_x(mu), lambda mu, ratio: xp.log(ratio) - mu, mu, x / a
        )
        return xp.exp(a * decay - _stirling_tail(a)) / xp.sqrt(2 * math.pi * a)

    return _select_piecewise(a >= 10, evaluate_large, lambda a, x: xp.exp(a * xp.log(x) - x - _lgamma(a + 1)), a, x)


def _igamma_series(a, x, precision):
    """Return P(a, x) = factor * sum x**k / ((a+1) ... (a+k)), for x below about a + 1."""
    factor = _igamma_prefactor(a, x)
    total, term, down = xp.ones_like(a), xp.ones_like(a), xp.array(a)
    for k in range(2000):
        down += 1
        term *= x / down
        total += term
        if k & 3 == 3 and not (term > total * precision).any():
            break
    return factor * total


def _igammac_continued_fraction(a, x, precision):
    """Return Q(a, x) for x > a by the even part of Legendre's continued fraction, evaluated forwards.

    The k-th denominator is at least k, so none comes near zero.
    """
    b = x + 1 - a
    d = 1 / b
    c, h, step, rise = xp.full_like(x, xp.inf), d.copy(), xp.zeros_like(x), a - 1
    for k in range(1, 2000):
        # step is k * (a - k)
        step += rise
        rise -= 2
        b += 2
        d *= step
        d += b
        xp.divide(1, d, out=d)
        xp.divide(step, c, out=c)
        c += b
        change = c * d
        h *= change
        if k & 3 == 3 and not (xp.abs(change - 1) > precision).any():
            break
    return _igamma_prefactor(a, x) * a * h


def _igammac_small_arguments(a, x):
    """Return Q(a, x) for small x and a, arranged so that Q near 0 keeps its digits.

    The series is 1 - x**a / gamma(a+1) * (1 + a sum (-x)**k / (k! (a + k))).
    """
    term, total = xp.ones_like(x), xp.zeros_like(x)
    for k in range(1, 60):
        term *= -x / k
        total += term / (a + k)
    return -xp.expm1(a * xp.log(x) - _lgamma(a + 1)) - xp.exp(a * xp.log(x) - _lgamma(a)) * total


def _igamma_temme_expansion(a, x, sign):
    """Return P (sign -1) or Q (sign 1) for large a and x near it: Temme's uniform expansion, SIAM J. Math. Anal. 10
    (1979).
    """
    mu = (x - a) / a
    eta = xp.copysign(xp.sqrt(-2 * _log1p_minus_x(mu)), mu)
    total, power = xp.zeros_like(a), xp.ones_like(a)
    for row in T.TEMME:
        total += power * _evaluate_horner(row, eta)
        power /= a
    correction = xp.exp(-0.5 * a * eta * eta) / xp.sqrt(2 * math.pi * a) * total
    return 0.5 * _erfc(sign * eta * xp.sqrt(a * 0.5)) + sign * correction


def _select_igamma_regime(upper, precision):
    """Return a function (a, x) for finite a > 0, x > 0: Q if `upper`, else P.

    The smaller of P and Q is computed, the other is its complement.
    """
    lower, rest = (
        (lambda a, x: _igamma_series(a, x, precision)),
        (lambda a, x: _igammac_continued_fraction(a, x, precision)),
    )
    series = (lambda a, x: 1 - lower(a, x)) if upper else lower
    fraction = rest if upper else (lambda a, x: 1 - rest(a, x))
    small = _igammac_small_arguments if upper else lower

    def evaluate_ordinary(a, x):
        right = lambda a, x: _select_piecewise((x < 1.1) & (x > a), small, fraction, a, x)
        return _select_piecewise(x <= a, series, right, a, x)

    def evaluate_tiny_shape(a, x):
        return _select_piecewise((a < 1) & (x < 1), small, evaluate_ordinary, a, x)

    def evaluate_near_diagonal(a, x):
        return _igamma_temme_expansion(a, x, 1 if upper else -1)

    return lambda a, x: _select_piecewise(
        (a > 200) & (xp.abs(x - a) < 0.3 * a), evaluate_near_diagonal, evaluate_tiny_shape, a, x
    )


def _igamma_with_edge_cases(upper, precision):
    core = _select_igamma_regime(upper, precision)

    def evaluate(a, x):
        at_zero, at_infinity = (1.0, 0.0) if upper else (0.0, 1.0)
        limit = xp.where(xp.isinf(x), at_infinity, xp.nan)
        limit = xp.where(xp.isinf(a), xp.where(xp.isinf(x), xp.nan, at_zero), limit)
        limit = xp.where(x == 0, at_zero, limit)
        limit = xp.where(a == 0, xp.where(x > 0, at_infinity, xp.nan), limit)
        limit = xp.where((a < 0) | (x < 0) | xp.isnan(a) | xp.isnan(x), xp.nan, limit)
        plain = (a > 0) & (x > 0) & ~xp.isinf(a) & ~xp.isinf(x)
        if plain.any():
            limit[plain] = core(a[plain], x[plain])
        return limit

    evaluate.__name__ = "igammac" if upper else "igamma"
    return evaluate


def _igamma_of_scalars(upper, a, x):
    """Scalar P or Q where the sum or the fraction converges soon, else ValueError."""
    if not (0 < a < 10 and 1.1 <= x < 30):
        raise ValueError
    factor = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
    if x <= a:
        total = term = 1.0
        while term > total * 1e-17:
            a += 1
            term *= x / a
            total += term
        return 1 - factor * total if upper else factor * total
    b, c, k, change = x + 1 - a, math.inf, 0, 2.0
    h = d = 1 / b
    while abs(change - 1) > 4e-16:
        k += 1
        step = k * (a - k)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        change = c * d
        h *= change
    return factor * a * h if upper else 1 - factor * a * h


def _igamma(upper, input, other):
    if isinstance(input, np.ndarray) and input.dtype.kind == "f" and max(input.size, getattr(other, "size", 1)) <= 16:
        pair = np.broadcast(input, other)
        try:
            return np.array([_igamma_of_scalars(upper, float(a), float(x)) for a, x in pair], input.dtype).reshape(
                pair.shape
            )
        except ValueError:
            pass
    precise = any(getattr(operand, "dtype", None) == xp.float64 for operand in (input, other))
    return evaluate_blockwise(_igamma_with_edge_cases(upper, 4e-16 if precise else 1e-10), input, other)


def igamma(input, other):
    return _igamma(False, input, other)


def igammac(input, other):
    return _igamma(True, input, other)


# Bessel functions: the function (less its logarithm) as a polynomial near zero, the factors of its asymptotic form as
# polynomials of 1/x beyond


def _bessel_i0e_positive(x):
    return _select_piecewise(
        x <= 8,
        lambda x: _evaluate_horner(T.I0E_SMALL, x * 0.25 - 1),
        lambda x: _evaluate_horner(T.I0E_LARGE, 16 / x - 1) / xp.sqrt(x),
        x,
    )


def _bessel_i1e_positive(x):
    return _select_piecewise(
        x <= 8,
        lambda x: x * _evaluate_horner(T.I1E_SMALL, x * 0.25 - 1),
        lambda x: _evaluate_horner(T.I1E_LARGE, 16 / x - 1) / xp.sqrt(x),
        x,
    )


def _scale_by_exp(x, factor):
    """Return exp(x) * factor, finite where the product is: exp overflows before it does."""
    head = xp.minimum(x, 80)
    return xp.exp(head) * factor * xp.exp(x - head) if (x > 80).any() else xp.exp(x) * factor


def _i0(x):
    x = xp.abs(x)
    return _scale_by_exp(x, _bessel_i0e_positive(x))


def _i1(x):
    a = xp.abs(x)
    return xp.sign(x) * _scale_by_exp(a, _bessel_i1e_positive(a))


def i0(input):
    return evaluate_blockwise(_i0, input)


def special_i0e(input):
    return evaluate_blockwise(lambda x: _bessel_i0e_positive(xp.abs(x)), input)


def special_i1(input):
    return evaluate_blockwise(_i1, input)


def special_i1e(input):
    return evaluate_blockwise(lambda x: xp.sign(x) * _bessel_i1e_positive(xp.abs(x)), input)


def special_modified_bessel_i0(input):
    return evaluate_blockwise(_i0, input)


def special_modified_bessel_i1(input):
    return evaluate_blockwise(_i1, input)


def _bessel_k0e_small(x):
    return xp.exp(x) * (_evaluate_horner(T.K0_REGULAR, 0.5 * x * x - 1) - xp.log(0.5 * x) * _i0(x))


def _bessel_k1e_small(x):
    return xp.exp(x) * (_evaluate_horner(T.K1_REGULAR, 0.5 * x * x - 1) / x + xp.log(0.5 * x) * _i1(x))


def _bessel_k_scaled(x, small, table):
    value = _select_piecewise(x <= 2, small, lambda x: _evaluate_horner(table, 4 / x - 1) / xp.sqrt(x), xp.abs(x))
    return xp.where(x > 0, value, xp.where(x == 0, xp.inf, xp.nan))


def _bessel_k0e(x):
    return _bessel_k_scaled(x, _bessel_k0e_small, T.K0_LARGE)


def _bessel_k1e(x):
    return _bessel_k_scaled(x, _bessel_k1e_small, T.K1_LARGE)


def special_scaled_modified_bessel_k0(input):
    return evaluate_blockwise(_bessel_k0e, input)


def special_scaled_modified_bessel_k1(input):
    return evaluate_blockwise(_bessel_k1e, input)


def special_modified_bessel_k0(input):
    return evaluate_blockwise(lambda x: _bessel_k0e(x) * xp.exp(-x), input)


def special_modified_bessel_k1(input):
    return evaluate_blockwise(lambda x: _bessel_k1e(x) * xp.exp(-x), input)


def _hankel_asymptotic_terms(x, order):
    """Return P and Q of Hankel's form times sqrt(1 / (pi x)), and sqrt(2) cos and sin of x - pi/4 - order pi/2.

    The latter come from the cosine and sine of x itself, which loses nothing for large x.
    """
    t = 128 / (x * x) - 1
    scale = xp.sqrt(1 / (math.pi * x))
    p = _evaluate_horner(T.HANKEL1_P if order else T.HANKEL0_P, t) * scale
    q = _evaluate_horner(T.HANKEL1_Q if order else T.HANKEL0_Q, t) * (8 / x) * scale
    sine, cosine = xp.sin(x), xp.cos(x)
    if order:
        return p, q, sine - cosine, -sine - cosine
    return p, q, cosine + sine, sine - cosine


def _make_bessel_j(order):
    def evaluate_large(x):
        p, q, cosine, sine = _hankel_asymptotic_terms(x, order)
        return p * cosine - q * sine

    def evaluate_small(x):
        t = x * x / 32 - 1
        return x * _evaluate_horner(T.J1_SMALL, t) if order else _evaluate_horner(T.J0_SMALL, t)

    def evaluate(x):
        value = _select_piecewise(xp.abs(x) <= 8, evaluate_small, lambda x: evaluate_large(xp.abs(x)), x)
        return xp.where(x < -8, -value, value) if order else value

    return evaluate


def _make_bessel_y(order):
    def evaluate_large(x):
        p, q, cosine, sine = _hankel_asymptotic_terms(x, order)
        return p * sine + q * cosine

    def evaluate_small(x):
        t = x * x / 32 - 1
        if order:
            return x * _evaluate_horner(T.Y1_REGULAR, t) + (2 / math.pi) * (
                (xp.log(x) - math.log(2)) * (x * _evaluate_horner(T.J1_SMALL, t)) - 1 / x
            )
        return _evaluate_horner(T.Y0_REGULAR, t) + (2 / math.pi) * (xp.log(x) - math.log(2)) * _evaluate_horner(
            T.J0_SMALL, t
        )

    def evaluate(x):
        value = _select_piecewise(x <= 8, evaluate_small, evaluate_large, xp.abs(x))
        return xp.where(x > 0, value, xp.where(x == 0, -xp.inf, xp.nan))

    return evaluate


def special_bessel_j0(input):
    return evaluate_blockwise(_make_bessel_j(0), input)


def special_bessel_j1(input):
    return evaluate_blockwise(_make_bessel_j(1), input)


def special_bessel_y0(input):
    return evaluate_blockwise(_make_bessel_y(0), input)


def special_bessel_y1(input):
    return evaluate_blockwise(_make_bessel_y(1), input)


def _spherical_bessel_j0(x):
    square = x * x
    series = 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72)))
    return xp.where(xp.isinf(x), 0.0, xp.where(xp.abs(x) < 0.1, series, xp.sin(x) / x))


def special_spherical_bessel_j0(input):
    return evaluate_blockwise(_spherical_bessel_j0, input)


def _airy_ai(x):
    """Airy function Ai: a polynomial on [-4, 3], the oscillating form on the left, the decaying one on the right.

    Abramowitz and Stegun 10.4.59, 10.4.60.
    """

    def zeta(x):
        return (2 / 3) * x * xp.sqrt(x)

    def evaluate_decaying(x):
        z = zeta(x)
        t = (4 * math.sqrt(3)) / z - 1
        return xp.exp(-z) * _evaluate_horner(T.AIRY_DECAYING, t) / (2 * math.sqrt(math.pi) * xp.sqrt(xp.sqrt(x)))

    def evaluate_oscillating(x):
        x = -x
        z = zeta(x)
        t = 2 * (16 / 3) ** 2 / (z * z) - 1
        p, q = _evaluate_horner(T.AIRY_P, t), _evaluate_horner(T.AIRY_Q, t) / z
        return (p * xp.cos(z - math.pi / 4) + q * xp.sin(z - math.pi / 4)) / (math.sqrt(math.pi) * xp.sqrt(xp.sqrt(x)))

    def evaluate_centre(x):
        return _evaluate_horner(T.AIRY_CENTRE, (2 * x + 1) / 7)

    value = _select_piecewise(
        x > 3, evaluate_decaying, lambda x: _select_piecewise(x < -4, evaluate_oscillating, evaluate_centre, x), x
    )
    return xp.where(xp.isinf(x), xp.nan, value)


def special_airy_ai(input):
    return evaluate_blockwise(_airy_ai, input)
