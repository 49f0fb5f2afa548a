"""Integer matrix products by BLAS, with exact results that wrap around.

NumPy multiplies integers one by one. A float64 product is exact while no sum exceeds 2**53, a float32 product up to
2**24. Larger integers are cut into digits: the products of two digits are exact, and they are added in int64, which
wraps around as the integers do. The values decide how many digits there are, so that small ones take a single product.

An engine that multiplies integers serves unless a single product of 64-bit integers is exact: it takes twice as long
for these.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from .conv_cpu_engine import integer_products

# Mantissas of the floating-point types, and the greatest number of elements of a sum that is cut into digits.
_SINGLE, _DOUBLE, _DEPTH = 24, 53, 2048
# Multiplications for each element of the operands and the result above which conversions pay.
_MULS_PER_ELEMENT = 12
# Multiplications of bytes for which BLAS takes no longer than the launches of an engine.
_FEW_OF_BYTES = 1 << 18


def is_worthwhile(a: np.ndarray, b: np.ndarray) -> bool:
    """True if BLAS multiplies these integer matrices, or stacks of them, faster than NumPy."""
    if a.ndim < 2 or b.ndim < 2 or a.dtype != b.dtype:
        return False
    rows, depth, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    return rows * depth * columns > _MULS_PER_ELEMENT * (rows * depth + depth * columns + rows * columns)


def integer_matmul(a: np.ndarray, b: np.ndarray, multiply, out: np.ndarray | None = None) -> np.ndarray:
    """Return `a @ b` modulo the size of the dtype; `multiply` is the product of floating-point arrays."""
    dtype, depth = a.dtype, a.shape[-1]
    is_small = dtype.itemsize == 1 and a.size * b.shape[-1] <= _FEW_OF_BYTES
    if dtype.itemsize < 8 and not is_small and integer_products() is not None:
        found = _multiply_by_engine(a, b, out)
        if found is not None:
            return found
    bits = [_count_bits(a), _count_bits(b)]
    for kind, mantissa in ((np.float32, _SINGLE), (np.float64, _DOUBLE)):
        if bits[0] + bits[1] - 2 + (depth - 1).bit_length() <= mantissa:
            product = multiply(a.astype(kind), b.astype(kind))
            return _to_integers(product, dtype, out)
    if dtype.itemsize == 8 and integer_products() is not None:
        found = _multiply_by_engine(a, b, out)
        if found is not None:
            return found
    total: np.ndarray | None = None
    for start in range(0, depth, _DEPTH):
        left, right = a[..., start : start + _DEPTH], b[..., start : start + _DEPTH, :]
        part = _multiply_digits(left, right, bits, multiply, 8 * dtype.itemsize)
        total = part if total is None else np.add(total, part, out=total)
    assert total is not None  # the depth is not 0
    return _to_integers(total, dtype, out)


def _multiply_by_engine(a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray | None:
    """Return the product that the engine computes, None if it does not."""
    if out is None or not out.flags.c_contiguous:
        made = np.empty((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), a.dtype)
    else:
        made = out
    if not integer_products().multiply_integers(a, b, made):
        return None
    if out is None or out is made:
        return made
    np.copyto(out, made)
    return out


def _to_integers(product: np.ndarray, dtype: np.dtype, out: np.ndarray | None) -> np.ndarray:
    """Return a product of exact values in a dtype, in which it wraps around."""
    if product.dtype.kind == "f":
        product = product.astype(np.int64)  # from a float, only this cast is defined for all values
    if out is None:
        return product.astype(dtype, copy=False)
    np.copyto(out, product, casting="unsafe")
    return out


def _count_bits(x: np.ndarray) -> int:
    """Return the bits of the largest value in two's complement; the dtype's for small integers."""
    if x.dtype.itemsize == 1 or not x.size:
        return 8 * x.dtype.itemsize + (x.dtype.kind == "u")
    return max(int(x.max()), ~int(x.min())).bit_length() + 1


@functools.lru_cache(256)
def _choose_digits(left: int, right: int, depth: int, size: int) -> tuple[int, int, int, int]:
    """Return the number of digits of both factors and their widths, such that the fewest products are exact."""
    room = _DOUBLE + 2 - (depth - 1).bit_length()
    best = None
    for first, second in itertools.product(range(1, 6), repeat=2):
        wide, narrow = -(-min(left, size) // first), -(-min(right, size) // second)
        if wide + narrow > room:
            continue
        count = sum(wide * i + narrow * j < size for i in range(first) for j in range(second))
        if best is None or count < best[0]:
            best = count, first, second, wide, narrow
    assert best is not None  # five digits of 13 bits each fit into any depth
    return best[1:]


def _multiply_digits(a: np.ndarray, b: np.ndarray, bits: list[int], multiply, size: int) -> np.ndarray:
    """Return the product modulo 2**64, right in its lowest `size` bits."""
    first, second, wide, narrow = _choose_digits(*bits, a.shape[-1], size)
    left, right = _cut_digits(a, first, wide), _cut_digits(b, second, narrow)
    total = None
    for (i, x), (j, y) in itertools.product(enumerate(left), enumerate(right)):
        shift = wide * i + narrow * j
        if shift >= size:
            continue
        part = multiply(x, y).astype(np.int64)
        part <<= shift
        total = part if total is None else np.add(total, part, out=total)
    assert total is not None
    return total


def _cut_digits(x: np.ndarray, count: int, width: int) -> list[np.ndarray]:
    """Return digits in [-2**(width - 1), 2**(width - 1)), the lowest first. Their sum is congruent modulo 2**64."""
    x = x.astype(np.int64)
    if count == 1:
        return [x.astype(np.float64)]
    half, digits = 1 << (width - 1), []
    for _ in range(count):
        low = ((x + half) & ((1 << width) - 1)) - half
        digits.append(low.astype(np.float64))
        x = (x - low) >> width
    return digits
