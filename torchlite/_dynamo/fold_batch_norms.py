"""Folds batch norms by constant statistics into the constant weights of the convolutions before them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torchlite._ops.fused_inference import NO_CLAMP, can_fold_batch_norm, can_fuse_dtypes, fold_batch_norm
from torchlite._settings.equal_arrays import share_equal

from .alias_analysis import AliasAnalysis
from .program_ir import Layouts, Program, Slot, Step

_TRANSPOSED, _GROUPS = 6, 8  # arguments of `convolution`
_FUSED_CONV_BN = "_fused_conv_bn"  # a convolution, a batch norm and bounds, as `nn.Sequential` calls them
_WITHOUT_NORM = (None, None, None, None, 0.0)  # its arguments between the convolution's and the bounds


def fold_batch_norms(program: Program, layouts: Layouts, place: dict[int, int], table: Any) -> Program:
    """Replace each convolution and the batch norm of its result by one convolution with other weights. They may be one
    step; else nothing else may read the first one's result. Updates `layouts`.
    """
    if not program.held:
        return program
    memory = AliasAnalysis(program, place)
    count = Counter(n for step in program.steps for n in step.uses())
    held = dict(program.held)
    fresh = itertools.count(1 + max([*held, *layouts]))
    makers: dict[int, tuple[int, Step]] = {}  # convolutions, by the slot of their result
    steps: list[Step | None] = []
    for step in program.steps:
        if step.name == _FUSED_CONV_BN and not step.kwargs and step.args[-5] is not None:
            parts = _split(step, table)
            if _is_foldable(*parts, held, layouts):
                folded = _fold(*parts, held, layouts, table, fresh)
                limits = step.args[-2:]
                step = folded if limits == NO_CLAMP else replace(step, args=(*folded.args, *_WITHOUT_NORM, *limits))
        first = step.args[0] if step.args else None
        found = makers.get(first.number) if first.__class__ is Slot else None
        if found is not None and _is_foldable(found[1], step, held, layouts):
            at, before = found
            steps[at] = None
            step = _fold(before, step, held, layouts, table, fresh)
        if step.name == "convolution" and count[step.out.number] == 1 and memory.is_plain(step.out.number):
            makers[step.out.number] = len(steps), step
        steps.append(step)
    return replace(program, steps=[step for step in steps if step is not None], held=held)


def _split(step: Step, table: Any) -> tuple[Step, Step]:
    """Return the convolution and the batch norm of a fused step. Both have the step's result."""
    before = replace(step, name="convolution", kernel=table.convolution, args=step.args[:-7])
    return before, replace(step, name="_batch_norm_eval", args=(step.out, *step.args[-7:-2], *NO_CLAMP))


def _is_foldable(before: Step, step: Step, held: dict[int, Any], layouts: Layouts) -> bool:
    if step.name != "_batch_norm_eval" or step.kwargs or before.kwargs or step.args[-2:] != NO_CLAMP:
        return False
    *_, mean, var = step.args[1:5]
    numbers = [value.number for value in (*before.args[1:3], *step.args[1:5]) if value is not None]
    return (
        all(n in held for n in numbers)
        and can_fold_batch_norm(False, mean, var, before.args[_TRANSPOSED], before.args[_GROUPS])
        and can_fuse_dtypes([layouts[n][1] for n in (*numbers, before.out.number, step.out.number)])
        and layouts[before.out.number] == layouts[step.out.number]
    )


def _fold(before: Step, step: Step, held: dict[int, Any], layouts: Layouts, table: Any, fresh: Iterator[int]) -> Step:
    """Return the convolution with other weights, which become constants."""
    given = (*before.args[1:3], *step.args[1:5])
    filters, offset, weight, bias, mean, var = [None if value is None else held[value.number] for value in given]
    eps, channel_dim = step.args[5], int(before.args[_TRANSPOSED])
    made = fold_batch_norm(table, filters, offset, weight, bias, mean, var, eps, channel_dim)
    slots = []
    for raw in made:
        number = next(fresh)
        held[number], layouts[number] = share_equal(raw), (raw.shape, raw.dtype, True)
        slots.append(Slot(number))
    return replace(before, args=(before.args[0], *slots, *before.args[3:]), out=step.out)
