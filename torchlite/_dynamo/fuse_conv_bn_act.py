"""Pass that fuses convolution, batch norm in evaluation mode and ReLU or clamp into one step."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

from .alias_analysis import AliasAnalysis
from .program_ir import Layouts, Program, Slot, Step
from .side_effects import is_pure

_FUSED_CONV_BN, _NO_CLAMP = "_fused_conv_bn", (-math.inf, math.inf)
_FUSIBLE_PRODUCERS = frozenset(("convolution", "_batch_norm_eval", _FUSED_CONV_BN))


def fuse_conv_bn_act(program: Program, layouts: Layouts, place: dict[int, int], table: Any) -> Program:
    """Fuse each convolution with the batch norm (running statistics) and the `relu` or clamp after it, if nothing else
    reads the intermediate results. The fused kernel is that of `nn.Sequential`, which works in cache.
    """
    memory = AliasAnalysis(program, place)
    count = Counter(n for step in program.steps for n in step.uses())
    firsts: dict[int, Step] = {}  # by result slot, since the last write
    steps: list[Step] = []
    done: set[int] = set()
    for step in program.steps:
        if not is_pure(step):
            firsts.clear()
        before = firsts.get(step.args[0].number) if step.args and step.args[0].__class__ is Slot else None
        if before is not None:
            found = _fuse_batch_norm(before, step, layouts, table) or _fuse_clamp(before, step, layouts, table)
            if found is not None:
                done.add(id(before))
                step = found
        steps.append(step)
        if step.name in _FUSIBLE_PRODUCERS and step.out.__class__ is Slot:
            number = step.out.number
            kind = layouts.get(number)
            if kind is not None and kind[2] and kind[1].char in "fd" and count[number] == 1 and memory.is_plain(number):
                firsts[number] = step
    return replace(program, steps=[step for step in steps if id(step) not in done])


def _fuse_batch_norm(before: Step, step: Step, layouts: Layouts, table: Any) -> Step | None:
    """Return a convolution and its batch norm as one step; all arrays have one dtype."""
    if before.name != "convolution" or step.name != "_batch_norm_eval" or step.kwargs:
        return None
    kind = layouts[before.out.number][1]
    slots = {*before.uses(), *step.uses(), *step.makes()}
    if any(n not in layouts or layouts[n][1] != kind for n in slots) or not layouts[step.out.number][2]:
        return None
    return replace(
        step, name=_FUSED_CONV_BN, kernel=getattr(table, _FUSED_CONV_BN), args=(*before.args, *step.args[1:])
    )


def _fuse_clamp(before: Step, step: Step, layouts: Layouts, table: Any) -> Step | None:
    """Return a step and the clamp of its result as one step."""
    limits = clamp_range_of(step)
    if limits is None or layouts.get(step.out.number) != layouts[before.out.number]:
        return None
    if before.name == "convolution":
        kind = layouts[before.out.number][1]
        if any(n not in layouts or layouts[n][1] != kind for n in before.uses()):
            return None
        args = (*before.args, None, None, None, None, 0.0, *limits)  # no linear layer
        return replace(step, name=_FUSED_CONV_BN, kernel=getattr(table, _FUSED_CONV_BN), args=args)
    if before.args[-2:] != _NO_CLAMP:
        return None
    return replace(step, name=before.name, kernel=before.kernel, args=(*before.args[:-2], *limits))


def clamp_range_of(step: Step) -> tuple[float, float] | None:
    """Return the limits of an elementwise clamp-like step, None for other steps."""
    numbers = step.args[1:]
    if step.kwargs or any(value.__class__ not in (int, float) for value in numbers):
        return None
    if step.name == "relu":
        return 0.0, math.inf
    if step.name == "relu6":
        return 0.0, 6.0
    if step.name == "hardtanh" and len(numbers) == 2:
        return float(numbers[0]), float(numbers[1])
    return None
