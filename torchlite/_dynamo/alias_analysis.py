"""Alias analysis: which slots of a program share memory, and which memory is written or escapes."""

from __future__ import annotations

from typing import Any

from .program_ir import Program, Step
from .step_purity import is_pure


class AliasAnalysis:
    """Sharing, writes and escapes of the memory of a program's slots. place: slots with the same number share
    memory.
    """

    def __init__(self, program: Program, place: dict[int, int]) -> None:
        self.place = place
        seen = {*program.outputs, *program.inputs, *program.constants, *program.held}
        self.written: set[int] = set()
        for step in program.steps:
            seen.update(slot.number for _, slot in step.grads if slot is not None)
            if step.name == "_cow_clone" or step.kind != "kernel":  # writes only to private memory
                seen.update((*step.uses(), *step.makes()))
            if not is_pure(step) and step.kind != "read":
                self.written.update(map(self.of, step.uses()))
        self.seen = set(map(self.of, seen))
        self._fixed = self.seen | self.written

    def of(self, number: int) -> Any:
        """Return the memory number of a slot; an unknown slot has its own memory."""
        return self.place.get(number, (number,))

    def is_plain(self, number: int) -> bool:
        """True if a slot's memory does not escape and only its producer writes it."""
        return number in self.place and self.of(number) not in self._fixed

    def is_view(self, step: Step) -> bool:
        """True if the step's result aliases one of its inputs."""
        given = set(map(self.of, step.uses()))
        return any(self.of(n) in given for n in step.makes())
