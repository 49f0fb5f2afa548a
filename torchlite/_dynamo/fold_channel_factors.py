"""Folds products and sums with constants into the constant weights of the convolutions before them, and products with
two numbers, one after the other, into one.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from torchlite._ops.fused_inference import can_fuse_dtypes
from torchlite._settings.equal_arrays import share_equal

from .alias_analysis import AliasAnalysis
from .power_reduction import constant_number
from .program_ir import Layouts, Program, Slot, Step

_TRANSPOSED = 6  # an argument of `convolution`
_PRODUCTS = ("mul", "div")


def fold_channel_factors(program: Program, layouts: Layouts, place: dict[int, int], table: Any) -> Program:
    """Replace each convolution and the elementwise product, quotient, sum or difference of its result and a constant by
    one convolution with other weights. The constant has one number, or one for each channel. Two products or quotients
    with numbers become one. Nothing else may read the first result. Updates `layouts`.
    """
    memory = AliasAnalysis(program, place)
    count = Counter(n for step in program.steps for n in step.uses())
    program = replace(program, held=dict(program.held))
    fresh = itertools.count(1 + max([0, *program.held, *layouts]))
    makers: dict[int, tuple[int, Step]] = {}  # convolutions and products, by the slot of their result
    steps: list[Step | None] = []
    for step in program.steps:
        for first, other in _operands_of(step):
            at, before = makers.get(first.number, (0, None))
            made = None if before is None else _join(before, step, other, program, layouts, table, fresh)
            if made is not None:
                steps[at], step = None, made
                break
        if step.name in ("convolution", *_PRODUCTS) and step.out.__class__ is Slot:
            if count[step.out.number] == 1 and memory.is_plain(step.out.number):
                makers[step.out.number] = len(steps), step
        steps.append(step)
    return replace(program, steps=[step for step in steps if step is not None])


def _operands_of(step: Step) -> list[tuple[Slot, Any]]:
    """Return the pairs of a slot that may be computed and a value that may be a constant."""
    if (
        step.name not in (*_PRODUCTS, "add", "sub")
        or step.kwargs
        or len(step.args) != 2
        or step.out.__class__ is not Slot
    ):
        return []
    pairs = [step.args] if step.name in ("sub", "div") else [step.args, step.args[::-1]]
    return [pair for pair in pairs if pair[0].__class__ is Slot]


def _join(
    before: Step, step: Step, other: Any, program: Program, layouts: Layouts, table: Any, fresh: Iterator[int]
) -> Step | None:
    """Return one step for two, None if there is none."""
    if before.name in _PRODUCTS:
        return _multiply(before, step, other, program, layouts, fresh)
    if _is_foldable(before, step, other, program.held, layouts):
        return _fold(before, step, other, program.held, layouts, table, fresh)
    return None


def _add_constant(raw: Any, held: dict[int, Any], layouts: Layouts, fresh: Iterator[int]) -> Slot:
    number = next(fresh)
    held[number], layouts[number] = raw, (raw.shape, raw.dtype, True)
    return Slot(number)


def _multiply(
    before: Step, step: Step, other: Any, program: Program, layouts: Layouts, fresh: Iterator[int]
) -> Step | None:
    """Return the product with the product of two numbers, if that is an ordinary number."""
    if step.name not in _PRODUCTS:
        return None
    second = constant_number(other, program)
    for x, value in _operands_of(before):
        first, layout = constant_number(value, program), layouts.get(x.number)
        alike = layout is not None and all(layouts.get(out.number) == layout for out in (before.out, step.out))
        if first is None or second is None or layout is None or not alike or layout[1].char not in "fd":
            continue
        with np.errstate(all="ignore"):
            a, b = np.float64(first), np.float64(second)
            number = a * b if before.name == step.name else b / a if step.name == "mul" else a / b
            both = np.asarray(number, layout[1])
        if not np.isfinite(both) or abs(both) < np.finfo(both.dtype).tiny:
            return None
        slot = _add_constant(both, program.held, layouts, fresh)
        kind = step if step.name == "mul" else before
        return replace(kind, args=(x, slot), out=step.out)
    return None


def _is_foldable(before: Step, step: Step, other: Any, held: dict[int, Any], layouts: Layouts) -> bool:
    if before.kwargs or before.args[_TRANSPOSED] or other.__class__ is not Slot or other.number not in held:
        return False
    weights = [value.number for value in before.args[1:3] if value is not None]
    numbers = (*weights, before.out.number, step.out.number, other.number)
    if any(n not in held for n in weights) or any(n not in layouts for n in numbers):
        return False
    if layouts[before.out.number] != layouts[step.out.number] or not can_fuse_dtypes([layouts[n][1] for n in numbers]):
        return False
    shape, given = layouts[step.out.number][0], layouts[other.number][0]
    of_channels = (1,) * (len(given) - len(shape) + 1) + shape[1:2] + (1,) * (len(shape) - 2)
    return len(given) <= len(shape) and (math.prod(given) == 1 or given == of_channels)


def _fold(
    before: Step, step: Step, other: Slot, held: dict[int, Any], layouts: Layouts, table: Any, fresh: Iterator[int]
) -> Step:
    """Return the convolution with other weights, which become constants."""
    filters = held[before.args[1].number]
    offset = None if before.args[2] is None else held[before.args[2].number]
    kernel, slots = getattr(table, step.name), list(before.args[1:3])
    line = table.reshape(held[other.number], (-1,))
    if step.name in _PRODUCTS:
        column = table.reshape(line, (-1,) + (1,) * (filters.ndim - 1))
        made = [kernel(filters, column), None if offset is None else kernel(offset, line)]
    elif offset is not None:
        made = [None, kernel(offset, line)]
    else:
        line = table.clone(table.expand(line, (filters.shape[0],)))
        made = [None, line if step.name == "add" else table.neg(line)]
    for at, raw in enumerate(made):
        if raw is not None:
            slots[at] = _add_constant(share_equal(raw), held, layouts, fresh)
    return replace(before, args=(before.args[0], *slots, *before.args[3:]), out=step.out)
