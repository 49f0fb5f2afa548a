"""Copies of large arrays into row-major order, and of parts of arrays into each other, on several threads.

NumPy copies along the rows of the result; where these lie across the rows of the source, almost every element that it
reads is in another line of cache. Here the two dimensions that change places are turned by OpenBLAS (`somatcopy`), or
block by block.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.lib.stride_tricks import as_strided

from torchlite_backends.array.shape import contiguous as _shared_contiguous

from .blas import transposing_function
from .cache_blocking import parallel_for, parallel_range
from .partitioning import elementwise_parts

# Elements from which a copy is worth more than NumPy's own, and a matrix worth turning by itself.
MIN_SIZE, _MATRIX = 1 << 16, 1 << 12
# Elements of a part of the work, about, and of a block that NumPy turns; its lines at least.
_PART, _TILE, _LINES = 1 << 15, 1 << 12, 256
_EASY = range(16, 65)  # lengths of rows of the result that NumPy gathers best: that many lines stay in cache


def row_major(x: np.ndarray) -> np.ndarray:
    """A copy in row-major order."""
    if x.size < MIN_SIZE:
        return x.copy(order="C")
    out = np.empty(x.shape, x.dtype)
    if 0 in x.strides:
        elementwise_parts(np.copyto, out, (x,))
    else:
        copy_over(out, x)
    return out


def copy_over(out: np.ndarray, x: np.ndarray) -> None:
    """Write an array over a row-major one of its shape and dtype, which has no memory in common with it."""
    shape, strides = _collapse_dims(x)
    view, source = np.ndarray(shape, x.dtype, out), as_strided(x, shape, strides, writeable=False)
    near = min(range(len(shape)), key=lambda d: abs(strides[d]))
    turn = transposing_function(x.dtype) if strides[near] == x.itemsize and strides[-1] > 0 else None
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
    """Shape and strides without the dimensions of length 1, those that follow each other in memory made one."""
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
    """Along the last dimension of the result elements lie far from each other in the source, along `near` they are
    neighbours there.
    """
    out, x = np.moveaxis(out, near, -2), np.moveaxis(x, near, -2)
    rows, columns = out.shape[-2:]
    height = max(_LINES, _PART // columns)
    width = max(_TILE // min(height, rows), 1)

    def part(*place: int) -> None:
        start = place[-1]
        to, source = (a[place[:-1]][start : start + height] for a in (out, x))
        if turn is None or not turn(source.T, to):
            for j in range(0, columns, width):
                to[:, j : j + width] = source[:, j : j + width]

    parallel_for(part, list(itertools.product(*map(range, out.shape[:-2]), range(0, rows, height))))


def contiguous(input, memory_format=None):
    if input.size < MIN_SIZE or memory_format is not None and memory_format.name.startswith("channels_last"):
        return _shared_contiguous(input, memory_format)
    return input if input.flags.c_contiguous else row_major(input)


def reshape(input, shape):
    for n in shape:
        if n < -1:  # NumPy takes it for -1; the op's rule has PyTorch's words
            raise ValueError("only -1 stands for a length")
    if input.size < MIN_SIZE or input.flags.c_contiguous:
        return input.reshape(shape)
    try:
        return input.reshape(shape, copy=False)
    except ValueError:
        return row_major(input).reshape(shape)
