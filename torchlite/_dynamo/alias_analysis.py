"""Alias analysis: which slots of a program share memory, and which memory is written or escapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .pointwise_fusion import is_ufunc, without_layout_wrapper
from .program_ir import Layouts, Program, Slot, Step
from .side_effects import is_pure


class AliasAnalysis:
    """Sharing, writes and escapes of the memory of a program's slots. place: slots with the same number share memory."""

    def __init__(self, program: Program, place: dict[int, int]) -> None:
        self.place = place
        seen = {*program.outputs, *program.inputs, *program.constants, *program.held}
        self.written: set[int] = set()
        for step in program.steps:
            seen.update(slot.number for _, slot in step.grads if slot is not None)
            if step.name == "_cow_clone" or step.kind != "kernel":  # writes only to private memory
                seen.update((*step.uses(), *step.makes()))
            if not is_pure(step):
                self.written.update(map(self.of, step.uses()))
        self.seen = set(map(self.of, seen))

    def of(self, number: int) -> Any:
        """Return the memory number of a slot; an unknown slot has its own memory."""
        return self.place.get(number, (number,))

    def is_plain(self, number: int) -> bool:
        """True if a slot's memory does not escape and only its producer writes it."""
        return number in self.place and self.of(number) not in self.seen | self.written

    def is_view(self, step: Step) -> bool:
        """True if the step's result aliases one of its inputs."""
        given = set(map(self.of, step.uses()))
        return any(self.of(n) in given for n in step.makes())


def reuse_buffers(program: Program, layouts: Layouts, place: dict[int, int]) -> Program:
    """Let ufuncs write their results to the memory of dead operands; escaping memory is not reused."""
    memory = AliasAnalysis(program, place)
    last = {memory.of(n): at for at, step in enumerate(program.steps) for n in (*step.uses(), *step.makes())}
    steps = []
    for at, step in enumerate(program.steps):
        dying = [n for n in step.uses() if last[memory.of(n)] == at and memory.is_plain(n)]
        target = next((n for n in dying if _can_write_into(step, n, layouts)), None)
        if target is not None and memory.of(step.out.number) not in memory.seen:
            step = replace(step, kwargs={"out": Slot(target)})
        steps.append(step)
    return replace(program, steps=steps)


def _can_write_into(step: Step, target: int, layouts: Layouts) -> bool:
    """True if a step can write to a slot."""
    if step.out.__class__ is not Slot or not is_ufunc(step) or hasattr(without_layout_wrapper(step.kernel), "plain"):
        return False  # kernels of engines have no `out`
    made, given = layouts.get(step.out.number), layouts.get(target)
    return made is not None and made == given and made[2] and made[0] != ()
