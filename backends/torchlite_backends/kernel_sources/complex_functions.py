"""C functions of complex numbers, stored as R2 (double2 or float2): x is the real part, y the imaginary one.

Roots, inverse functions and tanh are W. Kahan's ("Branch cuts for complex elementary functions", 1987), which preserve
the sign of zero and avoid cancellation. `source_of(expression)` returns the functions that an expression calls.
"""

from __future__ import annotations

import math
import re

from .c_function_deps import make_dependency_collector

FUNCTIONS: dict[str, str] = {}
_TEXT = f"""
FUNCTION R2 c_of(R x, R y) {{ return VEC2(R2, x, y); }}
FUNCTION R2 c_turn(R2 z) {{ return VEC2(R2, -z.y, z.x); }}
FUNCTION R2 c_back(R2 z) {{ return VEC2(R2, z.y, -z.x); }}
FUNCTION R2 c_conj(R2 z) {{ return VEC2(R2, z.x, -z.y); }}
FUNCTION R2 c_mul(R2 a, R2 b) {{ return VEC2(R2, a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }}
FUNCTION R2 c_div(R2 a, R2 b) {{
    if (fabs(b.x) >= fabs(b.y)) {{
        if (b.x == 0 && b.y == 0) return a / fabs(b.x);
        R ratio = b.y / b.x, scale = 1 / (b.x + b.y * ratio);
        return VEC2(R2, (a.x + a.y * ratio) * scale, (a.y - a.x * ratio) * scale);
    }}
    R ratio = b.x / b.y, scale = 1 / (b.y + b.x * ratio);
    return VEC2(R2, (a.x * ratio + a.y) * scale, (a.y * ratio - a.x) * scale);
}}
FUNCTION R2 c_reciprocal(R2 z) {{ return c_div(VEC2(R2, 1, 0), z); }}
FUNCTION R c_abs(R2 z) {{ return hypot(z.x, z.y); }}
FUNCTION R c_angle(R2 z) {{ return atan2(z.y, z.x); }}
FUNCTION R2 c_polar(R size, R angle) {{ return VEC2(R2, size * cos(angle), angle == 0 ? angle : size * sin(angle)); }}
FUNCTION R c_infinite_part(R x) {{ return isinf(x) ? (x > 0 ? (R)1 : (R)-1) : x * 0; }}
FUNCTION R2 c_sgn(R2 z) {{
    if (isinf(z.x) || isinf(z.y)) z = VEC2(R2, c_infinite_part(z.x), c_infinite_part(z.y));
    return z.x == 0 && z.y == 0 ? VEC2(R2, 0, 0) : z / c_abs(z);
}}
FUNCTION R2 c_exp(R2 z) {{
    if (z.y == 0) return VEC2(R2, exp(z.x), z.y);
    if (isinf(z.x) && !isfinite(z.y)) return z.x < 0 ? VEC2(R2, 0, 0) : VEC2(R2, z.x, NAN);
    return c_polar(exp(z.x), z.y);
}}
FUNCTION R2 c_exp2(R2 z) {{ return c_exp(z * (R){math.log(2)!r}); }}
FUNCTION R2 c_expm1(R2 z) {{
    R half_sine = sin(z.y * (R)0.5);
    return VEC2(R2, expm1(z.x) * cos(z.y) - 2 * half_sine * half_sine, exp(z.x) * sin(z.y));
}}
FUNCTION R c_log_abs(R2 z) {{
    R size = c_abs(z);
    if (size > (R)0.5 && size < 2) {{
        R large = fmax(fabs(z.x), fabs(z.y)), small = fmin(fabs(z.x), fabs(z.y));
        return (R)0.5 * log1p((large - 1) * (large + 1) + small * small);
    }}
    return log(size);
}}
FUNCTION R2 c_log(R2 z) {{ return VEC2(R2, c_log_abs(z), c_angle(z)); }}
FUNCTION R2 c_log2(R2 z) {{ return c_log(z) * (R){1 / math.log(2)!r}; }}
FUNCTION R2 c_log10(R2 z) {{ return c_log(z) * (R){1 / math.log(10)!r}; }}
FUNCTION R2 c_log1p(R2 z) {{
    R x = z.x + 1, real = fabs(z.x) < (R)0.5 && fabs(z.y) < (R)0.5 ? (R)0.5 * log1p(z.x * (2 + z.x) + z.y * z.y)
        : c_log_abs(VEC2(R2, x, z.y));
    return VEC2(R2, real, atan2(z.y, x));
}}
FUNCTION R2 c_sqrt(R2 z) {{
    if (z.x == 0 && z.y == 0) return VEC2(R2, 0, z.y);
    if (isinf(z.y)) return VEC2(R2, INFINITY, z.y);
    if (isinf(z.x)) return z.x > 0 ? VEC2(R2, z.x, isnan(z.y) ? z.y : copysign((R)0, z.y)) : VEC2(R2,
        isnan(z.y) ? z.y : 0, copysign((R)INFINITY, z.y));
    R scale = fmax(fabs(z.x), fabs(z.y)) > (R)1e30 ? (R)0.25 : fmax(fabs(z.x), fabs(z.y)) < (R)1e-30
        ? (R)1125899906842624.0 : 1;
    R2 w = z * scale;
    R root = sqrt((fabs(w.x) + c_abs(w)) * (R)0.5), other = w.y / (2 * root), back = rsqrt(scale);
    return w.x >= 0 ? VEC2(R2, root, other) * back : VEC2(R2, fabs(other), copysign(root, w.y)) * back;
}}
FUNCTION R2 c_rsqrt(R2 z) {{ return c_reciprocal(c_sqrt(z)); }}
FUNCTION R2 c_sinh(R2 z) {{
    if (!isfinite(z.y)) return VEC2(R2, z.x == 0 || isinf(z.x) ? z.x : (R)NAN, NAN);
    return z.y == 0 ? VEC2(R2, sinh(z.x), z.y) : VEC2(R2, sinh(z.x) * cos(z.y), cosh(z.x) * sin(z.y));
}}
FUNCTION R2 c_cosh(R2 z) {{
    if (!isfinite(z.y)) return z.x == 0 ? VEC2(R2, NAN, z.x) : VEC2(R2, isinf(z.x) ? (R)INFINITY : (R)NAN, NAN);
    return z.y == 0 ? VEC2(R2, cosh(z.x), z.y * copysign((R)1, z.x)) : VEC2(R2, cosh(z.x) * cos(z.y),
        sinh(z.x) * sin(z.y));
}}
FUNCTION R2 c_tanh(R2 z) {{
    if (fabs(z.x) > 20) return VEC2(R2, copysign((R)1, z.x), isfinite(z.y)
        ? 4 * sin(z.y) * cos(z.y) * exp(-2 * fabs(z.x)) : 0);
    if (!isfinite(z.y)) return VEC2(R2, z.x == 0 ? z.x : (R)NAN, NAN);
    if (isnan(z.x)) return VEC2(R2, z.x, z.y == 0 ? z.y : z.x);
    R t = tan(z.y), square = 1 + t * t, s = sinh(z.x), c = sqrt(1 + s * s);
    if (isinf(t)) return VEC2(R2, c / s, 1 / t);
    R scale = 1 + square * s * s;
    return VEC2(R2, square * c * s / scale, t / scale);
}}
FUNCTION R2 c_sin(R2 z) {{ return c_back(c_sinh(c_turn(z))); }}
FUNCTION R2 c_cos(R2 z) {{ return c_cosh(c_turn(z)); }}
FUNCTION R2 c_tan(R2 z) {{ return c_back(c_tanh(c_turn(z))); }}
FUNCTION R2 c_asin(R2 z) {{
    if (isinf(z.x) && !isinf(z.y)) return isnan(z.y) ? VEC2(R2, NAN, INFINITY)
        : VEC2(R2, copysign((R){math.pi / 2!r}, z.x), copysign((R)INFINITY, z.y));
    if (z.x == 0 && isnan(z.y)) return z;
    R2 below = c_sqrt(VEC2(R2, 1 - z.x, -z.y)), above = c_sqrt(VEC2(R2, 1 + z.x, z.y));
    return VEC2(R2, atan2(z.x, below.x * above.x - below.y * above.y), asinh(below.x * above.y - below.y * above.x));
}}
FUNCTION R c_angle_of_infinity(R x) {{
    return isnan(x) ? x : (R)(isinf(x) ? x > 0 ? {math.pi / 4!r} : {3 * math.pi / 4!r} : {math.pi / 2!r});
}}
FUNCTION R2 c_acos(R2 z) {{
    if (isinf(z.y)) return VEC2(R2, c_angle_of_infinity(z.x), -z.y);
    if (isnan(z.y)) return VEC2(R2, z.x == 0 ? (R){math.pi / 2!r} : (R)NAN, isinf(z.x) ? -(R)INFINITY : (R)NAN);
    R2 below = c_sqrt(VEC2(R2, 1 - z.x, -z.y)), above = c_sqrt(VEC2(R2, 1 + z.x, z.y));
    return VEC2(R2, 2 * atan2(below.x, above.x), asinh(above.x * below.y - above.y * below.x));
}}
FUNCTION R2 c_acosh(R2 z) {{
    if (isinf(z.y)) return VEC2(R2, INFINITY, copysign(c_angle_of_infinity(z.x), z.y));
    if (isnan(z.y)) return VEC2(R2, isinf(z.x) ? (R)INFINITY : (R)NAN, z.x == 0 ? (R){math.pi / 2!r} : (R)NAN);
    R2 below = c_sqrt(VEC2(R2, z.x - 1, z.y)), above = c_sqrt(VEC2(R2, z.x + 1, z.y));
    return VEC2(R2, asinh(below.x * above.x + below.y * above.y), 2 * atan2(below.y, above.x));
}}
FUNCTION R2 c_atanh(R2 z) {{
    if (isnan(z.y)) return VEC2(R2, z.x == 0 || isinf(z.x) ? copysign((R)0, z.x) : (R)NAN, NAN);
    if (isnan(z.x)) return VEC2(R2, isinf(z.y) ? 0 : (R)NAN, isinf(z.y) ? copysign((R){math.pi / 2!r}, z.y) : (R)NAN);
    R left = 1 - z.x, square = left * left + z.y * z.y;
    if (isinf(square)) return VEC2(R2, copysign((R)0, z.x), copysign((R){math.pi / 2!r}, z.y));
    return VEC2(R2, (R)0.25 * log1p(4 * z.x / square), (R)0.5 * atan2(2 * z.y, left * (1 + z.x) - z.y * z.y));
}}
FUNCTION R2 c_asinh(R2 z) {{ return c_back(c_asin(c_turn(z))); }}
FUNCTION R2 c_atan(R2 z) {{ return c_back(c_atanh(c_turn(z))); }}
FUNCTION R2 c_power(R2 z, int n) {{
    R2 result = VEC2(R2, 1, 0), base = n < 0 ? c_reciprocal(z) : z;
    for (uint left = abs(n); left; left >>= 1) {{
        if (left & 1) result = c_mul(result, base);
        base = c_mul(base, base);
    }}
    return result;
}}
FUNCTION R2 c_pow(R2 z, R2 w) {{
    if (w.x == 0 && w.y == 0) return VEC2(R2, 1, 0);
    if (z.x == 0 && z.y == 0)
        return w.x > 0 && w.y == 0 ? VEC2(R2, 0, 0) : w.x > 0 ? VEC2(R2, 0, 0) : VEC2(R2, NAN, NAN);
    if (w.y == 0 && w.x == rint(w.x) && fabs(w.x) <= 64) return c_power(z, (int)w.x);
    R2 power = c_mul(w, c_log(z));
    return c_polar(exp(power.x), power.y);
}}
FUNCTION R2 c_sigmoid(R2 z) {{
    R2 e = c_exp(-z);
    return c_reciprocal(VEC2(R2, 1 + e.x, e.y));
}}
FUNCTION R2 c_sinc(R2 z) {{
    R2 scaled = z * (R){math.pi!r};
    return z.x == 0 && z.y == 0 ? VEC2(R2, 1, 0) : c_div(c_sin(scaled), scaled);
}}
FUNCTION R c_grown(R part) {{ return part == 0 ? part : copysign((R)INFINITY, part); }}
FUNCTION R2 c_logaddexp(R2 a, R2 b) {{
    if (a.x == b.x && isinf(a.x)) {{
        if (a.x < 0 || a.y == b.y) return b;
        R s = c_grown(sin(a.y)) + c_grown(sin(b.y)), c = c_grown(cos(a.y)) + c_grown(cos(b.y));
        return VEC2(R2, a.x, atan2(s, c));
    }}
    R2 large = a.x < b.x ? b : a, small = a.x < b.x ? a : b, gap = small - large;
    return isinf(gap.x) ? large : large + c_log1p(c_exp(gap));
}}
"""
for _body in re.split(r"(?m)^(?=FUNCTION )", _TEXT):
    _name = re.match(r"FUNCTION \w+ (\w+)\(", _body)
    if _name:
        FUNCTIONS[_name[1]] = _body

source_of = make_dependency_collector(FUNCTIONS, "c")
