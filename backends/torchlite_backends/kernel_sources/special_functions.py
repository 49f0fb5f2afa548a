"""C functions of the special functions, over a real type R: double if the device has it, else float.

Formulas and coefficients are those of the array kernels (`torchlite_backends.array.special`); each family names its
references. `source_of(expression)` returns the functions that an expression calls.
"""

from __future__ import annotations

import math
import re

from torchlite_backends.array import special_coefficients as T

from .c_function_deps import make_dependency_collector


def _polynomial_source(coefficients) -> str:
    """Return a function by Horner's rule, highest power first."""
    first, *rest = (repr(float(c)) for c in coefficients)
    return (
        "FUNCTION R @(R x) {\n    R t = "
        + first
        + ";\n"
        + "".join(f"    t = t * x + {c};\n" for c in rest)
        + "    return t;\n}\n"
    )


_STIRLING = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_DIGAMMA = (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
# B_2j / (2j)!, the weights of the Euler-Maclaurin sum
_EULER_MACLAURIN = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
    -3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000,
)  # fmt: skip
_EULER_STEPS = "".join(
    f"    tail += {weight!r} * factor;\n    factor = factor * (s + {2 * j + 1}) * (s + {2 * j + 2}) / (w * w);\n"
    for j, weight in enumerate(_EULER_MACLAURIN)
)

_TABLES = {f"p_{name.lower()}": getattr(T, name) for name in vars(T) if name.isupper() and name != "TEMME"}
_TABLES |= {f"p_temme{k}": row for k, row in enumerate(T.TEMME)} | {"p_stirling": _STIRLING, "p_digamma": _DIGAMMA}
FUNCTIONS: dict[str, str] = {name: _polynomial_source(table).replace("@", name) for name, table in _TABLES.items()}


def _add_functions(text: str) -> None:
    """Add the functions of a text, each under its name."""
    for body in re.split(r"(?m)^(?=FUNCTION )", text):
        name = re.match(r"FUNCTION \w+ (\w+)\(", body)
        if name:
            FUNCTIONS[name[1]] = body


# Error functions: near zero a polynomial; elsewhere exp(x*x) erfc(x) as a Chebyshev series in (x-4)/(x+4) (Schonfelder,
# Math. Comp. 32, 1978), and the square in the exponent split so that its rounding error does not reach the result. The
# normal quantile: the splits of Wichura's AS 241.
_add_functions(f"""
FUNCTION R s_erfcx_right(R x) {{ return p_erfcx(1 - 8 / (x + 4)) / (x + 4); }}
FUNCTION R s_erfc_right(R x) {{
    x = x > 30 ? 30 : x;
    R high = rint(x * 32) * 0.03125;
    return exp(-high * high) * exp((high - x) * (high + x)) * s_erfcx_right(x);
}}
FUNCTION R s_erf(R x) {{ return fabs(x) < 1 ? x * p_erf_small(x * x) : copysign(1 - s_erfc_right(fabs(x)), x); }}
FUNCTION R s_erfc(R x) {{
    if (x >= 0.5) return s_erfc_right(x);
    return x < -1 ? 2 - s_erfc_right(-x) : 1 - x * p_erf_small(x * x);
}}
FUNCTION R s_erfcx(R x) {{ return x < 0 ? 2 * exp(x * x) - s_erfcx_right(-x) : s_erfcx_right(x); }}
FUNCTION R s_quantile_ratio(R q) {{ R t = q * q; return p_quantile_centre_p(t) / p_quantile_centre_q(t); }}
FUNCTION R s_quantile_tail(R p) {{
    R r = sqrt(-log(p));
    if (isinf(r)) return r;
    return r < 5 ? p_quantile_tail_p(r) / p_quantile_tail_q(r) : p_quantile_far_p(r) / p_quantile_far_q(r);
}}
FUNCTION R s_erfinv(R x) {{
    R a = fabs(x);
    // One product, as x may be subnormal.
    if (a <= 0.85) return x * ({0.5 * math.sqrt(0.5)!r} * s_quantile_ratio(x * 0.5));
    return {math.sqrt(0.5)!r} * copysign(s_quantile_tail((1 - a) * 0.5), x);
}}
FUNCTION R s_ndtri(R p) {{
    R q = p - 0.5;
    return fabs(q) <= 0.425 ? q * s_quantile_ratio(q) : copysign(s_quantile_tail(q < 0 ? p : 1 - p), q);
}}
FUNCTION R s_ndtr(R x) {{ return 0.5 * s_erfc(x * {-math.sqrt(0.5)!r}); }}
FUNCTION R s_log_ndtr(R x) {{
    R t = x * {-math.sqrt(0.5)!r};
    return x < -1 ? log(s_erfcx_right(t) * 0.5) - 0.5 * x * x : log1p(-0.5 * s_erfc(-t));
}}
""")

# Gamma functions: a rational function around 1 and 2, the recurrence up to 10, Stirling's series, reflection (DLMF 5.5,
# 5.11). Zeta: ten terms, then the Euler-Maclaurin sum; left of zero, for an integer s, the terms are those of the zeta
# of 1 - q (DLMF 25.11).
_add_functions(f"""
FUNCTION R s_stirling(R x) {{ R w = 1 / x; return w * p_stirling(w * w); }}
FUNCTION R s_lgamma_large(R x) {{
    return (x - 0.5) * (log(x) - 1) + {0.5 * math.log(2 * math.pi) - 0.5!r} + s_stirling(x);
}}
FUNCTION R s_lgamma_right(R x) {{
    if (x > 0.75 && x < 2.5) return (x - 1) * (x - 2) * p_lgamma_p(x) / p_lgamma_q(x) + 0;
    R product = 1;
    while (x < 10) {{
        product *= x;
        x += 1;
    }}
    return s_lgamma_large(x) - log(product);
}}
FUNCTION R s_lgamma(R x) {{
    if (isinf(x) || (x <= 0 && x == rint(x))) return INFINITY;
    if (x <= 0 && x > -1e-20) return -log(-x);  // the sine of a subnormal number loses digits
    if (x <= 0) return {math.log(math.pi)!r} - log(fabs(sin({math.pi!r} * (x - rint(x))))) - s_lgamma_right(1 - x);
    return s_lgamma_right(x);
}}
FUNCTION R s_digamma_right(R x) {{
    R total = 0;
    while (x < 10) {{
        total -= 1 / x;
        x += 1;
    }}
    R w = 1 / x;
    return total + log(x) - 0.5 * w - w * w * p_digamma(w * w);
}}
FUNCTION R s_digamma(R x) {{
    if (x > 0) return s_digamma_right(x);
    if (x == 0) return copysign((R)INFINITY, -x);
    R fraction = x - rint(x);
    if (!(fraction != 0)) return NAN;
    return s_digamma_right(1 - x) - {math.pi!r} / tan({math.pi!r} * fraction);
}}
FUNCTION R s_zeta_right(R s, R q) {{
    R total = 0;
    for (int k = 0; k < 10; k++) total += pow(q + k, -s);
    R w = q + 10, last = pow(w, -s);
    total += pow(w, 1 - s) / (s - 1);
    if (last == 0) return total;
    R tail = last * 0.5, factor = s * last / w;
{_EULER_STEPS}    return total + tail;
}}
FUNCTION R s_zeta_left(R s, R q) {{
    R fraction = q - floor(q);
    if (fraction == 0) return INFINITY;
    if (s != floor(s)) return NAN;
    R rest = s_zeta_right(s, 1 - fraction) - s_zeta_right(s, 1 - q);
    return s_zeta_right(s, fraction) + (fmod(s, (R)2) == 0 ? rest : -rest);
}}
FUNCTION R s_zeta(R s, R q) {{
    if (s == 1 && q == q) return INFINITY;
    if (!(s > 1)) return NAN;
    if (q <= 0 && (q == floor(q) || isinf(s))) return INFINITY;
    return q <= 0 ? s_zeta_left(s, q) : s_zeta_right(s, q);
}}
FUNCTION R s_trigamma_right(R x) {{ return isinf(x) ? 0 : s_zeta_right(2, x); }}
FUNCTION R s_trigamma(R x) {{
    if (!(x <= 0)) return s_trigamma_right(x);
    R ratio = {math.pi!r} / sin({math.pi!r} * (x - rint(x)));
    return ratio * ratio - s_trigamma_right(1 - x);
}}
FUNCTION R s_polygamma(R x, R n, R scale) {{ return n == 1 ? s_trigamma(x) : scale * s_zeta(n + 1, x); }}
""")

# Incomplete gamma functions P (lower) and Q (upper): series, Legendre's continued fraction by Lentz' method (DLMF 8.9),
# and for a large shape and an argument near it Temme's uniform expansion (SIAM J. Math. Anal. 10, 1979). Each is
# computed where it is the small one, and is 1 - the other elsewhere.
_add_functions(f"""
FUNCTION R s_log1p_less(R x) {{
    R r = x / (2 + x), square = r * r, term = r * square, total = 0;
    for (int k = 3; k < 43; k += 2) {{
        total += term * 2 / k;
        term *= square;
    }}
    return total - x * r;
}}
FUNCTION R s_gamma_factor(R a, R x) {{
    if (a < 10) return exp(a * log(x) - x - s_lgamma(a + 1));
    R mu = (x - a) / a;
    R decay = fabs(mu) < 0.4 ? s_log1p_less(mu) : log(x / a) - mu;
    return exp(a * decay - s_stirling(a)) / sqrt({2 * math.pi!r} * a);
}}
FUNCTION R s_igamma_series(R a, R x) {{
    R total = 1, term = 1, down = a;
    for (int k = 0; k < 2000; k++) {{
        down += 1;
        term *= x / down;
        total += term;
        if (!(term > total * 1e-17)) break;
    }}
    return s_gamma_factor(a, x) * total;
}}
FUNCTION R s_igammac_fraction(R a, R x) {{
    const R tiny = sizeof(R) == 8 ? 1e-300 : 1e-30;
    const R exact = sizeof(R) == 8 ? 4e-16 : 2e-7;
    R b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (int k = 1; k < 2000; k++) {{
        R step = k * (a - k);
        b += 2;
        d = step * d + b;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = b + step / c;
        c = fabs(c) < tiny ? tiny : c;
        R change = c * d;
        h *= change;
        if (!(fabs(change - 1) > exact)) break;
    }}
    return s_gamma_factor(a, x) * a * h;
}}
FUNCTION R s_igammac_small(R a, R x) {{
    R term = 1, total = 0;
    for (int k = 1; k < 60; k++) {{
        term *= -x / k;
        total += term / (a + k);
    }}
    return -expm1(a * log(x) - s_lgamma(a + 1)) - exp(a * log(x) - s_lgamma(a)) * total;
}}
FUNCTION R s_temme(R a, R x, R side) {{
    R mu = (x - a) / a;
    R eta = copysign(sqrt(-2 * s_log1p_less(mu)), mu);
    R total = p_temme0(eta) + (p_temme1(eta) + (p_temme2(eta) + p_temme3(eta) / a) / a) / a;
    R correction = exp(-0.5 * a * eta * eta) / sqrt({2 * math.pi!r} * a) * total;
    return 0.5 * s_erfc(side * eta * sqrt(a * 0.5)) + side * correction;
}}
FUNCTION R s_igamma_limit(R a, R x, R at_zero, R at_infinity) {{
    if (a < 0 || x < 0 || isnan(a) || isnan(x)) return NAN;
    if (a == 0) return x > 0 ? at_infinity : (R)NAN;
    if (x == 0) return at_zero;
    if (isinf(a)) return isinf(x) ? (R)NAN : at_zero;
    return isinf(x) ? at_infinity : (R)NAN;
}}
FUNCTION R s_igamma(R a, R x) {{
    if (!(a > 0 && x > 0) || isinf(a) || isinf(x)) return s_igamma_limit(a, x, 0, 1);
    if (a > 200 && fabs(x - a) < 0.3 * a) return s_temme(a, x, -1);
    return x <= a || (a < 1 && x < 1) || x < 1.1 ? s_igamma_series(a, x) : 1 - s_igammac_fraction(a, x);
}}
FUNCTION R s_igammac(R a, R x) {{
    if (!(a > 0 && x > 0) || isinf(a) || isinf(x)) return s_igamma_limit(a, x, 1, 0);
    if (a > 200 && fabs(x - a) < 0.3 * a) return s_temme(a, x, 1);
    if ((a < 1 && x < 1) || (x > a && x < 1.1)) return s_igammac_small(a, x);
    return x <= a ? 1 - s_igamma_series(a, x) : s_igammac_fraction(a, x);
}}
""")

# Bessel functions: polynomials near zero (of the function without its logarithm), polynomials of 1/x for the factors of
# the asymptotic forms beyond (DLMF 10.17 and 10.40; Airy: Abramowitz and Stegun 10.4.59 and 10.4.60). Sums of sine and
# cosine give the angle x - pi/4 without loss for large x.
_add_functions(f"""
FUNCTION R s_i0e_right(R x) {{ return x <= 8 ? p_i0e_small(x * 0.25 - 1) : p_i0e_large(16 / x - 1) / sqrt(x); }}
FUNCTION R s_i1e_right(R x) {{ return x <= 8 ? x * p_i1e_small(x * 0.25 - 1) : p_i1e_large(16 / x - 1) / sqrt(x); }}
FUNCTION R s_i0e(R x) {{ return s_i0e_right(fabs(x)); }}
FUNCTION R s_i1e(R x) {{ return x == 0 ? x : copysign(s_i1e_right(fabs(x)), x); }}
FUNCTION R s_scale_by_exp(R x, R factor) {{
    return x > 80 ? exp((R)80) * factor * exp(x - 80) : exp(x) * factor;
}}
FUNCTION R s_i0(R x) {{ return s_scale_by_exp(fabs(x), s_i0e(x)); }}
FUNCTION R s_i1(R x) {{ return s_scale_by_exp(fabs(x), s_i1e(x)); }}
FUNCTION R s_k_limit(R x) {{ return x == 0 ? (R)INFINITY : (R)NAN; }}
FUNCTION R s_k0e(R x) {{
    if (!(x > 0)) return s_k_limit(x);
    if (x <= 2) return exp(x) * (p_k0_regular(0.5 * x * x - 1) - log(0.5 * x) * s_i0(x));
    return p_k0_large(4 / x - 1) / sqrt(x);
}}
FUNCTION R s_k1e(R x) {{
    if (!(x > 0)) return s_k_limit(x);
    if (x <= 2) return exp(x) * (p_k1_regular(0.5 * x * x - 1) / x + log(0.5 * x) * s_i1(x));
    return p_k1_large(4 / x - 1) / sqrt(x);
}}
FUNCTION R s_k0(R x) {{ return s_k0e(x) * exp(-x); }}
FUNCTION R s_k1(R x) {{ return s_k1e(x) * exp(-x); }}
FUNCTION R s_j0_large(R x) {{
    R t = 128 / (x * x) - 1, scale = sqrt(1 / ({math.pi!r} * x)), s = sin(x), c = cos(x);
    return scale * (p_hankel0_p(t) * (c + s) - p_hankel0_q(t) * (8 / x) * (s - c));
}}
FUNCTION R s_j1_large(R x) {{
    R t = 128 / (x * x) - 1, scale = sqrt(1 / ({math.pi!r} * x)), s = sin(x), c = cos(x);
    return scale * (p_hankel1_p(t) * (s - c) + p_hankel1_q(t) * (8 / x) * (s + c));
}}
FUNCTION R s_y0_large(R x) {{
    R t = 128 / (x * x) - 1, scale = sqrt(1 / ({math.pi!r} * x)), s = sin(x), c = cos(x);
    return scale * (p_hankel0_p(t) * (s - c) + p_hankel0_q(t) * (8 / x) * (c + s));
}}
FUNCTION R s_y1_large(R x) {{
    R t = 128 / (x * x) - 1, scale = sqrt(1 / ({math.pi!r} * x)), s = sin(x), c = cos(x);
    return scale * (p_hankel1_q(t) * (8 / x) * (s - c) - p_hankel1_p(t) * (s + c));
}}
FUNCTION R s_j0(R x) {{ return fabs(x) <= 8 ? p_j0_small(x * x / 32 - 1) : s_j0_large(fabs(x)); }}
FUNCTION R s_j1(R x) {{
    return fabs(x) <= 8 ? x * p_j1_small(x * x / 32 - 1) : copysign((R)1, x) * s_j1_large(fabs(x));
}}
FUNCTION R s_y0(R x) {{
    if (!(x > 0)) return x == 0 ? (R)-INFINITY : (R)NAN;
    if (x > 8) return s_y0_large(x);
    R t = x * x / 32 - 1;
    return p_y0_regular(t) + {2 / math.pi!r} * (log(x) - {math.log(2)!r}) * p_j0_small(t);
}}
FUNCTION R s_y1(R x) {{
    if (!(x > 0)) return x == 0 ? (R)-INFINITY : (R)NAN;
    if (x > 8) return s_y1_large(x);
    R t = x * x / 32 - 1;
    return x * p_y1_regular(t) + {2 / math.pi!r} * ((log(x) - {math.log(2)!r}) * x * p_j1_small(t) - 1 / x);
}}
FUNCTION R s_spherical_j0(R x) {{
    if (isinf(x)) return 0;
    R square = x * x;
    return fabs(x) < 0.1 ? 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72))) : sin(x) / x;
}}
FUNCTION R s_airy_right(R x) {{
    R z = {2 / 3!r} * x * sqrt(x);
    return exp(-z) * p_airy_decaying({4 * math.sqrt(3)!r} / z - 1) / ({2 * math.sqrt(math.pi)!r} * sqrt(sqrt(x)));
}}
FUNCTION R s_airy_left(R x) {{
    R z = {2 / 3!r} * x * sqrt(x), t = {2 * (16 / 3) ** 2!r} / (z * z) - 1, angle = z - {math.pi / 4!r};
    return (p_airy_p(t) * cos(angle) + p_airy_q(t) / z * sin(angle)) / ({math.sqrt(math.pi)!r} * sqrt(sqrt(x)));
}}
FUNCTION R s_airy(R x) {{
    if (isinf(x)) return NAN;
    return x > 3 ? s_airy_right(x) : x < -4 ? s_airy_left(-x) : p_airy_centre((2 * x + 1) / 7);
}}
""")

# Orthogonal polynomials by their three-term recurrences (DLMF 18.9): p_1 and p_{k+1} of k, x, now (p_k) and before
# (p_{k-1}). A result too large for float is recomputed in float, to overflow as in PyTorch: to infinity or NaN.
_RECURRENCES = {
    "chebyshev_t": ("x", "(x + x) * now - before"), "chebyshev_u": ("x + x", "(x + x) * now - before"),
    "chebyshev_v": ("x + x - 1", "(x + x) * now - before"), "chebyshev_w": ("x + x + 1", "(x + x) * now - before"),
    "hermite_h": ("x + x", "(x + x) * now - (F)(2 * k) * before"),
    "hermite_he": ("x", "x * now - (F)k * before"),
    "laguerre": ("1 - x", "(((F)(2 * k + 1) - x) * now - (F)k * before) / (F)(k + 1)"),
    "legendre": ("x", "((F)(2 * k + 1) * x * now - (F)k * before) / (F)(k + 1)"),
}  # fmt: skip
_RECURRENCE = """
FUNCTION F NAME(F x, F n) {
    if (!(n > -1 && n < 9e18f)) return 0;
    const long degree = (long)n;
    F before = 1, now = FIRST;
    if (degree == 0) return 1;
    for (long k = 1; k < degree && now == now; k++) {
        F next = STEP;
        before = now;
        now = next;
    }
    return now;
}
"""
for _name, (_first, _step) in _RECURRENCES.items():
    for _suffix, _type in (("", "R"), ("_f", "float")):
        _add_functions(
            re.sub(
                r"\bF\b",
                _type,
                _RECURRENCE.replace("NAME", f"s_{_name}{_suffix}").replace("FIRST", _first).replace("STEP", _step),
            )
        )

source_of = make_dependency_collector(FUNCTIONS, "ps")
