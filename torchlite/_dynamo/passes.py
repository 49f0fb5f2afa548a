"""Passes over programs. Each takes a program and gives one that does the same."""

from __future__ import annotations

from dataclasses import replace

from .effects import is_pure
from .program import Program


def without_dead_code(program: Program) -> Program:
    """Leave out steps whose results nobody uses: those of ops that neither write nor draw."""
    wanted, kept = set(program.outputs), []
    for step in reversed(program.steps):
        if not is_pure(step) or any(number in wanted for number in step.makes()):
            kept.append(step)
            wanted.update(step.uses())
    constants = {number: raw for number, raw in program.constants.items() if number in wanted}
    return replace(program, steps=kept[::-1], constants=constants)
