"""Expression rules of activations and their derivatives, one launch each."""

from __future__ import annotations

import math

from torchlite_backends.array.special_coefficients import NORMAL_TANH

from .pointwise_codegen import Rule
from .pointwise_rules import horner_source

# The normal distribution function is (1 + tanh(x P(x^2))) / 2 = 1 / (1 + exp(-2 x P(x^2))); P is NORMAL_TANH.
_POWERS = tuple(-2 / math.log(2) * c for c in NORMAL_TANH)  # for 1 + 2**(x P(x^2))
_SCALE, _CUBIC = math.sqrt(2.0 / math.pi), 0.044715
_DENSITY = f"exp(N(-0.5) * {{0}} * {{0}}) * N({1.0 / math.sqrt(2.0 * math.pi)!r})"


def _reciprocal_normal_cdf_source(x: str) -> str:
    """Return statements that set `q` to the reciprocal of the normal distribution function of a float."""
    return (
        f"X u = {x} * {x}; u = u > N({5.8**2}) ? (X)(N({5.8**2})) : u; {horner_source(_POWERS, 'u', 't')}"
        f"X q = 1 + exp2(t * {x}); "
    )


def _tanh_normal_cdf_source(x: str) -> str:
    """Return statements that set `p` to (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2."""
    return f"X p = 1 / (1 + exp(N({-2 * _SCALE!r}) * {x} * (1 + N({_CUBIC!r}) * {x} * {x}))); "


_SIGMOID = "X g = 1 / (1 + exp(-{0})); "
# tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2), where x is below 20
_TANH_SOFTPLUS = "X e = exp({0} > 20 ? (X)(20) : {0}); X n = e * (e + 2); X t = n / (n + 2); "
_RELU6_SHIFTED = "X t = a + 3; t = t < 0 ? (X)(0) : (t > 6 ? (X)(6) : t); "

RULES = {
    found.name: found
    for found in (
        Rule(
            "relu",
            f="a < 0 ? (X)(0) : a",
            i="a < 0 ? (X)(0) : a",
            refuses={
                "b": RuntimeError("Boolean inputs not supported for relu"),
                "c": NotImplementedError("clamp is not supported for complex types"),
            },
        ),
        Rule("_relu_backward", *["b <= 0 ? (X)(0) : a"] * 2),
        Rule("leaky_relu", f="a > 0 ? a : a * slope", numbers=("slope",)),
        Rule("_leaky_relu_backward", f="b > 0 ? a : a * slope", numbers=("slope",), kernel="leaky_relu_cpu"),
        Rule(
            "hardtanh",
            f="X t = ((a < low) | (low != low)) ? low : a; return ((t > high) | (high != high)) ? high : t;",
            i="X t = a < low ? low : a; return t > high ? high : t;",
            numbers=("low", "high"),
            refuses={"b": RuntimeError("Bool inputs not supported for hardtanh")},
        ),
        Rule("_hardtanh_backward", *["((b <= low) | (b >= high)) ? (X)(0) : a"] * 2, numbers=("low", "high")),
        Rule("threshold", *["a <= limit ? value : a"] * 2, numbers=("limit", "value")),
        Rule("hardshrink", f="((a >= -limit) & (a <= limit)) ? (X)(0) : a", numbers=("limit",)),
        Rule("softshrink", f="a > limit ? a - limit : (a < -limit ? a + limit : a * 0)", numbers=("limit",)),
        Rule("_prelu", f="a > 0 ? a : a * b"),
        Rule(
            "_elu",
            f="a > 0 ? a * scale : expm1(a * inner) * (alpha * scale)",
            numbers=("alpha", "scale", "inner"),
            kernel="elu_cpu",
        ),
        Rule(
            "_elu_backward",
            f="b > 0 ? a * scale : a * exp(b * inner) * (alpha * scale * inner)",
            numbers=("alpha", "scale", "inner"),
            kernel="elu_cpu",
        ),
        Rule(
            "gelu",
            f=_reciprocal_normal_cdf_source("a") + "return a / q;",
            d="a * s_ndtr(a)",
            scalar="d",
            kernel="GeluKernelImpl",
        ),
        Rule("gelu_tanh", f=_tanh_normal_cdf_source("a") + "return a * p;", kernel="GeluKernelImpl"),
        Rule(
            "gelu_backward",
            f=_reciprocal_normal_cdf_source("b") + f"return a * (1 / q + b * {_DENSITY.format('b')});",
            d=f"a * (s_ndtr(b) + b * {_DENSITY.format('b')})",
            scalar="d",
            kernel="GeluBackwardKernelImpl",
        ),
        Rule(
            "gelu_tanh_backward",
            f=_tanh_normal_cdf_source("b")
            + f"return a * p * (1 + (1 - p) * N({2 * _SCALE!r}) * b * (1 + N({3 * _CUBIC!r}) * b * b));",
            kernel="GeluBackwardKernelImpl",
        ),
        Rule("silu", f=_SIGMOID.format("a") + "return a * g;", c="c_mul(a, c_sigmoid(a))", wide="c"),
        Rule(
            "_silu_backward",
            f=_SIGMOID.format("b") + "return a * g * (1 + b * (1 - g));",
            kernel="silu_cpu",
            wide="c",
            c="R2 g = c_sigmoid(b); return c_mul(a, c_conj(c_mul(g, VEC2(R2, 1, 0) + c_mul(b, VEC2(R2, 1, 0) - g))));",
        ),
        Rule("mish", f=_TANH_SOFTPLUS.format("a") + "return a * t;"),
        Rule(
            "_mish_backward",
            f=_TANH_SOFTPLUS.format("b") + "return a * (t + b * (1 - t * t) * (1 / (1 + exp(-b))));",
            kernel="mish_cpu",
        ),
        Rule(
            "softplus",
            f="X t = a * beta; return t > limit ? a : ((t > 0 ? t : (X)(0)) + log1p(exp(-fabs(t)))) / beta;",
            numbers=("beta", "limit"),
        ),
        Rule(
            "_softplus_backward",
            f="X t = b * beta; return t > limit ? a : a / (1 + exp(-t));",
            numbers=("beta", "limit"),
            kernel="softplus_cpu",
        ),
        Rule(
            "logsigmoid",
            f="(a < 0 ? a : (X)(0)) - log1p(exp(-fabs(a)))",
            c="-c_log1p(c_exp(-a))",
            wide="c",
            kernel="log_sigmoid_cpu",
        ),
        Rule(
            "_huber",
            f="X e = a - b; X s = fabs(e); return s <= delta ? N(0.5) * e * e : delta * (s - N(0.5) * delta);",
            numbers=("delta",),
            kernel="huber_cpu",
        ),
        Rule("hardsigmoid", f=_RELU6_SHIFTED + "return t / 6;"),
        Rule("hardswish", f=_RELU6_SHIFTED + "return a * t / 6;"),
        Rule("_hardswish_backward", f="b <= -3 ? (X)(0) : (b < 3 ? a * (b / 3 + N(0.5)) : a)", kernel="hardswish_cpu"),
    )
}
