"""Elementwise kernels of several passes over large arrays, cache-blocked on several threads; small ones use the shared
kernels.
"""

from __future__ import annotations

import math

import numpy as np

from torchlite_backends.array.pointwise import _where as plain_where
from torchlite_backends.array.pointwise import abs as plain_abs
from torchlite_backends.array.pointwise import sigmoid as plain_sigmoid
from torchlite_backends.array.special import erf as plain_erf
from torchlite_backends.array.special import erf_float32
from torchlite_backends.array.unary import angle as plain_angle

from .cache_blocking import LARGEST_BLOCK, SMALL, apply_elementwise_blocks, get_scratch_buffer, run_blocks
from .elementwise_partitioning import apply_to_elementwise_parts
from .half_casts import cast_half

# Below this the calls cost more than the passes.
SMALL_SIZE = 1 << 12
_BITS = {2: np.int16, 4: np.int32, 8: np.int64}
_ERF_BLOCK = 1 << 15


def _compute_sigmoid_into(out, x):
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


_ONE = np.ones((), np.float32)


def sigmoid(input, into=None):
    if into is not None:  # of the input's shape and dtype, possibly the input
        if input.dtype.char in "fd":
            _compute_sigmoid_into(into, input)
        else:
            np.copyto(into, sigmoid(input))
        return into
    if input.dtype == np.float32 and 0 < input.ndim and input.size <= SMALL:
        out = np.negative(input)
        np.exp(out, out)
        np.add(out, _ONE, out)
        return np.reciprocal(out, out)
    if input.dtype.itemsize == 2 and input.size:  # one rounding
        return cast_half(sigmoid(cast_half(input, np.dtype("f4"))), input.dtype)
    if input.size <= SMALL or not input.flags.c_contiguous or input.dtype.kind != "f":
        return plain_sigmoid(input)
    out = np.empty_like(input)
    apply_elementwise_blocks(_compute_sigmoid_into, out, input)
    return out


def _round_once(ufunc, double, signature, out_dtype, *operands):
    """A ufunc of float32 or complex64 numbers in double precision: NumPy's own have errors of two units in the last
    place, and log10 of 1000 is not 3.
    """
    shape = np.broadcast_shapes(*[x.shape for x in operands])
    if not shape:
        return np.asarray(ufunc(*[x.astype(double) for x in operands])).astype(out_dtype)
    out = np.empty_like(operands[0], out_dtype) if operands[0].shape == shape else np.empty(shape, out_dtype)

    def compute(part, *parts):
        ufunc(*parts, out=part, signature=signature, casting="unsafe")

    apply_to_elementwise_parts(compute, out, operands)
    return out


def log10(input, plain=np.log10):
    if input.dtype.char == "f":
        return _round_once(np.log10, np.float64, "d->d", np.float32, input)
    if input.dtype.char == "F":
        return _round_once(np.log10, np.complex128, "D->D", np.complex64, input)
    return plain(input)


def atan2(input, other, plain=np.arctan2):
    if input.dtype.char == "f" and getattr(other, "dtype", None) == input.dtype:
        return _round_once(np.arctan2, np.float64, "dd->d", np.float32, input, other)
    return plain(input, other)


def angle(input, plain=plain_angle):
    if input.dtype.char == "F":
        return _round_once(np.arctan2, np.float64, "dd->d", np.float32, input.imag, input.real)
    return plain(input)


def abs(input, plain=plain_abs):
    if input.dtype.char == "F":
        return _round_once(np.absolute, np.complex128, "D->d", np.float32, input)
    return plain(input)


def erf(input):
    if input.size <= SMALL or not input.flags.c_contiguous or input.dtype != np.float32:
        return plain_erf(input)
    x, out = input.reshape(-1), np.empty(input.size, np.float32)

    def erf_part(start, stop):
        erf_float32(
            x[start:stop], out[start:stop], [get_scratch_buffer(slot, (stop - start,), np.float32) for slot in range(3)]
        )

    run_blocks(erf_part, x.size, 1, _ERF_BLOCK)
    return out.reshape(input.shape)


def _select_bits(out, condition, x, y):
    """Select x where condition, else y, by bit operations.

    A branch per element, as in `np.where`, costs six times as much on a random mask.
    """
    mask = get_scratch_buffer(0, out.shape, out.dtype)
    np.negative(condition, out=mask)
    np.bitwise_xor(x, y, out=out)
    np.bitwise_and(out, mask, out=out)
    np.bitwise_xor(out, y, out=out)


def _select_or_zero(out, condition, x):
    """Select x where condition, else zero."""
    np.negative(condition, out=out)
    np.bitwise_and(out, x, out=out)


def _zero_where(out, condition, x):
    """Select zero where condition, else x."""
    np.subtract(condition, 1, out=out)
    np.bitwise_and(out, x, out=out)


def _select_or_scalar(out, condition, x, number):
    """Select x where condition, else a number, given by its bits."""
    difference = get_scratch_buffer(0, out.shape, out.dtype)
    np.bitwise_xor(x, number, out=difference)
    np.negative(condition, out=out)
    np.bitwise_and(out, difference, out=out)
    np.bitwise_xor(out, number, out=out)


def _select_scalar_where(out, condition, x, number):
    """Select a number where condition, else x."""
    difference = get_scratch_buffer(0, out.shape, out.dtype)
    np.bitwise_xor(x, number, out=difference)
    np.subtract(condition, 1, out=out)
    np.bitwise_and(out, difference, out=out)
    np.bitwise_xor(out, number, out=out)


def _where(condition, input, other):
    if condition.size < SMALL_SIZE or condition.dtype.kind != "b":
        return plain_where(condition, input, other)
    first, second = (isinstance(a, np.ndarray) and a.ndim > 0 for a in (input, other))
    array = input if first else other
    if not (first or second) or array.dtype.itemsize not in _BITS or array.dtype.kind == "c":
        return plain_where(condition, input, other)
    bits = _BITS[array.dtype.itemsize]
    if first and second:
        if other.dtype != input.dtype or not _are_row_major([condition, input, other]):
            return plain_where(condition, input, other)
        return _select_blockwise(_select_bits, condition, [input.view(bits), other.view(bits)], bits).view(array.dtype)
    number = other if first else input
    if not _are_row_major([condition, array]):
        return plain_where(condition, input, other)
    if _is_zero(number):
        return _select_blockwise(_select_or_zero if first else _zero_where, condition, [array.view(bits)], bits).view(
            array.dtype
        )
    if not isinstance(number, (np.ndarray, np.generic)) or number.dtype != array.dtype:
        if array.dtype.kind != "f" or number.__class__ not in (int, float):
            return plain_where(condition, input, other)
        number = np.asarray(number).astype(array.dtype)
    number_bits = np.asarray(number).view(bits)
    return _select_blockwise(
        _select_or_scalar if first else _select_scalar_where, condition, [array.view(bits), number_bits], bits
    ).view(array.dtype)


def _are_row_major(arrays):
    """True if arrays are row-major, so that their broadcast result is."""
    return all(a.ndim and a.flags.c_contiguous for a in arrays)


def _is_zero(number):
    return number.__class__ in (int, float) and number == 0 and math.copysign(1, number) > 0


def _select_blockwise(body, condition, operands, bits):
    """Return a new array of integers of so many bits, filled by `body(out, mask, *operands)` block by block."""
    mask = condition.view(np.int8)
    shape = np.broadcast_shapes(mask.shape, *[a.shape for a in operands])
    out = np.empty(shape, bits)
    if out.size:
        apply_to_elementwise_parts(body, out, (mask, *operands), LARGEST_BLOCK)
    return out


def where(condition, input=None, other=None):
    return _where(condition, input, other)


def _choose(input, other, condition):
    return _where(condition, input, other)
