"""Linear layer and its gradients."""

from __future__ import annotations

import math

import numpy as np

from .blas import single_threaded
from .deterministic_gemm import (
    LEAST_ROW,
    MAX_GEMM_WORK,
    MAX_GEMV_SIZE,
    deterministic_dot,
    deterministic_matmul,
    matmul_bias,
    native_gemm,
)
from .half_casts import half_gemv
from .row_blocks import F32, F64, is_half, ones, run_in_float32


def linear(input, weight, bias=None):
    dtype = input.dtype
    # Small layers first: argument checks dominate them.
    if (
        dtype is F32
        and bias is not None
        and weight.dtype is F32
        and bias.dtype is F32
        and input.ndim == 2 == weight.ndim
        and bias.shape == weight.shape[:1]
        and 1 < len(input) < input.size
        and 1 < len(bias)
        and input.size * len(bias) <= MAX_GEMM_WORK
    ):
        out = input.dot(weight.T)
        out += bias
        return out
    # Then single rows, as when text is generated: calls around the product take as long as one of 256 by 256.
    if (
        dtype is F32
        and weight.dtype is F32
        and weight.ndim == 2
        and input.ndim
        and input.size == input.shape[-1] == weight.shape[1]
        and MAX_GEMV_SIZE <= (size := weight.size) < native_gemm.least
        and (size < LEAST_ROW or native_gemm.row is None)
        and (bias is None or bias.dtype is F32 and bias.shape == weight.shape[:1])
    ):
        shape = input.shape
        out = single_threaded.dot(input if len(shape) == 2 else input.reshape(1, -1), weight.T)
        if bias is not None:
            np.add(out, bias, out)
        return out if len(shape) == 2 else out.reshape(*shape[:-1], -1)
    if dtype is not weight.dtype and dtype != weight.dtype:
        raise RuntimeError("expected m1 and m2 to have the same dtype")
    if bias is not None and bias.dtype is not dtype and bias.dtype != dtype:
        raise RuntimeError("self and mat2 must have the same dtype")
    if dtype is not F32 and is_half(dtype):
        return _half_linear(input, weight, bias)
    # A bias is added in parallel with the product.
    inside = bias if bias is not None and bias.shape == weight.shape[:-1] and weight.ndim == 2 else None
    if input.ndim == 2 == weight.ndim:
        out = matmul_bias(input, weight.T, inside)
    elif weight.ndim == 2 and input.ndim:
        if input.size:
            rows = matmul_bias(_view_rows_as_matrix(input), weight.T, inside)
            out = rows.reshape(input.shape[:-1] + weight.shape[:-1])
        else:
            out, inside = np.matmul(input, weight.T), None
    elif weight.ndim == 1 and input.ndim and bias is None:
        out = deterministic_dot(input, weight)
    else:
        raise RuntimeError("linear: a matrix is wanted")
    if bias is inside:
        return out
    if bias.ndim > 1 or out.ndim == 0:
        return out + bias
    out += bias
    return out


def _half_linear(input, weight, bias):
    if weight.ndim == 2 and input.ndim and input.size == weight.shape[1] and (bias is None or bias.ndim == 1):
        out = half_gemv(weight, input.reshape(-1))  # of one row
        if out is not None:
            out = (out if bias is None else out + bias.astype(F32)).astype(input.dtype)
            return out.reshape(*input.shape[:-1], -1)
    return run_in_float32(linear, input, weight, bias)


def _linear_input_grad(grad, weight):
    dtype = grad.dtype
    if dtype is not F32 and dtype is not F64:
        return (
            run_in_float32(deterministic_matmul, grad, weight)
            if is_half(dtype)
            else deterministic_matmul(grad, weight.conj())
        )
    if grad.ndim == 2 == weight.ndim:
        return matmul_bias(grad, weight)
    return (
        deterministic_dot(grad.reshape(-1, grad.shape[-1]), weight).reshape(grad.shape[:-1] + weight.shape[1:])
        if grad.size
        else np.matmul(grad, weight)
    )


def _view_rows_as_matrix(x):
    """Return all rows as a matrix, also for rows without elements."""
    return x.reshape(-1 if x.size else math.prod(x.shape[:-1]), x.shape[-1])


def _linear_weight_grad(grad, input):
    if grad.ndim != 2:
        grad = _view_rows_as_matrix(grad)
    if input.ndim != 2:
        input = _view_rows_as_matrix(input)
    dtype = grad.dtype
    if dtype is not F32 and dtype is not F64:
        return (
            run_in_float32(deterministic_matmul, grad.T, input)
            if is_half(dtype)
            else deterministic_matmul(grad.T, input.conj())
        )
    return matmul_bias(grad.T, input)


def _linear_bias_grad(grad):
    if grad.ndim != 2:
        grad = _view_rows_as_matrix(grad)
    if grad.dtype is F32 or grad.dtype is F64:
        return deterministic_dot(ones(grad.shape[0], grad.dtype), grad)
    return np.add.reduce(grad.astype(F32), 0).astype(grad.dtype) if is_half(grad.dtype) else np.add.reduce(grad, 0)
