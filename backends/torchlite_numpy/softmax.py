"""Softmax and log-softmax with their backward passes, block by block in cache."""

from __future__ import annotations

import numpy as np

from torchlite._dispatch.shapes import wrap_dim

from .blocks import WORTH, WORTH_OF_FEW, buffer
from .rows import ZERO, exp_and_sums, refuse, row_sums, rowwise


def _softmax_block(out, x, axis=-1):
    weights = buffer(0, x.shape, x.dtype)
    total, _ = exp_and_sums(x, weights, axis)
    np.divide(1, total, out=total)
    np.multiply(weights, total, out=out)


def _softmax(input, dim):
    if input.ndim == 0 or input.size == 0 or input.dtype.kind not in "fV":
        if input.dtype.kind not in "fV":
            refuse(input, "softmax_lastdim_kernel_impl")
        wrap_dim(dim, input.ndim)
        return np.ones_like(input)
    return rowwise(_softmax_block, "softmax_lastdim_kernel_impl", dim, input, worth=2 * WORTH)


def _softmax_backward_block(result, grad, out, axis=-1):
    np.multiply(grad, out, out=result)
    total = row_sums(result, axis)
    scratch = buffer(0, out.shape, out.dtype)
    np.multiply(out, total, out=scratch)
    np.subtract(result, scratch, out=result)


def _softmax_backward(grad, out, dim):
    if out.ndim == 0 or out.size == 0:
        return np.zeros_like(grad)
    if grad.strides != out.strides:
        grad = np.ascontiguousarray(np.broadcast_to(grad, out.shape))
    return rowwise(_softmax_backward_block, "softmax_backward", dim, grad, out, worth=WORTH_OF_FEW)


def _log_softmax_block(out, x, axis=-1):
    total, shift = exp_and_sums(x, buffer(0, x.shape, x.dtype), axis)
    np.log(total, out=total)
    if shift is ZERO:
        np.subtract(x, total, out=out)
    else:
        np.subtract(x, shift, out=out)
        np.subtract(out, total, out=out)


def _log_softmax(input, dim):
    if input.ndim == 0 or input.size == 0 or input.dtype.kind not in "fV":
        if input.dtype.kind not in "fV":
            refuse(input, "log_softmax_lastdim_kernel_impl")
        wrap_dim(dim, input.ndim)
        return np.zeros_like(input)
    return rowwise(_log_softmax_block, "log_softmax_lastdim_kernel_impl", dim, input, worth=2 * WORTH)


def _log_softmax_backward_block(result, grad, out, axis=-1):
    scratch = buffer(0, out.shape, out.dtype)
    np.exp(out, out=scratch)
    np.multiply(scratch, row_sums(grad, axis), out=scratch)
    np.subtract(grad, scratch, out=result)


def _log_softmax_backward(grad, out, dim):
    if out.ndim == 0 or out.size == 0:
        return np.zeros_like(grad)
    if grad.strides != out.strides:
        grad = np.ascontiguousarray(np.broadcast_to(grad, out.shape))
    return rowwise(_log_softmax_backward_block, "log_softmax_backward", dim, grad, out, worth=WORTH_OF_FEW)
