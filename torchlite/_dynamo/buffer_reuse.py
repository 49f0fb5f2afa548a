"""Buffer reuse: lets ufuncs write results to the memory of dead operands."""

from __future__ import annotations

from dataclasses import replace

from .alias_analysis import AliasAnalysis
from .pointwise_fusion import is_ufunc, unwrap_layout_wrapper
from .program_ir import Layouts, Program, Slot, Step


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
    if step.out.__class__ is not Slot or not is_ufunc(step) or hasattr(unwrap_layout_wrapper(step.kernel), "plain"):
        return False  # kernels of engines have no `out`
    made, given = layouts.get(step.out.number), layouts.get(target)
    return made is not None and made == given and made[2] and made[0] != ()
