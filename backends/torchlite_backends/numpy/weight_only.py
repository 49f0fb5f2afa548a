"""Products of floats with weights of half precision, eight and four bits.

An engine multiplies few rows. For more rows, and without an engine, blocks of weights become float32 numbers for BLAS:
never all weights at once.
"""

from __future__ import annotations

import numpy as np

from .conv_cpu_engine import integer_products
from .deterministic_gemm import deterministic_matmul
from .half_casts import cast_half

_F4, _F2 = np.dtype("f4"), np.dtype("f2")
_BLOCK = 1 << 18  # elements of a block of float32 weights
_INT4_ROWS = 64  # rows of a block of packed weights
# Rows up to which an engine is faster than BLAS with converted weights, of eight or 16 and of four bits.
_FEW, _FEW_OF_INT4 = 32, 64
_LEVEL_SPAN = 255 * 8  # the greatest product of a level, less that of zero, and a weight


def _int8_weight_product(input, weight, scales):
    if input.size and weight.size and len(input) <= _FEW and (engine := integer_products()) is not None:
        arrays = (np.ascontiguousarray(x) for x in (input, weight, scales))
        found = engine.multiply_weight(*arrays)
        if found is not None:
            return found
    out = np.empty((len(input), len(weight)), _F4)
    step = max(1, _BLOCK // max(1, weight.shape[1]))
    for start in range(0, len(weight), step):
        part = weight[start : start + step]
        part = cast_half(part, _F4) if part.dtype == _F2 else part.astype(_F4)
        out[:, start : start + step] = deterministic_matmul(input, part.T)
    out *= scales
    return out


def _int4_weight_product(input, weight, group_size, factors):
    columns, depth = len(weight), input.shape[1]
    if input.size and weight.size and len(input) <= _FEW_OF_INT4 and (engine := integer_products()) is not None:
        arrays = (np.ascontiguousarray(x) for x in (input, weight))
        found = engine.multiply_int4_weight(*arrays, group_size, np.ascontiguousarray(factors))
        if found is not None:
            return found
    out = np.empty((len(input), columns), _F4)
    whole = columns // _INT4_ROWS * _INT4_ROWS
    step = max(1, _BLOCK // max(1, depth * _INT4_ROWS)) * _INT4_ROWS
    packed = np.ascontiguousarray(weight).reshape(-1)
    for start in (*range(0, whole, step), *([whole] if whole < columns else [])):
        end = min(start + step, whole) if start < whole else columns
        part = packed[start * depth // 2 : end * depth // 2]
        levels = _unpack_blocks(part, depth) if start < whole else _unpack_pairs(part, depth)
        _scale_groups(levels, group_size, factors[: depth // group_size, start:end])
        product = deterministic_matmul(input, levels)
        out[:, start:end] = product.transpose(1, 0, 2).reshape(len(input), end - start)
    return out


def _unpack_blocks(packed: np.ndarray, depth: int) -> np.ndarray:
    """Return numbers from -8 to 7 as float32: blocks of 64 rows, by column."""
    both = packed.reshape(-1, depth, _INT4_ROWS // 2)
    levels = np.empty((len(both), depth, 2, _INT4_ROWS // 2), _F4)
    np.bitwise_and(both, 15, out=levels[:, :, 0], casting="unsafe")
    np.right_shift(both, 4, out=levels[:, :, 1], casting="unsafe")
    levels -= 8
    return levels.reshape(len(both), depth, _INT4_ROWS)


def _unpack_pairs(packed: np.ndarray, depth: int) -> np.ndarray:
    both = packed.reshape(1, depth, -1)
    levels = np.empty((*both.shape, 2), _F4)
    np.bitwise_and(both, 15, out=levels[..., 0], casting="unsafe")
    np.right_shift(both, 4, out=levels[..., 1], casting="unsafe")
    levels -= 8
    return levels.reshape(1, depth, -1)


def _scale_groups(levels: np.ndarray, group: int, factors: np.ndarray) -> None:
    """Multiply numbers by the scales of their groups, and add the zeros, in place."""
    blocks, depth, rows = levels.shape
    grouped = levels.reshape(blocks, depth // group, group, rows)
    scales, zeros = factors.reshape(depth // group, blocks, 1, rows, 2).transpose(4, 1, 0, 2, 3)
    grouped *= scales
    grouped += zeros


# --- four bits, with inputs that are quantized by the range of each row ---------------------------------------------


def _quantized_int4_product(inp, packed_weights, block_size, in_features, out_features):
    packed = np.ascontiguousarray(packed_weights)
    levels, step = _levels_by_row(inp.astype(_F4))
    out, engine = None, integer_products()
    if engine is not None and levels.size and out_features and _LEVEL_SPAN * block_size < 1 << 31:
        if np.isfinite(step).all():
            out = engine.multiply_int4_levels(levels.astype(np.int32), packed, block_size, out_features)
    if out is None:
        out = _multiply_groups(levels, packed, block_size, out_features)
    out *= step
    begin = out_features * (in_features // 2 + in_features // block_size)
    if packed.size > begin:
        out += packed[begin : begin + out_features]
    if inp.dtype == _F4:
        return out
    return (out.view(np.int32) & -0x10000).view(_F4).astype(inp.dtype)  # rounded towards zero


def _levels_by_row(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers in float32, levels of int8 less the one that stands for zero, and the step of each row."""
    low, high = (np.asarray(f(x, -1, keepdims=True, initial=0)) for f in (np.min, np.max))
    span = high - low
    scale = np.divide(_F4.type(255), span, where=span != 0, out=np.ones_like(span))
    bottom, top = low * scale, high * scale
    zero = np.where((bottom + _F4.type(-128)) + (top + _F4.type(127)) > 0, -128 - bottom, 127 - top)
    zero = np.rint(np.clip(zero, -128, 127)).astype(_F4, copy=False)
    levels = x * scale
    np.copysign(np.floor(np.abs(levels) + _F4.type(0.5)), levels, out=levels)  # halves are rounded away from zero
    levels += zero
    np.clip(levels, -128, 127, out=levels)
    levels -= zero
    return levels, 1 / scale


def _multiply_groups(levels: np.ndarray, packed: np.ndarray, group: int, columns: int) -> np.ndarray:
    """Return the sums of each group of numbers times its scale, for blocks of rows of the weights."""
    rows, depth = levels.shape
    groups, half = depth // group, depth // 2
    kind = _F4 if _LEVEL_SPAN * group < 1 << 24 else np.dtype("f8")  # in which all sums are exact
    inputs = np.ascontiguousarray(levels.reshape(rows, groups, group).swapaxes(0, 1), kind)
    scales = packed[columns * half : columns * (half + groups)].reshape(columns, groups)
    out = np.zeros((rows, columns), _F4)
    step = max(1, _BLOCK // max(1, depth))
    for start in range(0, columns, step):
        end = min(start + step, columns)
        both = packed[start * half : end * half].astype(np.uint8).reshape(end - start, half)
        weight = np.empty((end - start, half, 2), kind)
        np.bitwise_and(both, 15, out=weight[:, :, 0], casting="unsafe")
        np.right_shift(both, 4, out=weight[:, :, 1], casting="unsafe")
        weight -= 8
        sums = deterministic_matmul(inputs, weight.reshape(end - start, groups, group).transpose(1, 2, 0))
        for number, part in enumerate(sums.astype(_F4, copy=False)):
            out[:, start:end] += part * scales[start:end, number]
    return out
