"""Dead code elimination: removes pure steps with unused results."""

from __future__ import annotations

from dataclasses import replace

from .program_ir import Program
from .step_purity import is_pure


def eliminate_dead_code(program: Program) -> Program:
    """Remove pure steps with unused results."""
    wanted, kept = set(program.outputs), []
    for step in reversed(program.steps):
        if not is_pure(step) or any(number in wanted for number in step.makes()):
            kept.append(step)
            wanted.update(step.uses())
    constants = {number: raw for number, raw in program.constants.items() if number in wanted}
    held = {number: raw for number, raw in program.held.items() if number in wanted}
    return replace(program, steps=kept[::-1], constants=constants, held=held)
