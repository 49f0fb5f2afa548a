"""Table of pointwise rules: C text for each op and dtype category, in the notation of `pointwise.Rule`."""

from __future__ import annotations

import math

from torchlite_backends.array.special_coefficients import ERF_FLOAT32_P, ERF_FLOAT32_Q

from .pointwise_codegen import Rule

RULES: dict[str, Rule] = {}


def add_rule(name: str, f: str = "", i: str = "", b: str = "", c: str = "", **how) -> Rule:
    """Add a rule to the table."""
    RULES[name] = made = Rule(name, f, i, b, c, **how)
    return made


def add_real_rule(name: str, text: str, c: str = "", **how) -> Rule:
    """Add a rule with one text for all real numbers."""
    return add_rule(name, text, text, text, c, **how)


def horner_source(coefficients, x: str, t: str) -> str:
    """Return statements that set `t` to a polynomial of `x`, the highest power first."""
    first, *rest = (f"N({float(c)!r})" for c in coefficients)
    return f"X {t} = (X)({first}); " + " ".join(f"{t} = {t} * {x} + {c};" for c in rest) + " "


# -- arithmetic --

_NEG_LIKE = "((m != 0) & ((b < 0) != (m < 0)))"
# A divisor of 0 or -1 would stop the process on some devices. PyTorch leaves integer division by zero undefined on
# devices.
_DIVIDED = "S s = b == 0 || (SIGNED && b == (S)-1) ? (S)1 : b; S q = a / s; S m = a - q * s; "
_QUOTIENT = "return b == 0 ? (S)-1 : b == s ? q : (S)-a;"
_FLOORED = "if (SIGNED && m != 0 && (m < 0) != (b < 0)) "

# q rounded to the 16-bit type, for scalars and vectors: bits are dropped by adding and subtracting a multiple (Dekker's
# splitting). The multiple is a sum: compilers would fuse a product with the subtraction, which rounds nothing.
_ROUNDED_HALF = "X t = q * N(8192) + q; X u = t - q; t = t - u; q = t == t ? t : q; "
_ROUNDED_BF16 = "X t = q * N(65536) + q; X u = t - q; t = t - u; q = t == t ? t : q; "

add_rule("add", f="a + b", i="a + b", b="a | b", c="a + b")
add_rule("sub", f="a - b", i="a - b", c="a - b")
add_rule("mul", f="a * b", i="a * b", b="a & b", c="c_mul(a, b)")
add_rule("div", f="a / b", c="c_div(a, b)")
add_rule("fmod", f="fmod(a, b)", i=_DIVIDED + "return b == 0 ? a : b == s ? m : (S)0;", scalar="i")
add_rule(
    "remainder",
    f=f"X m = fmod(a, b); return {_NEG_LIKE} ? m + b : m;",
    i=_DIVIDED + _FLOORED + "m += b; return b == 0 ? a : b == s ? m : (S)0;",
    scalar="i",
)
add_rule(
    "floor_divide",
    f=f"X m = fmod(a, b), q = (a - m) / b; q = {_NEG_LIKE} ? q - 1 : q; X r = floor(q); r = q - r > N(0.5) ? r + 1 : "
    "r; r = q == 0 ? copysign((X)(0), a / b) : r; return b == 0 ? a / b : r;",
    i=_DIVIDED + _FLOORED + "q -= 1; " + _QUOTIENT,
    scalar="i",
    kernel="div_floor_cpu",
)
# PyTorch rounds a quotient of the 16-bit types before it drops the fraction.
add_rule(
    "_trunc_divide",
    f="trunc(a / b)",
    i=_DIVIDED + _QUOTIENT,
    scalar="i",
    kernel="div_trunc_cpu",
    by_kind={
        "f16": "X q = a / b; " + _ROUNDED_HALF + "return trunc(q);",
        "bf16": "X q = a / b; " + _ROUNDED_BF16 + "return trunc(q);",
    },
)
RULES["_floor_divide"] = RULES["floor_divide"]
# 1 and -1 have an inverse among the integers; the rest becomes 0.
add_rule(
    "pow",
    f="pow(a, b)",
    c="c_pow(a, b)",
    wide="c",
    kernel="pow",
    scalar="i",
    i="S r = 1, t = a, e = b; if (SIGNED && e < 0) { r = a == 1 ? (S)1 : a == (S)-1 ? (e & 1 ? (S)-1 : (S)1) : (S)0; e "
    "= 0; } for (; e; e >>= 1) { if (e & 1) r *= t; t *= t; } return r;",
)


def _complex_error(name: str) -> dict[str, Exception]:
    return {"c": RuntimeError(f"{name} not implemented for complex tensors.")}


add_rule("maximum", f="((a > b) | (a != a)) ? a : b", i="a > b ? a : b", b="a | b", refuses=_complex_error("maximum"))
add_rule("minimum", f="((a < b) | (a != a)) ? a : b", i="a < b ? a : b", b="a & b", refuses=_complex_error("minimum"))
# Of zeros the first, as on the CPU: fmax and fmin of the devices' libraries give either.
add_rule("fmax", f="((b > a) | (a != a)) ? b : a", i="a > b ? a : b", b="a | b", refuses=_complex_error("fmax"))
add_rule("fmin", f="((b < a) | (a != a)) ? b : a", i="a < b ? a : b", b="a & b", refuses=_complex_error("fmin"))
add_rule("hypot", f="hypot(a, b)")
add_rule("atan2", f="atan2(a, b)")
add_rule("copysign", f="copysign(a, b)")
# For the 16-bit types in bits: away from zero is up.
_NEXTAFTER = "{t} u = a == 0 ? ({t})((b < 0 ? {top} : 0) + 1) : (b > a) == (a > 0) ? ({t})(s + 1) : ({t})(s - 1); "
_UNORDERED = "return a != a || b != b ? a + b : a == b ? b : "
add_rule(
    "nextafter",
    f="nextafter(a, b)",
    scalar="f",
    by_kind={
        "bf16": "uint s = as_uint(a) >> 16; "
        + _NEXTAFTER.format(t="uint", top="0x8000u")
        + _UNORDERED
        + "as_float(u << 16);",
        "f16": "ushort s; ST_HALF((half*)&s, 0, a); "
        + _NEXTAFTER.format(t="ushort", top="0x8000")
        + _UNORDERED
        + "LD_HALF((const half*)&u, 0);",
    },
)
add_rule(
    "logaddexp",
    f=f"X d = fabs(a - b); return a == b ? a + N({math.log(2)!r}) : (isnan(d) ? d : (a > b ? a : b) + log1p(exp(-d)));",
    c="c_logaddexp(a, b)",
    wide="c",
)
add_rule(
    "logaddexp2",
    f="X d = fabs(a - b); return a == b ? a + 1 : (isnan(d) ? d : (a > b ? a : b) + log1p(exp2(-d)) * "
    f"N({1 / math.log(2)!r}));",
)
add_real_rule(
    "heaviside",
    "a == 0 ? b : (a > 0 ? (X)(1) : (X)(0))",
    refuses={"c": RuntimeError("heaviside is not yet implemented for complex tensors.")},
)
_GCD = (
    "S x = SIGNED && a < 0 ? (S)-a : a; S y = SIGNED && b < 0 ? (S)-b : b; while (y != 0) { S t = x % y; x = y; y = "
    "t; } "
)
add_rule("gcd", i=_GCD + "return x;", scalar="i")
add_rule("lcm", i=_GCD + "S m = x == 0 ? (S)0 : (S)(a / x * b); return SIGNED && m < 0 ? (S)-m : m;", scalar="i")
add_rule("xlogy", f="((a == 0) & (b == b)) ? (X)(0) : a * log(b)")
add_rule("special_xlog1py", f="((a == 0) & (b == b)) ? (X)(0) : a * log1p(b)", kernel="xlogy_cpu")

# -- comparisons and logic --

_TRUE = {"a": "((a.x != 0) | (a.y != 0))", "b": "((b.x != 0) | (b.y != 0))"}
add_real_rule("eq", "a == b", c="(a.x == b.x) & (a.y == b.y)", test=True)
add_real_rule("ne", "a != b", c="(a.x != b.x) | (a.y != b.y)", test=True)
for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    add_real_rule(_name, f"a {_sign} b", test=True)
for _name, _sign in (("logical_and", "&"), ("logical_or", "|"), ("logical_xor", "^")):
    add_real_rule(_name, f"(a != 0) {_sign} (b != 0)", c=f"{_TRUE['a']} {_sign} {_TRUE['b']}", test=True)
add_real_rule("logical_not", "a == 0", c="(a.x == 0) & (a.y == 0)", test=True)
for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):
    add_rule(f"bitwise_{_name}", i=f"a {_sign} b", b=f"a {_sign} b")
add_rule("bitwise_not", i="~a", b="a ^ (X)(1)")
_BITS = "(S)(sizeof(S) * 8)"
add_rule("bitwise_left_shift", i=f"b >= 0 && b < {_BITS} ? (S)(a << b) : (S)0", scalar="i", kernel="lshift_cpu")
add_rule(
    "bitwise_right_shift",
    i=f"b >= 0 && b < {_BITS} ? (S)(a >> b) : (S)(a < 0 ? -1 : 0)",
    scalar="i",
    kernel="rshift_cpu",
)
add_rule("isnan", f="isnan(a)", i="a != a", b="a != a", c="isnan(a.x) | isnan(a.y)", test=True)
add_rule("isinf", f="isinf(a)", i="a != a", b="a != a", c="isinf(a.x) | isinf(a.y)", test=True)
add_rule("isfinite", f="isfinite(a)", i="a == a", b="a == a", c="isfinite(a.x) & isfinite(a.y)", test=True)
add_rule(
    "isposinf",
    f="a == (X)(INFINITY)",
    i="a != a",
    b="a != a",
    test=True,
    refuses={"c": RuntimeError("isposinf does not support complex inputs.")},
)
add_rule(
    "isneginf",
    f="a == (X)(-INFINITY)",
    i="a != a",
    b="a != a",
    test=True,
    refuses={"c": RuntimeError("isneginf does not support complex inputs.")},
)
add_rule("isreal", f="(a == a) | (a != a)", i="a == a", b="a == a", c="a.y == 0", test=True)
add_rule(
    "signbit",
    f="signbit(a)",
    i="a < 0",
    b="a != a",
    test=True,
    refuses={"c": NotImplementedError("signbit is not implemented for complex tensors.")},
)
_CLOSE = "X t = fabs(a - b); return {} | (isfinite(t) & (t <= atol + fabs(rtol * b)));"
_CLOSE_COMPLEX = "R t = c_abs(a - b); return {} | (isfinite(t) & (t <= atol.x + c_abs(rtol.x * b)));"
_SAME, _SAME_COMPLEX = "(a == b)", "((a.x == b.x) & (a.y == b.y))"
_NAN, _NAN_COMPLEX = "((a != a) & (b != b))", "((isnan(a.x) | isnan(a.y)) & (isnan(b.x) | isnan(b.y)))"
add_rule("isclose", f=_CLOSE.format(_SAME), c=_CLOSE_COMPLEX.format(_SAME_COMPLEX), test=True, numbers=("rtol", "atol"))
add_rule(
    "isclose_nan",
    f=_CLOSE.format(f"{_SAME} | {_NAN}"),
    c=_CLOSE_COMPLEX.format(f"{_SAME_COMPLEX} | {_NAN_COMPLEX}"),
    test=True,
    numbers=("rtol", "atol"),
)

# -- signs, parts and rounding --

add_rule("neg", f="-a", i="-a", c="-a")
add_rule("abs", f="fabs(a)", i="a < (X)(0) ? -a : a", c="c_abs(a)", out="real")
add_rule("square", f="a * a", i="a * a", c="c_mul(a, a)")
add_rule("cube", f="a * a * a")
_SIGN = "a > 0 ? (X)(1) : (a < 0 ? (X)(-1) : (X)(0))"
add_rule(
    "sign",
    _SIGN,
    _SIGN,
    "a",
    refuses={
        "c": NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    },
)
add_rule("sgn", _SIGN, _SIGN, "a", "c_sgn(a)")
add_real_rule("conj_physical", "a", c="c_conj(a)")
add_rule("angle", f=f"a != a ? a : (a < 0 ? (X)(N({math.pi!r})) : (X)(0))", c="c_angle(a)", out="real")
add_rule(
    "deg2rad",
    f=f"a * N({math.pi / 180!r})",
    refuses={"c": RuntimeError("deg2rad is not supported for complex tensors.")},
)
add_rule(
    "rad2deg",
    f=f"a * N({180 / math.pi!r})",
    refuses={"c": RuntimeError("rad2deg is not supported for complex tensors.")},
)
for _name in ("floor", "ceil", "trunc"):
    add_rule(
        _name,
        f=f"{_name}(a)",
        i="a",
        kernel=f"{_name}_vml_cpu",
        refuses={"c": NotImplementedError(f"{_name} is not supported for complex inputs")},
    )
add_rule("round", f="rint(a)", i="a", kernel="round_vml_cpu")
add_rule("round_up", f="rint(a * s) / s", numbers=("s",), kernel="round_cpu")
add_rule("round_down", f="rint(a / s) * s", numbers=("s",), kernel="round_cpu")
add_rule("frac", f="a - trunc(a)")
_REPLACED = "{0} != {0} ? {1} : ({0} == INFINITY ? {2} : ({0} == -INFINITY ? {3} : {0}))"
add_rule(
    "nan_to_num",
    f="a != a ? nan : (a == (X)(INFINITY) ? high : (a == (X)(-INFINITY) ? low : a))",
    i="a",
    b="a",
    c=f"VEC2(R2, {_REPLACED.format('a.x', 'nan.x', 'high.x', 'low.x')}, "
    f"{_REPLACED.format('a.y', 'nan.x', 'high.x', 'low.x')})",
    numbers=("nan", "high", "low"),
)
add_rule("mantissa", f="isfinite(a) && a != 0 ? ldexp(a, -1 - ilogb(a)) : a", scalar="fd")
add_rule("exponent", f="isfinite(a) && a != 0 ? ilogb(a) + 1 : 0", scalar="fd", out="i32")
add_rule("complex", f="VEC2(R2, a, b)", out="complex", scalar="fd")
add_rule("polar", f="VEC2(R2, a * cos(b), a * sin(b))", out="complex", scalar="fd")

# -- clamping and three operands --

_LOW, _HIGH = "((a < b) | (b != b)) ? b : a", "((a > b) | (b != b)) ? b : a"
_CLAMP = {"c": NotImplementedError("clamp is not supported for complex types")}
add_real_rule("clamp", "X t = ((a < b) | (b != b)) ? b : a; return ((t > c) | (c != c)) ? c : t;", refuses=_CLAMP)
add_real_rule("clamp_low", _LOW, refuses=_CLAMP)
add_real_rule("clamp_high", _HIGH, refuses=_CLAMP)
add_real_rule("clamp_min", _LOW, kernel="maximum_cpu")
add_real_rule("clamp_max", _HIGH, kernel="minimum_cpu")
_LERP = "X t = b - a; return fabs(c) < N(0.5) ? a + c * t : b - t * (1 - c);"
_LERP_COMPLEX = "c_abs(c) < 0.5f ? a + c_mul(c, b - a) : b - c_mul(b - a, VEC2(R2, 1, 0) - c)"
add_rule("_lerp_tensor", f=_LERP, c=_LERP_COMPLEX, kernel="lerp_kernel_tensor")
add_rule("_lerp_scalar", f=_LERP, c=_LERP_COMPLEX, kernel="lerp_kernel_scalar")
add_rule(
    "addcmul", f="a + v * b * c", i="a + v * b * c", b="a | (v & b & c)", c="a + c_mul(c_mul(v, b), c)", numbers=("v",)
)
add_rule("addcdiv", f="a + v * b / c", c="a + c_div(c_mul(v, b), c)", numbers=("v",))

# -- functions --

for _name in (
    "acos",
    "asin",
    "atan",
    "acosh",
    "asinh",
    "atanh",
    "cosh",
    "sinh",
    "tan",
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "exp2",
    "sqrt",
):
    add_rule(_name, f=f"{_name}(a)", c=f"c_{_name}(a)", wide="c")
add_rule("rsqrt", f="1 / sqrt(a)", c="c_rsqrt(a)", wide="c")
add_rule("reciprocal", f="1 / a", c="c_reciprocal(a)")
add_rule("sigmoid", f="1 / (1 + exp(-a))", c="c_sigmoid(a)", wide="c")
add_rule("sinc", f=f"X t = a * N({math.pi!r}); return a == 0 ? (X)(1) : sin(t) / t;", c="c_sinc(a)", wide="c")
add_rule("special_entr", f="a > 0 ? -a * log(a) : (a == 0 ? (X)(0) : (a < 0 ? (X)(-INFINITY) : a))")
add_rule("logit", f="log(a / (1 - a))")
add_rule(
    "logit_eps", f="X t = a < low ? low : a; t = t > high ? high : t; return log(t / (1 - t));", numbers=("low", "high")
)

# -- special functions: in double, except erf, whose speed gelu depends on --

_ERF = (
    "X t = a > 4 ? (X)(4) : (a < -4 ? (X)(-4) : a); X u = t * t; "
    + horner_source(ERF_FLOAT32_P, "u", "p")
    + horner_source(ERF_FLOAT32_Q, "u", "q")
)
add_rule(
    "erf",
    f=_ERF + "p = p * t / q; return p > 1 ? (X)(1) : (p < -1 ? (X)(-1) : p);",
    d="s_erf(a)",
    scalar="d",
    kernel="erf_vml_cpu",
)
for _name, _function in (
    ("erfc", "erfc"),
    ("special_erfcx", "erfcx"),
    ("erfinv", "erfinv"),
    ("special_ndtr", "ndtr"),
    ("special_ndtri", "ndtri"),
    ("special_log_ndtr", "log_ndtr"),
    ("lgamma", "lgamma"),
    ("i0", "i0"),
    ("special_i0e", "i0e"),
    ("special_i1", "i1"),
    ("special_i1e", "i1e"),
    ("special_bessel_j0", "j0"),
    ("special_bessel_j1", "j1"),
    ("special_bessel_y0", "y0"),
    ("special_bessel_y1", "y1"),
    ("special_modified_bessel_i0", "i0"),
    ("special_modified_bessel_i1", "i1"),
    ("special_modified_bessel_k0", "k0"),
    ("special_modified_bessel_k1", "k1"),
    ("special_scaled_modified_bessel_k0", "k0e"),
    ("special_scaled_modified_bessel_k1", "k1e"),
    ("special_spherical_bessel_j0", "spherical_j0"),
    ("special_airy_ai", "airy"),
):
    add_rule(_name, f=f"s_{_function}(a)", wide="f", kernel=f"{_function}_vml_cpu")
add_rule("digamma", f="s_digamma(a)", wide="f", kernel="digamma_cpu")
add_rule("polygamma", f="s_polygamma(a, n, scale)", wide="f", numbers=("n", "scale"))
add_rule("igamma", f="s_igamma(a, b)", wide="f")
add_rule("igammac", f="s_igammac(a, b)", wide="f")
add_rule("special_zeta", f="s_zeta(a, b)", wide="f", kernel="zeta_cpu")
for _name, _function in (
    ("chebyshev_polynomial_t", "chebyshev_t"),
    ("chebyshev_polynomial_u", "chebyshev_u"),
    ("chebyshev_polynomial_v", "chebyshev_v"),
    ("chebyshev_polynomial_w", "chebyshev_w"),
    ("hermite_polynomial_h", "hermite_h"),
    ("hermite_polynomial_he", "hermite_he"),
    ("laguerre_polynomial_l", "laguerre"),
    ("legendre_polynomial_p", "legendre"),
):
    for _prefix, _x in (("special_", "a"), ("special_shifted_", "(a + a - 1)")):
        if _prefix == "special_" or _name.startswith("chebyshev"):
            # a result too large for float becomes the value of the recurrence in float
            _again = f"(R)s_{_function}_f({_x.replace('a', '(float)a').replace('1', '1.0f')}, (float)b)"
            _text = f"R t = s_{_function}({_x}, b); return isfinite((float)t) ? t : {_again};"
            add_rule(_prefix + _name, f=_text, d=f"s_{_function}({_x}, b)", wide="f")
