"""Dispatch of pointwise kernels generated from a table of C expressions, for every dtype and layout.

A rule defines an op once: C text over the operands `a`, `b`, `c`, … per dtype category. It yields the program for
(dtypes, layout class) and the launch. There are four layout classes: one contiguous run in vectors; rows of any outer
dimensions, in vectors along the innermost; tiles, if an operand is transposed; and one generic program for small arrays
of up to five dimensions.
"""

from __future__ import annotations

import builtins
import functools
import math
import struct

from torchlite._dispatch.memory_layout import elementwise_output_strides
from torchlite._types.dtypes import BY_NAME, promote_types
from torchlite_backends.kernel_sources.dtype_kinds import CATEGORY, COMPLEX_KIND, KINDS, REAL_KIND
from torchlite_backends.kernel_sources.pointwise_codegen import (
    LETTERS,
    ComputeTypes,
    Rule,
    choose_macro_kinds,
    kernel_source,
    list_array_letters,
    make_flat_indexing,
    make_row_indexing,
    make_strided_indexing,
    tile_kernel_source,
)

from .array import Array, empty, is_row_major, kind_of, numpy_dtype_of_kind, row_major_layout
from .broadcasting import broadcast_shape, broadcast_steps, collapse_dims
from .pointwise_launch import GROUP, PointwiseLaunch, compute_row_grid, launch, launch_flat

# Below these sizes a launch costs more than the work, and the one program for all layouts serves.
_MAX_SMALL_FLAT, _MAX_SMALL = 256, 4096
_MAX_RANK, _MAX_PER_ITEM = 5, 32


# -- launching --


def apply_pointwise_rule(
    rule: Rule, operands: tuple, numbers: tuple = (), out: Array | None = None, out_kind: str = ""
) -> Array:
    """Apply `rule` to arrays and Python numbers, broadcast, optionally into `out`. `out_kind` overrides the result's
    kind.
    """
    arrays = [x for x in operands if x.__class__ is Array]
    if arrays:
        first = arrays[0]
    elif out is not None:
        first = out
    else:
        raise TypeError(f"{rule.name}: no operand is an array")
    shape, flat, key = first.shape, first.contiguous, [rule, out_kind]
    for x in operands:
        if x.__class__ is Array:
            key.append(x.kind)
            if not x.contiguous or x.shape != shape:
                flat = False
        else:
            key.append(x.__class__)
    if out is not None:
        key.append(out.kind)
        flat = flat and out.contiguous and out.shape == shape
    if not flat:
        for x in arrays:
            key += (x.shape, x.steps)
        if out is not None:
            key += ("out", out.shape, out.steps)
    else:
        key.append(first.size >= _MAX_SMALL_FLAT)
    device = first.device
    found = tuple(key)
    plan = device.plans.get(found)
    if plan is None:
        plan = _make_plan(device, rule, operands, arrays, out, out_kind, flat)
        device.plans[found] = plan
    if flat:
        if plan.waits and out is None and first.size >= device.waiting.least:
            return device.waiting.add(rule, plan, operands, numbers, first)
        return launch_flat(device, plan, arrays, operands, numbers, first, out)
    if out is None:
        if plan.waits and device.waiting.takes_rows:
            return device.waiting.add_rows(rule, plan, operands, numbers)
        out = empty(device, plan.shape, plan.kind)
        if plan.steps is not None:
            out.steps, out.contiguous = plan.steps, is_row_major(plan.shape, plan.steps)
    if plan.size:
        layout = plan.pack(*[x.offset for x in arrays], out.offset) + plan.tail
        launch(plan, arrays, operands, numbers, out, layout, plan.global_size)
    return out


# -- planning --


def compute_kind(rule: Rule, operands) -> str:
    """Return the kind to compute in: the promotion of the arrays that are not read as truth values.

    A float or complex number raises it to that category.
    """
    found, number = "", ""
    for letter, x in zip(LETTERS, operands, strict=False):
        if letter in rule.masks:
            continue
        if x.__class__ is Array:
            found = x.kind if not found or found == x.kind else _promote_kinds(found, x.kind)
        else:
            number = max(number, scalar_kind_of(x), key=lambda k: " bifc".index(CATEGORY.get(k, " ")))
    if not found:
        return number
    if number and number[0] == "c" and found not in REAL_KIND:
        return COMPLEX_KIND.get(found, "c64")
    return number if number[:1] == "f" and CATEGORY[found] in "ib" else found


def scalar_kind_of(value) -> str:
    """Return the kind of a Python number."""
    return (
        "b8"
        if isinstance(value, bool)
        else "i64"
        if isinstance(value, int)
        else "c64"
        if isinstance(value, complex)
        else "f32"
    )


@functools.cache
def _promote_kinds(one: str, other: str) -> str:
    return kind_of(promote_types(BY_NAME[KINDS[one].numpy], BY_NAME[KINDS[other].numpy]).np)


def _choose_result_kind(rule: Rule, kind: str) -> str:
    if rule.out in ("real", "complex"):
        return (REAL_KIND if rule.out == "real" else COMPLEX_KIND).get(kind, kind)
    return "b8" if rule.test else rule.out or kind


def make_number_packer(code: str):
    """Return a function from a Python number to the bytes of a scalar argument of a struct code."""
    pack = struct.Struct(code).pack
    if len(code) == 2:
        return lambda z: pack(z.real, z.imag) if isinstance(z, complex) else pack(z, 0.0)
    if code in "fd":

        def floating(x):
            try:
                return pack(x)
            except OverflowError:
                return pack(float("inf") if x > 0 else float("-inf"))
            except struct.error:
                return pack(float(x.real))

        return floating
    bits = 8 * struct.calcsize(code)
    low = -(1 << bits - 1) if code.islower() else 0
    return lambda x: pack((int(x) - low) % (1 << bits) + low)


def _make_plan(device, rule: Rule, operands, arrays, out, out_kind: str, flat: bool) -> PointwiseLaunch:
    kind = compute_kind(rule, operands) if arrays else out.kind
    plan = PointwiseLaunch()
    plan.kind = out.kind if out is not None else out_kind or _choose_result_kind(rule, kind)
    plan.dtype = numpy_dtype_of_kind(plan.kind)
    device.check_kind(plan.kind)
    plan.waits = False
    types = ComputeTypes(device, rule, kind)
    plan.count = len(arrays) + 1
    has_numbers = rule.numbers or len(arrays) != len(operands)
    plan.numbers = (_pack_bool if kind == "b8" else make_number_packer(types.code)) if has_numbers else None
    kinds = [x.kind if x.__class__ is Array else "" for x in operands]
    if flat:
        return _plan_flat_launch(device, plan, rule, kind, types, kinds, operands, out)
    plan.shape = out.shape if out is not None else broadcast_shape([x.shape for x in arrays])
    if out is not None and any(broadcast_shape([x.shape, out.shape]) != out.shape for x in arrays):
        shape = broadcast_shape([out.shape, *(x.shape for x in arrays)])
        raise RuntimeError(f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(shape)}")
    plan.steps = None if out is not None else _choose_result_steps(plan.shape, arrays)
    plan.size, usual = row_major_layout(plan.shape)
    target = out.steps if out is not None else plan.steps or usual
    sizes, steps = _sort_by_memory_order(
        plan.shape, [*(broadcast_steps(x.shape, x.steps, plan.shape) for x in arrays), target]
    )
    plan.pack = struct.Struct(f"{plan.count}i").pack
    if plan.size < _MAX_SMALL or len(sizes) > _MAX_RANK:
        return _plan_small_launch(device, plan, rule, kind, types, kinds, sizes, steps)
    return _plan_row_launch(device, plan, rule, kind, types, kinds, sizes, steps)


def _pack_bool(x) -> bytes:
    return b"\1" if x else b"\0"


def _sort_by_memory_order(shape, walks):
    """Return collapsed sizes and strides, with dimensions in the memory order of the written array."""
    order = sorted(range(len(shape)), key=lambda d: -builtins.abs(walks[-1][d])) if shape else ()
    return collapse_dims([shape[d] for d in order], *([walk[d] for d in order] for walk in walks))


def _choose_result_steps(shape, arrays) -> tuple[int, ...] | None:
    """Return the result's strides as PyTorch's TensorIterator chooses them; None for row-major."""
    steps = elementwise_output_strides(tuple(shape), tuple([(x.shape, x.steps) for x in arrays])) if arrays else None
    return None if steps == row_major_layout(tuple(shape))[1] else steps


def _choose_vector_width(device, rule: Rule, kind: str, kinds) -> int:
    """Return the vector width of a program, 0 for scalar."""
    category = "d" if kind == "f64" else CATEGORY[kind]
    return 0 if category in rule.scalar or any(k[:1] == "c" for k in kinds) else device.width


def _plan_flat_launch(device, plan, rule, kind, types, kinds, operands, out) -> PointwiseLaunch:
    first = next((x for x in operands if x.__class__ is Array), out)
    plan.pack = struct.Struct(f"{plan.count + 1}i").pack
    if first.size < _MAX_SMALL_FLAT:
        rest = [0] * (_MAX_RANK - 1)
        plan.tail = struct.pack(f"{_MAX_RANK + _MAX_RANK * plan.count}i", 1, *rest, *[1, *rest] * plan.count)
        _set_kernel(device, plan, rule, kind, types, kinds, 0, make_strided_indexing(kinds, _MAX_RANK))
    else:
        plan.tail = b""
        width = _choose_vector_width(device, rule, kind, [*kinds, plan.kind])
        _set_kernel(device, plan, rule, kind, types, kinds, width, make_flat_indexing(kinds), {})
        plan.waits = _can_defer(device, plan, rule, kind, types, kinds, width)
    plan.local_size, plan.global_size = (GROUP,), None
    return plan


def _can_defer(device, plan, rule, kind, types, kinds, width: int) -> bool:
    how = KINDS[kind]
    return (
        device.chains
        and bool(width)
        and not rule.masks
        and how.stored == how.computed == types.computed
        and all(k in ("", kind) for k in (*kinds, plan.kind))
    )


def _plan_small_launch(device, plan, rule, kind, types, kinds, sizes, steps) -> PointwiseLaunch:
    rank = _MAX_RANK if len(sizes) <= _MAX_RANK else _MAX_PER_ITEM
    pad = [0] * (rank - len(sizes))
    tail = [plan.size, len(sizes), *reversed(sizes[1:]), *[0] * (rank - len(sizes))]
    for walk in steps:
        tail += [*reversed(walk), *pad]
    plan.tail = struct.pack(f"{len(tail)}i", *tail)
    _set_kernel(device, plan, rule, kind, types, kinds, 0, make_strided_indexing(kinds, rank))
    plan.local_size = (GROUP,)
    plan.global_size = (-(-plan.size // (plan.per_item * GROUP)) * GROUP,)
    return plan


def _plan_row_launch(device, plan, rule, kind, types, kinds, sizes, steps) -> PointwiseLaunch:
    modes = [{0: "s", 1: "v"}.get(s[-1], "g") for s in steps]
    if "g" in modes and modes[-1] == "v":
        cross = next(
            (
                d
                for d in range(len(sizes) - 1)
                if all(s[d] == 1 for s, mode in zip(steps, modes, strict=True) if mode == "g")
            ),
            None,
        )
        if cross is not None:
            return _plan_tile_launch(device, plan, rule, kind, types, kinds, sizes, steps, modes, cross)
    width = _choose_vector_width(device, rule, kind, [*kinds, plan.kind]) if "g" not in modes else 0
    outer = len(sizes) - 1
    by_letter = dict(zip([*list_array_letters(kinds), "o"], modes, strict=True))
    _set_kernel(device, plan, rule, kind, types, kinds, width, make_row_indexing(kinds, modes, outer), by_letter)
    plan.global_size, plan.local_size = compute_row_grid(sizes, plan.per_item)
    plan.waits = plan.steps is None and "g" not in modes and _can_defer(device, plan, rule, kind, types, kinds, width)
    tail = [sizes[-1], math.prod(sizes[:-1]), *sizes[:-1]]
    for mode, s in zip(modes, steps, strict=True):
        tail += s if mode == "g" else s[:-1]
    plan.tail = struct.pack(f"{len(tail)}i", *tail)
    return plan


def _plan_tile_launch(device, plan, rule, kind, types, kinds, sizes, steps, modes, cross: int) -> PointwiseLaunch:
    """Plan tiles over the innermost dimension and `cross`, along which transposed operands are contiguous.

    Both directions use vectors.
    """
    width = _choose_vector_width(device, rule, kind, [*kinds, plan.kind])
    side = plan.per_item = width or device.width
    outer = [d for d in range(len(sizes) - 1) if d != cross]
    source = tile_kernel_source(rule, kind, types, kinds, plan.kind, width, side, modes, len(outer))
    function = device.function(
        source, "run", "", (width,) if width else (), **choose_macro_kinds(types, kinds, plan.kind)
    )
    plan.start = function.start
    across, tiles = -(-sizes[-1] // side), -(-sizes[cross] // side)
    down = tiles
    for d in outer:
        down *= sizes[d]
    ly = 16
    plan.local_size = (1, ly)  # neighbours write next to each other's rows and read next to each other's columns
    plan.global_size = (across, -(-down // ly) * ly)
    tail = [sizes[-1], sizes[cross], tiles, down, *(sizes[d] for d in outer)]
    for mode, s in zip(modes, steps, strict=True):
        tail += [s[-1] if mode == "g" else s[cross], *(s[d] for d in outer)]
    plan.tail = struct.pack(f"{len(tail)}i", *tail)
    return plan


def _set_kernel(
    device, plan: PointwiseLaunch, rule: Rule, kind: str, types: ComputeTypes, kinds, width: int, walk, modes=None
) -> None:
    """Set the plan's kernel and elements per work-item."""
    per_item = width or (16 if device.is_cpu else 1)
    source = kernel_source(rule, kind, types, kinds, plan.kind, width, per_item, walk, modes or {})
    function = device.function(
        source, "run", "", (width,) if width else (), **choose_macro_kinds(types, kinds, plan.kind)
    )
    plan.start, plan.per_item = function.start, per_item


# -- used by other modules --

_COPY = Rule("copy", f="a", i="a", b="a", c="a")
_TO_BOOL = Rule("to_bool", f="a != 0", i="a != 0", b="a != 0", c="(a.x != 0) | (a.y != 0)", test=True)
_REAL_PART = Rule("real_part", c="a.x", out="real")
_TO_COMPLEX = Rule("to_complex", *["VEC2(R2, a, 0)"] * 3, c="a", scalar="fdib")
_CHOOSE = Rule("where", f="c ? a : b", i="c ? a : b", b="c ? a : b", c="c ? a : b", masks="c")


def cast(x: Array, kind: str, out: Array | None = None) -> Array:
    """Convert `x` to another kind, optionally into `out`; complex to real drops the imaginary part."""
    if kind == x.kind:
        return apply_pointwise_rule(_COPY, (x,), (), out)
    rule = (
        _TO_BOOL if kind == "b8" else _TO_COMPLEX if kind in REAL_KIND else _REAL_PART if x.kind in REAL_KIND else _COPY
    )
    return apply_pointwise_rule(rule, (x,), (), out, "" if out is not None else kind)


def select_where(condition: Array, input, other, out: Array | None = None) -> Array:
    """Select `input` where the condition is true, else `other`; either may be a Python number."""
    return apply_pointwise_rule(_CHOOSE, (input, other, condition), (), out)


def fill_number(target: Array, value) -> None:
    """Fill an array with a Python number."""
    apply_pointwise_rule(_COPY, (value,), (), target)
