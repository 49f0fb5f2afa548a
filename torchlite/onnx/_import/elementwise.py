"""ONNX elementwise ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.nn import functional as F

from .lazy_functions import LazyFunctions, torch_function
from .matmul import checked_matmul
from .op_registry import Number, fits_into, op, single_number, to_common_device
from .resource_limits import check_broadcast, check_elements, check_work, count_value

# ONNX's elementwise ops of one input and of two, and the torch functions that compute them.
PLAIN = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atanh": "atanh", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor",
    "HardSwish": "F.hardswish", "IsNaN": "isnan", "Log": "log", "Mish": "F.mish", "Neg": "neg", "Not": "logical_not",
    "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin",
    "Sinh": "sinh", "Softplus": "F.softplus", "Softsign": "F.softsign", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
    "BitwiseNot": "bitwise_not",
}  # fmt: skip
BINARY = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor",
    "Less": "lt", "Greater": "gt", "LessOrEqual": "le", "GreaterOrEqual": "ge", "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
}  # fmt: skip
_NAMES = {**PLAIN, **BINARY}
# Torch functions that nodes call directly if all tensors are on one device.
DIRECT = LazyFunctions(_NAMES, lambda name: torch_function(_NAMES[name]))
_CHECKED_NAMES = {f"checked_{function}": name for name, function in BINARY.items()}


def _register_unary(name: str) -> Callable:
    def run(x: Tensor) -> Tensor:
        return DIRECT[name](x)

    run.__name__ = run.__qualname__ = name
    run.__module__ = __name__
    return run


def _register_binary(name: str) -> Callable:
    def run(x: Any, y: Any, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
        y = align_legacy_broadcast(x, y, axis, broadcast)
        _check_sizes(name, x, y)
        return DIRECT[name](x, y)

    run.__name__ = run.__qualname__ = name
    run.__module__ = __name__
    return run


def _make_checked(name: str) -> Callable:
    """The function of an op of two inputs that checks the size of the result; for MatMul one of another module."""
    if name == "MatMul":
        return checked_matmul
    function = DIRECT[name]

    def run(x: Tensor, y: Tensor) -> Tensor:
        if x.shape != y.shape:
            check_broadcast(name, x, y)
        return function(x, y)

    run.__name__ = run.__qualname__ = f"checked_{BINARY[name]}"
    run.__module__ = __name__
    return run


# As DIRECT, for functions whose result may be larger than both inputs.
CHECKED = LazyFunctions({**BINARY, "MatMul": "matmul"}, _make_checked)


def __getattr__(name: str) -> Callable:
    if name not in _CHECKED_NAMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = CHECKED[_CHECKED_NAMES[name]]
    return found


def _check_sizes(name: str, *values: Any) -> None:
    """Check the broadcast size of the tensors among values."""
    given = [v for v in values if hasattr(v, "shape")]
    if len(given) > 1:
        check_broadcast(name, *given)


def align_legacy_broadcast(x: Any, y: Any, axis: int | None, broadcast: int) -> Any:
    """Return the second tensor aligned as before opset 7: from a given dimension on."""
    if not broadcast or axis is None:
        return y
    axis %= x.ndim
    return y.reshape((*y.shape, *[1] * (x.ndim - axis - y.ndim)))


for _name in PLAIN:
    globals()[_name] = op(_name)(_register_unary(_name))
for _name in BINARY:
    globals()[_name] = op(_name)(_register_binary(_name))


@op("Equal")
def equal(x: Any, y: Any, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    if not isinstance(x, Tensor):
        check_broadcast("Equal", x, y)
        return torch.from_numpy((x == y).astype(bool))
    y = align_legacy_broadcast(x, y, axis, broadcast)
    _check_sizes("Equal", x, y)
    return torch.eq(x, y)


@op("Div")
def div(x: Tensor, y: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    y = align_legacy_broadcast(x, y, axis, broadcast)
    _check_sizes("Div", x, y)
    return torch.div(x, y) if x.is_floating_point() or x.is_complex() else torch.div(x, y, rounding_mode="trunc")


@op("Pow")
def power(x: Tensor, y: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    y = align_legacy_broadcast(x, y, axis, broadcast)
    _check_sizes("Pow", x, y)
    if x.dtype is y.dtype:
        return torch.pow(x, y)
    return torch.pow(x, y.to(x.dtype)) if x.is_floating_point() else torch.pow(x.to(y.dtype), y).to(x.dtype)


@op("Mod")
def mod(x: Tensor, y: Tensor, *, fmod: int = 0) -> Tensor:
    _check_sizes("Mod", x, y)
    if fmod and x.is_floating_point():  # C's fmod iterates over bits
        check_work("Mod", 64 * max(x.numel(), y.numel()))
    return torch.fmod(x, y) if fmod else torch.remainder(x, y)


@op("BitShift")
def bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Tensor:
    _check_sizes("BitShift", x, y)
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
    _check_sizes(name, *values)
    first, *rest = values
    for value in rest:
        first = function(first, value)
        count_value(first)  # a gradient may keep it alive
    return first


@op("Where")
def where(condition: Tensor, x: Any, y: Any) -> Any:
    _check_sizes("Where", condition, x, y)
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
        _check_sizes("Clip", x, min, max)
        x, min, max = to_common_device(x, min, max)
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
    _check_sizes("SwiGLU", x, gate)
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
    if slope.ndim == 1 and x.ndim > 2 and slope.shape[0] == x.shape[1]:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    fits_into("PRelu", slope, x.shape)
    return torch.where(x < 0, x * slope, x)


@op("PRelu", since=7)
def prelu_opset7(x: Tensor, slope: Tensor) -> Tensor:
    fits_into("PRelu", slope, x.shape)
    _check_sizes("PRelu", x, slope)
    return torch.where(x < 0, x * slope, x)


@op("IsInf")
def is_inf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    if str(x.dtype).endswith("fn"):
        return torch.zeros(x.shape, dtype=torch.bool, device=x.device)
    found = torch.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@op("Range")
def arange(start: Tensor, limit: Tensor, delta: Tensor, *, stash_type: int = 1) -> Tensor:
    a, b, c = (single_number(v) for v in (start, limit, delta))
    if c == 0:
        raise ValueError("Range: delta is zero")
    count = max(math.ceil((b - a) / c), 0)
    check_elements("Range", count, each=6)
    steps = torch.arange(count, dtype=torch.float64 if start.is_floating_point() else torch.int64)
    return (a + steps * c).to(start.dtype)
