"""Constant folding: evaluates steps that depend on constants only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .alias_analysis import AliasAnalysis
from .program_ir import Program, Slot, Step, substitute_arrays
from .step_purity import is_pure

_MAX_FOLDED_BYTES = 1 << 16  # maximum size of a constant


def fold_constants(program: Program, place: dict[int, int], table: Any) -> Program:
    """Evaluate steps that depend on constants only, if no step writes the result. The value is stored."""
    memory = AliasAnalysis(program, place)
    shared_constants = dict(program.held)
    constants = dict(program.constants)
    for number in program.constants:
        uses = [step for step in program.steps if number in step.uses()]
        if (
            number not in program.outputs
            and memory.of(number) not in memory.written
            and not any(memory.is_view(step) or not is_pure(step) for step in uses)
        ):
            shared_constants[number] = constants.pop(number)
    steps = []
    for step in program.steps:
        found = (
            _fold_step(step, memory, shared_constants, table) if is_pure(step) and step.out.__class__ is Slot else None
        )
        if found is None:
            steps.append(step)
        else:
            shared_constants[step.out.number] = found
    return replace(program, steps=steps, constants=constants, held=shared_constants)


def _fold_step(step: Step, memory: AliasAnalysis, held: dict[int, Any], table: Any) -> Any:
    """Return a step's value from constants, None if it reads other arrays or its memory escapes."""
    if not memory.is_plain(step.out.number) or any(n not in held for n in step.uses()):
        return None
    values = {n: Slot(n) for n in step.uses()}
    arrays = {slot: held[n] for n, slot in values.items()}
    found = step.kernel(
        *substitute_arrays(step.args, arrays), **dict(substitute_arrays(tuple(step.kwargs.items()), arrays))
    )
    found = found if found.__class__ is table.array else table.as_array(found)
    return found if found.size <= _MAX_FOLDED_BYTES else None
