"""View simplification: collapses chains of reshapes and permutations, removes views without effect."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from .alias_analysis import AliasAnalysis
from .program_ir import Layouts, Program, Slot, Step, rename_slots
from .step_purity import is_pure

# Views that can be composed with other reshapes.
_RESHAPES = frozenset(("reshape", "_view", "view", "flatten", "unflatten", "squeeze", "unsqueeze"))


def simplify_views(program: Program, layouts: Layouts, place: dict[int, int], reshape: Any) -> Program:
    """Collapse chains of reshapes and of permutations into one view. Remove views that change nothing."""
    memory, shown = AliasAnalysis(program, place), program.shown()
    names: dict[int, Slot] = {}
    makers: dict[int, Step] = {}
    kept: list[Step] = []
    for step in program.steps:
        step = rename_slots(step, names)
        if step.out.__class__ is Slot and is_pure(step) and memory.is_view(step) and step.args[0].__class__ is Slot:
            number = step.out.number
            before = makers.get(step.args[0].number)
            if step.name in _RESHAPES and _is_contiguous_view(step, layouts):
                if before is not None and before.name in _RESHAPES and _is_contiguous_view(before, layouts):
                    step = replace(step, name="reshape", kernel=reshape, args=(before.args[0], layouts[number][0]))
                    step.kwargs = {}
                given = step.args[0].number
                # A dimension of size one may have another stride, visible in results.
                if layouts[given] == layouts[number] and number not in shown and 1 not in layouts[given][0]:
                    names[number] = Slot(given)
                    continue
            elif step.name == "permute" and before is not None and before.name == "permute":
                order = [before.args[1][d] for d in step.args[1]]
                step = replace(step, args=(before.args[0], tuple(order)))
            makers[number] = step
        kept.append(step)
    return replace(program, steps=kept)


def _is_contiguous_view(step: Step, layouts: Layouts) -> bool:
    """True if a view has all elements of a contiguous array in order."""
    given, made = layouts.get(step.args[0].number), layouts.get(step.out.number)
    if given is None or made is None or not given[2] or not made[2]:
        return False
    return given[1] == made[1] and math.prod(given[0]) == math.prod(made[0])
