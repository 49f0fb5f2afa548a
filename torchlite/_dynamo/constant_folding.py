"""Constant folding: evaluates steps that depend on constants only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torchlite._dispatch.backend import owner_of
from torchlite._settings.equal_arrays import share_equal

from .alias_analysis import AliasAnalysis
from .program_ir import Program, Step, run_step
from .step_purity import is_pure

_MAX_FOLDED_ELEMENTS = 1 << 16  # maximum size of a constant, unless an array of the module is larger


def fold_constants(program: Program, place: dict[int, int], table: Any) -> Program:
    """Evaluate steps that depend on constants only, if no step writes the result. The value is stored. Reads of
    constants are removed: they check what cannot change.
    """
    memory = AliasAnalysis(program, place)
    fixed = memory.written | _visible_memory(program, memory)
    shared = [number for number in program.constants if memory.of(number) not in fixed]
    held = program.held | {number: program.constants[number] for number in shared}
    constants = {number: raw for number, raw in program.constants.items() if number not in held}
    limit = max([_MAX_FOLDED_ELEMENTS, *[raw.size for raw in program.held.values()]])
    steps = []
    for step in program.steps:
        if step.kind == "read" and all(n in held for n in step.uses()):
            continue
        found = _evaluate(step, held, table) if _is_foldable(step, memory, fixed, held) else None
        if found is None or any(raw.size > limit for raw in found.values()):
            steps.append(step)
        else:
            held.update(found)
    return replace(program, steps=steps, constants=constants, held=held)


def _visible_memory(program: Program, memory: AliasAnalysis) -> set:
    """Return the memory that callers see, or that a copy on write may share."""
    numbers = {*program.shown(), *program.inputs}
    for step in program.steps:
        if step.name == "_cow_clone" or step.kind == "object":
            numbers.update(step.uses(), step.makes())
    return set(map(memory.of, numbers))


def _is_foldable(step: Step, memory: AliasAnalysis, fixed: set, held: dict[int, Any]) -> bool:
    """True if a step is pure, reads constants only, and makes arrays that nothing writes and no caller sees."""
    return (
        is_pure(step)
        and step.out is not None
        and all(n in held for n in step.uses())
        and all(n in memory.place and memory.of(n) not in fixed for n in step.makes())
    )


def _evaluate(step: Step, held: dict[int, Any], table: Any) -> dict[int, Any]:
    """Return the arrays that a step makes of constants, by slot."""
    made = run_step(step, held)
    found = {n: raw if raw.__class__ is table.array else table.as_array(raw) for n, raw in made.items()}
    return {n: share_equal(raw) if _is_new(raw, step, held) else raw for n, raw in found.items()}


def _is_new(raw: Any, step: Step, held: dict[int, Any]) -> bool:
    """True if the step made the array's memory: it is neither an argument nor a view of one."""
    return owner_of(raw) is raw and all(raw is not held[n] for n in step.uses())
