"""Fused CPU kernels of the hot ops: activations, softmax and their backward, block by block in cache.

Each is a kernel of the record of its name. Half precision is computed in float32. `normalisation.py`
hold the other families.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from torchlite_array._special_tables import NORMAL_TANH
from torchlite_array.special import erf

from . import blocks
from .blocks import buffer

F32, F64, I32, I64, I8 = (np.dtype(n) for n in ("f4", "f8", "i4", "i8", "i1"))
SMALL = blocks.SMALL
# From this many elements inside a dimension it is reduced where it lies; with fewer it is moved to the end.
WIDE = 16
LONGEST_DOT = 1 << 14
# ... and when it has few enough: a narrow column of many rows lies in few sets of a cache, and moving is faster.
FEW = blocks.BLOCK // 512
# 0-d arrays: a ufunc takes them faster than Python numbers.
ZERO, ONE_BIT = np.zeros((), F32), np.ones((), I32)


def _contiguous(x):
    return x if x.flags.c_contiguous else x.copy()


def refuse(x, kernel):
    """PyTorch's error for a dtype that a kernel does not take."""
    from torchlite._dtype import from_np

    raise NotImplementedError(f"\"{kernel}\" not implemented for '{from_np(x.dtype).scalar_name}'")


def _is_half(dtype):
    return dtype.itemsize == 2 and dtype.kind in "fV"


def widened(kernel, *args, **kwargs):
    """Run a kernel on float32 copies of half-precision arrays and narrow what it returns."""
    dtype = next(a.dtype for a in args if isinstance(a, np.ndarray) and _is_half(a.dtype))
    wide = [a.astype(F32) if isinstance(a, np.ndarray) and _is_half(a.dtype) else a for a in args]
    out = kernel(*wide, **kwargs)
    if isinstance(out, tuple):
        return tuple(None if o is None else np.asarray(o).astype(dtype) for o in out)
    return np.asarray(out).astype(dtype)


def _map(body, kernel, x, *more):
    """`body(out, x, ...)` over arrays of one shape and float dtype."""
    dtype = x.dtype
    if dtype is not F32 and dtype != F32 and dtype != F64:
        if not _is_half(dtype):
            refuse(x, kernel)
        return widened(lambda *wide: _map(body, kernel, *wide), x, *more)
    arrays = [x if x.flags.c_contiguous else x.copy()]
    for other in more:
        if other.shape != x.shape:
            other = np.broadcast_to(other, x.shape)
        arrays.append(other if other.flags.c_contiguous else other.copy())
    out = np.empty(x.shape, dtype)
    blocks.elementwise(body, out, *arrays)
    return out


# --- relu -----------------------------------------------------------------------------------------


def relu(input):
    if input.dtype is F32 and input.size <= SMALL:
        return np.maximum(input, ZERO)
    kind = input.dtype.kind
    if kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if input.size <= SMALL or not input.flags.c_contiguous:
        return np.maximum(input, 0)
    out = np.empty_like(input)
    blocks.elementwise(lambda o, x: np.maximum(x, 0, out=o), out, input)
    return out


def _relu_mask(out_block, grad, out):
    # The bits of the gradient and of -1, but 0 where out <= 0: a product with the mask would make NaN of an infinite
    # gradient.
    bits = out_block.view(I32)
    bits[...] = (out <= 0).view(I8)
    np.subtract(bits, 1, bits)
    np.bitwise_and(bits, grad.view(I32), bits)


def _relu_backward(grad, out):
    if grad.dtype != F32 or out.dtype != F32 or not out.ndim:
        return np.where(out <= 0, grad.dtype.type(0), grad)
    if not (grad.flags.c_contiguous and out.flags.c_contiguous):
        grad, out = grad.copy(), _contiguous(out)
    if grad.size <= SMALL:
        bits = np.less_equal(out, ZERO).view(I8).astype(I32)
        np.subtract(bits, ONE_BIT, bits)
        np.bitwise_and(bits, grad.view(I32), bits)
        return bits.view(F32)
    result = np.empty_like(grad)
    blocks.elementwise(_relu_mask, result, grad, out)
    return result


# --- gelu -----------------------------------------------------------------------------------------

# The normal distribution function is (1 + tanh(x P(x^2))) / 2. P was fitted here by weighted least squares (Lawson's
# iteration towards the smallest largest error) on [0, 5.6]: the error of gelu is below 7e-8 + rounding; at 5.8 the tanh
# is exactly 1 in float32.
GELU_LIMIT = np.float32(5.8**2)
GELU_FIT = [np.float32(c) for c in NORMAL_TANH]
HALF, ONE = np.float32(0.5), np.float32(1.0)
TANH_SCALE, TANH_CUBIC = 0.7978845608028654, 0.044715
INV_SQRT_2PI = 0.3989422804014327


def _bounded_fit(x, bounded):
    """tanh(x P(x^2)) into a scratch block."""
    square = buffer(1, x.shape, F32)
    np.multiply(x, x, out=square)
    np.minimum(square, GELU_LIMIT, out=square)
    np.multiply(square, GELU_FIT[0], out=bounded)
    for coefficient in GELU_FIT[1:-1]:
        np.add(bounded, coefficient, out=bounded)
        np.multiply(bounded, square, out=bounded)
    np.add(bounded, GELU_FIT[-1], out=bounded)
    np.multiply(bounded, x, out=bounded)
    np.tanh(bounded, out=bounded)


def _bounded_tanh(x, bounded):
    """tanh(sqrt(2/pi) (x + 0.044715 x^3)) into a scratch block."""
    np.multiply(x, x, out=bounded)
    np.multiply(bounded, x.dtype.type(TANH_SCALE * TANH_CUBIC), out=bounded)
    np.add(bounded, x.dtype.type(TANH_SCALE), out=bounded)
    np.multiply(bounded, x, out=bounded)
    np.tanh(bounded, out=bounded)


def _bounded_erf(x, bounded):
    bounded[...] = erf(x * 0.7071067811865476)


def _bounded(x, approximate):
    bounded = buffer(0, x.shape, x.dtype)
    if approximate == "tanh":
        _bounded_tanh(x, bounded)
    elif x.dtype == F32:
        _bounded_fit(x, bounded)
    else:
        _bounded_erf(x, bounded)
    return bounded


def _gelu_block(approximate):
    def block(out, x):
        bounded = _bounded(x, approximate)
        half = x.dtype.type(0.5)
        np.multiply(bounded, half, out=bounded)
        np.add(bounded, half, out=bounded)
        np.multiply(bounded, x, out=out)

    return block


_GELU = {"none": _gelu_block("none"), "tanh": _gelu_block("tanh")}


def gelu(input, *, approximate="none"):
    body = _GELU.get(approximate)
    if body is None:
        raise RuntimeError("approximate argument must be either none or tanh.")
    return _map(body, "GeluKernelImpl", input)


def _gelu_backward_block(approximate):
    def block(out, grad, x):
        bounded = _bounded(x, approximate)
        number = x.dtype.type
        bell = buffer(1, x.shape, x.dtype)
        if approximate == "tanh":
            # x (1 - b^2) / 2 * scale (1 + 3 cubic x^2)
            inner = buffer(2, x.shape, x.dtype)
            np.multiply(x, x, out=inner)
            np.multiply(inner, number(1.5 * TANH_SCALE * TANH_CUBIC), out=inner)
            np.add(inner, number(0.5 * TANH_SCALE), out=inner)
            np.multiply(bounded, bounded, out=bell)
            np.subtract(number(1), bell, out=bell)
            np.multiply(bell, inner, out=bell)
        else:
            np.multiply(x, x, out=bell)
            np.multiply(bell, number(-0.5), out=bell)
            np.exp(bell, out=bell)
            np.multiply(bell, number(INV_SQRT_2PI), out=bell)
        np.multiply(bell, x, out=bell)
        np.multiply(bounded, number(0.5), out=bounded)
        np.add(bounded, number(0.5), out=bounded)
        np.add(bounded, bell, out=bounded)
        np.multiply(bounded, grad, out=out)

    return block


_GELU_BACKWARD = {"none": _gelu_backward_block("none"), "tanh": _gelu_backward_block("tanh")}


def _gelu_backward(grad, input, approximate="none"):
    return _map(_GELU_BACKWARD[approximate], "GeluBackwardKernelImpl", grad, input)


# --- silu and mish --------------------------------------------------------------------------------


def _sigmoid_into(x, out):
    """(1 + tanh(x / 2)) / 2: cannot overflow, and one pass cheaper than by way of exp."""
    half = x.dtype.type(0.5)
    np.multiply(x, half, out=out)
    np.tanh(out, out=out)
    np.multiply(out, half, out=out)
    np.add(out, half, out=out)


def _silu_block(out, x):
    gate = buffer(0, x.shape, x.dtype)
    _sigmoid_into(x, gate)
    np.multiply(gate, x, out=out)


def _silu_backward_block(out, grad, x):
    gate, slope = buffer(0, x.shape, x.dtype), buffer(1, x.shape, x.dtype)
    one = x.dtype.type(1)
    _sigmoid_into(x, gate)
    np.subtract(one, gate, out=slope)
    np.multiply(slope, x, out=slope)
    np.add(slope, one, out=slope)
    np.multiply(slope, gate, out=slope)
    np.multiply(slope, grad, out=out)


def silu(input):
    if input.dtype.kind == "c":
        return input / (1 + np.exp(-input))
    return _map(_silu_block, "silu_cpu", input)


def _silu_backward(grad, input):
    if input.dtype.kind == "c":
        gate = 1 / (1 + np.exp(-input))
        return grad * np.conj(gate * (1 + input * (1 - gate)))
    return _map(_silu_backward_block, "silu_cpu", grad, input)


def _tanh_softplus_into(x, out, scratch):
    """tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); x is limited to 20, where the result is 1."""
    number = x.dtype.type
    np.minimum(x, number(20), out=scratch)
    np.exp(scratch, out=scratch)
    np.add(scratch, number(2), out=out)
    np.multiply(out, scratch, out=out)
    np.add(out, number(2), out=scratch)
    np.divide(out, scratch, out=out)


def _mish_block(out, x):
    bounded = buffer(0, x.shape, x.dtype)
    _tanh_softplus_into(x, bounded, buffer(1, x.shape, x.dtype))
    np.multiply(bounded, x, out=out)


def _mish_backward_block(out, grad, x):
    bounded, scratch, gate = (buffer(slot, x.shape, x.dtype) for slot in range(3))
    one = x.dtype.type(1)
    _tanh_softplus_into(x, bounded, scratch)
    _sigmoid_into(x, gate)
    np.multiply(bounded, bounded, out=scratch)
    np.subtract(one, scratch, out=scratch)
    np.multiply(scratch, gate, out=scratch)
    np.multiply(scratch, x, out=scratch)
    np.add(scratch, bounded, out=scratch)
    np.multiply(scratch, grad, out=out)


def mish(input):
    return _map(_mish_block, "mish_cpu", input)


def _mish_backward(grad, input):
    return _map(_mish_backward_block, "mish_cpu", grad, input)


# --- softmax --------------------------------------------------------------------------------------


def _as_rows(x, dim):
    """x with `dim` last, as contiguous rows."""
    if dim not in (-1, x.ndim - 1):
        x = np.moveaxis(x, dim, -1)
    return _contiguous(x).reshape(-1, x.shape[-1])


def _from_rows(rows, shape, dim):
    if dim in (-1, len(shape) - 1):
        return rows.reshape(shape)
    moved = list(shape)
    moved.append(moved.pop(dim))
    return np.moveaxis(rows.reshape(moved), -1, dim)


def _columnwise(body, dim, *arrays):
    """`_rowwise` without moving `dim` to the end: blocks of (outer, dim, inner), cut along outer when they fit in cache
    and else along inner.
    """
    shape = arrays[0].shape
    count = shape[dim]
    inner = math.prod(shape[dim + 1 :])
    parts = [_contiguous(a).reshape(-1, count, inner) for a in arrays]
    out = np.empty(parts[0].shape, parts[0].dtype)
    if count * inner <= blocks.BLOCK:
        blocks.run(
            lambda start, stop: body(out[start:stop], *[p[start:stop] for p in parts], axis=-2),
            out.shape[0],
            count * inner,
        )
        return out.reshape(shape)
    width = blocks.BLOCK // count
    tiles = [(outer, left) for outer in range(out.shape[0]) for left in range(0, inner, width)]

    def work(start, stop):
        for outer, left in tiles[start:stop]:
            body(out[outer, :, left : left + width], *[p[outer, :, left : left + width] for p in parts], axis=-2)

    blocks.run(work, len(tiles), count * width)
    return out.reshape(shape)


def _rowwise(body, kernel, dim, *arrays):
    """`body(out, *blocks)` over blocks of rows along `dim`; arrays of one shape and float dtype."""
    x = arrays[0]
    dtype = x.dtype
    if dtype != F32 and dtype != F64:
        if not _is_half(dtype):
            refuse(x, kernel)
        return widened(lambda *wide: _rowwise(body, kernel, dim, *wide), *arrays)
    if dim >= 0:
        dim -= x.ndim
    if x.size <= SMALL and dim == -1:
        out = np.empty(x.shape, dtype)
        body(out, *arrays)
        return out
    if dim != -1 and math.prod(x.shape[dim + 1 :]) >= WIDE and x.shape[dim] <= FEW:
        return _columnwise(body, dim, *arrays)
    rows = [_as_rows(a, dim) for a in arrays]
    out = np.empty(rows[0].shape, dtype)
    blocks.run(lambda start, stop: body(out[start:stop], *[r[start:stop] for r in rows]), *out.shape)
    return _from_rows(out, x.shape, dim)


@functools.lru_cache(64)
def ones(count, dtype):
    found = np.ones(count, dtype)
    found.flags.writeable = False
    return found


def row_sums(x, axis=-1):
    """Sums over a dimension, kept at size 1: over the last one a dot product with ones is three times as fast as
    add.reduce.
    """
    if axis != -1 or x.size < 4096 or x.shape[-1] > LONGEST_DOT:
        return np.add.reduce(x, axis, keepdims=True)
    return np.vecdot(x, ones(x.shape[-1], x.dtype))[..., None]


def row_dots(first, second):
    """Dot products of rows; of very long ones by pairwise sums, which round less than BLAS does."""
    if first.shape[-1] > LONGEST_DOT:
        return np.add.reduce(first * second, -1)
    return np.vecdot(first, second)


# Rows of moderate numbers need no shift by their largest element before exp: neither the sum overflows, nor does what
# counts in it underflow.
MODERATE, SUM_AT_LEAST = 60.0, 1e-8


def exp_and_sums(x, out, axis=-1):
    """exp(x - s) into `out`, its row sums, and the shift s of each row (0 when the numbers are moderate)."""
    if np.maximum.reduce(x, None) < MODERATE:
        np.exp(x, out=out)
        total = row_sums(out, axis)
        if np.minimum.reduce(total, None) > SUM_AT_LEAST:
            return total, ZERO
    largest = np.maximum.reduce(x, axis, keepdims=True)
    np.subtract(x, largest, out=out)
    np.exp(out, out=out)
    return row_sums(out, axis), largest


def _softmax_block(out, x, axis=-1):
    weights = buffer(0, x.shape, x.dtype)
    total, _ = exp_and_sums(x, weights, axis)
    np.divide(1, total, out=total)
    np.multiply(weights, total, out=out)


def _softmax(input, dim):
    if input.ndim == 0 or input.size == 0 or input.dtype.kind not in "fV":
        if input.dtype.kind not in "fV":
            refuse(input, "softmax_lastdim_kernel_impl")
        return np.ones_like(input)
    return _rowwise(_softmax_block, "softmax_lastdim_kernel_impl", dim, input)


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
    return _rowwise(_softmax_backward_block, "softmax_backward", dim, grad, out)


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
        return np.zeros_like(input)
    return _rowwise(_log_softmax_block, "log_softmax_lastdim_kernel_impl", dim, input)


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
    return _rowwise(_log_softmax_backward_block, "log_softmax_backward", dim, grad, out)
