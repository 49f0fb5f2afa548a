"""Softmax and log-softmax, forward and backward, cache-blocked."""

from __future__ import annotations

import numpy as np

from torchlite._dispatch.shapes import wrap_dim

from .cache_blocking import MIN_SIZE, MIN_SIZE_FEW_PASSES, ROWS_BLOCK, get_scratch_buffer
from .row_blocks import (
    apply_rowwise,
    choose_in_place_rows,
    compute_exp_and_sums,
    dot_rows,
    raise_not_implemented,
    sum_along_axis,
)

# Length of short rows, and elements of a block of them.
_SHORT_ROW, _TURNED = 64, 1 << 15


def _compute_softmax_block(out, x, axis=-1):
    total, _ = compute_exp_and_sums(x, out, axis)
    np.divide(out, total, out=out)  # exactly 1 for the only finite number, as a product with a reciprocal is not


def _softmax(input, dim):
    if input.ndim == 0 or input.size == 0 or input.dtype.kind not in "fV":
        if input.dtype.kind not in "fV":
            raise_not_implemented(input, "softmax_lastdim_kernel_impl")
        wrap_dim(dim, input.ndim)
        return _softmax(input.reshape(1), 0).reshape(()) if input.ndim == 0 else input.copy()
    return apply_rowwise(
        _compute_softmax_block, "softmax_lastdim_kernel_impl", dim, input, most=ROWS_BLOCK, worth=2 * MIN_SIZE
    )


def _compute_softmax_backward_block(result, grad, out, axis=-1):
    if axis == -1:
        grad = choose_in_place_rows(grad, result)
        total = dot_rows(grad, out)[..., None]
    else:
        total = sum_along_axis(np.multiply(grad, out, out=result), axis)
    np.subtract(grad, total, out=result)
    np.multiply(result, out, out=result)


def _softmax_backward(grad, out, dim):
    if out.ndim == 0:
        return _softmax_backward(grad.reshape(1), out.reshape(1), 0).reshape(())
    if out.size == 0:
        return np.zeros_like(grad)
    if grad.strides != out.strides:
        grad = np.ascontiguousarray(np.broadcast_to(grad, out.shape))
    return apply_rowwise(
        _compute_softmax_backward_block, "softmax_backward", dim, grad, out, most=ROWS_BLOCK, worth=MIN_SIZE_FEW_PASSES
    )


def _compute_log_softmax_block(out, x, axis=-1):
    # Always about the largest number: without, the logarithm of its exponential would round.
    if axis == -1 and x.ndim == 2 and x.shape[1] < _SHORT_ROW <= x.shape[0]:
        step = _TURNED // x.shape[1]
        for start in range(0, len(x), step):
            _compute_log_softmax_of_short_rows(out[start : start + step], x[start : start + step])
        return
    np.subtract(x, np.maximum.reduce(x, axis, keepdims=True), out=out)
    total = sum_along_axis(np.exp(out, out=get_scratch_buffer(0, x.shape, x.dtype)), axis)
    np.subtract(out, np.log(total, out=total), out=out)


def _compute_log_softmax_of_short_rows(out, rows):
    """Compute it along the columns of a transposed copy.

    NumPy takes ten times as long for the largest number of each row as for a copy.
    """
    turned, powers = (get_scratch_buffer(slot, rows.shape[::-1], rows.dtype) for slot in (0, 1))
    np.copyto(turned, rows.T)
    np.subtract(turned, np.maximum.reduce(turned, 0), out=turned)
    total = np.add.reduce(np.exp(turned, out=powers), 0)
    np.subtract(turned, np.log(total, out=total), out=turned)
    np.copyto(out, turned.T)


def _log_softmax(input, dim):
    if input.ndim == 0 or input.size == 0 or input.dtype.kind not in "fV":
        if input.dtype.kind not in "fV":
            raise_not_implemented(input, "log_softmax_lastdim_kernel_impl")
        wrap_dim(dim, input.ndim)
        return _log_softmax(input.reshape(1), 0).reshape(()) if input.ndim == 0 else input.copy()
    return apply_rowwise(
        _compute_log_softmax_block, "log_softmax_lastdim_kernel_impl", dim, input, most=ROWS_BLOCK, worth=2 * MIN_SIZE
    )


def _compute_log_softmax_backward_block(result, grad, out, axis=-1):
    scratch = get_scratch_buffer(0, out.shape, out.dtype)
    np.exp(out, out=scratch)
    np.multiply(scratch, sum_along_axis(grad, axis), out=scratch)
    np.subtract(grad, scratch, out=result)


def _log_softmax_backward(grad, out, dim):
    if out.ndim == 0:
        return _log_softmax_backward(grad.reshape(1), out.reshape(1), 0).reshape(())
    if out.size == 0:
        return np.zeros_like(grad)
    if grad.strides != out.strides:
        grad = np.ascontiguousarray(np.broadcast_to(grad, out.shape))
    return apply_rowwise(
        _compute_log_softmax_backward_block,
        "log_softmax_backward",
        dim,
        grad,
        out,
        most=ROWS_BLOCK,
        worth=MIN_SIZE_FEW_PASSES,
    )
