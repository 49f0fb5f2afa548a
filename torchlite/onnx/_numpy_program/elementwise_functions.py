"""NumPy functions of elementwise ops, whose source goes into written programs. They import NumPy and nothing else."""

from __future__ import annotations

import math

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
    """Return the error function: x P(x*x) / Q(x*x) in single precision, element by element in double precision."""
    x = np.asarray(x)
    if x.dtype == np.float64:
        return np.array([math.erf(value) for value in x.reshape(-1).tolist()]).reshape(x.shape)
    above = (
        -1.4254958789755783e-08, 4.901692317982315e-06, 0.0003899381798674059, 0.003916794661234271,
        0.05461936388661591, 0.18600239741861896, 1.1283791168864843,
    )  # fmt: skip
    below = (
        6.53267510062994e-05, 0.0013367510210311605, 0.015616207613124504, 0.11446501383389271, 0.4981728728669563, 1.0,
    )  # fmt: skip
    near = np.clip(x, -4, 4).astype(np.float32)
    square = near * near
    return np.clip(near * polynomial(square, above) / polynomial(square, below), -1, 1).astype(x.dtype)


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


def selu(x: np.ndarray, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> np.ndarray:
    """Return gamma times x, or gamma * alpha * (exp(x) - 1) for negative elements."""
    return x.dtype.type(gamma) * np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))


def hard_sigmoid(x: np.ndarray, alpha: float = 0.2, beta: float = 0.5) -> np.ndarray:
    """Return alpha * x + beta, limited to 0 ... 1."""
    return np.clip(x.dtype.type(alpha) * x + x.dtype.type(beta), 0, 1)


def hard_swish(x: np.ndarray) -> np.ndarray:
    """Return x * min(max(x + 3, 0), 6) / 6."""
    return x * np.clip(x + 3, 0, 6) / 6


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
    return (np.isposinf(x) & bool(positive)) | (np.isneginf(x) & bool(negative))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return exp(x) divided by its sum along an axis."""
    power = np.exp(x - x.max(axis=axis, keepdims=True))
    return power / power.sum(axis=axis, keepdims=True)


def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the logarithm of softmax."""
    apart = x - x.max(axis=axis, keepdims=True)
    return apart - np.log(np.exp(apart).sum(axis=axis, keepdims=True))


def flattened(function: object, x: np.ndarray, axis: int) -> np.ndarray:
    """Return a function along all dimensions from an axis on, as one."""
    rows = int(np.prod(x.shape[: axis % x.ndim]))
    return function(x.reshape(rows, -1), axis=1).reshape(x.shape)  # type: ignore[operator]
