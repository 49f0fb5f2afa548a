"""Products of 8-bit levels, and the quantization of a tensor by its range."""

from __future__ import annotations

import math
from typing import Any

from torchlite._dispatch import REGISTRY, table_of
from torchlite._types.devices import device as torch_device
from torchlite_backends.kernel_sources.quantized import (
    dynamic_quantize_source,
    levels_dot_source,
    levels_product_source,
)

from ..array_ops.pointwise import KERNELS as POINTWISE
from ..core.array import Array, empty, make_view, row_major_layout
from ..core.broadcasting import broadcast_shape
from ..core.contiguous_copy import as_contiguous
from ..core.device import Device, round_up_to_groups
from ..core.pointwise_dispatch import cast
from ..core.views import broadcast_view, reshape, select, transpose
from .gemm import LEVELS, GemmShape

_LIMITS = {"u8": (0, 255), "i8": (-128, 127)}
# Rows of a work-item's tile, and vectors of a CPU's, whose columns are a cache line of levels.
_ROWS, _VECTORS = 4, 4
# Rows from which tiles are computed; items of a tile, and of a column.
_MANY, _TILE_ITEMS, _DOT_LANES = 17, 256, 32
# Elements of which one work-group finds the range and the levels.
_MOST_OF_ONE_GROUP, _LANES = 1 << 17, 256


def _quantized_matmul(input, other, input_zero=None, other_zero=None, bias=None, scale=None, out_zero=None):
    shape = (*broadcast_shape((input.shape[:-2], other.shape[:-2])), input.shape[-2], other.shape[-1])
    out = empty(input.device, shape, "i32" if scale is None else "f32")
    if out.size:
        numbers = (input_zero, other_zero, _cast_optional(bias, "i32"), _cast_optional(scale, "f32"))
        if len(other.shape) == 2 and (input_zero is None or input_zero.size == 1):  # all rows are of one matrix
            rows = reshape(input, (math.prod(input.shape[:-1]), input.shape[-1]))
            _launch_product(rows, other, out, *numbers)
        else:
            _multiply_batch(input, other, out, *numbers)
    return out if out_zero is None else round_to_levels(out, out_zero)


class _KeptLevels:
    """The levels of a constant matrix as a processor's kernel reads them: row-major."""

    def __init__(self, levels: Array) -> None:
        self._levels = as_contiguous(levels)

    def levels(self) -> Array:
        """Return the levels."""
        return self._levels


def _constant_matmul(input, matrix, input_zero=None, bias=None, scale=None, out_zero=None):
    if input.device.is_cpu and matrix.form is None:
        matrix.keep(_KeptLevels(matrix.levels()))
    return _quantized_matmul(input, matrix.levels(), input_zero, matrix.zero, bias, scale, out_zero)


def round_to_levels(x: Array, zero: Array) -> Array:
    """Return floats rounded to levels around a zero point, of its kind."""
    levels = POINTWISE["add"](POINTWISE["round"](x), cast(reshape(zero, ()), "f32"))
    return cast(POINTWISE["_clamp_scalars"](levels, *_LIMITS[zero.kind]), zero.kind)


def _cast_optional(x: Array | None, kind: str) -> Array | None:
    return x if x is None or x.kind == kind else cast(x, kind)


def _multiply_batch(input: Array, other: Array, out: Array, *numbers: Array | None) -> None:
    """Multiply the matrices of a batch one by one."""
    lead, count = out.shape[:-2], math.prod(out.shape[:-2])
    lefts, rights = (reshape(broadcast_view(x, (*lead, *x.shape[-2:])), (count, *x.shape[-2:])) for x in (input, other))
    for i in range(count):
        size, steps = row_major_layout(out.shape[-2:])
        target = make_view(out, out.shape[-2:], steps, out.offset + i * size)
        _launch_product(select(lefts, 0, i), select(rights, 0, i), target, *numbers)


def _launch_product(
    a: Array, b: Array, out: Array, a_zero: Array | None, b_zero: Array | None, bias: Array | None, scale: Array | None
) -> None:
    device, (m, k), n = a.device, a.shape, b.shape[1]
    numbers = (a_zero, b_zero, bias, scale)
    if not device.is_cpu and (_multiply_by_library(a, b, out, *numbers) or _launch_dots(a, b, out, *numbers)):
        return
    key = ("levels_product", a.kind, b.kind, out.kind, m, k, n)
    found = device.plans.get(key)
    if found is None:
        found = device.plans[key] = _plan_product(device, a.kind, b.kind, out.kind, m, n)
    function, global_size, local_size, tiles = found
    a, b = as_contiguous(a), as_contiguous(b)
    given, steps = _numbers_and_steps(a, b, out, *numbers)
    function(global_size, local_size, a, b, *given, out, m, n, k, *steps, tiles)


def _numbers_and_steps(a: Array, b: Array, out: Array, *given: Array | None) -> tuple[list[Array], list[int]]:
    """Return zero points, biases and scales, with other arrays in the place of those that there are not, and the step
    from one number to the next.
    """
    numbers = [instead if x is None else as_contiguous(x) for x, instead in zip(given, (a, b, out, out), strict=True)]
    return numbers, [-1 if x is None else 0 if x.size == 1 else 1 for x in given]


def _multiply_by_library(a: Array, b: Array, out: Array, *given: Array | None) -> bool:
    """Multiply signed levels by the device's library, which has tensor cores for them. Return False if it cannot."""
    if (a.kind, b.kind, out.kind) != ("i8", "i8", "i32") or any(x is not None for x in given) or _is_unaligned(a, b):
        return False
    device, (m, k), n = a.device, a.shape, b.shape[1]
    key = ("levels_of_library", m, n, k, a.steps, b.steps)
    found: Any = device.plans.get(key)
    if found is None:
        sizes = GemmShape(m, n, k, a.steps, b.steps, (n, 1))
        found = device.plans[key] = device.product(LEVELS, sizes, False, (False, False)) or False
    if found:
        found.run(a, b, out)
    return bool(found)


def _is_unaligned(*arrays: Array) -> bool:
    """True if words of four levels must not be read."""
    return any((getattr(x.buffer, "ptr", 0) + x.offset) % 4 for x in arrays)


def _launch_dots(a: Array, b: Array, out: Array, *given: Array | None) -> bool:
    """Multiply rows of words of four levels. Return False for matrices that must not be read so."""
    device, (m, k), n = a.device, a.shape, b.shape[1]
    if k % 4 or not k or device.max_group < _TILE_ITEMS:
        return False
    if m < _MANY and (b.steps[0] != 1 or n > 1 and b.steps[1] != k):
        return False
    a, turned = as_contiguous(a), as_contiguous(transpose(b, 0, 1))
    if _is_unaligned(a, turned):
        return False
    name = "levels_dot_rows" if m < _MANY else "levels_dot_tiles"
    function = device.function(
        levels_dot_source(a.kind, b.kind, _DOT_LANES), name, "pppppppiiiiiiii", (), A=a.kind, B=b.kind, U=out.kind,
        SCALED=str(int(out.kind == "f32")),
    )  # fmt: skip
    numbers, steps = _numbers_and_steps(a, turned, out, *given)
    across = -(-n // 64)
    groups, items = (n, _DOT_LANES) if m < _MANY else (across * -(-m // 64), _TILE_ITEMS)
    function((groups * items,), (items,), a, turned, *numbers, out, m, n, k // 4, *steps, across)
    return True


def _plan_product(device: Device, a_kind: str, b_kind: str, out_kind: str, m: int, n: int) -> tuple:
    """Return the kernel of matrices of a size, its launch sizes, and the tiles that follow each other."""
    width = 1 << min(device.width if device.is_cpu else 1, n).bit_length() - 1
    rows = 1 if m == 1 else _ROWS
    vectors = _VECTORS if device.is_cpu and n >= _VECTORS * width else 1
    across, down = -(-n // (width * vectors)), -(-m // rows)
    function = device.function(
        levels_product_source(rows, vectors, width), "levels_product", "pppppppiiiiiiii",
        (width,) if width > 1 else (), A=a_kind, B=b_kind, U=out_kind, SCALED=str(int(out_kind == "f32")),
        ROWS_FIRST=str(int(device.is_cpu)),
    )  # fmt: skip
    local = 1 if device.is_cpu else 64
    return function, round_up_to_groups(across * down, local), (local,), down if device.is_cpu else across


def _dynamic_quantize(input):
    device, n = input.device, input.size
    if input.kind != "f32" or not 0 < input.size <= _MOST_OF_ONE_GROUP:
        return REGISTRY["_dynamic_quantize"].composite(table_of(torch_device(device.type, device.index)), input)
    width = device.width if device.is_cpu else 1
    lanes = 1 if device.is_cpu else min(_LANES, 1 << device.max_group.bit_length() - 1)
    function = device.function(
        dynamic_quantize_source(width), "dynamic_quantize", "ppppi", (), U="u8", LANES=str(lanes)
    )
    levels, scale, zero = empty(device, input.shape, "u8"), empty(device, (), "f32"), empty(device, (), "u8")
    function((lanes,), (lanes,), as_contiguous(input), levels, scale, zero, n)
    return levels, scale, zero
