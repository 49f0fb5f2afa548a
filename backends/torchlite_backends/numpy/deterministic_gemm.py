"""Matrix products with results that do not depend on the number of threads.

If OpenBLAS splits a product over its threads, the blocks and with them the order of summation depend on the thread
count. A product that it would split therefore runs with BLAS limited to one thread, and large products are partitioned
by shape over our own threads.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy._core._multiarray_umath import __cpu_features__

from .blas import can_limit, get_transposing_copy, has_avx512_kernels, single_threaded
from .cache_blocking import get_scratch_buffer, parallel_for
from .integer_gemm import integer_matmul, is_worthwhile

# Multiplications below which OpenBLAS uses one thread: with a vector, and of matrices.
MAX_GEMV_SIZE, MAX_GEMM_WORK = 9216, 1 << 18
# Minimum multiplications of a single row's product for an engine: two threads read 4 MiB in 0.55 of the time, but 1 MiB
# in the third-level cache in no less, for BLAS reads 70 GB/s there.
LEAST_ROW = 1 << 20
SMALL = math.isqrt(MAX_GEMV_SIZE)  # matrices of fewer elements each need fewer multiplications
# Minimum multiplications of a part, minimum rows or columns of it, and maximum number of parts. BLAS copies the other
# matrix for each of them: four parts on two threads ran at 155 to 180 GFLOP/s, eight at 140 to 170, eighteen at 135
# (AVX-512, shapes of a GPT and a BERT), and two of small ones were best. So there are four only for products with four
# times _FOUR multiplications, and more only if each has _MANY and _TALL lines.
_PART, _LINES, _PARTS = 1 << 22, 64, 32
# Multiplications up to which BLAS's kernels for AVX-512 read row-major matrices as they are, and copy neither. Then the
# least rows and columns of a block.
UNCOPIED, _LEAST_ROWS, _LEAST_COLUMNS = 1_000_000, 4, 64
# On Intel's processors (family of `AVX512_SPR`) reading without a copy pays for few columns or rows, and for a second
# matrix of few rows that stays in the second-level cache: else blocks take up to 1.6 of the time of one product.
READS_SLOWLY = bool(__cpu_features__.get("AVX512_SPR"))
_NARROW, _SHALLOW, _CACHED = 48, 128, 1 << 16
# The scratch memory of a transposed product, which no kernel around a product uses.
_TURNED = 7
_FOUR, _MANY, _TALL = 1 << 24, 1 << 26, 256


class _NativeGemm:
    """An engine's GEMM for the parts of a product: `(a, b, out, bias, by_rows, parts)` -> done.

    Where it calls BLAS, and no product is cut into blocks, its numbers are the same.

    It is an object, since functions bound for a namespace have separate globals.
    """

    parts: Callable[..., bool] | None = None
    least = 2 * _PART  # multiplications of a product that is worth asking
    # `(row, matrix, bias)`, the product of one row in a new array; None if BLAS is to compute it.
    row: Callable[..., np.ndarray | None] | None = None


native_gemm = _NativeGemm()


def _is_small(a, b):
    """True if BLAS would use one thread anyway."""
    if not a.ndim or not b.ndim:
        return True
    rows, columns = a.shape[-2] if a.ndim > 1 else 1, b.shape[-1] if b.ndim > 1 else 1
    work = rows * a.shape[-1] * columns
    return work < MAX_GEMV_SIZE or work <= MAX_GEMM_WORK and rows > 1 < columns


def _is_large(a, b):
    """True if a matrix product is worth several threads, or an engine's kernel."""
    return (
        a.ndim == 2 == b.ndim
        and a.shape[1] == b.shape[0]
        and a.dtype == b.dtype
        and a.size * b.shape[1] >= native_gemm.least
        and can_limit()
    )


def matmul_bias(a: np.ndarray, b: np.ndarray, bias: np.ndarray | None = None):
    """Return `np.dot` of two matrices plus a vector added to each row, identical for any number of threads."""
    if len(b) < 2 and a.shape[1] == len(b) and a.dtype.kind == "f":
        return _multiply_few_terms(a, b, bias)
    # As in `_is_small`, cheapest attributes first.
    rows, size = len(a), b.size
    work = rows * size
    if work < MAX_GEMV_SIZE:
        return a.dot(b) if bias is None else _add_bias(bias, a.dot(b))
    if a.dtype.kind in "iu":
        return _multiply_integers(a, b) if bias is None else _add_bias(bias, _multiply_integers(a, b))
    if work <= MAX_GEMM_WORK and rows > 1 and size > len(b):
        return a.dot(b) if bias is None else _add_bias(bias, a.dot(b))
    if rows == 1 and work >= LEAST_ROW and native_gemm.row is not None:
        out = native_gemm.row(a, b, bias)
        if out is not None:
            return out
    with single_threaded:
        if work >= native_gemm.least and _is_large(a, b):
            return _matmul_in_parts(a, b, np.empty((rows, b.shape[1]), a.dtype), bias)
        if _is_thin(a, b):
            return _multiply_thin(a, b, np.empty((rows, b.shape[1]), a.dtype), bias)
        out = _multiply_matrices(a, b) if work > UNCOPIED else a.dot(b)
        return out if bias is None else _add_bias(bias, out)


def _multiply_matrices(a, b):
    """Return `a.dot(b)`, in blocks where these are faster."""
    if a.dtype != b.dtype or a.shape[1] != len(b):
        return a.dot(b)
    return multiply_in_blocks(a, b, np.empty((len(a), b.shape[1]), a.dtype))


def _multiply_few_terms(a, b, bias):
    """Return a product of one term or none: BLAS adds to 0, which turns -0 into 0."""
    if len(b):
        out = np.multiply(a, b) if len(a) > 1 else a.dot(b)
        return out if bias is None else _add_bias(bias, out)
    out = np.zeros((len(a), b.shape[1]), a.dtype)
    if bias is not None:
        out[...] = bias
    return out


def _multiply_integers(a, b, out=None):
    """Return the product of integer matrices or stacks of them: by BLAS, or by NumPy where conversions cost more."""
    if is_worthwhile(a, b):
        return integer_matmul(a, b, deterministic_matmul, out)
    # With a vector, NumPy's product of integers is not vectorized, and reads columns one by one.
    if a.ndim + b.ndim == 3 and a.dtype == b.dtype and a.shape[-1] == len(b):
        return np.einsum("k,kn->n" if a.ndim == 1 else "mk,k->m", a, b, out=out)
    if a.ndim == 2 == b.ndim and 1 in (len(a), b.shape[1]) and a.dtype == b.dtype and a.shape[1] == len(b):
        return np.einsum("mk,kn->mn", a, b, out=out)
    return np.matmul(a, b, out=out)


def _add_bias(bias, out):
    out += bias
    return out


def deterministic_dot(a: np.ndarray, b: np.ndarray):
    """Return `np.dot` of arrays with one or two dimensions, identical for any number of threads."""
    if a.ndim + b.ndim == 4:
        return matmul_bias(a, b)
    if a.ndim + b.ndim == 2 and a.dtype.kind in "iu":  # NumPy's loop over two integers takes four times the time
        return np.add.reduce(a * b, dtype=np.result_type(a, b))
    if a.size < MAX_GEMV_SIZE > b.size:  # with a vector, as many multiplications as the larger operand has elements
        return a.dot(b)
    if a.dtype.kind in "iu" and a.ndim and b.ndim:
        return _multiply_integers(a, b)
    with single_threaded:
        return a.dot(b)


def _count_parts(work: int, length: int) -> int:
    """Return the number of parts of a product of so many multiplications along a side of the result."""
    many = max(2, min(4, work // _FOUR), min(work // _MANY, length // _TALL))
    return max(1, min(work // _PART, length // _LINES, many, _PARTS))


def _matmul_in_parts(a, b, out, bias=None):
    """Return the product of large matrices, split along the longer side of the result."""
    by_rows, count = _choose_parts(a, b)
    if native_gemm.parts is None or not native_gemm.parts(a, b, out, bias, by_rows, count):
        parallel_for(_matmul_part, _list_part_arguments(a, b, out, bias, by_rows, count))
    return out


def _choose_parts(a, b):
    """Return whether a large product is split by rows, and into how many parts."""
    rows, columns = a.shape[0], b.shape[1]
    return rows >= columns, _count_parts(a.size * columns, max(rows, columns))


def _list_part_arguments(a, b, out, bias, by_rows, count):
    """Return the arguments of `_matmul_part` for all parts."""
    length = len(a) if by_rows else b.shape[1]
    cuts = [slice(length * k // count, length * (k + 1) // count) for k in range(count)]
    if by_rows:
        return [(a[cut], b, out[cut], bias) for cut in cuts]
    return [(a, b[:, cut], out[:, cut], None if bias is None else bias[cut]) for cut in cuts]


def _matmul_part(a, b, out, bias):
    if _is_thin(a, b):
        _multiply_thin(a, b, out, bias)
        return
    multiply_in_blocks(a, b, out)
    if bias is not None:  # while the part is in cache
        np.add(out, bias, out=out)


def multiply_in_blocks(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return `a @ b` in `out`, in blocks so small that BLAS copies no matrix, where these are faster.

    8 rows of 768 by 3072 take 0.45 of the time, 2 rows 0.25. 24 to 960 rows of layers whose images have 49 to 3136
    places take 0.77 to 0.93.
    """
    (rows, depth), columns = a.shape, b.shape[1]
    work = rows * depth * columns
    if work <= UNCOPIED or not (a.flags.c_contiguous and b.strides[1] == b.itemsize == a.itemsize):
        return np.matmul(a, b, out=out)
    high, wide = UNCOPIED // (depth * columns) // 4 * 4, UNCOPIED // (rows * depth) // 16 * 16
    if max(high // _LEAST_ROWS, wide // _LEAST_COLUMNS) < 1 or not has_avx512_kernels(a.dtype):
        return np.matmul(a, b, out=out)
    if READS_SLOWLY and not _pays_without_copies(depth, columns, rows, high):
        return np.matmul(a, b, out=out)
    if high >= _LEAST_ROWS:
        whole = rows // high * high
        np.matmul(a[:whole].reshape(-1, high, depth), b, out=out[:whole].reshape(-1, high, columns))
        if whole < rows:
            np.matmul(a[whole:], b, out=out[whole:])
        return out
    whole = columns // wide * wide
    blocks, parts = (x[:, :whole].reshape(len(x), -1, wide).transpose(1, 0, 2) for x in (b, out))
    np.matmul(a, blocks, out=parts)
    if whole < columns:
        np.matmul(a, b[:, whole:], out=out[:, whole:])
    return out


def _pays_without_copies(depth: int, columns: int, rows: int, high: int) -> bool:
    """True if blocks of a product are faster where reading a matrix in steps is slow."""
    if high < _LEAST_ROWS:
        return rows <= _NARROW
    return columns <= _NARROW or depth <= _SHALLOW and depth * columns <= _CACHED


def choose_multiplication(work: int) -> Callable:
    """Return the function of two matrices and the result that is faster for so many multiplications."""
    return np.matmul if work <= UNCOPIED else multiply_in_blocks


def _is_thin(a, b):
    """True if `_multiply_thin` is faster: `b` is transposed, and copying it costs more than transposing the result."""
    return (
        1 < len(a) <= min(len(b) // 2, b.shape[1])
        and a.shape[1] == len(b)
        and b.flags.f_contiguous
        and a.flags.c_contiguous
        and a.dtype == b.dtype
        and has_avx512_kernels(a.dtype)
    )


def _multiply_thin(a, b, out, bias):
    """Return a @ b of fewer rows than columns in `out`, plus a bias.

    BLAS's kernel for AVX-512 takes 0.36 ns a number to copy the transposed weights of a layer, and 0.1 for others. So
    it computes the transposed product, in blocks, and its result is transposed. 8 rows of 768 by 3072 take 0.25 of the
    time, 32 0.53 and 64 0.7.
    """
    turned = get_scratch_buffer(_TURNED, out.shape[::-1], out.dtype)
    right, turn = np.empty(a.shape[::-1], a.dtype), get_transposing_copy(a.dtype)
    assert turn is not None
    turn(*a.shape, _data_address(a), a.shape[1], _data_address(right), len(a))
    multiply_in_blocks(b.T, right, turned)
    row = out.strides[0] // out.itemsize
    turn(*turned.shape, _data_address(turned), turned.shape[1], _data_address(out), row)
    if bias is not None:
        np.add(out, bias, out=out)
    return out


def _data_address(array):
    return array.__array_interface__["data"][0]


def make_matmul_tasks(
    a: np.ndarray, b: np.ndarray, out: np.ndarray, bias: np.ndarray | None = None
) -> list[Callable[[], object]]:
    """Return calls that write `matmul_bias(a, b, bias)` into a new array, for threads with single-threaded BLAS."""
    if len(a) == 1 and native_gemm.row is not None or _is_large(a, b) and native_gemm.parts is not None:
        # An engine may compute the whole product with other roundings than BLAS.
        return [lambda: np.copyto(out, matmul_bias(a, b, bias)) if len(a) == 1 else _matmul_in_parts(a, b, out, bias)]
    if _is_large(a, b):
        return [
            functools.partial(_matmul_part, *given)
            for given in _list_part_arguments(a, b, out, bias, *_choose_parts(a, b))
        ]
    return [functools.partial(_matmul_into, a, b, out, bias)]


def _matmul_into(a, b, out, bias):
    if _is_thin(a, b) and len(a) * b.size > MAX_GEMM_WORK:
        _multiply_thin(a, b, out, bias)
        return
    multiply_in_blocks(a, b, out)
    if bias is not None:
        np.add(out, bias, out=out)


def deterministic_matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None):
    """Return `np.matmul`, identical for any number of threads."""
    if a.size < SMALL > b.size:
        return np.matmul(a, b, out=out)
    if a.dtype.kind in "iu":
        return _multiply_integers(a, b, out)
    if _is_small(a, b):
        return np.matmul(a, b, out=out)
    with single_threaded:
        if a.ndim > 2 or b.ndim > 2:
            return _multiply_stacks(a, b, out)
        if _is_large(a, b):
            return _matmul_in_parts(a, b, np.empty((a.shape[0], b.shape[1]), a.dtype) if out is None else out)
        if a.ndim == 2 == b.ndim and out is None:
            return (
                _multiply_thin(a, b, np.empty((len(a), b.shape[1]), a.dtype), None)
                if _is_thin(a, b)
                else (_multiply_matrices(a, b))
            )
        return np.matmul(a, b, out=out)


def _multiply_stacks(a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """Return `np.matmul` of stacks of matrices: as one product where all are multiplied by the same matrix, else large
    ones in parts of some matrices each.
    """
    if a.ndim < 2 or b.ndim < 2 or a.dtype != b.dtype or a.shape[-1] != b.shape[-2]:
        return np.matmul(a, b, out=out)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if out is None:
        out = np.empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    count = math.prod(batch)
    if count == 1 or math.prod(b.shape[:-2]) == 1 and a.flags.c_contiguous and out.flags.c_contiguous:
        left, right = a.reshape(-1, a.shape[-1]), b.reshape(b.shape[-2:])
        target = out.reshape(-1, out.shape[-1])
        if _is_large(left, right):
            _matmul_in_parts(left, right, target)
        else:
            multiply_in_blocks(left, right, target)
        return out
    work = out.size * a.shape[-1]
    axis = next((d for d, size in enumerate(batch) if size > 1), 0)
    parts = min(_count_parts(work, count * _LINES), batch[axis] if batch else 0)
    if parts < 2 or not can_limit():
        return np.matmul(a, b, out=out)
    cuts = [batch[axis] * k // parts for k in range(parts + 1)]

    def piece(x: np.ndarray, start: int, stop: int) -> np.ndarray:
        at = axis - len(batch) + x.ndim - 2
        return x if at < 0 or x.shape[at] == 1 else x[(slice(None),) * at + (slice(start, stop),)]

    def multiply(start: int, stop: int) -> None:
        np.matmul(piece(a, start, stop), piece(b, start, stop), out=piece(out, start, stop))

    parallel_for(multiply, list(itertools.pairwise(cuts)))
    return out


def with_single_thread(kernel):
    """Return a kernel whose BLAS and LAPACK calls use one thread."""

    @functools.wraps(kernel)
    def call(*args, **kwargs):
        if args[0].size < 1024:  # too small for BLAS to split
            return kernel(*args, **kwargs)
        with single_threaded:
            return kernel(*args, **kwargs)

    return call
