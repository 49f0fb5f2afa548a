"""ONNX elementwise ops, MatMul, Gemm and Einsum."""

from __future__ import annotations

import collections
import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .op_registry import Number, fits_into, op, single_number, to_common_device
from .resource_limits import check_broadcast, check_elements, check_matmul, check_products, check_work, count_value

PLAIN: dict[str, Callable] = {
    "Abs": torch.abs, "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh,
    "Atan": torch.atan, "Atanh": torch.atanh, "Ceil": torch.ceil, "Cos": torch.cos, "Cosh": torch.cosh,
    "Erf": torch.erf, "Exp": torch.exp, "Floor": torch.floor, "HardSwish": F.hardswish, "IsNaN": torch.isnan,
    "Log": torch.log, "Mish": F.mish, "Neg": torch.neg, "Not": torch.logical_not, "Reciprocal": torch.reciprocal,
    "Relu": torch.relu, "Round": torch.round, "Sigmoid": torch.sigmoid, "Sign": torch.sign, "Sin": torch.sin,
    "Sinh": torch.sinh, "Softplus": F.softplus, "Softsign": F.softsign, "Sqrt": torch.sqrt, "Tan": torch.tan,
    "Tanh": torch.tanh, "BitwiseNot": torch.bitwise_not,
}  # fmt: skip
_TWO: dict[str, Callable] = {
    "Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "And": torch.logical_and, "Or": torch.logical_or,
    "Xor": torch.logical_xor, "Equal": torch.eq, "Less": torch.lt, "Greater": torch.gt, "LessOrEqual": torch.le,
    "GreaterOrEqual": torch.ge, "BitwiseAnd": torch.bitwise_and, "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
}  # fmt: skip
# Torch functions that nodes call directly if all tensors are on one device.
DIRECT: dict[str, Callable] = {**PLAIN, **{name: f for name, f in _TWO.items() if name != "Equal"}}


def _register_unary(name: str, function: Callable) -> Callable:
    def run(x: Tensor) -> Tensor:
        return function(x)

    run.__name__ = run.__qualname__ = name
    run.__module__ = __name__
    return run


def _register_binary(name: str, function: Callable) -> Callable:
    def run(x: Any, y: Any, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
        x, y = broadcast_checked(name, x, legacy_broadcast(x, y, axis, broadcast))
        return function(x, y)

    run.__name__ = run.__qualname__ = name
    run.__module__ = __name__
    return run


def _register_broadcast(name: str, function: Callable) -> Callable:
    def run(x: Tensor, y: Tensor) -> Tensor:
        if x.shape != y.shape:
            check_broadcast(name, x, y)
        return function(x, y)

    run.__name__ = run.__qualname__ = f"checked_{function.__name__}"
    run.__module__ = __name__
    globals()[run.__name__] = run
    return run


def checked_matmul(x: Tensor, y: Tensor) -> Tensor:
    check_matmul(x, y)
    return torch.matmul(x, y)


# As DIRECT, for functions whose result may be larger than both inputs.
CHECKED = {name: _register_broadcast(name, f) for name, f in _TWO.items() if name != "Equal"} | {
    "MatMul": checked_matmul
}


def broadcast_checked(name: str, *values: Any) -> tuple:
    """Return tensors (or None) on one device after a check of the broadcast size."""
    given = [v for v in values if hasattr(v, "shape")]
    if len(given) > 1:
        check_broadcast(name, *given)
    return to_common_device(*values)


def legacy_broadcast(x: Any, y: Any, axis: int | None, broadcast: int) -> Any:
    """Return the second tensor aligned as before opset 7: from a given dimension on."""
    if not broadcast or axis is None:
        return y
    axis %= x.ndim
    return y.reshape(*y.shape, *[1] * (x.ndim - axis - y.ndim))


for _name, _function in PLAIN.items():
    globals()[_name] = op(_name)(_register_unary(_name, _function))
for _name, _function in _TWO.items():
    if _name != "Equal":
        globals()[_name] = op(_name)(_register_binary(_name, _function))


@op("Equal")
def equal(x: Any, y: Any, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    if not isinstance(x, Tensor):
        check_broadcast("Equal", x, y)
        return torch.from_numpy((x == y).astype(bool))
    x, y = broadcast_checked("Equal", x, legacy_broadcast(x, y, axis, broadcast))
    return torch.eq(x, y)


@op("Div")
def div(x: Tensor, y: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    x, y = broadcast_checked("Div", x, legacy_broadcast(x, y, axis, broadcast))
    return torch.div(x, y) if x.is_floating_point() or x.is_complex() else torch.div(x, y, rounding_mode="trunc")


@op("Pow")
def power(x: Tensor, y: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    x, y = broadcast_checked("Pow", x, legacy_broadcast(x, y, axis, broadcast))
    if x.dtype is y.dtype:
        return torch.pow(x, y)
    return torch.pow(x, y.to(x.dtype)) if x.is_floating_point() else torch.pow(x.to(y.dtype), y).to(x.dtype)


@op("Mod")
def mod(x: Tensor, y: Tensor, *, fmod: int = 0) -> Tensor:
    x, y = broadcast_checked("Mod", x, y)
    if fmod and x.is_floating_point():  # C's fmod iterates over bits
        check_work("Mod", 64 * max(x.numel(), y.numel()))
    return torch.fmod(x, y) if fmod else torch.remainder(x, y)


@op("BitShift")
def bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Tensor:
    x, y = broadcast_checked("BitShift", x, y)
    bits = x.element_size() * 8
    check_elements("BitShift", x.numel(), each=4 if bits == 64 else 2)
    wide = x.dtype in (torch.uint16, torch.uint32, torch.uint64)
    a, b = (x.to(torch.int64), y.to(torch.int64)) if wide else (x, y)
    out = (
        a << torch.clamp(b, max=bits - 1)
        if direction == "LEFT"
        else _logical_shift_right(a, torch.clamp(b, max=bits - 1), bits)
    )
    if direction == "RIGHT" and not x.dtype.is_signed or direction == "LEFT":
        out = torch.where(b >= bits, torch.zeros_like(out), out)
    if x.dtype in (torch.uint16, torch.uint32):
        out = out & ((1 << bits) - 1)
    return out.to(x.dtype)


def _logical_shift_right(a: Tensor, b: Tensor, bits: int) -> Tensor:
    """Shift right with zero fill, for uint64 stored as int64."""
    if bits < 64 or a.dtype is not torch.int64:
        return a >> b
    rest = torch.where(b == 0, torch.full_like(b, -1), (torch.ones_like(b) << torch.clamp(64 - b, max=63)) - 1)
    return (a >> b) & rest


@op("Max")
def maximum(*values: Tensor) -> Tensor:
    return _fold_variadic("Max", torch.maximum, values)


@op("Min")
def minimum(*values: Tensor) -> Tensor:
    return _fold_variadic("Min", torch.minimum, values)


@op("Sum")
def sum_(*values: Tensor) -> Tensor:
    return _fold_variadic("Sum", torch.add, values)


@op("Mean")
def mean(*values: Tensor) -> Tensor:
    return _fold_variadic("Mean", torch.add, values) / len(values)


def _fold_variadic(name: str, function: Callable, values: tuple) -> Tensor:
    first, *rest = broadcast_checked(name, *values)
    for value in rest:
        first = function(first, value)
        count_value(first)  # a gradient may keep it alive
    return first


@op("Where")
def where(condition: Tensor, x: Any, y: Any) -> Any:
    condition, x, y = broadcast_checked("Where", condition, x, y)
    if not isinstance(x, Tensor):
        import numpy as np

        return np.where(condition.numpy(), x, y)
    return torch.where(condition, x, y)


@op("Clip")
def clip(x: Tensor, min: Number = None, max: Number = None) -> Tensor:
    low, high = (single_number(v) for v in (min, max))
    return x.clone() if low is None and high is None else torch.clamp(x, low, high)


@op("Clip", since=11)
def clip_opset11(x: Tensor, min: Number = None, max: Number = None) -> Tensor:
    if min is None and max is None:
        return x.clone()
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        x, min, max = broadcast_checked("Clip", x, min, max)
        if min is not None:
            x = torch.maximum(x, min if isinstance(min, Tensor) else torch.full_like(x, min))
        return x if max is None else torch.minimum(x, max if isinstance(max, Tensor) else torch.full_like(x, max))
    low, high = single_number(min), single_number(max)
    if low is not None and high is not None and low > high:
        return torch.full_like(x, high)
    return torch.clamp(x, low, high)


@op("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return F.leaky_relu(x, alpha)


@op("Elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.elu(x, alpha)


@op("Celu")
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.celu(x, alpha)


@op("Selu")
def selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Tensor:
    return gamma * torch.where(x > 0, x, alpha * torch.expm1(torch.clamp(x, max=0)))


@op("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return torch.clamp(alpha * x + beta, 0, 1)


@op("Gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return F.gelu(x, approximate=approximate)


@op("Swish")
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.silu(x) if alpha == 1 else x * torch.sigmoid(alpha * x)


@op("SwiGLU")
def swiglu(x: Tensor, gate: Tensor, *, alpha: float = 1.0) -> Tensor:
    x, gate = broadcast_checked("SwiGLU", x, gate)
    return swish(x, alpha=alpha) * gate


@op("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return torch.where(x > alpha, x, torch.zeros_like(x))


@op("Shrink")
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    out = torch.where(x > lambd, x - bias, torch.zeros_like(x))
    return torch.where(x < -lambd, x + bias, out).to(x.dtype)


@op("PRelu")
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    x, slope = to_common_device(x, slope)
    if slope.ndim == 1 and x.ndim > 2 and slope.shape[0] == x.shape[1]:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    fits_into("PRelu", slope, x.shape)
    return torch.where(x < 0, x * slope, x)


@op("PRelu", since=7)
def prelu_opset7(x: Tensor, slope: Tensor) -> Tensor:
    fits_into("PRelu", slope, x.shape)
    x, slope = broadcast_checked("PRelu", x, slope)
    return torch.where(x < 0, x * slope, x)


@op("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    if str(x.dtype).endswith("fn"):
        return torch.zeros(x.shape, dtype=torch.bool, device=x.device)
    found = torch.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@op("CumSum")
def cumsum(x: Tensor, axis: Number, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulative(torch.cumsum, 0, x, int(single_number(axis)), exclusive, reverse)


@op("CumProd")
def cumprod(x: Tensor, axis: Number, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulative(torch.cumprod, 1, x, int(single_number(axis)), exclusive, reverse)


def _cumulative(function: Callable, start: int, x: Tensor, axis: int, exclusive: int, reverse: int) -> Tensor:
    axis %= x.ndim
    if reverse:
        x = torch.flip(x, [axis])
    if exclusive:
        head = torch.full_like(x.narrow(axis, 0, 1), start)
        x = torch.cat([head, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    out = function(x, axis).to(x.dtype)
    return torch.flip(out, [axis]) if reverse else out


@op("Det")
def det(x: Tensor) -> Tensor:
    check_products("Det", x.numel() * x.shape[-1], x)
    check_work("Det", 128 * math.prod(x.shape[:-2]))  # per matrix, regardless of size
    return torch.linalg.det(x)


@op("MatMul")
def matmul(x: Tensor, y: Tensor) -> Tensor:
    x, y = to_common_device(x, y)
    check_matmul(x, y)
    return torch.matmul(x, y)


@op("Gemm")
def gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0, broadcast: int = 0,
) -> Tensor:  # fmt: skip
    a, b, c = to_common_device(a, b, c)
    if transA:
        a = a.t()
    right = b.t() if transB else b
    check_matmul(a, right)
    if c is not None:
        fits_into("Gemm", c, (a.shape[0], right.shape[1]))
    if alpha == 1 and beta == 1 and transB and c is not None and c.ndim == 1 and a.is_floating_point():
        return F.linear(a, b, c)
    out = torch.matmul(a, right)
    if alpha != 1:
        out = (alpha * out).to(a.dtype)
    if c is None:
        return out
    return out + (c if beta == 1 else (beta * c).to(a.dtype))


_LETTERS = re.compile(r"\.\.\.|[A-Za-z]")


@op("Einsum")
def einsum(*operands: Tensor, equation: str) -> Tensor:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = [_LETTERS.findall(term) for term in left.split(",")]
    if len(terms) != len(operands) or "".join(map("".join, terms)) != left.replace(",", ""):
        raise ValueError(f"Einsum: {equation[:100]!r} is no equation of {len(operands)} operands")
    said = collections.Counter(c for term in terms for c in term)
    out = _LETTERS.findall(right) if arrow else sorted(c for c, count in said.items() if c == "..." or count == 1)
    tensors = list(to_common_device(*operands))
    result, term = tensors[0], terms[0]
    said.update(out)
    for c in term:
        said[c] -= 1
    for i in range(1, len(terms)):  # pairwise, so the size of each step is known
        for c in terms[i]:
            said[c] -= 1
        kept = [c for c in dict.fromkeys([*term, *terms[i]]) if said[c]] if i + 1 < len(terms) else out
        result = _einsum_pair((term, terms[i]), (result, tensors[i]), kept)
        term = kept
    return _einsum_pair((terms[0],), (result,), out) if len(terms) == 1 else result


def _einsum_pair(terms: tuple, operands: tuple, out: list[str]) -> Tensor:
    """Return an Einsum of one or two operands."""
    sizes: dict[str, int] = {}
    dots: tuple[int, ...] = ()
    for term, x in zip(terms, operands, strict=True):
        place = term.index("...") if "..." in term else len(term)
        count = x.ndim - len(term) + 1 if "..." in term else 0
        shape = [*x.shape[:place], *x.shape[place + count :]]
        for letter, n in zip([c for c in term if c != "..."], shape, strict=False):
            sizes[letter] = max(sizes.get(letter, 1), n)
        own = tuple(x.shape[place : place + count])
        dots = tuple(max(p) for p in itertools.zip_longest(own[::-1], dots[::-1], fillvalue=1))[::-1]
    size = check_elements("Einsum", *(sizes.get(c, 1) for c in out if c != "..."), *(dots if "..." in out else ()))
    if len(operands) == 2:
        check_products("Einsum", math.prod(sizes.values()) * math.prod(dots), operands[0])
    found = torch.einsum(f"{','.join(map(''.join, terms))}->{''.join(out)}", *operands)
    if size:
        count_value(found)
    return found


@op("Range")
def arange(start: Tensor, limit: Tensor, delta: Tensor, *, stash_type: int = 1) -> Tensor:
    a, b, c = (single_number(v) for v in (start, limit, delta))
    if c == 0:
        raise ValueError("Range: delta is zero")
    count = max(math.ceil((b - a) / c), 0)
    check_elements("Range", count, each=6)
    steps = torch.arange(count, dtype=torch.float64 if start.is_floating_point() else torch.int64)
    return (a + steps * c).to(start.dtype)
