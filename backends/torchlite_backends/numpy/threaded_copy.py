"""Threaded copies of large arrays, to row-major order and between views.

NumPy copies along the rows of the result; if these are strided in the source, almost every read is in another cache
line. Here OpenBLAS (`somatcopy`) or a blocked loop transposes the two dimensions.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.lib.stride_tricks import as_strided

from torchlite_backends.array.shape import contiguous as _shared_contiguous

from .blas import make_transposing_function
from .cache_blocking import parallel_for, parallel_range
from .elementwise_partitioning import apply_to_elementwise_parts

# Minimum elements for this copy, and of a matrix transposed on its own.
MIN_SIZE, _MATRIX = 1 << 16, 1 << 12
# Elements of a part of the work, about, and of a block that NumPy turns; its lines at least.
_PART, _TILE, _LINES = 1 << 15, 1 << 12, 256
_EASY = range(16, 65)  # lengths of result rows that NumPy gathers best: that many cache lines stay in cache


def copy_row_major(x: np.ndarray) -> np.ndarray:
    """Return a row-major copy."""
    if x.size < MIN_SIZE or x.size < 4 * MIN_SIZE and abs(x.strides[-1]) == x.itemsize:
        return x.copy(order="C")
    out = np.empty(x.shape, x.dtype)
    if 0 in x.strides:
        apply_to_elementwise_parts(np.copyto, out, (x,))
    else:
        copy_over(out, x)
    return out


def copy_over(out: np.ndarray, x: np.ndarray) -> None:
    """Write an array over a row-major one of its shape and dtype that does not overlap it."""
    shape, strides = _collapse_dims(x)
    view, source = np.ndarray(shape, x.dtype, out), as_strided(x, shape, strides, writeable=False)
    near = min(range(len(shape)), key=lambda d: abs(strides[d]))
    turn = make_transposing_function(x.dtype) if strides[near] == x.itemsize and strides[-1] > 0 else None
    side = _LINES if turn is None else 1
    if (
        near == len(shape) - 1
        or shape[-1] in _EASY
        or min(shape[near], shape[-1]) < side
        or shape[near] * shape[-1] < _MATRIX
    ):
        _copy_by_rows(view, source)
    else:
        _copy_transposed(view, source, near, turn)


def _collapse_dims(x: np.ndarray) -> tuple[list[int], list[int]]:
    """Return shape and strides without dimensions of length 1, with contiguous neighbours merged."""
    shape: list[int] = []
    strides: list[int] = []
    for n, step in zip(x.shape, x.strides, strict=True):
        if n == 1:
            continue
        if shape and strides[-1] == step * n:
            shape[-1] *= n
            strides[-1] = step
        else:
            shape.append(n)
            strides.append(step)
    return shape or [1], strides or [x.itemsize]


def _copy_by_rows(out: np.ndarray, x: np.ndarray) -> None:
    longest = max(range(max(out.ndim - 1, 1)), key=lambda d: out.shape[d])
    out, x = out.swapaxes(0, longest), x.swapaxes(0, longest)
    parallel_range(lambda start, stop: np.copyto(out[start:stop], x[start:stop]), len(out))


def _copy_transposed(out: np.ndarray, x: np.ndarray, near: int, turn) -> None:
    """Copy with a transpose: the last dimension of the result is strided in the source, `near` is contiguous there."""
    out, x = np.moveaxis(out, near, -2), np.moveaxis(x, near, -2)
    rows, columns = out.shape[-2:]
    height = max(_LINES, _PART // columns)
    width = max(_TILE // min(height, rows), 1)

    def copy_part(*place: int) -> None:
        start = place[-1]
        to, source = (a[place[:-1]][start : start + height] for a in (out, x))
        if turn is None or not turn(source.T, to):
            for j in range(0, columns, width):
                to[:, j : j + width] = source[:, j : j + width]

    parallel_for(copy_part, list(itertools.product(*map(range, out.shape[:-2]), range(0, rows, height))))


def contiguous(input, memory_format=None):
    if input.size < MIN_SIZE or memory_format is not None and memory_format.name.startswith("channels_last"):
        return _shared_contiguous(input, memory_format)
    return input if input.flags.c_contiguous else copy_row_major(input)


def reshape(input, shape):
    for n in shape:
        if n < -1:  # NumPy takes it for -1; the op's shape function raises PyTorch's error
            raise ValueError("only -1 stands for a length")
    if input.size < MIN_SIZE or input.flags.c_contiguous:
        return input.reshape(shape)
    try:
        return input.reshape(shape, copy=False)
    except ValueError:
        return copy_row_major(input).reshape(shape)
