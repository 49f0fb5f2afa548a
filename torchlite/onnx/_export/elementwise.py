"""Export rules of elementwise ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .graph_builder import OnnxGraphBuilder, WriterValue, dtype_name, promoted_type, translates

_SAME = {"neg": "Neg", "relu": "Relu", "sign": "Sign", "sgn": "Sign", "hardswish": "HardSwish"}
# Ops that change floats only.
_ROUNDING = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}
# Ops that convert integers to floats.
_FLOATS = {
    "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
    "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "log": "Log", "reciprocal": "Reciprocal",
    "sigmoid": "Sigmoid", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
    "mish": "Mish",
}  # fmt: skip


def to_float_type(w: OnnxGraphBuilder, x: WriterValue) -> Any:
    """Cast a value to a floating-point type."""
    return x if x.is_float else WriterValue(w.cast(x, "float32"), "float32", x.sizes)


def _register_same_op(kind: str, floats: bool) -> Callable:
    def write(w: OnnxGraphBuilder, x: WriterValue) -> str:
        return w.op(kind, to_float_type(w, x) if floats else x)

    return write


for _name, _kind in _SAME.items():
    translates(f"aten.{_name}")(_register_same_op(_kind, False))
for _name, _kind in _FLOATS.items():
    translates(f"aten.{_name}")(_register_same_op(_kind, True))


def _register_rounding(kind: str) -> Callable:
    def write(w: OnnxGraphBuilder, x: WriterValue) -> str:
        return w.op(kind, x) if x.is_float else w.op("Identity", x)

    return write


for _name, _kind in _ROUNDING.items():
    translates(f"aten.{_name}")(_register_rounding(_kind))


@translates("aten.round.decimals")
def round_decimals(w: OnnxGraphBuilder, x: WriterValue, *, decimals: int = 0) -> str:
    """Round `x * 10**decimals`; a negative power divides, as it is no float."""
    if not decimals:
        return w.op("Round", x)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    factor = w.constant(10.0 ** abs(decimals), x.dtype)
    return w.op(back, w.op("Round", w.op(there, x, factor)), factor)


def to_common_type(w: OnnxGraphBuilder, *values: Any, dtype: str | None = None) -> tuple[list[Any], str]:
    """Return values cast to their promoted type, and the type."""
    tensors = [v for v in values if isinstance(v, WriterValue)]
    if dtype is None:
        # Zero-dimensional tensors and numbers count only if their category is higher.
        with_dims = [v.dtype for v in tensors if v.ndim] or [v.dtype for v in tensors]
        dtype = promoted_type(*with_dims) if with_dims else "int64"
        kinds = [v.is_float for v in tensors] + [isinstance(v, float) for v in values]
        if any(kinds) and not dtype.startswith(("float", "bfloat")):
            floats = [v.dtype for v in tensors if v.is_float]
            dtype = promoted_type(*floats) if floats else "float32"
        elif dtype == "bool":
            higher = [v.dtype for v in tensors if v.dtype != "bool"]
            has_int = any(type(v) is int for v in values)
            dtype = promoted_type(*higher) if higher else "int64" if has_int else "bool"
    return [w.cast(v, dtype) for v in values], dtype


def _register_arithmetic(kind: str) -> Callable:
    def write(w: OnnxGraphBuilder, x: Any, y: Any, *, alpha: Any = 1) -> str:
        (a, b), dtype = to_common_type(w, x, y)
        if alpha != 1:
            b = w.op("Mul", b, w.constant(alpha, dtype))
        if dtype == "bool":
            return w.op({"Add": "Or", "Mul": "And"}[kind], a, b)
        return w.op(kind, a, b)

    return write


for _name, _kind in {"add": "Add", "sub": "Sub", "subtract": "Sub"}.items():
    translates(f"aten.{_name}", f"_operator.{_name}")(_register_arithmetic(_kind))
translates("aten.mul", "aten.multiply", "_operator.mul")(_register_arithmetic("Mul"))


@translates("aten.rsub")
def rsub(w: OnnxGraphBuilder, x: WriterValue, y: Any, alpha: Any = 1) -> str:
    (a, b), dtype = to_common_type(w, x, y)
    return w.op("Sub", b, a if alpha == 1 else w.op("Mul", a, w.constant(alpha, dtype)))


@translates("aten.div", "aten.true_divide", "aten.divide", "_operator.truediv")
def div(w: OnnxGraphBuilder, x: Any, y: Any, *, rounding_mode: str | None = None) -> str:
    (a, b), dtype = to_common_type(w, x, y)
    is_float = dtype.startswith(("float", "bfloat"))
    if rounding_mode is None:
        if not is_float:
            a, b = w.cast(a, "float32", dtype), w.cast(b, "float32", dtype)
        return w.op("Div", a, b)
    if rounding_mode == "floor":
        return _floor_divide(w, a, b, dtype)
    out = w.op("Div", a, b)
    if not is_float:
        return out
    return w.op("Mul", w.op("Sign", out), w.op("Floor", w.op("Abs", out)))


def _floor_divide(w: OnnxGraphBuilder, a: str, b: str, dtype: str) -> str:
    if dtype.startswith(("float", "bfloat")):
        # By the exact remainder: a quotient just below an integer must not round to it.
        rest = _float_remainder(w, a, b, dtype)
        quotient = w.op("Round", w.op("Div", w.op("Sub", a, rest), b))
        plain = w.op("Or", w.op("Equal", b, w.constant(0, dtype)), w.op("IsInf", a))
        return w.op("Where", plain, w.op("Div", a, b), quotient)
    # ONNX division of integers truncates; subtract the remainder with the divisor's sign first.
    return w.op("Div", w.op("Sub", a, w.op("Mod", a, b)), b)


@translates("aten.floor_divide", "_operator.floordiv")
def floor_divide(w: OnnxGraphBuilder, x: Any, y: Any) -> str:
    (a, b), dtype = to_common_type(w, x, y)
    return _floor_divide(w, a, b, dtype)


@translates("aten.remainder", "_operator.mod")
def remainder(w: OnnxGraphBuilder, x: Any, y: Any) -> str:
    (a, b), dtype = to_common_type(w, x, y)
    if not dtype.startswith(("float", "bfloat")):
        return w.op("Mod", a, b)
    return _float_remainder(w, a, b, dtype)


def _float_remainder(w: OnnxGraphBuilder, a: str, b: str, dtype: str) -> str:
    """Return the remainder with the divisor's sign, of the exact one with the dividend's."""
    zero = w.constant(0, dtype)
    rest = w.op("Mod", a, b, fmod=1)
    apart = w.op("Xor", w.op("Less", rest, zero), w.op("Less", b, zero))
    turned = w.op("And", apart, w.op("Not", w.op("Equal", rest, zero)))
    return w.op("Where", turned, w.op("Add", rest, b), rest)


@translates("aten.fmod")
def fmod(w: OnnxGraphBuilder, x: Any, y: Any) -> str:
    (a, b), _ = to_common_type(w, x, y)
    return w.op("Mod", a, b, fmod=1)


@translates("aten.pow", "_operator.pow")
def power(w: OnnxGraphBuilder, x: Any, y: Any) -> str:
    if isinstance(x, WriterValue) and isinstance(y, (int, float)) and not isinstance(y, bool):
        if y == 2:
            return w.op("Mul", x, x)
        if y == 0.5:
            return w.op("Sqrt", to_float_type(w, x))
        if y == 1:
            return w.op("Identity", x)
        base = x if isinstance(y, int) else to_float_type(w, x)
        return w.op("Pow", base, w.constant(y, base.dtype))
    (a, b), _ = to_common_type(w, x, y)
    return w.op("Pow", a, b)


def _register_comparison(kind: str, negated: bool = False) -> Callable:
    def write(w: OnnxGraphBuilder, x: Any, y: Any) -> str:
        (a, b), dtype = to_common_type(w, x, y)
        if dtype == "bool" and kind != "Equal":
            a, b = w.cast(a, "int32", "bool"), w.cast(b, "int32", "bool")
        out = w.op(kind, a, b)
        return w.op("Not", out) if negated else out

    return write


for _name, _kind in {"gt": "Greater", "ge": "GreaterOrEqual", "lt": "Less", "le": "LessOrEqual", "eq": "Equal"}.items():
    translates(f"aten.{_name}", f"_operator.{_name}")(_register_comparison(_kind))
translates("aten.ne", "_operator.ne")(_register_comparison("Equal", True))


def _register_logical(kind: str) -> Callable:
    def write(w: OnnxGraphBuilder, x: WriterValue, y: Any) -> str:
        return w.op(kind, w.cast(x, "bool"), w.cast(y, "bool"))

    return write


for _name, _kind in {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}.items():
    translates(f"aten.{_name}")(_register_logical(_kind))


def _register_bitwise(kind: str, logical: str) -> Callable:
    def write(w: OnnxGraphBuilder, x: Any, y: Any) -> str:
        (a, b), dtype = to_common_type(w, x, y)
        return w.op(logical if dtype == "bool" else kind, a, b)

    return write


for _name, _kind, _plain_kind in (
    ("and", "BitwiseAnd", "And"), ("or", "BitwiseOr", "Or"), ("xor", "BitwiseXor", "Xor"),
):  # fmt: skip
    translates(f"aten.bitwise_{_name}", f"aten.__{_name}__", f"_operator.{_name}_")(
        _register_bitwise(_kind, _plain_kind)
    )


@translates("aten.logical_not")
def logical_not(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Not", w.cast(x, "bool"))


@translates("aten.bitwise_not")
def bitwise_not(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Not" if x.dtype == "bool" else "BitwiseNot", x)


def _register_extreme(kind: str, logical: str, *names: str) -> None:
    @translates(*names)
    def write(w: OnnxGraphBuilder, x: Any, y: Any) -> str:
        (a, b), dtype = to_common_type(w, x, y)
        return w.op(logical if dtype == "bool" else kind, a, b)


_register_extreme("Max", "Or", "aten.maximum", "aten.max.other")
_register_extreme("Min", "And", "aten.minimum", "aten.min.other", "math.min")


def _register_extreme_of_numbers(kind: str, logical: str, name: str) -> None:
    @translates(name)
    def write(w: OnnxGraphBuilder, x: Any, y: Any) -> str:
        """Take the other one where one is NaN."""
        (a, b), dtype = to_common_type(w, x, y)
        out = w.op(logical if dtype == "bool" else kind, a, b)
        if not dtype.startswith(("float", "bfloat")):
            return out
        return w.op("Where", w.op("IsNaN", a), b, w.op("Where", w.op("IsNaN", b), a, out))


_register_extreme_of_numbers("Max", "Or", "aten.fmax")
_register_extreme_of_numbers("Min", "And", "aten.fmin")


@translates("aten.where")
def where(w: OnnxGraphBuilder, condition: WriterValue, x: Any, y: Any) -> str:
    (a, b), _ = to_common_type(w, x, y)
    return w.op("Where", w.cast(condition, "bool"), a, b)


@translates("aten.masked_fill")
def masked_fill(w: OnnxGraphBuilder, x: WriterValue, mask: WriterValue, value: Any) -> str:
    return w.op("Where", w.cast(mask, "bool"), w.cast(value, x.dtype), x)


@translates("aten.clamp", "aten.clip")
def clamp(w: OnnxGraphBuilder, x: WriterValue, min: Any = None, max: Any = None) -> str:
    dtype = x.dtype
    if not x.is_float and any(isinstance(v, float) or isinstance(v, WriterValue) and v.is_float for v in (min, max)):
        dtype = "float32"
    low, high = (None if v is None else w.cast(v, dtype) for v in (min, max))
    tensors = any(isinstance(v, WriterValue) and v.ndim for v in (min, max))
    out = w.cast(x, dtype)
    if tensors:
        out = out if low is None else w.op("Max", out, low)
        return out if high is None else w.op("Min", out, high)
    return w.op("Clip", out, low, high)


@translates("aten.clamp_min")
def clamp_min(w: OnnxGraphBuilder, x: WriterValue, min: Any) -> str:
    return clamp(w, x, min)


@translates("aten.clamp_max")
def clamp_max(w: OnnxGraphBuilder, x: WriterValue, max: Any) -> str:
    return clamp(w, x, None, max)


@translates("aten.hardtanh")
def hardtanh(w: OnnxGraphBuilder, x: WriterValue, min_val: float = -1, max_val: float = 1) -> str:
    return clamp(w, x, min_val, max_val)


@translates("aten.relu6")
def relu6(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return clamp(w, x, 0, 6)


@translates("aten.elu")
def elu(w: OnnxGraphBuilder, x: WriterValue, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> str:
    scaled = x if input_scale == 1 else w.op("Mul", x, w.constant(input_scale, x.dtype))
    out = w.op("Elu", scaled, alpha=float(alpha))
    if input_scale != 1:
        out = w.op("Where", w.op("Greater", x, w.constant(0, x.dtype)), x, out)
    return out if scale == 1 else w.op("Mul", out, w.constant(scale, x.dtype))


@translates("aten.selu")
def selu(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Selu", x)


@translates("aten.celu")
def celu(w: OnnxGraphBuilder, x: WriterValue, alpha: float = 1.0) -> str:
    return w.op("Celu", x, alpha=float(alpha))


@translates("aten.leaky_relu")
def leaky_relu(w: OnnxGraphBuilder, x: WriterValue, negative_slope: float = 0.01) -> str:
    return w.op("LeakyRelu", x, alpha=float(negative_slope))


@translates("aten.prelu", "aten._prelu_kernel")
def prelu(w: OnnxGraphBuilder, x: WriterValue, weight: WriterValue) -> str:
    slope: Any = weight
    if weight.ndim == 1 and x.ndim > 1:
        slope = w.reshape(weight, [-1, *[1] * (x.ndim - 2)])
    return w.op("PRelu", x, slope)


@translates("aten.gelu")
def gelu(w: OnnxGraphBuilder, x: WriterValue, *, approximate: str = "none") -> str:
    if w.version >= 20:
        return w.op("Gelu", x, approximate=approximate)
    half, one = w.constant(0.5, x.dtype), w.constant(1, x.dtype)
    if approximate == "tanh":
        cube = w.op("Mul", w.op("Mul", w.op("Mul", x, x), x), w.constant(0.044715, x.dtype))
        inner = w.op("Mul", w.op("Add", x, cube), w.constant(math.sqrt(2 / math.pi), x.dtype))
        return w.op("Mul", w.op("Mul", x, half), w.op("Add", w.op("Tanh", inner), one))
    inner = w.op("Erf", w.op("Div", x, w.constant(math.sqrt(2), x.dtype)))
    return w.op("Mul", w.op("Mul", x, half), w.op("Add", inner, one))


@translates("aten.silu")
def silu(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Mul", x, w.op("Sigmoid", x))


@translates("aten.hardsigmoid")
def hardsigmoid(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@translates("aten.softplus")
def softplus(w: OnnxGraphBuilder, x: WriterValue, beta: float = 1, threshold: float = 20) -> str:
    scaled = x if beta == 1 else w.op("Mul", x, w.constant(beta, x.dtype))
    out = w.op("Softplus", scaled)
    out = out if beta == 1 else w.op("Div", out, w.constant(beta, x.dtype))
    return w.op("Where", w.op("Greater", scaled, w.constant(threshold, x.dtype)), x, out)


@translates("aten.softsign")
def softsign(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Softsign", x)


@translates("aten.log_sigmoid", "aten.log_sigmoid_forward")
def log_sigmoid(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Neg", w.op("Softplus", w.op("Neg", x)))


@translates("aten.hardshrink")
def hardshrink(w: OnnxGraphBuilder, x: WriterValue, lambd: float = 0.5) -> str:
    return w.op("Shrink", x, bias=0.0, lambd=float(lambd))


@translates("aten.softshrink")
def softshrink(w: OnnxGraphBuilder, x: WriterValue, lambd: float = 0.5) -> str:
    return w.op("Shrink", x, bias=float(lambd), lambd=float(lambd))


@translates("aten.tanhshrink")
def tanhshrink(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Sub", x, w.op("Tanh", x))


@translates("aten.threshold")
def threshold(w: OnnxGraphBuilder, x: WriterValue, threshold: float, value: float) -> str:
    return w.op("Where", w.op("Greater", x, w.constant(threshold, x.dtype)), x, w.constant(value, x.dtype))


@translates("aten.glu")
def glu(w: OnnxGraphBuilder, x: WriterValue, dim: int = -1) -> str:
    a, b = w.op("Split", x, outputs=2, axis=dim % x.ndim, num_outputs=2)
    return w.op("Mul", a, w.op("Sigmoid", b))


@translates("aten.rsqrt")
def rsqrt(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Reciprocal", w.op("Sqrt", to_float_type(w, x)))


@translates("aten.square")
def square(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Mul", x, x)


def _log_or_exp_scaled(kind: str, factor: float) -> Callable:
    def write(w: OnnxGraphBuilder, x: WriterValue) -> str:
        value = to_float_type(w, x)
        return w.op("Mul", w.op(kind, value), w.constant(factor, value.dtype))

    return write


translates("aten.log2")(_log_or_exp_scaled("Log", 1 / math.log(2)))
translates("aten.log10")(_log_or_exp_scaled("Log", 1 / math.log(10)))


@translates("aten.exp2")
def exp2(w: OnnxGraphBuilder, x: WriterValue) -> str:
    value = to_float_type(w, x)
    return w.op("Pow", w.constant(2, value.dtype), value)


@translates("aten.log1p")
def log1p(w: OnnxGraphBuilder, x: WriterValue) -> str:
    """log(u) * x / (u - 1) with u = 1 + x, which has the digits of small x."""
    value = to_float_type(w, x)
    one = w.constant(1, value.dtype)
    moved = w.op("Add", value, one)
    plain = w.op("Log", moved)
    exact = w.op("Mul", plain, w.op("Div", value, w.op("Sub", moved, one)))
    few = w.op("Less", w.op("Abs", value), w.constant(0.5, value.dtype))
    out = w.op("Where", few, exact, plain)
    return w.op("Where", w.op("Equal", moved, one), value, out)


@translates("aten.expm1")
def expm1(w: OnnxGraphBuilder, x: WriterValue) -> str:
    """(u - 1) * x / log(u) with u = exp(x), which has the digits of small x."""
    value = to_float_type(w, x)
    power = w.op("Exp", value)
    plain = w.op("Sub", power, w.constant(1, value.dtype))
    exact = w.op("Mul", plain, w.op("Div", value, w.op("Log", power)))
    few = w.op("Less", w.op("Abs", value), w.constant(0.5, value.dtype))
    out = w.op("Where", few, exact, plain)
    return w.op("Where", w.op("Equal", power, w.constant(1, value.dtype)), value, out)


@translates("aten.trunc", "aten.fix")
def trunc(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Mul", w.op("Sign", x), w.op("Floor", w.op("Abs", x))) if x.is_float else w.op("Identity", x)


@translates("aten.frac")
def frac(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Sub", x, trunc(w, x))


@translates("aten.lerp")
def lerp(w: OnnxGraphBuilder, x: WriterValue, end: WriterValue, weight: Any) -> str:
    return w.op("Add", x, w.op("Mul", w.cast(weight, x.dtype), w.op("Sub", end, x)))


@translates("aten.atan2")
def atan2(w: OnnxGraphBuilder, y: WriterValue, x: WriterValue) -> str:
    """The angle of (x, y), with the quadrant by signs: two zeros count as (1, 0), two infinities as (1, 1)."""
    (a, b), dtype = to_common_type(w, y, x)
    if not dtype.startswith(("float", "bfloat")):
        a, b, dtype = w.cast(a, "float32", dtype), w.cast(b, "float32", dtype), "float32"
    zero, one, pi = w.constant(0, dtype), w.constant(1, dtype), w.constant(math.pi, dtype)
    a_down, b_down = (w.op("Or", w.op("Less", v, zero), w.op("Less", w.op("Reciprocal", v), zero)) for v in (a, b))
    both_zero = w.op("And", w.op("Equal", a, zero), w.op("Equal", b, zero))
    both_infinite = w.op("And", w.op("IsInf", a), w.op("IsInf", b))
    a_plain = w.op("Where", both_infinite, w.op("Sign", a), a)
    b_plain = w.op("Where", both_infinite, w.op("Sign", b), w.op("Where", both_zero, one, b))
    plain = w.op("Atan", w.op("Div", a_plain, b_plain))
    turned = w.op("Where", a_down, w.op("Sub", plain, pi), w.op("Add", plain, pi))
    return w.op("Where", b_down, turned, plain)


@translates("aten.addcmul")
def addcmul(w: OnnxGraphBuilder, x: WriterValue, a: WriterValue, b: WriterValue, *, value: float = 1) -> str:
    out = w.op("Mul", a, b)
    return w.op("Add", x, out if value == 1 else w.op("Mul", out, w.constant(value, x.dtype)))


@translates("aten.addcdiv")
def addcdiv(w: OnnxGraphBuilder, x: WriterValue, a: WriterValue, b: WriterValue, *, value: float = 1) -> str:
    out = w.op("Div", a, b)
    return w.op("Add", x, out if value == 1 else w.op("Mul", out, w.constant(value, x.dtype)))


@translates("aten.isnan")
def isnan(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("IsNaN", to_float_type(w, x))


@translates("aten.isinf")
def isinf(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("IsInf", to_float_type(w, x))


@translates("aten.isposinf")
def isposinf(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("IsInf", to_float_type(w, x), detect_negative=0)


@translates("aten.isneginf")
def isneginf(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("IsInf", to_float_type(w, x), detect_positive=0)


@translates("aten.isreal")
def isreal(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.op("Expand", w.constant(True, "bool"), w.shape(x))


@translates("aten.isclose")
def isclose(
    w: OnnxGraphBuilder, x: WriterValue, y: WriterValue, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> str:
    (a, b), dtype = to_common_type(w, x, y)
    same = w.op("Equal", a, b)
    if not dtype.startswith(("float", "bfloat")):
        if dtype == "bool" or not rtol and not atol:
            return same
        a, b, dtype = w.cast(a, "float64", dtype), w.cast(b, "float64", dtype), "float64"
    apart = w.op("Abs", w.op("Sub", a, b))
    most = w.op("Add", w.op("Mul", w.op("Abs", b), w.constant(rtol, dtype)), w.constant(atol, dtype))
    near = w.op("And", w.op("LessOrEqual", apart, most), w.op("Not", w.op("IsInf", apart)))
    found = w.op("Or", same, near)
    return w.op("Or", found, w.op("And", w.op("IsNaN", a), w.op("IsNaN", b))) if equal_nan else found


@translates("aten.erfc")
def erfc(w: OnnxGraphBuilder, x: WriterValue) -> str:
    value = to_float_type(w, x)
    return w.op("Sub", w.constant(1, value.dtype), w.op("Erf", value))


@translates("aten.special_ndtr")
def ndtr(w: OnnxGraphBuilder, x: WriterValue) -> str:
    value = to_float_type(w, x)
    half = w.constant(0.5, value.dtype)
    inner = w.op("Erf", w.op("Mul", value, w.constant(math.sqrt(0.5), value.dtype)))
    return w.op("Add", half, w.op("Mul", half, inner))


@translates("aten.hypot")
def hypot(w: OnnxGraphBuilder, x: WriterValue, y: WriterValue) -> str:
    """The larger one times sqrt(1 + ratio**2), which neither overflows nor underflows."""
    (a, b), dtype = to_common_type(w, x, y)
    a, b = w.op("Abs", a), w.op("Abs", b)
    most, least = w.op("Max", a, b), w.op("Min", a, b)
    ratio = w.op("Div", least, most)
    plain = w.op("Mul", most, w.op("Sqrt", w.op("Add", w.op("Mul", ratio, ratio), w.constant(1, dtype))))
    edge = w.op("Or", w.op("Equal", most, w.constant(0, dtype)), w.op("IsInf", most))
    return w.op("Where", edge, most, plain)


@translates("aten.ldexp")
def ldexp(w: OnnxGraphBuilder, x: WriterValue, y: WriterValue) -> str:
    a, b = to_float_type(w, x), to_float_type(w, y)
    return w.op("Mul", a, w.op("Pow", w.constant(2, a.dtype), w.cast(b, a.dtype)))


@translates("aten.signbit")
def signbit(w: OnnxGraphBuilder, x: WriterValue) -> str:
    zero = w.constant(0, x.dtype)
    if x.dtype in ("bool", "uint8"):
        return w.op("Expand", w.constant(False, "bool"), w.shape(x))
    below = w.op("Less", x, zero)
    return w.op("Or", below, w.op("Less", w.op("Reciprocal", x), zero)) if x.is_float else below


@translates("aten.copysign")
def copysign(w: OnnxGraphBuilder, x: WriterValue, y: Any) -> str:
    (a, b), dtype = to_common_type(w, x, y)
    if not dtype.startswith(("float", "bfloat")):
        a, b, dtype = w.cast(a, "float32", dtype), w.cast(b, "float32", dtype), "float32"
    zero, size = w.constant(0, dtype), w.op("Abs", a)
    negative = w.op("Or", w.op("Less", b, zero), w.op("Less", w.op("Reciprocal", b), zero))
    return w.op("Where", negative, w.op("Neg", size), size)


def _register_shift(name: str, left: bool) -> None:
    @translates(f"aten.bitwise_{name}_shift", f"aten.__{name[0]}shift__", f"_operator.{name[0]}shift")
    def shift(w: OnnxGraphBuilder, x: Any, y: Any) -> str:
        """Multiply by a power of two, or divide and round down. Shifts of no bit of the type give what is left."""
        (a, b), dtype = to_common_type(w, x, y)
        bits = int(dtype.strip("uint"))
        wide, count = w.cast(a, "int64", dtype), w.cast(b, "int64", dtype)
        powers = w.constant([1 << i for i in range(63)], "int64")
        zero = w.constant(0, "int64")
        fits = w.op("And", w.op("GreaterOrEqual", count, zero), w.op("Less", count, w.constant(min(bits, 63), "int64")))
        power = w.op("Gather", powers, w.op("Where", fits, count, zero))
        if left:
            return w.cast(w.op("Where", fits, w.op("Mul", wide, power), zero), dtype, "int64")
        down = w.op("Div", w.op("Sub", wide, w.op("Mod", wide, power)), power)
        beyond = w.op("Where", w.op("Less", wide, zero), w.constant(-1, "int64"), zero)
        return w.cast(w.op("Where", fits, down, beyond), dtype, "int64")


_register_shift("left", True)
_register_shift("right", False)


@translates("aten.isfinite")
def isfinite(w: OnnxGraphBuilder, x: WriterValue) -> str:
    value = to_float_type(w, x)
    return w.op("Not", w.op("Or", w.op("IsNaN", value), w.op("IsInf", value)))


@translates("aten.nan_to_num")
def nan_to_num(
    w: OnnxGraphBuilder,
    x: WriterValue,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> str:
    if not x.is_float:
        return w.op("Identity", x)
    most = float(np.finfo(x.dtype).max) if x.dtype != "bfloat16" else 3.3895313892515355e38
    out: Any = w.op("Where", w.op("IsNaN", x), w.constant(nan or 0.0, x.dtype), x)
    for sign, value in (("detect_negative", most if posinf is None else posinf), (
            "detect_positive", -most if neginf is None else neginf)):  # fmt: skip
        other_sign: dict[str, Any] = {sign: 0}
        out = w.op("Where", w.op("IsInf", x, **other_sign), w.constant(value, x.dtype), out)
    return out


_IDENTITY_OPS = (
    "aten.alias aten.clone aten.contiguous aten.detach aten.detach_ aten.detach_copy aten.lift_fresh_copy "
    "aten.lift_fresh aten.lift aten.alias_copy aten.positive aten.resolve_conj aten.resolve_neg"
).split()


@translates(*_IDENTITY_OPS)
def identity(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return x.name


@translates("aten.to.dtype", "aten._to_copy", "aten.to.dtype_layout")
def to(w: OnnxGraphBuilder, x: WriterValue, dtype: Any = None) -> str:
    return x.name if dtype is None else w.cast(x, dtype_name(dtype))


@translates("aten.to.device")
def to_device(w: OnnxGraphBuilder, x: WriterValue, _device: Any, dtype: Any = None) -> str:
    return to(w, x, dtype)


@translates("aten.to.other", "aten.type_as")
def type_as(w: OnnxGraphBuilder, x: WriterValue, other: WriterValue) -> str:
    return w.cast(x, other.dtype)


@translates("prims.convert_element_type")
def convert(w: OnnxGraphBuilder, x: WriterValue, dtype: Any) -> str:
    return w.cast(x, dtype_name(dtype))


@translates("aten.float")
def to_float(w: OnnxGraphBuilder, x: WriterValue) -> str:
    return w.cast(x, "float32")


@translates("aten.copy", "aten.copy_")
def copy(w: OnnxGraphBuilder, x: WriterValue, source: Any) -> str:
    value = w.cast(source, x.dtype)
    same = isinstance(source, WriterValue) and source.sizes == x.sizes and None not in x.sizes
    return value if same else w.op("Expand", value, w.shape(x))
