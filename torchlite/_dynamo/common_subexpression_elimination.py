"""Common subexpression elimination: removes steps that repeat an earlier computation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .alias_analysis import AliasAnalysis
from .program_ir import Program, Slot, Step, comparison_key, rename_slots
from .step_purity import is_pure


def eliminate_common_subexpressions(program: Program, place: dict[int, int]) -> Program:
    """Remove steps that repeat an earlier computation, if the results are not written and the later one does not
    escape. A write or a random draw ends the search. Updates `place`: views of the later result are views of the first.
    """
    memory, shown = AliasAnalysis(program, place), program.shown()
    members: dict[int, list[int]] = {}  # slots by the memory that they lie in
    for number, found in place.items():
        members.setdefault(found, []).append(number)
    known: dict[Any, Step] = {}
    names: dict[int, Slot] = {}
    kept: list[Step] = []
    for step in program.steps:
        step = rename_slots(step, names)
        if not is_pure(step):
            known.clear()
        elif step.out is not None:
            key = id(step.kernel), comparison_key(step.args), comparison_key(step.kwargs)
            first = known.setdefault(key, step)
            if first is not step and _is_replaceable_by(first, step, memory, shown):
                names.update(zip(step.makes(), map(Slot, first.makes()), strict=True))
                _join_memory(step, first, place, members)
                continue
        kept.append(step)
    return replace(program, steps=kept)


def _join_memory(step: Step, first: Step, place: dict[int, int], members: dict[int, list[int]]) -> None:
    """Note that what lies in the memory of a step's results lies in that of an earlier step's."""
    joined = {place[a]: place[b] for a, b in zip(step.makes(), first.makes(), strict=True) if {a, b} <= place.keys()}
    for old, new in joined.items():
        if old != new:
            moved = members.pop(old)
            members[new] += moved
            place.update(dict.fromkeys(moved, new))


def _is_replaceable_by(first: Step, step: Step, memory: AliasAnalysis, shown: set[int]) -> bool:
    """True if an earlier step's results can replace those of a step."""
    if memory.is_view(step):
        return memory.is_view(first) and not any(n in shown for n in step.makes())
    fresh = all(memory.of(n) not in memory.written for n in first.makes())
    return fresh and all(map(memory.is_plain, step.makes()))
