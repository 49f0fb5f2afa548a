"""NumPy functions of elementwise ops, whose source goes into written programs. They import NumPy and nothing else."""

from __future__ import annotations

import numpy as np


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), with an exponent that does not overflow."""
    most = {2: 11, 4: 88, 8: 709}[x.dtype.itemsize]
    return 1 / (1 + np.exp(np.minimum(-x, most)))


def polynomial(x: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    """Return a polynomial's value by Horner's rule, coefficients from the highest power down."""
    out = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        out *= x
        out += x.dtype.type(coefficient)
    return out


def erf(x: np.ndarray) -> np.ndarray:
    """Return the error function: x P(x*x) / Q(x*x) in single precision, other approximations in double precision."""
    x = np.asarray(x)
    if x.dtype != np.float64:
        above = (
            -1.4254958789755783e-08, 4.901692317982315e-06, 0.0003899381798674059, 0.003916794661234271,
            0.05461936388661591, 0.18600239741861896, 1.1283791168864843,
        )  # fmt: skip
        below = (
            6.53267510062994e-05, 0.0013367510210311605, 0.015616207613124504, 0.11446501383389271,
            0.4981728728669563, 1.0,
        )  # fmt: skip
        near = np.clip(x, -4, 4).astype(np.float32)
        square = near * near
        return np.clip(near * polynomial(square, above) / polynomial(square, below), -1, 1).astype(x.dtype)
    small = (
        5.957176147748911e-11, -1.1372848856791674e-09, 1.4659775274047436e-08, -1.6350312701054695e-07,
        1.6461000484121368e-06, -1.4925595266831182e-05, 0.0001205533111164271, -0.000854832698083379,
        0.0052239776248180145, -0.026866170645076792, 0.11283791670954879, -0.3761263890318375, 1.1283791670955126,
    )  # fmt: skip
    large = (
        -1.791502752209178e-10, -7.652918351368929e-11, 2.282283310732059e-09, 7.054882560385151e-10,
        -1.8096905734635933e-08, -2.762829273945234e-10, 1.2678363974294932e-07, -7.440134079315679e-08,
        -8.477202827598295e-07, 1.4235437808888834e-06, 4.6949536005148395e-06, -1.8860655174390427e-05,
        -3.6352864144616853e-06, 0.00017681276781310884, -0.0004550526714402559, -0.0002809588591250074,
        0.00611205565561393, -0.02637005334070314, 0.0763815149091835, -0.17401093723993213, 0.33085158787802266,
        -0.5408538313132345, 0.7732087022652369, -0.976548729080882, 1.095995661000491,
    )  # fmt: skip
    size = np.minimum(np.abs(x), 30.0)
    below_one = np.minimum(size, 1.0)
    near_zero = below_one * polynomial(below_one * below_one, small)
    complement = np.exp(-size * size) * polynomial(1 - 8 / (size + 4), large) / (size + 4)
    return np.copysign(np.where(np.abs(x) < 1, near_zero, 1 - complement), x)


def gelu(x: np.ndarray, tanh: bool = False) -> np.ndarray:
    """Return x times the normal distribution function, or its approximation by tanh."""
    if tanh:
        return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x * 0.7071067811865476))


def softplus(x: np.ndarray) -> np.ndarray:
    """Return log(1 + exp(x)), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def leaky_relu(x: np.ndarray, slope: float = 0.01) -> np.ndarray:
    """Return x, or slope * x for negative elements."""
    return np.where(x >= 0, x, x * x.dtype.type(slope))


def prelu(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return x, or x times its trained slope for negative elements."""
    if slope.ndim == 1 and x.ndim > 2 and slope.shape[0] == x.shape[1]:
        slope = slope.reshape(-1, *[1] * (x.ndim - 2))
    return np.where(x < 0, x * slope, x)


def elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    """Return x, or alpha * (exp(x) - 1) for negative elements."""
    return np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))


def celu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    """Return x, or alpha * (exp(x / alpha) - 1) for negative elements."""
    factor = x.dtype.type(alpha)
    return np.where(x > 0, x, factor * np.expm1(np.minimum(x, 0) / factor))


def selu(x: np.ndarray, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> np.ndarray:
    """Return gamma times x, or gamma * alpha * (exp(x) - 1) for negative elements."""
    return x.dtype.type(gamma) * np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))


def hard_sigmoid(x: np.ndarray, alpha: float = 0.2, beta: float = 0.5) -> np.ndarray:
    """Return alpha * x + beta, limited to 0 ... 1."""
    return np.clip(x.dtype.type(alpha) * x + x.dtype.type(beta), 0, 1)


def hard_swish(x: np.ndarray) -> np.ndarray:
    """Return x * min(max(x + 3, 0), 6) / 6."""
    return x * np.clip(x + 3, 0, 6) / 6


def shrink(x: np.ndarray, bias: float = 0.0, limit: float = 0.5) -> np.ndarray:
    """Return elements nearer to zero by the bias, and zero where they are within the limit."""
    return np.where(x > limit, x - bias, np.where(x < -limit, x + bias, 0)).astype(x.dtype)


def clip(x: np.ndarray, low: object = None, high: object = None) -> np.ndarray:
    """Return x limited from below and above, each if given."""
    if low is not None:
        x = np.maximum(x, np.asarray(low, x.dtype))
    return x if high is None else np.minimum(x, np.asarray(high, x.dtype))


def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x / y, rounded towards zero for integers."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "f":
        return x / y
    quotient = np.floor_divide(x, y)
    inexact = (quotient * y != x) & ((x < 0) != (y < 0))
    return (quotient + inexact).astype(x.dtype)


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x to the power y in the dtype of x."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "f":
        return np.power(x, y.astype(x.dtype))
    return np.power(x.astype(y.dtype), y).astype(x.dtype)


def is_infinite(x: np.ndarray, negative: bool = True, positive: bool = True) -> np.ndarray:
    """Return where x is infinite, of the signs that are asked for."""
    return (np.isposinf(x) & positive) | (np.isneginf(x) & negative)


def shift_bits(x: np.ndarray, y: np.ndarray, left: bool) -> np.ndarray:
    """Return unsigned integers shifted by y bits; zero where y is at least the width."""
    bits = x.dtype.itemsize * 8
    shift = np.minimum(y, bits - 1).astype(x.dtype)
    moved = np.left_shift(x, shift) if left else np.right_shift(x, shift)
    return np.where(y >= bits, np.zeros_like(moved), moved)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return exp(x) divided by its sum along an axis."""
    power = np.exp(x - x.max(axis=axis, keepdims=True))
    return power / power.sum(axis=axis, keepdims=True)


def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the logarithm of softmax."""
    apart = x - x.max(axis=axis, keepdims=True)
    return apart - np.log(np.exp(apart).sum(axis=axis, keepdims=True))


def hardmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return one at the first largest element along an axis, zero elsewhere."""
    out = np.zeros_like(x)
    np.put_along_axis(out, np.argmax(x, axis=axis, keepdims=True), 1, axis=axis)
    return out


def flattened(function: object, x: np.ndarray, axis: int) -> np.ndarray:
    """Return a function along all dimensions from an axis on, as one."""
    rows = int(np.prod(x.shape[: axis % x.ndim]))
    return function(x.reshape(rows, -1), axis=1).reshape(x.shape)  # type: ignore[operator]
