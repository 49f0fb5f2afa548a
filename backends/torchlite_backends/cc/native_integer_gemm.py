"""Products of 8-bit levels on the engine `cc`, see `integer_gemm_source` and `levels_source`. `IntegerProducts` is what
NumPy's kernels of quantized networks call (`torchlite_backends.numpy.quantized`).

A product of 400x384 and 384x1536 levels takes 1.2 ms on one core with AVX-512 VNNI (Zen 4), 4.1 with AVX2, and as long
with float32 by OpenBLAS as with AVX2.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchlite._settings.equal_arrays import share_equal
from torchlite._settings.thread_count import get_threads
from torchlite_backends.device_runtime.core.device import NotBuiltError

from . import native_weight_only
from .device import address
from .integer_gemm_source import BYTES, INTEGERS, WIDE
from .native_gemm import FORCE_THREADS
from .native_kernel import NativeKernel

_pack = NativeKernel(BYTES, "pack", "QQQ" + "q" * 7)
_pack_windows = NativeKernel(BYTES, "pack_windows", "QQQQQ" + "q" * 7)
_product = NativeKernel(BYTES, "product", "Q" * 9 + "q" * 20 + "QQq")
_lines = NativeKernel(BYTES, "lines", "Q" * 9 + "q" * 20 + "QQq" + "qq")
_tile_lines = NativeKernel(BYTES, "tile_lines", "Q" * 9 + "q" * 20 + "QQq" + "qq")
_extremes = NativeKernel(BYTES, "extremes", "QQQqq")
_quantize = NativeKernel(BYTES, "quantize", "QQddqq")
_bound_arrays, _bound_numbers = struct.Struct("=QQQQ").pack, struct.Struct("=QQQQQ" + "q" * 20 + "QQq").pack
_layer_arrays, _layer_numbers = struct.Struct("=QQQ").pack, struct.Struct("=QQQQQ" + "q" * 12).pack
_wide = {size: NativeKernel(INTEGERS, f"integers_{size}", "QQQQ" + "q" * 11) for size in (2, 4, 8)}
_U1, _I1, _F4, _I4 = np.dtype("u1"), np.dtype("i1"), np.dtype("f4"), np.dtype("i4")
_RANGES = {_U1: (0, 255), _I1: (-128, 127)}
_INTEGERS, _FLOATS, _BYTES, _LOW_BYTES = range(4)  # kinds of results
_MOST_ROWS, _CELLS, _FEW_ROWS = 252, 12, 16  # rows of a cell; enough cells; rows for which a matrix is not packed
_TILE_ROWS, _TILE_DEPTH = 4, 64  # with tiles: the least rows for which it is not packed; numbers of a line in a tile
_FLIP = 0x80808080  # of four bytes the highest bits
_SHIFT = 128
# Multiplications, and numbers to pack, for a second thread; numbers of a part of an array; bytes of packed windows.
_MULS_TO_SHARE, _PACK_TO_SHARE, _PART, _WINDOWS = 1 << 23, 1 << 19, 1 << 14, 1 << 20
# Instructions that products use: 0 for the best ones. Tests set others.
instructions = 0


class Packed(NamedTuple):
    """Right operands in panels, and the sums of their columns. shift: what was subtracted from each number."""

    panels: np.ndarray
    sums: np.ndarray
    batch: tuple[int, ...]
    depth: int
    columns: int
    shift: int

    def unpack(self, dtype: np.dtype) -> np.ndarray:
        """Return the operands as int8 or uint8."""
        quads = -(-self.depth // 4)
        panels = self.panels.reshape(*self.batch, -1, quads, WIDE, 4)
        rows = np.moveaxis(panels, (-3, -1, -4, -2), (-4, -3, -2, -1)).reshape(*self.batch, 4 * quads, -1)
        levels = rows[..., : self.depth, : self.columns]
        return np.bitwise_xor(levels, self.shift).view(dtype)  # (a copy)

    def kept(self) -> Packed:
        """Return them for many products. Equal ones are one array."""
        return self._replace(panels=share_equal(self.panels, "panels"), sums=share_equal(self.sums))


def _aligned(nbytes: int) -> np.ndarray:
    """Return memory that begins with a cache line."""
    memory = np.empty(nbytes + 63, _U1)
    start = -memory.__array_interface__["data"][0] % 64
    return memory[start : start + nbytes]


def _make_packed(batch: tuple, depth: int, columns: int, shift: int) -> Packed:
    count = math.prod(batch) * -(-columns // WIDE)
    return Packed(
        _aligned(count * -(-depth // 4) * 4 * WIDE), np.empty(count * WIDE, _I4), batch, depth, columns, shift
    )


def _unsigned_rows(a: np.ndarray) -> tuple[np.ndarray, int]:
    """Return levels as unsigned numbers with rows whose elements lie side by side, and what was added to them."""
    if a.dtype == _I1:
        return np.bitwise_xor(a.view(_U1), _SHIFT, order="C"), _SHIFT
    return (a if a.strides[-1] == 1 or a.shape[-1] == 1 else np.ascontiguousarray(a)), 0


def _shift_zero(zero: np.ndarray | None, shift: int) -> tuple[Any, int]:
    """Return zero points of shifted levels as int32, 0 for none, and the step from one to the next."""
    if zero is None:
        return (np.array([shift], _I4), 0) if shift else (0, 0)
    made = zero.reshape(-1).astype(_I4)
    made += shift
    if made.size == 1:
        return (made, 0) if made[0] else (0, 0)
    return made, 1


@functools.lru_cache(512)
def _places(a_batch: tuple, a_strides: tuple, b_batch: tuple) -> tuple[tuple, np.ndarray]:
    """Return the batch of a product, and where its operands are: see the source's `Product`."""
    batch = np.broadcast_shapes(a_batch, b_batch)
    offsets = np.zeros(a_batch, np.int64)
    for d, (size, stride) in enumerate(zip(a_batch, a_strides, strict=True)):
        offsets += (np.arange(size) * stride).reshape(-1, *(1,) * (len(a_batch) - d - 1))
    numbers = np.arange(math.prod(b_batch)).reshape(b_batch)
    found = np.zeros((math.prod(batch), 3), np.int64)
    found[:, 0] = np.broadcast_to(offsets, batch).reshape(-1)
    found[:, 1] = np.broadcast_to(numbers, batch).reshape(-1)
    return batch, found


def _choose_cells(rows: int, panels: int, products: int, shared: bool) -> tuple[int, int]:
    """Return the rows and panels of a cell."""
    tall, wide = -(-rows // -(-rows // _MOST_ROWS)), panels
    while shared and -(-rows // tall) * -(-panels // wide) * products < _CELLS and (wide > 1 or tall > 48):
        if wide > 1:
            wide = -(-wide // 2)
        else:
            tall = -(-tall // 2)
    return tall, wide


def _per_row(x: np.ndarray | None, by_rows: bool) -> tuple[Any, int, int]:
    """Return numbers, 0 for none, and their steps by row and by column."""
    if x is None:
        return 0, 0, 0
    several = x.size > 1
    return np.ascontiguousarray(x), int(several and by_rows), int(several and not by_rows)


def _product_numbers(
    packed: Packed, a_zero: tuple, b_zero: Any, finish: Any, places: np.ndarray, rows: int, a_row: int, by_rows: bool,
    out_row: int,
) -> tuple[list, int, int]:  # fmt: skip
    """Return what the kernel `product` gets after its first arrays, the number of cells, and bytes that say whether
    threads share it.
    """
    columns, depth = packed.columns, packed.depth
    panels, shared = -(-columns // WIDE), len(places) * rows * columns * depth >= _MULS_TO_SHARE
    b_zero, b_zeros = _shift_zero(b_zero, -packed.shift)
    bias, bias_rows, bias_columns = _per_row(finish.bias, by_rows)
    scale, scale_rows, scale_columns = _per_row(finish.scale, by_rows)
    kind, low, high, zero = _INTEGERS if finish.scale is None else _FLOATS, 0, 0, 0
    if finish.dtype.itemsize == 1:
        kind, (low, high) = _LOW_BYTES if finish.scale is None else _BYTES, _RANGES[finish.dtype]
        zero = 0 if finish.zero is None else int(finish.zero.reshape(-1)[0])
    tall, wide = _choose_cells(rows, panels, len(places), shared)
    down, across = -(-rows // tall), -(-panels // wide)
    numbers = [
        places, a_zero[0], b_zero, bias, scale, rows, columns, depth, a_row, a_zero[1], b_zeros, bias_rows,
        bias_columns, scale_rows, scale_columns, kind, low, high, zero, out_row or columns, tall, down, wide, across,
        instructions, 0, 0, 0,
    ]  # fmt: skip
    return numbers, len(places) * down * across, FORCE_THREADS if shared else 0


class IntegerProducts:
    """Integer products of a device. Methods return None where NumPy is to compute."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._no_tiles = False  # True once the processor, or the system, has refused them

    def pack(self, b: np.ndarray) -> Packed | None:
        """Return matrices for the right side of products."""
        *batch, depth, columns = b.shape
        shift = _SHIFT if b.dtype == _U1 else 0
        made = _make_packed(tuple(batch), depth, columns, shift)
        whole = b.reshape(math.prod(batch), depth, columns)
        panels = -(-columns // WIDE)
        matrix, row, column = whole.strides
        try:
            _pack(
                self._device, panels * len(whole), FORCE_THREADS if b.size >= _PACK_TO_SHARE else 0, whole, made.panels,
                made.sums, depth, columns, row, column, matrix, _FLIP if shift else 0, panels,
            )  # fmt: skip
        except NotBuiltError:
            return None
        return made

    def multiply(self, a: np.ndarray, packed: Packed, a_zero: Any, b_zero: Any, finish: Any) -> np.ndarray | None:
        """Return the product of levels less their zero points. finish: see `torchlite_backends.numpy.quantized`."""
        shape = *a.shape[:-1], packed.columns
        if not packed.batch and a.ndim > 2 and a.flags.c_contiguous and (a_zero is None or a_zero.size == 1):
            a = a.reshape(-1, a.shape[-1])  # (the rows of all matrices)
        a, shift = _unsigned_rows(a)
        batch, places = _places(a.shape[:-2], a.strides[:-2], packed.batch)
        out = np.empty((*batch, a.shape[-2], packed.columns), finish.dtype)
        if out.size and not self._run(a, packed, _shift_zero(a_zero, shift), b_zero, finish, out, places, False):
            return None
        return out.reshape(shape) if not packed.batch else out

    def multiply_lines(self, a: np.ndarray, b: np.ndarray, a_zero: Any, b_zero: Any, finish: Any) -> np.ndarray | None:
        """Return the product with a matrix that is used once. None, too, if it is faster packed: if there are many
        rows, or if the elements of a column do not lie side by side.
        """
        (depth, columns), rows = b.shape, a.size // max(1, a.shape[-1])
        if b.strides[0] != 1 or b.strides[1] < depth or a.ndim > 2 and not a.flags.c_contiguous:
            return None
        shape = *a.shape[:-1], columns
        a = a.reshape(rows, depth)
        if rows >= _TILE_ROWS and a_zero is None and b_zero is None:
            out = self._multiply_by_tiles(a, b, finish)
            if out is not None:
                return out.reshape(shape)
        if rows > _FEW_ROWS:
            return None
        a, shift = _unsigned_rows(a)
        out = self._run_lines(_lines, a, a.strides[0], rows, b, _shift_zero(a_zero, shift), b_zero, finish)
        return None if out is None else out.reshape(shape)

    def _multiply_by_tiles(self, a: np.ndarray, b: np.ndarray, finish: Any) -> np.ndarray | None:
        """Return a product of signed levels, in which tiles read the columns of `b` as they lie; None without tiles."""
        (rows, depth), rest = a.shape, -a.shape[1] % _TILE_DEPTH
        if not a.dtype == b.dtype == _I1 or depth < _TILE_DEPTH or b.shape[1] < WIDE or instructions or self._no_tiles:
            return None
        packed = self.pack((np.pad(a, ((0, 0), (0, rest))) if rest else a).T)
        if packed is None:
            return None
        out = self._run_lines(_tile_lines, packed.panels, 0, rows, b, (0, 0), None, finish)
        self._no_tiles = out is None
        return out

    def _run_lines(
        self, kernel: NativeKernel, a: np.ndarray, a_row: int, rows: int, b: np.ndarray, a_zero: tuple, b_zero: Any,
        finish: Any,
    ) -> np.ndarray | None:  # fmt: skip
        """Return the product with a matrix whose columns a kernel reads as lines; None if it does not."""
        depth, columns = b.shape
        out = np.empty((rows, columns), finish.dtype)
        unpacked, places = Packed(b, b, (), depth, columns, _SHIFT if b.dtype == _U1 else 0), np.zeros((1, 3), np.int64)
        numbers, _, nbytes = _product_numbers(unpacked, a_zero, b_zero, finish, places, rows, a_row, False, 0)
        flip = _FLIP if unpacked.shift else 0
        try:
            done = kernel(self._device, -(-columns // WIDE), nbytes, a, b, 0, out, *numbers, b.strides[1], flip)
        except NotBuiltError:
            return None
        return out if done else None

    def _run(
        self, a: np.ndarray, packed: Packed, a_zero: tuple, b_zero: Any, finish: Any, out: np.ndarray,
        places: np.ndarray, by_rows: bool, out_row: int = 0,
    ) -> bool:  # fmt: skip
        """Write products into `out`. by_rows: biases and scales are those of rows."""
        numbers, cells, nbytes = _product_numbers(
            packed, a_zero, b_zero, finish, places, a.shape[-2], a.strides[-2], by_rows, out_row
        )
        try:
            return _product(self._device, cells, nbytes, a, packed.panels, packed.sums, out, *numbers)
        except NotBuiltError:
            return False

    def convolve(
        self, images: np.ndarray, plan: Any, weight: np.ndarray, zero: Any, weight_zero: Any, finish: Any
    ) -> np.ndarray | None:
        """Return the convolutions of padded images, with a row for each filter. weight: a row for each filter."""
        groups, count = plan.groups, len(plan.places)
        out = np.empty((len(images) * groups, len(weight) // groups, count), finish.dtype)
        if not out.size:
            return out
        a, shift = _unsigned_rows(weight.reshape(groups, -1, weight.shape[1]))
        a_zero = _shift_zero(weight_zero, shift)
        places = np.zeros((len(out), 3), np.int64)
        places[:, 1] = np.arange(len(out))
        group = places[:, 1] % groups
        places[:, 0], places[:, 2] = group * a.strides[0], group * a.shape[1]
        if plan.is_pointwise:
            packed = self.pack(images.reshape(len(out), -1, count))
            done = packed is not None and self._run(a, packed, a_zero, zero, finish, out, places, True)
            return out if done else None
        row = plan.out[-1]
        step = max(1, _WINDOWS // (len(out) * len(plan.taps) * row)) * row
        for start in range(0, count, step):
            packed = self._pack_windows(images, plan, start, min(step, count - start))
            part = out.reshape(-1)[start:]
            if packed is None or not self._run(a, packed, a_zero, zero, finish, part, places, True, count):
                return None
        return out

    def _pack_windows(self, images: np.ndarray, plan: Any, start: int, count: int) -> Packed | None:
        """Return some windows of padded images as columns."""
        products, depth = len(images) * plan.groups, len(plan.taps)
        shift = _SHIFT if images.dtype == _U1 else 0
        made = _make_packed((products,), depth, count, shift)
        panels = -(-count // WIDE)
        try:
            _pack_windows(
                self._device, panels * products, FORCE_THREADS if made.panels.size >= _PACK_TO_SHARE else 0, images,
                made.panels, made.sums, plan.taps, plan.places[start:], depth, count, images.size // products,
                _FLIP if shift else 0, panels, plan.out[-1], plan.stride[-1],
            )  # fmt: skip
        except NotBuiltError:
            return None
        return made

    def multiply_integers(self, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
        """Write the product of matrices of integers of one dtype, in which it wraps around, to row-major memory."""
        if a.itemsize == 1:
            packed = self.pack(b)
            if packed is None:
                return False
            a, shift = _unsigned_rows(a)
            places = _places(a.shape[:-2], a.strides[:-2], packed.batch)[1]
            return self._run(a, packed, _shift_zero(None, shift), None, _WrapAround(out.dtype), out, places, False)
        size, rows, depth, columns = a.itemsize, a.shape[-2], a.shape[-1], b.shape[-1]
        if any(step % size for step in (*a.strides, *b.strides)):
            return False
        batch = out.shape[:-2]
        places = np.zeros((math.prod(batch), 2), np.int64)
        for column, x in enumerate((a, b)):
            for number, step in enumerate(np.broadcast_to(x, (*batch, *x.shape[-2:])).strides[:-2]):
                offsets = (np.arange(batch[number]) * step).reshape(-1, *(1,) * (len(batch) - number - 1))
                places[:, column] += np.broadcast_to(offsets, batch).reshape(-1)
        # In panels of 256 bytes, or half of that.
        panels, work = -(-columns * size // 256), len(places) * rows * columns * depth
        shared = work * size >= _MULS_TO_SHARE
        tall, wide = _choose_cells(rows, panels, len(places), shared)
        down, across = -(-rows // tall), -(-columns * size // (128 * wide))
        steps = [step // size for x in (a, b) for step in x.strides[-2:]]
        try:
            return _wide[size](
                self._device, len(places) * down * across, FORCE_THREADS if shared else 0, a, b, out, places, rows,
                columns, depth, *steps, tall, down, wide, across,
            )  # fmt: skip
        except NotBuiltError:
            return False

    def bind_product(
        self, packed: Packed, zero: Any, b_zero: Any, finish: Any, rows: int
    ) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return a product for row-major matrices of uint8 with so many rows; everything else is constant."""
        try:
            return BoundProduct(self._device, packed, zero, b_zero, finish, rows).run
        except NotBuiltError:
            return None

    def bind_dynamic_linear(
        self, packed: Packed, zero: np.ndarray | None, scale: np.ndarray, bias: np.ndarray | None, most: int,
        rectify: bool, rows: int,
    ) -> Callable[[np.ndarray], np.ndarray | None] | None:  # fmt: skip
        """Return a linear layer for inputs of so many rows, which are quantized by the range of all numbers."""
        try:
            return DynamicLinear(self._device, packed, zero, scale, bias, most, rectify, rows).run
        except NotBuiltError:
            return None

    def multiply_weight(self, x: np.ndarray, weight: np.ndarray, scales: np.ndarray) -> np.ndarray | None:
        """Return ``(x @ weight.T) * scales`` of row-major arrays; `weight` has int8 or float16."""
        return native_weight_only.multiply_rows(self._device, x, weight, scales)

    def multiply_int4_weight(
        self, x: np.ndarray, weight: np.ndarray, group: int, factors: np.ndarray
    ) -> np.ndarray | None:
        """Return the product with packed weights of four bits."""
        return native_weight_only.multiply_int4(self._device, x, weight, group, factors)

    def multiply_int4_levels(
        self, levels: np.ndarray, packed: np.ndarray, group: int, columns: int
    ) -> np.ndarray | None:  # fmt: skip
        """Return sums of int32 numbers with weights of four bits, whose bytes and scales are float32 numbers."""
        return native_weight_only.multiply_int4_levels(self._device, levels, packed, group, columns)

    def extremes(self, x: np.ndarray) -> tuple[Any, Any] | None:
        """Return the least and the greatest of float32 numbers; None also if one is NaN."""
        if not x.size or not x.flags.c_contiguous:
            return None
        parts = -(-x.size // _PART)
        low, high = np.empty(parts, _F4), np.empty(parts, _F4)
        try:
            done = _extremes(self._device, parts, x.nbytes, x, low, high, x.size, _PART)
        except NotBuiltError:
            return None
        return (low.min(), high.max()) if done else None

    def quantize(self, x: np.ndarray, scale: Any, zero: Any) -> np.ndarray | None:
        """Return row-major float32 numbers as levels from 0 to 255."""
        out = np.empty(x.shape, _U1)
        try:
            _quantize(self._device, -(-x.size // _PART), 2 * x.nbytes, x, out, float(scale), float(zero), x.size, _PART)
        except NotBuiltError:
            return None
        return out


class BoundProduct:
    """A product with packed levels, for one number of rows. What all calls have in common is packed once."""

    def __init__(self, device: Any, packed: Packed, zero: Any, b_zero: Any, finish: Any, rows: int) -> None:
        self.shape, self.dtype = (rows, packed.columns), finish.dtype
        numbers, self.cells, self.nbytes = _product_numbers(
            packed, _shift_zero(zero, 0), b_zero, finish, np.zeros((1, 3), np.int64), rows, packed.depth, False, 0
        )
        self._arrays = packed, numbers  # their addresses are in the numbers
        self.panels, self.sums = address(packed.panels), address(packed.sums)
        self.numbers = _bound_numbers(*[address(x) if isinstance(x, np.ndarray) else x for x in numbers])
        self.launch = device.native(BYTES, "product").launch

    def run(self, a: np.ndarray) -> np.ndarray:
        """Return the product."""
        out = np.empty(self.shape, self.dtype)
        given = _bound_arrays(address(a), self.panels, self.sums, address(out)) + self.numbers
        self.launch(given, 0, self.cells, self.nbytes)
        return out


class DynamicLinear:
    """A linear layer with packed weights, for inputs of one number of rows. They are quantized by the range of all
    numbers. What all calls have in common is packed once.
    """

    def __init__(
        self, device: Any, packed: Packed, zero: np.ndarray | None, scale: np.ndarray, bias: np.ndarray | None,
        most: int, rectify: bool, rows: int,
    ) -> None:  # fmt: skip
        columns, depth, panels = packed.columns, packed.depth, -(-packed.columns // WIDE)
        self.shape, self.count = (rows, columns), rows * depth
        b_zero, b_zeros = _shift_zero(zero, -packed.shift)
        scale, _, scales = _per_row(scale, False)
        self.shared = rows * columns * depth >= _MULS_TO_SHARE
        tall, wide = _choose_cells(rows, panels, 1, self.shared)
        down, across = -(-rows // tall), -(-panels // wide)
        self.parts, self.cells = -(-self.count // _PART), down * across
        # The levels follow the extremes of parts, in cache lines of eight parts.
        self.scratch = 64 + -(-self.parts // 8) * 64 + self.count
        arrays = packed.panels, packed.sums, b_zero, scale, 0 if bias is None else np.ascontiguousarray(bias)
        self._arrays = arrays  # their addresses are in the numbers
        self.numbers = _layer_numbers(
            *[address(x) if isinstance(x, np.ndarray) else x for x in arrays], rows, columns, depth, b_zeros, scales,
            most, rectify, tall, down, wide, across, instructions,
        )  # fmt: skip
        self.steps = [device.native(BYTES, f"dynamic_{name}").launch for name in ("range", "levels", "product")]
        self.whole = device.native(BYTES, "dynamic_linear").launch

    def run(self, x: np.ndarray) -> np.ndarray | None:
        """Return the layer's result for row-major numbers; None if one is not finite."""
        out, scratch = np.empty(self.shape, _F4), np.empty(self.scratch, _U1)
        given = _layer_arrays(address(x), address(out), address(scratch)) + self.numbers
        if not self.shared or get_threads() < 2:
            return None if self.whole(given, 0, 1, 0) else out
        find_range, make_levels, multiply = self.steps
        failed = find_range(given, 0, self.parts, x.nbytes) or make_levels(given, 0, self.parts, 2 * x.nbytes)
        return None if failed or multiply(given, 0, self.cells, FORCE_THREADS) else out


class _WrapAround(NamedTuple):
    """Sums as they are, of which 8-bit integers keep the lowest bits."""

    dtype: np.dtype
    bias: None = None
    scale: None = None
    zero: None = None
